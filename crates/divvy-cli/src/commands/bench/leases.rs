//! Loads on a lease store.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use divvy::store::{Acquired, Claim, LeaseKey, LeaseName, Leases, Nonce, StoreError, Tenure};

use super::measure::{Figure, Stopwatch, Tally};

/// The group whose leases are taken: always the same, because a store
/// remembers the last token of every lease for ever.
const GROUP: &str = "divvy-bench";
pub(super) const TTL_MIN: Duration = Duration::from_secs(10);
/// A lease outlives so many intervals, so that only a store that stands still
/// loses one.
pub(super) const TTL_INTERVALS: u32 = 4;
/// How often renewal is paced at least, for the share of a core that it takes.
const PACED_ROUNDS_MIN: u32 = 3;

/// Leases that are held together.
pub(super) struct Held {
    store: Arc<dyn Leases>,
    worker: LeaseName,
    claims: Vec<Claim>,
    ttl: Duration,
}

impl Held {
    /// The wish for the leases with these numbers, renewed this often.
    pub(super) fn new(
        store: &Arc<dyn Leases>,
        worker: &str,
        numbers: Range<u32>,
        interval: Duration,
    ) -> Result<Self, StoreError> {
        let claims = numbers.map(|number| {
            Ok(Claim {
                key: LeaseKey::new(GROUP, number)?,
                nonce: Nonce::new(u128::from(fastrand::u64(..)) << 64 | u128::from(number)),
            })
        });
        Ok(Self {
            store: Arc::clone(store),
            worker: LeaseName::new("worker", worker)?,
            claims: claims.collect::<Result<_, StoreError>>()?,
            ttl: TTL_MIN.max(interval * TTL_INTERVALS),
        })
    }

    pub(super) async fn acquire(&self) -> Result<Duration, StoreError> {
        let began = Instant::now();
        let acquired = self.store.acquire(&self.worker, &self.claims, self.ttl);
        let acquired = acquired.await?;
        let took = began.elapsed();
        check_acquired(&acquired)?;
        Ok(took)
    }

    pub(super) async fn renew(&self) -> Result<Duration, StoreError> {
        let began = Instant::now();
        let renewed = self.store.renew(&self.worker, &self.claims, self.ttl);
        let renewed = renewed.await?;
        let took = began.elapsed();
        check_current(&renewed)?;
        Ok(took)
    }

    /// Renews once in every interval for as long as `time`, beginning some
    /// part of it later.
    pub(super) async fn renew_paced(
        &self,
        time: Duration,
        interval: Duration,
        later: Duration,
    ) -> Result<Tally, StoreError> {
        let mut watch = Stopwatch::start();
        let mut next = tokio::time::Instant::now() + later;
        for _ in 0..rounds(time, interval) {
            tokio::time::sleep_until(next).await;
            watch.lap(self.renew().await?);
            next += interval;
        }
        tokio::time::sleep_until(next).await;
        Ok(watch.tally())
    }

    pub(super) async fn release(&self) -> Result<Duration, StoreError> {
        let began = Instant::now();
        let released = self.store.release(&self.worker, &self.claims).await?;
        let took = began.elapsed();
        check_current(&released)?;
        Ok(took)
    }
}

/// Measures every load on a lease store, and leaves no lease behind.
pub(super) async fn measure(
    store: &Arc<dyn Leases>,
    name: &str,
    leases: u32,
    time: Duration,
    interval: Duration,
) -> Result<Vec<Figure>, StoreError> {
    let held = Held::new(store, "bench", 0..leases, interval)?;
    let mut figures = Vec::new();

    let mut watch = Stopwatch::start();
    watch.lap(held.acquire().await?);
    figures.push(watch.stop(name, format!("acquire {leases} leases"), leases));

    let mut watch = Stopwatch::start();
    let until = Instant::now() + time;
    while Instant::now() < until {
        watch.lap(held.renew().await?);
    }
    figures.push(watch.stop(name, format!("renew {leases} leases, back to back"), leases));

    // Its own number of rounds, however long the other loads are measured.
    let paced = held.renew_paced(Duration::ZERO, interval, Duration::ZERO);
    let load = format!("renew {leases} leases every {interval:?}");
    figures.push(paced.await?.figure(name, load, leases));

    let mut watch = Stopwatch::start();
    watch.lap(held.release().await?);
    figures.push(watch.stop(name, format!("release {leases} leases"), leases));
    Ok(figures)
}

/// How long paced renewal takes that shall take about `time`.
pub(super) fn paced(time: Duration, interval: Duration) -> Duration {
    interval * rounds(time, interval)
}

fn rounds(time: Duration, interval: Duration) -> u32 {
    let fit = time.as_secs_f64() / interval.as_secs_f64();
    (fit as u32).max(PACED_ROUNDS_MIN)
}

fn check_acquired(acquired: &[Acquired]) -> Result<(), StoreError> {
    for outcome in acquired {
        match outcome {
            Acquired::Granted(_) => {}
            Acquired::Held => {
                let why = format!("leases of group {GROUP} are held: is another bench running?");
                return Err(StoreError::unavailable(why));
            }
            Acquired::Quarantined => {
                return Err(StoreError::unavailable("the store grants no leases yet"));
            }
        }
    }
    Ok(())
}

fn check_current(tenures: &[Tenure]) -> Result<(), StoreError> {
    let lost = tenures
        .iter()
        .filter(|tenure| **tenure == Tenure::Over)
        .count();
    match lost {
        0 => Ok(()),
        lost => Err(StoreError::unfit(format!(
            "{lost} leases were lost while they were measured"
        ))),
    }
}
