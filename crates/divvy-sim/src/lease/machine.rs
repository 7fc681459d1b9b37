//! The machine of lease mode, as a world drives it and tells of it.

use divvy_core::Moment;
use divvy_core::leader::Clock;
use divvy_core::lease::{Action, Event, Member, Operation, Reply};
use divvy_core::store::{Acquired, Claim, LeaseKey, LeaseNotice, StoreErrorKind};

use crate::world::{Machine, Occasion};

impl Machine for Member {
    type Event = Event;
    type Action = Action;
    type Operation = Operation;
    type Reply = Reply;
    type News = LeaseNotice;

    fn wake(&mut self, clock: Clock) {
        Self::wake(self, clock.now);
    }

    fn handle(&mut self, clock: Clock, event: Event) {
        Self::handle(self, clock.now, event);
    }

    fn hear(&mut self, clock: Clock, _connection: u64, event: Event) {
        Machine::handle(self, clock, event);
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
            Occasion::News(notice) => Event::Noticed(notice),
            Occasion::Reply(id, reply) => Event::Reply(id, reply),
            Occasion::HookBegun(id) => Event::HookBegun(id),
            Occasion::HookEnded(id, end) => Event::HookEnded(id, end),
            Occasion::Refresh => Event::RefreshRequested,
        }
    }

    fn is_write(operation: &Operation) -> bool {
        !matches!(
            operation,
            Operation::Members | Operation::Groups | Operation::Holders(_) | Operation::Cooling(_)
        )
    }

    fn is_grant(reply: &Reply) -> bool {
        let granted = |one: &Acquired| matches!(one, Acquired::Granted(_));
        matches!(reply, Reply::Acquired(acquired) if acquired.iter().any(granted))
    }

    fn failed(kind: StoreErrorKind, why: &str) -> Reply {
        Reply::Failed(kind, why.into())
    }

    fn leads(&self) -> bool {
        false
    }

    fn describe_event(event: &Event) -> String {
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

    fn describe_action(action: &Action) -> String {
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
            Acquired::Quarantined => "quarantined".to_owned(),
        })),
        Reply::Tenures(tenures) => joined(tenures.iter().map(|one| format!("{one:?}"))),
        other => format!("{other:?}"),
    }
}

pub(super) fn describe_operation(operation: &Operation) -> String {
    match operation {
        Operation::OpenSession { session, ttl } => format!("open {session} for {ttl:?}"),
        Operation::Beat(heartbeat) => {
            let (info, report) = (&heartbeat.info, &heartbeat.report);
            let health = if info.healthy { "well" } else { "not well" };
            format!(
                "beat {}, weight {}, {health}, longest lease {:?}, waited {:?}",
                heartbeat.session, info.weight, report.longest_lease, report.waited
            )
        }
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
