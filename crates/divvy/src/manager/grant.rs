//! Grants: the right to work on a partition, for as long as the lease lasts.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use divvy_core::store::Token;
use divvy_core::{Moment, Partition};
use tokio::sync::Notify;

use super::error::ManagerError;
use super::hooks::HookError;
use crate::store::clock::boottime;

/// Longer than any machine runs, and short enough to be counted in
/// nanoseconds.
const STANDING: Duration = Duration::from_hours(24 * 365 * 100);

/// How long this process may work: written by the driver, read by everybody.
#[derive(Debug, Default)]
pub(crate) struct Authority {
    /// Nanoseconds of the clock that counts suspends; 0 is never.
    until: AtomicU64,
    /// Counts ends that are for good.
    lives: AtomicU64,
    changed: Notify,
}

impl Authority {
    /// Work may go on until this moment and not at it. Nothing ends, for good,
    /// all grants that were given before.
    pub(crate) fn set(&self, until: Option<Moment>) {
        if until.is_none() {
            self.lives.fetch_add(1, Ordering::SeqCst);
        }
        let nanos = until.map_or(0, |moment| {
            u64::try_from(moment.to_origin().as_nanos()).unwrap_or(u64::MAX)
        });
        self.until.store(nanos, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// When authority ends and how long that is from now, unless it has ended.
    fn until(&self, life: u64) -> Option<(Moment, Duration)> {
        let nanos = self.until.load(Ordering::SeqCst);
        let until = Moment::from_origin(Duration::from_nanos(nanos));
        let left = until.since(boottime());
        // Looked at last: an end that came meanwhile counts.
        let is_same = self.lives.load(Ordering::SeqCst) == life;
        (is_same && !left.is_zero()).then_some((until, left))
    }
}

/// The lease that a grant depends on: one for each partition in lease mode, one
/// for all partitions of a session in leader mode.
///
/// For a supervisor outside this process, which has to end work that this
/// process cannot end because it stands still.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Lease {
    authority: Arc<Authority>,
    life: u64,
}

impl Lease {
    /// When it ends unless it is renewed, on the clock of [`now`](super::now).
    /// None if it has ended.
    pub fn until(&self) -> Option<Moment> {
        self.authority.until(self.life).map(|(until, _)| until)
    }

    /// Waits until its end is another one than `known`, and returns that.
    pub async fn changed(&self, known: Option<Moment>) -> Option<Moment> {
        loop {
            let changed = self.authority.changed.notified();
            tokio::pin!(changed);
            // Listening before looking, or a change in between would be lost.
            changed.as_mut().enable();
            let ends = self.authority.until(self.life);
            let until = ends.map(|(until, _)| until);
            if until != known {
                return until;
            }
            match ends {
                Some((_, left)) => {
                    let _changed = tokio::time::timeout(left, changed).await;
                }
                None => changed.await,
            }
        }
    }
}

impl PartialEq for Lease {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.authority, &other.authority) && self.life == other.life
    }
}

impl Eq for Lease {}

/// The right to work on a partition. Clones are the same grant.
///
/// It is current while this worker's lease lasts and the partition was not
/// given back. Nothing that a process checks by itself closes the gap between
/// the check and the effect: hand [`Grant::token`] to the resource, and let it
/// refuse a token below the highest that it has seen.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use divvy::manager::Grant;
/// use divvy::store::Token;
///
/// // Managers and controllers give grants; this one is given by hand.
/// let grant = Grant::standing("orders:7".parse()?, Token::new(42).unwrap());
/// assert!(grant.is_current() && grant.token().get() == 42);
///
/// // Work that is cut off where it waits when the right to it ends.
/// let written = grant.run(async |token| format!("written with {token}")).await?;
/// assert_eq!(written, "written with 42");
///
/// grant.withdraw();
/// assert!(!grant.is_current());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Grant {
    partition: Partition,
    token: Token,
    lease: Lease,
    ends: Arc<Ends>,
}

#[derive(Debug, Default)]
struct Ends {
    is_revoked: AtomicBool,
    is_over: AtomicBool,
}

