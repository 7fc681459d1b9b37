//! Operations on the store that have not been answered yet.

use std::time::Duration;

use crate::leader::action::OperationId;
use crate::leader::record::SessionId;
use crate::moment::Moment;
use crate::store::{Key, Revision};

/// What an operation is for, so that its reply finds its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// All worker records.
    ListWorkers,
    /// The claim of an id.
    Claim,
    /// Whether a claim whose reply was lost was written.
    ReadClaim,
    /// A renewal, by session and beat.
    Renew(SessionId, u64),
    /// Whether a renewal whose reply was lost was written.
    ReadRenewal(SessionId),
    /// The root.
    ReadRoot,
    /// A chunk of the root with this revision.
    ReadChunk(Revision, Key),
    /// Who leads.
    ReadLeader,
    /// Taking the lead, by session and epoch.
    Take(SessionId, u64),
    /// A renewal of the lead, by its serial.
    Beat(u64),
    /// Giving up the lead.
    Resign,
    /// Ending a session that was not renewed, by its record's key.
    Fence(Key),
    /// A record that could not be fenced.
    ReadWorker(Key),
    /// A chunk of the root to be, by the serial of the attempt.
    WriteChunk(u64, Key),
    /// The root itself, by the serial of the attempt.
    WriteRoot(u64),
    /// What operators wish.
    ReadControl,
    /// The log of moves.
    ReadMoves,
    /// The log of moves, with what happened since.
    WriteMoves,
    /// All chunks.
    ListChunks,
    /// A chunk that no root names.
    DeleteChunk,
}

/// Operations under way. A driver answers each within its timeout; one that
/// does not is taken as unknown after twice that.
#[derive(Debug, Clone, Default)]
pub(super) struct Operations {
    last: u64,
    pending: Vec<(OperationId, Moment, Purpose)>,
}

impl Operations {
    pub(super) fn begin(
        &mut self,
        purpose: Purpose,
        now: Moment,
        timeout: Duration,
    ) -> (OperationId, Moment) {
        self.last += 1;
        let id = OperationId(self.last);
        let lost = now + timeout.saturating_mul(2);
        self.pending.push((id, lost, purpose));
        (id, lost)
    }

    /// What the operation was for, unless it is no longer waited for.
    pub(super) fn end(&mut self, id: OperationId) -> Option<Purpose> {
        let at = self.pending.iter().position(|(known, ..)| *known == id)?;
        Some(self.pending.swap_remove(at).2)
    }

    pub(super) fn is_under_way(&self, purpose: &Purpose) -> bool {
        self.pending.iter().any(|(_, _, known)| known == purpose)
    }

    /// One that was never answered.
    pub(super) fn take_lost(&mut self, now: Moment) -> Option<Purpose> {
        let at = self.pending.iter().position(|(_, lost, _)| *lost <= now)?;
        Some(self.pending.swap_remove(at).2)
    }

    pub(super) fn next_lost(&self) -> Option<Moment> {
        self.pending.iter().map(|(_, lost, _)| *lost).min()
    }

    /// No reply is waited for any more.
    pub(super) fn forget(&mut self) {
        self.pending.clear();
    }
}
