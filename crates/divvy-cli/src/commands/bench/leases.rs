//! Loads on a lease store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use divvy::store::{Acquired, Claim, LeaseKey, LeaseName, Leases, Nonce, StoreError, Tenure};

use super::measure::{Figure, Stopwatch};

/// The group whose leases are taken: always the same, because a store
/// remembers the last token of every lease for ever.
const GROUP: &str = "divvy-bench";
const TTL: Duration = Duration::from_secs(10);
/// How often renewal is paced, for the share of a core that it takes.
const PACED_ROUNDS: u32 = 3;

/// Measures every load on a lease store, and leaves no lease behind.
pub(super) async fn measure(
    store: &Arc<dyn Leases>,
    name: &str,
    leases: u32,
    time: Duration,
    interval: Duration,
) -> Result<Vec<Figure>, StoreError> {
    let worker = LeaseName::new("worker", "bench")?;
    let claims: Vec<Claim> = (0..leases)
        .map(|number| {
            Ok(Claim {
                key: LeaseKey::new(GROUP, number)?,
                nonce: Nonce::new(u128::from(fastrand::u64(..)) << 64 | u128::from(number)),
            })
        })
        .collect::<Result<_, StoreError>>()?;
    let mut figures = Vec::new();

    let mut watch = Stopwatch::start();
    let began = Instant::now();
    let acquired = store.acquire(&worker, &claims, TTL).await?;
    watch.lap(began.elapsed());
    check_acquired(&acquired)?;
    figures.push(watch.stop(name, format!("acquire {leases} leases"), leases));

    let mut watch = Stopwatch::start();
    let until = Instant::now() + time;
    while Instant::now() < until {
        watch.lap(renew_all(store, &worker, &claims).await?);
    }
    figures.push(watch.stop(name, format!("renew {leases} leases, back to back"), leases));

    let mut watch = Stopwatch::start();
    let mut next = tokio::time::Instant::now();
    for _ in 0..PACED_ROUNDS {
        watch.lap(renew_all(store, &worker, &claims).await?);
        next += interval;
        tokio::time::sleep_until(next).await;
    }
    let load = format!("renew {leases} leases every {interval:?}");
    figures.push(watch.stop(name, load, leases));

    let mut watch = Stopwatch::start();
    let began = Instant::now();
    let released = store.release(&worker, &claims).await?;
    watch.lap(began.elapsed());
    check_current(&released)?;
    figures.push(watch.stop(name, format!("release {leases} leases"), leases));
    Ok(figures)
}

async fn renew_all(
    store: &Arc<dyn Leases>,
    worker: &LeaseName,
    claims: &[Claim],
) -> Result<Duration, StoreError> {
    let began = Instant::now();
    let tenures = store.renew(worker, claims, TTL).await?;
    let took = began.elapsed();
    check_current(&tenures)?;
    Ok(took)
}

fn check_acquired(acquired: &[Acquired]) -> Result<(), StoreError> {
    for outcome in acquired {
        match outcome {
            Acquired::Granted(_) => {}
            Acquired::Held => {
                let why = format!("leases of group {GROUP} are held: is another bench running?");
                return Err(StoreError::unavailable(why));
            }
            Acquired::Quarantined(_) => {
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