impl Grant {
    pub(crate) fn new(partition: Partition, token: Token, authority: &Arc<Authority>) -> Self {
        let lease = Lease {
            life: authority.lives.load(Ordering::SeqCst),
            authority: Arc::clone(authority),
        };
        Self {
            partition,
            token,
            lease,
            ends: Arc::default(),
        }
    }

    /// A grant that somebody else than a [`Manager`](super::Manager) gives, and
    /// answers for: it is current until [`Grant::withdraw`].
    pub fn standing(partition: Partition, token: Token) -> Self {
        let authority = Arc::new(Authority::default());
        authority.set(Some(Moment::from_origin(STANDING)));
        Self::new(partition, token, &authority)
    }

    /// Ends it, for whoever gave it. One that a [`Manager`](super::Manager)
    /// gave ends here too, though the partition stays with the worker.
    pub fn withdraw(&self) {
        self.end();
    }

    /// Of which partition.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The fencing token: higher with every grant of the partition. After a
    /// pause of work because of the store, the same owner goes on with the
    /// same token.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Whether an effect may happen now. Stays true while the hook `revoked`
    /// runs, so that it can finish what was begun, unless the lease ends.
    pub fn is_current(&self) -> bool {
        self.left().is_some()
    }

    /// Whether the partition is to be given back: begin nothing new.
    pub fn is_revoked(&self) -> bool {
        self.ends.is_revoked.load(Ordering::SeqCst) || !self.is_current()
    }

    /// How long it is current, unless the lease is renewed before.
    pub fn left(&self) -> Option<Duration> {
        let (_, left) = self.lease.authority.until(self.lease.life)?;
        (!self.ends.is_over.load(Ordering::SeqCst)).then_some(left)
    }

    /// The lease that it depends on.
    #[doc(hidden)]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Waits until it is over.
    pub async fn ended(&self) {
        loop {
            let changed = self.lease.authority.changed.notified();
            tokio::pin!(changed);
            // Listening before looking, or a change in between would be lost.
            changed.as_mut().enable();
            let Some(left) = self.left() else { return };
            let _moved = tokio::time::timeout(left, changed).await;
        }
    }

