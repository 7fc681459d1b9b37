//! The session of a member: its record, its lease, and the renewals that may
//! still be under way.

use std::time::Duration;

use crate::leader::record::{Lifecycle, SessionId, Version};
use crate::moment::Moment;
use crate::store::{Key, Revision};

/// Reads in a row that may show a record behind what was acknowledged before
/// the store is taken at its word: reads may be stale.
const BEHIND_MAX: u8 = 2;

/// What is under way with the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    No,
    Writing,
    Reading,
}

/// A renewal that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) beat: u64,
    pub(super) sent: Moment,
    /// Whether it says that the member has left.
    pub(super) leaves: bool,
}

/// A session: from the claim that was acknowledged to its end.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) worker: Box<str>,
    pub(super) key: Key,
    /// Of the last write of the record that is known to have happened.
    pub(super) revision: Revision,
    /// The highest beat that was sent.
    pub(super) beat: u64,
    /// When the lease ends on this clock.
    pub(super) until: Moment,
    /// When a lease that had ended was renewed after all: nothing is taken up
    /// again before a listing that was asked for later shows that it may.
    pub(super) regained: Option<Moment>,
    /// Renewals that were sent since, and may have been written.
    attempts: Vec<Attempt>,
    pub(super) busy: Busy,
    /// Something has to be said before the next heartbeat.
    pub(super) urgent: bool,
    behind: u8,
    /// The root in force here.
    pub(super) adopted: Option<(Version, Lifecycle)>,
    /// What was acknowledged last, and what was still stopping then.
    pub(super) acked: Version,
    pub(super) stopping: Vec<u64>,
}

impl Session {
    /// The session that a claim began, sent at `sent`.
    pub(super) fn claimed(
        id: SessionId,
        worker: Box<str>,
        key: Key,
        revision: Revision,
        until: Moment,
    ) -> Self {
        Self {
            id,
            worker,
            key,
            revision,
            beat: 1,
            until,
            regained: None,
            attempts: Vec::new(),
            busy: Busy::No,
            urgent: true,
            behind: 0,
            adopted: None,
            acked: Version::default(),
            stopping: Vec::new(),
        }
    }

    /// Notes a renewal, and forgets those that could no longer prolong
    /// anything.
    pub(super) fn sent(&mut self, attempt: Attempt, lease: Duration) {
        self.attempts.retain(|old| old.sent + lease > attempt.sent);
        self.attempts.push(attempt);
    }

    pub(super) fn attempt(&self, beat: u64) -> Option<Attempt> {
        self.attempts.iter().find(|sent| sent.beat == beat).copied()
    }

    /// A write at `revision` happened: no other that was sent before can.
    pub(super) fn written(&mut self, revision: Revision) {
        self.revision = revision;
        self.attempts.clear();
        self.behind = 0;
    }

    /// The record is as it was acknowledged last.
    pub(super) fn unchanged(&mut self) {
        self.behind = 0;
    }

    /// Whether the record was found behind once: either that read was stale, or
    /// the store has gone back.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.behind > 0
    }

    /// The record was found behind, or not at all. Whether that has to be
    /// believed.
    pub(super) fn found_behind(&mut self) -> bool {
        self.behind += 1;
        self.behind >= BEHIND_MAX
    }
}
