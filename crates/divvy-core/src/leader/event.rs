//! What happens to a member: everything that the machine is told.

use super::action::{HookId, OperationId};
use super::record::Shutdown;
use crate::error::{Error, Invalid};
use crate::moment::Moment;
use crate::partition::Partitions;
use crate::store::{Change, Entry, Incarnation, Outcome, Revision, StoreErrorKind};
use crate::worker::{Health, Worker};

/// The clocks of a member when something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Its own clock: monotonic, and counting suspends.
    pub now: Moment,
    /// Its wall clock, for the floor of epochs only, never for a deadline.
    pub unix_ms: u64,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The member shall begin: claim an id and take part.
    Start,
    /// The store is reached, for the first time or again, and says which life
    /// it is in. Whatever was watched may have been missed.
    Connected(Incarnation),
    /// An operation on the store came to an end.
    Reply(OperationId, Reply),
    /// A watch saw a change. A hint: it may be late, repeated or never come.
    Seen(Change),
    /// Watches may have missed changes.
    Missed,
    /// The source of partitions answered, or failed with this message.
    Partitions(Result<Partitions, String>),
    /// A hook that had to wait for its turn begins. Only sent where
    /// [`MemberSetup::hooks_wait`](super::MemberSetup::hooks_wait) says that
    /// they have to.
    HookBegun(HookId),
    /// A start or stop hook came to an end.
    HookEnded(HookId, HookEnd),
    /// The process was stopped for longer than its clocks agree on, or a
    /// suspend was seen: the session is over.
    Suspended,
    /// What this worker says of itself has changed.
    Described(SelfDescription),
    /// The application knows that partitions have changed.
    RefreshRequested,
    /// The external election agent answered: whether this member may lead.
    /// Only sent where one is used.
    Elected(bool),
    /// The member shall stop. Handled once.
    Stop(Shutdown),
}

/// How an operation on the store ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The value of a key, or none.
    Got(Option<Entry>),
    /// The values below a prefix.
    Listed(Vec<Entry>),
    /// A conditional write: done at this revision, or lost.
    Written(Outcome<Revision>),
    /// A conditional deletion.
    Deleted(Outcome<Revision>),
    /// It failed. After [`StoreErrorKind::Unknown`] it may have happened, or
    /// may still happen later, once.
    Failed(StoreErrorKind),
}

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEnd {
    /// It did what it was asked to.
    Done,
    /// It failed or panicked. A start hook that fails leaves nothing running;
    /// a stop hook that fails is taken as stopped.
    Failed,
    /// A start hook was ended in the middle of what it did, because
    /// [`Action::CancelStart`](super::Action::CancelStart) asked for it: what it
    /// began has to be stopped.
    Cancelled,
}

/// What a worker says of itself, beside its id.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfDescription {
    /// Whether it may own partitions.
    pub health: Health,
    /// Its capacity in relation to the others.
    pub weight: f64,
    /// Its zone, if zones matter.
    pub zone: Option<Box<str>>,
}

impl SelfDescription {
    /// Whether a worker can be like that: the rules are those of
    /// [`Worker`](crate::Worker).
    pub fn check(&self) -> Result<(), Invalid> {
        let worker = Worker::new("w").and_then(|worker| worker.with_weight(self.weight));
        let worker = worker.and_then(|worker| match &self.zone {
            Some(zone) => worker.with_zone(zone.clone()),
            None => Ok(worker),
        });
        match worker {
            Err(Error::Invalid(invalid)) => Err(invalid),
            Err(other) => Err(Invalid::new("worker", other, "cannot be")),
            Ok(_) => Ok(()),
        }
    }
}
