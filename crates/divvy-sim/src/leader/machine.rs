//! The machine of leader mode, as a world drives it and tells of it.

use std::sync::Arc;

use divvy_core::Moment;
use divvy_core::leader::{Action, Clock, Committed, Event, Holding, Member, Operation, Reply};
use divvy_core::store::{Change, Outcome, StoreErrorKind};

use crate::world::{Machine, Occasion};

/// Most partitions of a root that a trace names.
const ROOT_SHOWN_MAX: usize = 1024;

impl Machine for Member {
    type Event = Event;
    type Action = Action;
    type Operation = Operation;
    type Reply = Reply;
    type News = Arc<Change>;

    fn wake(&mut self, clock: Clock) {
        Self::wake(self, clock);
    }

    fn handle(&mut self, clock: Clock, event: Event) {
        Self::handle(self, clock, event);
    }

    fn hear(&mut self, clock: Clock, connection: u64, event: Event) {
        Self::hear(self, clock, Some(connection), event);
    }

    fn next_action(&mut self) -> Option<Action> {
        Self::next_action(self)
    }

    fn next_wake(&self) -> Option<Moment> {
        Self::next_wake(self)
    }

    // Every caller knows the occasion: nothing is left of it in place.
    #[inline(always)]
    fn event(occasion: Occasion<Self>) -> Event {
        match occasion {
            Occasion::Start => Event::Start,
            Occasion::Connected(incarnation) => Event::Connected(incarnation),
            Occasion::News(change) => Event::Seen((*change).clone()),
            Occasion::Reply(id, reply) => Event::Reply(id, reply),
            Occasion::HookBegun(id) => Event::HookBegun(id),
            Occasion::HookEnded(id, end) => Event::HookEnded(id, end),
            Occasion::Refresh => Event::RefreshRequested,
        }
    }

    fn is_write(operation: &Operation) -> bool {
        operation.is_write()
    }

    fn failed(kind: StoreErrorKind, _why: &str) -> Reply {
        Reply::Failed(kind)
    }

    fn leads(&self) -> bool {
        self.is_leader()
    }

    fn describe_event(event: &Event) -> String {
        match event {
            Event::Reply(id, reply) => format!("reply {} {}", id.0, describe_reply(reply)),
            Event::Seen(change) => format!("seen {} at {}", change.key(), change.revision()),
            Event::Partitions(Ok(partitions)) => format!("{} partitions", partitions.len()),
            Event::Partitions(Err(why)) => format!("no partitions: {why}"),
            other => format!("{other:?}"),
        }
    }

    fn describe_action(action: &Action) -> String {
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
}

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