    /// Does something with the token while the grant is current. When the
    /// grant ends before it is done, it is dropped where it waits, and does not
    /// go on even if it was woken: what it has sent by then may have happened.
    pub async fn run<F, T>(&self, work: F) -> Result<T, ManagerError>
    where
        F: AsyncFnOnce(Token) -> T,
    {
        let stale = || ManagerError::StaleAssignment {
            partition: self.partition.clone(),
            token: self.token,
        };
        if !self.is_current() {
            return Err(stale());
        }
        let (ended, work) = (self.ended(), work(self.token));
        tokio::pin!(ended, work);
        poll_fn(|context| {
            // Looked at besides: the timer that wakes at the end does not count
            // a suspend, and a process that was paused is woken by anything.
            if ended.as_mut().poll(context).is_ready() || !self.is_current() {
                return Poll::Ready(Err(stale()));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// The last look before a start hook is called, where it is called: its turn
    /// or its runtime may have come too late.
    pub(crate) fn check_before_start(&self) -> Result<(), HookError> {
        if self.is_current() {
            Ok(())
        } else {
            Err("its lease ended before it was its turn: it was not called".into())
        }
    }

    /// The partition is asked back.
    pub(crate) fn revoke(&self) {
        self.ends.is_revoked.store(true, Ordering::SeqCst);
    }

    /// The partition was given back.
    pub(crate) fn end(&self) {
        self.ends.is_over.store(true, Ordering::SeqCst);
        self.lease.authority.changed.notify_waiters();
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("partition", &self.partition)
            .field("token", &self.token.get())
            .field("is_current", &self.is_current())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(authority: &Arc<Authority>) -> Grant {
        let partition = "orders:1".parse().unwrap();
        Grant::new(partition, Token::new(7).unwrap(), authority)
    }

    fn soon() -> Moment {
        boottime() + Duration::from_secs(60)
    }

    #[test]
    fn a_grant_is_current_until_its_deadline_and_not_at_it() {
        let authority = Arc::new(Authority::default());
        let grant = grant(&authority);
        assert!(!grant.is_current(), "no deadline was told");
        authority.set(Some(soon()));
        assert!(grant.is_current());
        authority.set(Some(boottime()));
        assert!(!grant.is_current());
        authority.set(Some(soon()));
        assert!(grant.is_current(), "the lease was regained");
    }

    #[test]
    fn what_ended_for_good_is_not_revived_by_a_later_deadline() {
        let authority = Arc::new(Authority::default());
        authority.set(Some(soon()));
        let before = grant(&authority);
        authority.set(None);
        authority.set(Some(soon()));
        assert!(!before.is_current());
        assert!(grant(&authority).is_current());
    }

    #[test]
    fn a_revoked_grant_may_finish_until_it_is_given_back() {
        let authority = Arc::new(Authority::default());
        authority.set(Some(soon()));
        let grant = grant(&authority);
        grant.revoke();
        assert!(grant.is_revoked() && grant.is_current());
        grant.end();
        assert!(!grant.is_current());
    }

    #[tokio::test]
    async fn a_lease_tells_of_every_renewal_and_of_its_end() {
        let authority = Arc::new(Authority::default());
        let (first, second) = (soon(), soon() + Duration::from_secs(1));
        authority.set(Some(first));
        let (one, other) = (grant(&authority), grant(&authority));
        assert_eq!(one.lease(), other.lease(), "they end together");
        let lease = one.lease().clone();
        assert_eq!(lease.changed(None).await, Some(first));
        let renewing = async {
            tokio::task::yield_now().await;
            // What is given back ends no lease.
            other.end();
            authority.set(Some(second));
        };
        let (renewed, ()) = tokio::join!(lease.changed(Some(first)), renewing);
        assert_eq!(renewed, Some(second));
        authority.set(None);
        assert_eq!(lease.changed(Some(second)).await, None);
        authority.set(Some(second));
        assert_eq!(lease.until(), None, "it has ended for good");
        assert_ne!(*grant(&authority).lease(), lease);
    }

    #[tokio::test]
    async fn a_standing_grant_is_current_until_it_is_withdrawn() {
        let partition: Partition = "orders:1".parse().unwrap();
        let grant = Grant::standing(partition, Token::new(7).unwrap());
        assert!(grant.is_current() && !grant.is_revoked());
        grant.clone().withdraw();
        assert!(!grant.is_current());
        grant.ended().await;
    }

    #[tokio::test]
    async fn work_is_dropped_when_its_grant_ends() {
        let authority = Arc::new(Authority::default());
        authority.set(Some(soon()));
        let grant = grant(&authority);
        assert_eq!(grant.run(async |token| token.get()).await.unwrap(), 7);
        let ending = async {
            tokio::task::yield_now().await;
            authority.set(None);
        };
        let forever = grant.run(async |_| std::future::pending::<()>().await);
        let (outcome, ()) = tokio::join!(forever, ending);
        let told = outcome.unwrap_err().to_string();
        assert_eq!(
            told,
            "stale assignment: the grant of 'orders:1' with token 7 is over"
        );
        assert!(grant.run(async |_| ()).await.is_err());
    }

    #[tokio::test]
    async fn work_that_is_woken_after_the_end_does_not_go_on() {
        let authority = Arc::new(Authority::default());
        authority.set(Some(soon()));
        let grant = grant(&authority);
        let polls = std::cell::Cell::new(0);
        let work = grant.run(async |_| {
            poll_fn(|_| {
                polls.set(polls.get() + 1);
                Poll::<()>::Pending
            })
            .await;
        });
        tokio::pin!(work);
        let outcome = poll_fn(|context| {
            assert!(work.as_mut().poll(context).is_pending());
            // As after a pause: time has passed, and no timer has noticed yet.
            authority.until.store(1, Ordering::SeqCst);
            Poll::Ready(work.as_mut().poll(context))
        });
        assert!(matches!(outcome.await, Poll::Ready(Err(_))));
        assert_eq!(polls.get(), 1);
    }
}
