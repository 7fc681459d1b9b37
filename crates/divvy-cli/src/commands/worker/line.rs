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
        EventKind::Waiting { why } => ("waiting", json!({"why": why})),
        EventKind::LeaseRegained { after } => (
            "lease_regained",
            json!({"after_us": u64::try_from(after.as_micros()).unwrap_or(u64::MAX)}),
        ),
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
        EventKind::Error(error) => (
            "error",
            json!({"kind": error.kind(), "message": error.to_string()}),
        ),
        EventKind::Lost { count } => ("lost", json!({"count": count})),
        EventKind::Ended => ("ended", json!({})),
        other => ("other", json!({"message": format!("{other:?}")})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use divvy::manager::{ManagerError, State, Version};
    use divvy::store::Token;

    /// One of each.
    fn kinds() -> Vec<EventKind> {
        let (partition, token) = ("p:0".parse().unwrap(), Token::new(1).unwrap());
        let partition: divvy::Partition = partition;
        let version = Version {
            epoch: 1,
            number: 2,
        };
        let (worker, session) = ("worker-0".into(), SessionId(1));
        vec![
            EventKind::StateChanged {
                from: State::Init,
                to: State::Stable,
            },
            EventKind::Claimed {
                worker: "worker-0".into(),
            },
            EventKind::SessionEnded {
                why: "fenced".into(),
            },
            EventKind::Waiting {
                why: "for more workers".into(),
            },
            EventKind::LeaseRegained {
                after: std::time::Duration::from_secs(1),
            },
            EventKind::Deadline {
                identity: Some((worker, session)),
                until: Some(Moment::default()),
            },
            EventKind::Adopted {
                session: Some(session),
                version,
                lifecycle: Lifecycle::Stable,
            },
            EventKind::Assigned {
                partition: partition.clone(),
                token,
            },
            EventKind::Started {
                partition: partition.clone(),
                failed: false,
            },
            EventKind::Revoked {
                partition: partition.clone(),
            },
            EventKind::Stopped { partition },
            EventKind::LeadershipChanged { is_leader: true },
            EventKind::Committed {
                version,
                granted: 1,
                revoked: 0,
            },
            EventKind::Error(ManagerError::Problem("it is odd".into())),
            EventKind::Lost { count: 1 },
            EventKind::Ended,
        ]
    }

    #[test]
    fn every_line_is_listed_with_all_its_fields() {
        let told = kinds().into_iter().map(|kind| {
            let (name, fields) = parts(&kind);
            let fields = fields.as_object().unwrap().keys();
            let words: Vec<_> = [name]
                .into_iter()
                .chain(fields.map(String::as_str))
                .collect();
            words.join(" ")
        });
        let told: Vec<_> = told.collect();
        // The guide is held to the same list by a test that sees both.
        let listed: Vec<_> = include_str!("lines.txt").lines().collect();
        assert_eq!(told, listed);
    }

    #[test]
    fn every_line_is_in_the_help() {
        let commands = crate::args::Args::command();
        let worker = commands.find_subcommand("worker").unwrap();
        let help = worker.get_long_about().unwrap().to_string();
        for kind in kinds() {
            let (name, _) = parts(&kind);
            assert!(help.contains(name), "{name} is not in the help");
        }
    }
}
