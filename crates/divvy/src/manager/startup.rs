//! How long a start may take, and when it is done.

use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{LeaderSettings, Lifecycle, Member, State};
use divvy_core::store::{StoreError, StoreErrorKind};
use tokio::sync::oneshot;

use super::error::ManagerError;

/// Where the outcome of a start is awaited.
pub(super) type Started = oneshot::Sender<Result<(), ManagerError>>;

/// A start: done when the id is claimed and the first assignment is in.
pub(super) struct Startup {
    reply: Option<Started>,
    failed: Option<ManagerError>,
    looked: Moment,
    /// Time that counts.
    spent: Duration,
    /// Time for which a window was open.
    waited: Duration,
}

impl Startup {
    pub(super) fn new(reply: Started, now: Moment) -> Self {
        Self {
            reply: Some(reply),
            failed: None,
            looked: now,
            spent: Duration::ZERO,
            waited: Duration::ZERO,
        }
    }

    /// Looks how far the start is. Whether it has just failed.
    pub(super) fn look(
        &mut self,
        now: Moment,
        member: &Member,
        settings: &LeaderSettings,
        why: impl FnOnce() -> (Option<StoreError>, Option<Box<str>>),
    ) -> bool {
        if self.reply.is_none() || self.failed.is_some() {
            return false;
        }
        let adopted = member.adopted().map(|(_, lifecycle)| lifecycle);
        if adopted.is_some_and(|lifecycle| lifecycle != Lifecycle::ColdStart) {
            self.answer(Ok(()));
            return false;
        }
        let passed = now.since(std::mem::replace(&mut self.looked, now));
        // While a window is open, a start waits for others. That is not held
        // against it, for as long as a window can be.
        let is_open = adopted.is_some() || member.state() == State::Scaling;
        if is_open && self.waited < settings.cold_start_window {
            self.waited += passed;
        } else {
            self.spent += passed;
        }
        if self.spent < settings.startup_timeout {
            return false;
        }
        let (trouble, problem) = why();
        self.failed = Some(reason(member, settings, trouble, problem));
        true
    }

    /// The member has ended.
    pub(super) fn ended(mut self) {
        let stopped = || ManagerError::Ended("it was stopped before it had started".into());
        let failed = self.failed.take().unwrap_or_else(stopped);
        self.answer(Err(failed));
    }

    fn answer(&mut self, outcome: Result<(), ManagerError>) {
        if let Some(reply) = self.reply.take() {
            // Nobody may be waiting any more.
            let _unheard = reply.send(outcome);
        }
    }
}

/// Why a start took too long, as far as that is known.
fn reason(
    member: &Member,
    settings: &LeaderSettings,
    trouble: Option<StoreError>,
    problem: Option<Box<str>>,
) -> ManagerError {
    if member.is_out_of_ids() {
        return ManagerError::StableIdExhausted {
            prefix: settings.worker_id_prefix.clone(),
            first: settings.worker_id_min,
            last: settings.worker_id_max,
        };
    }
    match trouble {
        Some(error)
            if matches!(
                error.kind(),
                StoreErrorKind::Unfit | StoreErrorKind::Invalid
            ) =>
        {
            ManagerError::Store(error)
        }
        Some(error) if member.worker_id().is_none() => {
            ManagerError::ConnectionLost(error.to_string().into())
        }
        last => ManagerError::StartTimedOut {
            limit: settings.startup_timeout,
            state: member.state(),
            last: problem.or_else(|| last.map(|error| error.to_string().into())),
        },
    }
}
