//! Operations on the store that have not been answered yet.

use std::time::Duration;

use super::tenure::Attempt;
use crate::leader::OperationId;
use crate::lease::action::TenureId;
use crate::moment::Moment;
use crate::store::Nonce;

/// What an operation is for, so that its reply finds its way.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    /// Taking the worker's name for this session.
    Open(Nonce),
    /// A heartbeat of this session.
    Beat(Nonce),
    /// Leaving.
    Leave,
    /// The live workers.
    Members,
    /// The documents of groups.
    Groups,
    /// Who holds these units.
    Look(Vec<u32>),
    /// Whether these tenures' units were moved lately.
    Cooling(Vec<TenureId>),
    /// Wishes for leases, sent at this moment.
    Acquire(Vec<Attempt>, Moment),
    /// A renewal of what an unanswered wish seems to have been granted.
    Adopt(Attempt, Moment),
    /// Renewals, sent at this moment.
    Renew(Vec<TenureId>, Moment),
    /// Giving back.
    Release(Vec<TenureId>),
    /// Marking as moved.
    Mark,
    /// Adding to the log of moves.
    Log,
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

    pub(super) fn is_under_way(&self, is_it: impl Fn(&Purpose) -> bool) -> bool {
        self.pending.iter().any(|(_, _, purpose)| is_it(purpose))
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
