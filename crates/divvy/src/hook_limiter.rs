//! How many hooks run at once. Starts and stops have a limit each: a stop never
//! waits for starts, which may hang.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use divvy_core::Partition;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::manager::Grant;
use crate::manager::settings::span::Span;

/// Shortest time between two reports, whatever a hook's deadline is.
const REPORT_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Time between two messages that hooks were not called.
const UNCALLED_INTERVAL: Duration = Duration::from_secs(30);

/// The limit of start hooks, or of stop hooks.
#[derive(Debug)]
pub(crate) struct HookLimiter {
    hook: &'static str,
    concurrency: usize,
    permits: Arc<Semaphore>,
    /// When it was last reported that hooks wait too long.
    reported: Mutex<Option<Instant>>,
    /// When it was last logged that hooks were not called.
    uncalled: Mutex<Option<Instant>>,
}

/// A hook that waits for its turn.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    pub(crate) partition: &'a Partition,
    pub(crate) since: Instant,
    /// How long it may wait before that is reported.
    pub(crate) patience: Duration,
    /// When this ends, nothing is waited for any more: what runs has to stop at
    /// once, and what waits to be started is not.
    pub(crate) grant: Option<&'a Grant>,
}

/// Lets a hook be called. Its place among those that run is another's when this
/// is dropped; a hook whose grant has ended waits for no place, and has none.
#[derive(Debug)]
pub(crate) struct Turn {
    _place: Option<OwnedSemaphorePermit>,
}

impl HookLimiter {
    pub(crate) fn new(hook: &'static str, concurrency: usize) -> Arc<Self> {
        Arc::new(Self {
            hook,
            concurrency,
            permits: Arc::new(Semaphore::new(concurrency)),
            reported: Mutex::default(),
            uncalled: Mutex::default(),
        })
    }

    /// Waits for a turn. `report` gets a message if that takes too long.
    pub(crate) async fn turn(&self, waiting: Waiting<'_>, report: impl Fn(String)) -> Turn {
        let permit = Arc::clone(&self.permits).acquire_owned();
        tokio::pin!(permit);
        let ended = async {
            match waiting.grant {
                Some(grant) => grant.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(ended);
        let interval = waiting.patience.max(REPORT_INTERVAL_MIN);
        let mut report_at = waiting.since + waiting.patience;
        loop {
            if report_at <= Instant::now() {
                if claim(&self.reported, interval) {
                    report(self.message(&waiting));
                }
                report_at = Instant::now() + interval;
            }
            tokio::select! {
                biased;
                () = &mut ended => return Turn { _place: None },
                permit = &mut permit => {
                    let permit = permit.expect("the semaphore is never closed");
                    return Turn { _place: Some(permit) };
                }
                () = sleep_until(report_at) => {}
            }
        }
    }

    /// Whether a start may be called now that it is its turn. Otherwise its
    /// grant ended while it waited, which is logged once for all that do so at
    /// about the same time.
    pub(crate) fn may_call(&self, grant: &Grant) -> bool {
        let is_current = grant.is_current();
        if !is_current && claim(&self.uncalled, UNCALLED_INTERVAL) {
            let (hook, partition) = (self.hook, grant.partition());
            tracing::info!(
                "the {hook} hook of {partition} was not called, because its partition was asked \
                 back or its lease ended before it was its turn; others may follow"
            );
        }
        is_current
    }

    fn message(&self, waiting: &Waiting<'_>) -> String {
        let (hook, partition) = (self.hook, waiting.partition);
        let waited = Span(Duration::from_millis(
            u64::try_from(waiting.since.elapsed().as_millis()).unwrap_or(u64::MAX),
        ));
        let limit = self.concurrency;
        format!(
            "the {hook} hook of {partition} is overdue: it has waited {waited} for its turn, \
             while as many {hook} hooks run as may at once (hook_concurrency: {limit})"
        )
    }
}

/// Whether it is time to say something again: thousands may wait, and one
/// message is enough for all of them.
fn claim(last: &Mutex<Option<Instant>>, interval: Duration) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = last.is_none_or(|last| last.elapsed() >= interval);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

#[cfg(test)]
mod tests {
    use divvy_core::store::Token;

    use super::*;

    fn grant() -> Grant {
        Grant::standing("orders:1".parse().unwrap(), Token::new(1).unwrap())
    }

    fn waiting(grant: &Grant) -> Waiting<'_> {
        Waiting {
            partition: grant.partition(),
            since: Instant::now(),
            patience: Duration::from_secs(30),
            grant: Some(grant),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn hooks_that_wait_too_long_are_reported_once_for_all() {
        let limiter = HookLimiter::new("start", 1);
        let grant = grant();
        let first = limiter.turn(waiting(&grant), |_| {}).await;
        let reports = Mutex::new(Vec::new());
        let wait = async || {
            let report = |text| reports.lock().unwrap().push(text);
            drop(limiter.turn(waiting(&grant), report).await);
        };
        let end = async {
            tokio::time::advance(Duration::from_secs(31)).await;
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            drop(first);
        };
        tokio::join!(wait(), wait(), end);
        let expected = "the start hook of orders:1 is overdue: it has waited 31s for its turn, while \
                        as many start hooks run as may at once (hook_concurrency: 1)";
        assert_eq!(*reports.lock().unwrap(), [expected]);
    }

    #[tokio::test(start_paused = true)]
    async fn reports_have_a_pause_between_them_also_without_patience() {
        let limiter = HookLimiter::new("start", 1);
        let grant = grant();
        let _held = limiter.turn(waiting(&grant), |_| {}).await;
        let reports = Mutex::new(0);
        let impatient = Waiting {
            patience: Duration::ZERO,
            ..waiting(&grant)
        };
        let turn = limiter.turn(impatient, |_| *reports.lock().unwrap() += 1);
        let waited = tokio::time::timeout(Duration::from_millis(950), turn).await;
        assert!(waited.is_err());
        assert_eq!(*reports.lock().unwrap(), 10);
    }

    #[tokio::test]
    async fn a_hook_waits_for_no_turn_when_its_grant_has_ended() {
        let limiter = HookLimiter::new("stop", 1);
        let (first, second) = (grant(), grant());
        let _held = limiter.turn(waiting(&first), |_| {}).await;
        let ending = async {
            tokio::task::yield_now().await;
            second.withdraw();
        };
        let (turn, ()) = tokio::join!(limiter.turn(waiting(&second), |_| {}), ending);
        assert!(turn._place.is_none());
    }
}
