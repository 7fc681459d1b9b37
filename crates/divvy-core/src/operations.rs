//! Operations on the store that have not been answered yet, of either mode.

use std::time::Duration;

use crate::leader::OperationId;
use crate::moment::Moment;

/// Operations under way, each with its purpose, so that its reply finds its
/// way. A driver answers each within its timeout; one that does not is taken as
/// unknown after twice that.
#[derive(Debug, Clone)]
pub(crate) struct Operations<P> {
    last: u64,
    pending: Vec<(OperationId, Moment, P)>,
}

impl<P> Default for Operations<P> {
    fn default() -> Self {
        Self {
            last: 0,
            pending: Vec::new(),
        }
    }
}

impl<P> Operations<P> {
    /// Begins one; gives its id, and when it is taken as never answered.
    pub(crate) fn begin(
        &mut self,
        purpose: P,
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
    pub(crate) fn end(&mut self, id: OperationId) -> Option<P> {
        let at = self.pending.iter().position(|(known, ..)| *known == id)?;
        Some(self.pending.swap_remove(at).2)
    }

    pub(crate) fn count(&self, is_it: impl Fn(&P) -> bool) -> usize {
        let pending = self.pending.iter();
        pending.filter(|(_, _, purpose)| is_it(purpose)).count()
    }

    pub(crate) fn is_under_way(&self, is_it: impl Fn(&P) -> bool) -> bool {
        self.pending.iter().any(|(_, _, purpose)| is_it(purpose))
    }

    /// One that was never answered.
    pub(crate) fn take_lost(&mut self, now: Moment) -> Option<P> {
        let at = self.pending.iter().position(|(_, lost, _)| *lost <= now)?;
        Some(self.pending.swap_remove(at).2)
    }

    pub(crate) fn next_lost(&self) -> Option<Moment> {
        self.pending.iter().map(|(_, lost, _)| *lost).min()
    }

    /// No reply is waited for any more.
    pub(crate) fn forget(&mut self) {
        self.pending.clear();
    }
}
