//! What happens to a member: everything that the machine is told.

use super::group::Group;
use super::settings::LeaseSettings;
use crate::error::Invalid;
use crate::leader::{HookEnd, HookId, OperationId};
use crate::store::{
    Acquired, Beaten, GroupDocument, Holder, Incarnation, LeaseNotice, Member, SessionStart,
    StoreErrorKind, Tenure,
};
use crate::worker::{WORKER_WEIGHT_MAX, WORKER_WEIGHT_MIN, is_weight};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The member shall begin: take its name and take part.
    Start,
    /// The store is reached, for the first time or again, and says which life
    /// it is in. Notices may have been missed.
    Connected(Incarnation),
    /// An operation on the store came to an end.
    Reply(OperationId, Reply),
    /// The store told something. A hint: it may be late, repeated or never
    /// come.
    Noticed(LeaseNotice),
    /// A hook that had to wait for its turn begins. Only sent where
    /// [`MemberSetup::hooks_wait`](super::MemberSetup::hooks_wait) says that
    /// they have to.
    HookBegun(HookId),
    /// A start or stop hook came to an end.
    HookEnded(HookId, HookEnd),
    /// What this worker says of itself has changed.
    Described(SelfDescription),
    /// The groups of this worker's own settings have changed.
    Regrouped(Vec<Group>),
    /// Settings have changed that have been checked: those of
    /// [`LeaseSettings::tuned`](super::LeaseSettings::tuned) count from now on.
    Tuned(Box<LeaseSettings>),
    /// Whether this worker shall give up everything and take nothing, by its
    /// own people.
    DrainAsked(bool),
    /// Somebody knows that something has changed: look at everything now.
    RefreshRequested,
    /// The member shall stop. Handled once.
    Stop,
}

/// How an operation on the store ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// What became of the wish for a session.
    Session(SessionStart),
    /// What came of a heartbeat.
    Beaten(Beaten),
    /// Whether the session that was left was current.
    Left(Tenure),
    /// The live workers, and what operators wish.
    Members(Vec<Member>, Option<String>),
    /// The documents of all groups.
    Groups(Vec<GroupDocument>),
    /// Who holds each lease, in the order that was asked in.
    Holders(Vec<Option<Holder>>),
    /// Which partitions were moved lately, in the order that was asked in.
    Cooling(Vec<bool>),
    /// What became of the wish for each lease.
    Acquired(Vec<Acquired>),
    /// Whether each tenure was current, for renewals and releases.
    Tenures(Vec<Tenure>),
    /// It is done, and gives nothing back.
    Done,
    /// It failed, for the reason that the words tell. After
    /// [`StoreErrorKind::Unknown`] it may have happened, or may still happen
    /// later, once.
    Failed(StoreErrorKind, Box<str>),
}

/// What a worker says of itself, beside its name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfDescription {
    /// Whether it may take partitions. One that may not gives up what it has,
    /// as soon as another can take it.
    pub healthy: bool,
    /// Its capacity in relation to the others; 0 takes nothing.
    pub weight: f64,
}

impl SelfDescription {
    /// Whether a worker can be like that.
    pub fn check(&self) -> Result<(), Invalid> {
        match is_weight(self.weight) {
            true => Ok(()),
            false => {
                let rule = format!("must be 0 or in {WORKER_WEIGHT_MIN}..={WORKER_WEIGHT_MAX}");
                Err(Invalid::new("weight", self.weight, rule))
            }
        }
    }
}
