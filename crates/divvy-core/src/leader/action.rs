//! What a member does: everything that the machine asks of its driver.

use std::sync::Arc;

use super::record::{Lifecycle, State, Version};
use crate::moment::Moment;
use crate::partition::Partition;
use crate::store::{Expected, Key, Prefix, Revision, Token};

/// One operation on the store; its reply carries it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

/// One call of a hook; its end carries it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HookId(pub u64);

/// Something to do. Drivers do it and nothing else: whatever follows from its
/// outcome is the machine's to decide.
#[derive(Debug, Clone)]
pub enum Action {
    /// Carry out an operation on the store, within `timeout`, and hand back a
    /// [`Reply`](super::Reply). Operations may overtake each other.
    Store {
        /// Which operation this is.
        id: OperationId,
        /// What to do.
        operation: Operation,
        /// How long to wait for it.
        timeout: std::time::Duration,
    },
    /// Watch these keys from now on, instead of those named before.
    Watch(Vec<Watched>),
    /// Ask the source for its partitions.
    ListPartitions,
    /// Call the start hook. From now on the partition counts as running, and
    /// its grant is current until [`Action::Deadline`] says otherwise.
    StartPartition {
        /// Which call this is.
        id: HookId,
        /// What to start.
        partition: Partition,
        /// The token to hand to every resource.
        token: Token,
    },
    /// A start hook takes far too long: end it, if it can be ended, and hand
    /// back [`HookEnd::Cancelled`](super::HookEnd::Cancelled). One that has
    /// ended meanwhile, or cannot be ended, ends as it does.
    CancelStart(HookId),
    /// The partition of a start hook that may still wait for its turn was asked
    /// back: if it does, end it without calling it, and hand back
    /// [`HookEnd::Failed`](super::HookEnd::Failed).
    WithdrawStart(HookId),
    /// Call the stop hook. The grant is over already, or ends at the deadline.
    StopPartition {
        /// Which call this is.
        id: HookId,
        /// What to stop.
        partition: Partition,
        /// When it must have stopped; beyond it the policy for overdue hooks
        /// takes over.
        deadline: Moment,
    },
    /// Grants are current until this moment and not at it; nothing if none is.
    /// Effects check it before they happen. Nothing ends, for good, whatever
    /// was started before: a later moment is for what is started after it.
    Deadline(Option<Moment>),
    /// Where external election is used: ask to lead, or go on leading.
    RequestLeadership,
    /// Where external election is used: give leadership up.
    ReleaseLeadership,
    /// A hook has outlasted its bound beyond what policy allows, with its
    /// partition perhaps still running: end the process.
    Abort(String),
    /// For people and programs that look on.
    Report(Report),
    /// The member has ended, and wants nothing any more.
    Ended,
}

/// An operation on the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Read a key.
    Get(Key),
    /// Read all keys below a prefix.
    List(Prefix),
    /// Write conditionally.
    CompareAndSet {
        /// What to write to.
        key: Key,
        /// What must be there.
        expected: Expected,
        /// What to write.
        value: Arc<[u8]>,
    },
    /// Delete conditionally.
    Delete {
        /// What to delete.
        key: Key,
        /// The write that must still be the last.
        revision: Revision,
    },
}

impl Operation {
    /// Whether it changes something.
    pub const fn is_write(&self) -> bool {
        match self {
            Self::Get(_) | Self::List(_) => false,
            Self::CompareAndSet { .. } | Self::Delete { .. } => true,
        }
    }
}

/// Keys to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// One key.
    Key(Key),
    /// All keys below a prefix.
    Below(Prefix),
}

/// Why a partition goes from one holder to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handover {
    /// It was asked back: from then until it was stopped.
    AskedBack,
    /// Its holder left.
    Left,
    /// Its holder crashed: from its last sign of life on.
    Crashed,
}

impl Handover {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::AskedBack, Self::Left, Self::Crashed];

    /// The name by which people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AskedBack => "asked_back",
            Self::Left => "left",
            Self::Crashed => "crashed",
        }
    }
}

/// Something worth knowing. None of it has to be acted on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Report {
    /// The member's state changed.
    State {
        /// What it was.
        from: State,
        /// What it is.
        to: State,
    },
    /// A stable id was claimed.
    Claimed(Box<str>),
    /// The session is over; why, in words.
    SessionEnded(Box<str>),
    /// This member began to lead, with this epoch.
    Leading(u64),
    /// This member no longer leads; why, in words.
    LeadingEnded(Box<str>),
    /// A newer assignment is in force here.
    Adopted {
        /// Which.
        version: Version,
        /// The cluster's lifecycle in it.
        lifecycle: Lifecycle,
    },
    /// This leader committed a root: what moved and why is in the log of
    /// moves.
    Committed {
        /// Which.
        version: Version,
        /// How many partitions got a holder.
        granted: u32,
        /// How many were asked back.
        revoked: u32,
        /// Why those that got a holder did, each cause with their number.
        causes: Vec<(Box<str>, u64)>,
        /// Why those that had another holder before lost it, how long that took
        /// until this root, and how many took just as long.
        handovers: Vec<(Handover, std::time::Duration, u64)>,
    },
    /// The lease is about to end, and work stops: for so long no renewal was
    /// acknowledged.
    LeaseRunsOut(std::time::Duration),
    /// A renewal was acknowledged after all, so long after the one before: work
    /// goes on.
    LeaseRegained(std::time::Duration),
    /// Something failed and will be tried again, or needs a person.
    Problem(Box<str>),
}
