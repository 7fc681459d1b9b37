//! How what happens is told in a trace.

use divvy_core::leader::{Action, Committed, Event, Holding, Operation, Reply};
use divvy_core::store::Outcome;

/// Most partitions of a root that a trace names.
const ROOT_SHOWN_MAX: usize = 1024;

pub(super) fn describe_root(root: &Committed) -> String {
    if root.partitions.len() > ROOT_SHOWN_MAX {
        let (version, count) = (root.root.version, root.partitions.len());
        return format!("root {version}: {count} partitions");
    }
    let mut text = format!(
        "root {}{}:",
        root.root.version,
        if root.root.quarantine {
            " in quarantine"
        } else {
            ""
        }
    );
    for (partition, holding) in root.partitions.iter().zip(&root.root.holdings) {
        let session = |index: u32| {
            let entry = root.root.sessions.get(index as usize);
            entry.map_or("?", |entry| &*entry.worker)
        };
        let shown = match *holding {
            Holding::None => " -".to_owned(),
            Holding::Held { session: index, .. } => format!(" {}", session(index)),
            Holding::Revoking {
                session: index,
                since,
            } => {
                format!(" !{}@{since}", session(index))
            }
        };
        text.push_str(&format!(" {partition}{shown}"));
    }
    text
}

pub(super) fn describe_event(event: &Event) -> String {
    match event {
        Event::Reply(id, reply) => format!("reply {} {}", id.0, describe_reply(reply)),
        Event::Seen(change) => format!("seen {} at {}", change.key(), change.revision()),
        Event::Partitions(Ok(partitions)) => format!("{} partitions", partitions.len()),
        Event::Partitions(Err(why)) => format!("no partitions: {why}"),
        other => format!("{other:?}"),
    }
}

fn describe_reply(reply: &Reply) -> String {
    match reply {
        Reply::Got(None) => "nothing".to_owned(),
        Reply::Got(Some(entry)) => format!("{} at {}", entry.key, entry.revision),
        Reply::Listed(entries) => {
            let shown = entries.iter();
            let shown: Vec<String> = shown
                .map(|entry| format!("{}@{}", entry.key, entry.revision))
                .collect();
            format!("[{}]", shown.join(" "))
        }
        Reply::Written(Outcome::Done(revision)) => format!("written at {revision}"),
        Reply::Deleted(Outcome::Done(revision)) => format!("deleted at {revision}"),
        Reply::Written(Outcome::Conflict) | Reply::Deleted(Outcome::Conflict) => {
            "conflict".to_owned()
        }
        Reply::Failed(kind) => format!("failed: {kind:?}"),
    }
}

pub(super) fn describe_action(action: &Action) -> String {
    match action {
        Action::Store { id, operation, .. } => {
            let shown = match operation {
                Operation::Get(key) => format!("get {key}"),
                Operation::List(prefix) => format!("list {}", prefix.text()),
                Operation::CompareAndSet {
                    key,
                    expected,
                    value,
                } => format!("set {key} over {expected:?}, {} bytes", value.len()),
                Operation::Delete { key, revision } => format!("delete {key} at {revision}"),
            };
            format!("op {} {shown}", id.0)
        }
        Action::StartPartition {
            partition, token, ..
        } => format!("start {partition} with {token}"),
        Action::StopPartition { partition, .. } => format!("stop {partition}"),
        other => format!("{other:?}"),
    }
}
