//! What happened in a world, as its invariants are told: facts, not beliefs.

use std::time::Duration;

use divvy_core::leader::{Committed, LeaderRecord, SessionId, Version, WorkerRecord};
use divvy_core::store::{Key, LeaseKey, Nonce, Revision, Token};
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
    /// A machine asks for the start of a partition.
    StartAsked {
        /// Where.
        member: usize,
        /// Which.
        partition: usize,
        /// What its member's clock shows.
        now: Moment,
    },
    /// A machine asks for the end of a partition.
    EndAsked {
        /// Where.
        member: usize,
        /// Which.
        partition: usize,
    },
    /// A driver is about to call the start hook of a partition.
    StartBegins {
        /// Where.
        member: usize,
        /// Which.
        partition: usize,
        /// What its member's clock shows.
        now: Moment,
    },
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
    /// A member is asked to stop.
    StopAsked {
        /// Which.
        member: usize,
    },
    /// A machine stops a partition because its lease was not renewed in time.
    Unrenewed {
        /// Where.
        member: usize,
        /// Which.
        partition: usize,
        /// For how long its member could not renew it, since it last could.
        hindered: Duration,
        /// For how long it must bear that.
        bears: Duration,
    },
    /// A command begins to work on a partition, where commands do the work.
    WorkBegins {
        /// Where.
        member: usize,
        /// On which partition.
        partition: usize,
    },
    /// A command has ended.
    WorkEnds {
        /// Where.
        member: usize,
        /// On which partition it worked.
        partition: usize,
    },
    /// The machine of a member sleeps, commands and all, or does no longer.
    Asleep {
        /// Whose.
        member: usize,
        /// Whether it does.
        asleep: bool,
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
    /// The grant of one running partition is current until then, whatever
    /// holds for the others of its member. Where it is not, it has lost its
    /// authority for good.
    TenureDeadline {
        /// Where it runs.
        member: usize,
        /// Which.
        partition: usize,
        /// Of which tenure, where that is known.
        nonce: Option<Nonce>,
        /// In true time; nothing if it is over.
        until: Option<TrueTime>,
        /// The same on its member's clock.
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
    /// A member found that the store forgot, or need not say so any more.
    Alarmed {
        /// Which member.
        member: usize,
        /// The newest epoch that it knew of; 0 if there is no alarm.
        epoch: u64,
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
    /// The store answers nobody until then, or not this member.
    Unanswered {
        /// Whom, if only one.
        member: Option<usize>,
        /// Until when.
        until: TrueTime,
    },
    /// The store forgot.
    Forgot {
        /// Whether it told so by a new incarnation.
        announced: bool,
    },
    /// A member sent an operation on a lease, of which it names the tenure.
    LeaseSent {
        /// Which member.
        by: usize,
        /// In which life of its process.
        life: u32,
        /// Which lease.
        key: &'a LeaseKey,
        /// Of which tenure.
        nonce: Nonce,
        /// What it wants.
        wish: LeaseWish,
    },
    /// A member sent off the lease of a partition that it has started, to be
    /// ended.
    GivenBack {
        /// Which member.
        member: usize,
        /// Which partition.
        partition: usize,
    },
    /// The store granted a lease.
    LeaseGranted {
        /// Of which partition.
        name: &'a str,
        /// With which token.
        token: Token,
    },
    /// The store granted a lease, or let it run on, for a process that is
    /// still there.
    LeaseKept {
        /// Whose.
        member: usize,
        /// Of which partition.
        partition: usize,
        /// Of which tenure.
        nonce: Nonce,
        /// When its holder asked for that, on its own clock.
        sent: Moment,
        /// For how long, on the store's clock.
        ttl: Duration,
    },
    /// The store gave a worker's name to a session, or let it keep it.
    SessionKept {
        /// Of which member.
        member: usize,
        /// The worker's name.
        id: &'a str,
        /// The session.
        session: SessionId,
        /// Until when, in true time.
        until: TrueTime,
    },
    /// Something happened to leases that the store does not protect them from:
    /// until then, whoever had one before may still work.
    Disturbed {
        /// Whose.
        whose: Disturbed,
        /// Until when.
        until: TrueTime,
    },
    /// A process ended because another has its name.
    NameTaken {
        /// Which.
        member: usize,
        /// Whether another has had it since this one began.
        rightly: bool,
    },
    /// A member started one more partition.
    Took {
        /// Which member.
        member: usize,
        /// How many of a kind it has now.
        owned: usize,
        /// How many of that kind it may have.
        most: usize,
    },
    /// A member began to give up a partition for another worker, or because it
    /// is beyond its limits.
    Shed {
        /// Which member.
        member: usize,
        /// How many it keeps.
        left: usize,
        /// Below how many it gives up none.
        least: usize,
        /// Whether it has had the partition for as long as it has to.
        has_run: bool,
        /// Whether another worker should have the partition, as it knows, or nobody
        /// should and this member has more than it may.
        has_reason: bool,
    },
    /// A member stops a partition because it knows that its lease is lost.
    LeaseLost {
        /// Which member.
        member: usize,
        /// Which partition.
        partition: usize,
        /// Until when it still works on it, as it said.
        until: Option<Moment>,
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
    /// Another is gone, and one of the others can start nothing.
    Limping {
        /// What the one that is gone ran.
        partitions: &'a [usize],
        /// When each must have been started elsewhere, with success.
        by: TrueTime,
    },
    /// What somebody who sees everything sees at the end of a phase.
    Surveyed(&'a Survey),
}

/// What a member wants of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseWish {
    /// To have it.
    Acquire,
    /// To keep it.
    Renew,
    /// To end it.
    Release,
}

/// Whose leases were disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbed {
    /// All.
    Leases,
    /// The lease of one partition.
    Lease(usize),
    /// Names of workers.
    Sessions,
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
    /// It loses another, and one of the others can start nothing.
    Limp,
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
    /// Partitions that nobody has although somebody who may has room.
    pub unserved: Vec<usize>,
    /// Members that have more than they may.
    pub crowded: Vec<usize>,
    /// Members that believe to lead.
    pub leaders: Vec<usize>,
    /// Chunks in the store.
    pub chunks: usize,
}
