//! An event as one line of JSON.

use divvy::Moment;
use divvy::manager::{EventKind, Lifecycle, ManagerEvent, SessionId, state_name};
use serde_json::{Value, json};

/// The line of an event of this instance. Times are microseconds of the clock
/// that all processes of a machine share; tokens are texts, for JavaScript
/// would round them.
pub(super) fn line(instance: &str, event: &ManagerEvent) -> Value {
    let (name, rest) = parts(&event.kind);
    let mut line = json!({"at_us": micros(event.at), "instance": instance, "event": name});
    if let (Value::Object(line), Value::Object(rest)) = (&mut line, rest) {
        line.extend(rest);
    }
    line
}

pub(super) fn micros(moment: Moment) -> u64 {
    u64::try_from(moment.to_origin().as_micros()).unwrap_or(u64::MAX)
}

fn session(id: SessionId) -> String {
    format!("{:032x}", id.0)
}

fn lifecycle_name(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::ColdStart => "cold_start",
        Lifecycle::PostColdStart => "post_cold_start",
        Lifecycle::Stable => "stable",
    }
}

fn parts(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::StateChanged { from, to } => (
            "state_changed",
            json!({"from": state_name(*from), "to": state_name(*to)}),
        ),
        EventKind::Claimed { worker } => ("claimed", json!({"worker": worker})),
        EventKind::SessionEnded { why } => ("session_ended", json!({"why": why})),
        EventKind::Deadline { identity, until } => (
            "deadline",
            json!({
                "worker": identity.as_ref().map(|(worker, _)| worker),
                "session": identity.as_ref().map(|(_, id)| session(*id)),
                "until_us": until.map(micros),
            }),
        ),
        EventKind::Adopted {
            session: of,
            version,
            lifecycle,
        } => (
            "adopted",
            json!({
                "session": of.map(session),
                "epoch": version.epoch,
                "version": version.number,
                "lifecycle": lifecycle_name(*lifecycle),
            }),
        ),
        EventKind::Assigned { partition, token } => (
            "assigned",
            json!({"partition": partition.as_str(), "token": token.get().to_string()}),
        ),
        EventKind::Started { partition, failed } => (
            "started",
            json!({"partition": partition.as_str(), "failed": failed}),
        ),
        EventKind::Revoked { partition } => ("revoked", json!({"partition": partition.as_str()})),
        EventKind::Stopped { partition } => ("stopped", json!({"partition": partition.as_str()})),
        EventKind::LeadershipChanged { is_leader } => {
            ("leadership_changed", json!({"is_leader": is_leader}))
        }
        EventKind::Committed {
            version,
            granted,
            revoked,
        } => (
            "committed",
            json!({
                "epoch": version.epoch,
                "version": version.number,
                "granted": granted,
                "revoked": revoked,
            }),
        ),
        EventKind::Error(error) => ("error", json!({"message": error.to_string()})),
        EventKind::Lost { count } => ("lost", json!({"count": count})),
        EventKind::Ended => ("ended", json!({})),
        other => ("other", json!({"message": format!("{other:?}")})),
    }
}
