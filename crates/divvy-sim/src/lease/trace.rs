//! How what happens is told in a trace.

use divvy_core::lease::{Action, Event, Operation, Reply};
use divvy_core::store::{Acquired, Claim, LeaseKey};

pub(super) fn describe_event(event: &Event) -> String {
    match event {
        Event::Reply(id, reply) => format!("reply {} {}", id.0, describe_reply(reply)),
        Event::Noticed(notice) => format!("notice: {notice:?}"),
        Event::Regrouped(groups) => {
            let groups = groups.iter();
            let groups = groups.map(|group| format!("{}/{}", group.name(), group.partitions()));
            format!("groups {}", joined(groups))
        }
        other => format!("{other:?}"),
    }
}

pub(super) fn describe_reply(reply: &Reply) -> String {
    match reply {
        Reply::Members(members, _) => {
            let names = members.iter().map(|member| member.name.clone());
            format!("members {}", joined(names))
        }
        Reply::Groups(groups) => {
            let names = groups.iter().map(|group| group.name.clone());
            format!("groups {}", joined(names))
        }
        Reply::Holders(holders) => {
            let holders = holders.iter().map(|holder| match holder {
                None => "-".to_owned(),
                Some(holder) => format!("{}/{:?}", holder.worker, holder.left),
            });
            format!("held by {}", joined(holders))
        }
        Reply::Cooling(cooling) => {
            let count = cooling.iter().filter(|cooling| **cooling).count();
            format!("{count} are cooling")
        }
        Reply::Acquired(acquired) => joined(acquired.iter().map(|one| match one {
            Acquired::Granted(token) => format!("granted {token}"),
            Acquired::Held => "held".to_owned(),
            Acquired::Quarantined(left) => format!("quarantined for {left:?}"),
        })),
        Reply::Tenures(tenures) => joined(tenures.iter().map(|one| format!("{one:?}"))),
        other => format!("{other:?}"),
    }
}

pub(super) fn describe_operation(operation: &Operation) -> String {
    match operation {
        Operation::OpenSession { session, ttl } => format!("open {session} for {ttl:?}"),
        Operation::Beat { session, info, .. } => format!(
            "beat {session}, weight {}, {}",
            info.weight,
            if info.healthy { "well" } else { "not well" }
        ),
        Operation::Holders(keys) => format!("holders of {}", keyed(keys)),
        Operation::Cooling(keys) => format!("cooling of {}", keyed(keys)),
        Operation::Acquire { claims, .. } => format!("acquire {}", claimed(claims)),
        Operation::Renew { claims, .. } => format!("renew {}", claimed(claims)),
        Operation::Release { claims } => format!("release {}", claimed(claims)),
        Operation::MarkMoved { keys, cooldown } => {
            format!("mark {} for {cooldown:?}", keyed(keys))
        }
        other => format!("{other:?}"),
    }
}

pub(super) fn describe_action(action: &Action) -> String {
    match action {
        Action::Store { id, operation, .. } => {
            format!("op {} {}", id.0, describe_operation(operation))
        }
        Action::StartPartition {
            key,
            token,
            tenure,
            until,
            ..
        } => {
            format!("start {key} with {token} as {} until {until:?}", tenure.0)
        }
        Action::StopPartition {
            key,
            tenure,
            reason,
            ..
        } => format!("stop {key} as {}: {reason}", tenure.0),
        Action::Deadline { tenures, until } => {
            let tenures = tenures.iter().map(|tenure| tenure.0.to_string());
            format!("deadline of {}: {until:?}", joined(tenures))
        }
        other => format!("{other:?}"),
    }
}

fn keyed(keys: &[LeaseKey]) -> String {
    joined(keys.iter().map(LeaseKey::to_string))
}

fn claimed(claims: &[Claim]) -> String {
    joined(claims.iter().map(|claim| {
        let nonce = claim.nonce.to_string();
        format!("{}/{}", claim.key, &nonce[..4])
    }))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}
