//! What happened in a world, as its invariants are told: facts, not beliefs.

use divvy_core::leader::{Committed, LeaderRecord, SessionId, Version, WorkerRecord};
use divvy_core::store::{Key, Revision, Token};
use divvy_core::{Moment, Partitions};

use crate::ledger::Ledger;
use crate::time::TrueTime;

/// Something that happened, when, and what the store held just before.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// When.
    pub at: TrueTime,
    /// What.
    pub fact: &'a Fact<'a>,
    /// The records of the store before it.
    pub ledger: &'a Ledger,
}

/// Something that happened. Members are named by the number of their process's
/// place, partitions by a number that stays theirs.
#[derive(Debug, Clone, Copy)]
pub enum Fact<'a> {
    /// The start hook of a partition was called: it runs from now on.
    StartCalled {
        /// Where.
        member: usize,
        /// Which.
        partition: usize,
        /// What it is called.
        name: &'a str,
        /// With which token.
        token: Token,
    },
    /// A start hook returned.
    StartEnded {
        /// Where.
        member: usize,
        /// Of which partition.
        partition: usize,
        /// It failed, and nothing runs.
        failed: bool,
    },
    /// The stop hook of a partition was called.
    StopCalled {
        /// Where.
        member: usize,
        /// Which.
        partition: usize,
    },
    /// A stop hook returned: the partition does not run any more.
    StopEnded {
        /// Where.
        member: usize,
        /// Of which partition.
        partition: usize,
    },
    /// A member's grants are current until then. Where none is, whatever was
    /// started before has lost its authority for good: a later deadline is for
    /// what is started later.
    Deadline {
        /// Whose.
        member: usize,
        /// Its stable id and session, if it has one.
        identity: Option<(&'a str, SessionId)>,
        /// In true time; nothing if no grant is current.
        until: Option<TrueTime>,
        /// The same on its own clock.
        until_local: Option<Moment>,
    },
    /// A process is gone, and all that it ran with it.
    Gone {
        /// Which.
        member: usize,
        /// Whether it had ended in order, with nothing left to stop.
        in_order: bool,
    },
    /// A member has handled what happened to it, and its actions are done.
    Stepped {
        /// Which.
        member: usize,
        /// What its clock shows.
        now: Moment,
    },
    /// A member adopted a root.
    Adopted {
        /// Which member.
        member: usize,
        /// In which session.
        session: Option<SessionId>,
        /// Which root.
        version: Version,
    },
    /// A resource refused an effect of a partition that ran inside its
    /// deadline.
    EffectRefused {
        /// Whose.
        member: usize,
        /// Of which partition.
        partition: usize,
        /// With which token.
        token: Token,
        /// The higher one that the resource had seen.
        seen: Token,
    },
    /// A value was stored, of whatever kind.
    Stored {
        /// Under which key.
        key: &'a Key,
        /// How large.
        bytes: usize,
    },
    /// A worker record was written.
    WorkerWritten {
        /// By the member at this place, in the same life of its process.
        by: usize,
        /// Whose process ended since.
        orphaned: bool,
        /// Which life of that process sent it.
        life: u32,
        /// The stable id.
        id: &'a str,
        /// The record.
        record: &'a WorkerRecord,
        /// At which revision.
        revision: Revision,
        /// When its writer sent it, on its own clock.
        sent: Moment,
    },
    /// The leader record was written.
    LeaderWritten {
        /// By whom.
        by: usize,
        /// The record.
        record: &'a LeaderRecord,
        /// At which revision.
        revision: Revision,
    },
    /// A root was written.
    RootWritten {
        /// By whom.
        by: usize,
        /// The root.
        root: &'a Committed,
        /// At which revision.
        revision: Revision,
    },
    /// A value was stored that is no record of its kind.
    Garbled {
        /// Under which key.
        key: &'a Key,
        /// Why it is none.
        why: &'a str,
    },
    /// The source of partitions answered.
    Sourced {
        /// What it gave.
        partitions: &'a Partitions,
    },
    /// The store forgot.
    Forgot {
        /// Whether it told so by a new incarnation.
        announced: bool,
    },
    /// A member has work under way.
    Busy {
        /// Which.
        member: usize,
        /// Operations that have not come to an end.
        operations: usize,
        /// Hooks that have not come to an end.
        hooks: usize,
    },
    /// The world enters another phase.
    Entered(Phase),
    /// A worker of a sound cluster is gone.
    Lost {
        /// What it ran.
        partitions: &'a [usize],
        /// When each must have been started elsewhere.
        by: TrueTime,
    },
    /// What somebody who sees everything sees at the end of a phase.
    Surveyed(&'a Survey),
}

/// How far a world has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Faults happen.
    Faults,
    /// No fault happens any more, and those that lasted are over.
    Healing,
    /// Everything has had the time that it may take.
    Quiet,
    /// A sound cluster loses a worker, gets another, and hands on.
    Probe,
    /// It is over.
    Over,
}

/// The state of a world, seen from above.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Whether any member may own partitions.
    pub eligible: bool,
    /// Members that may own partitions and run none, where the strategy gives
    /// everyone one.
    pub idle: Vec<usize>,
    /// The partitions that the source gives, each with the members where it
    /// runs inside their deadline.
    pub running: Vec<(usize, Vec<usize>)>,
    /// Partitions that run although the source does not give them.
    pub unwanted: Vec<usize>,
    /// Members that believe to lead.
    pub leaders: Vec<usize>,
    /// Chunks in the store.
    pub chunks: usize,
}
