//! What it costs a worker of lease mode to have its partitions: the whole
//! machine, not the store alone.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::controller::{
    Consumer, ConsumerFactory, Controller, ControllerError, ControllerSettings,
};
use divvy::lease::{Group, LeaseSettings};
use divvy::manager::{Grant, HookError};
use divvy::store::Leases;
use tokio::time::{Instant, sleep_until, timeout};

use super::leases::{TTL_INTERVALS, TTL_MIN, paced};
use super::measure::{Figure, Stopwatch};

/// The group whose partitions are owned: always the same, because a store
/// remembers the last token of every lease for ever.
const GROUP: &str = "divvy-bench-kept";
/// How long taking all may take.
const TAKING: Duration = Duration::from_mins(2);

/// Consumers that do nothing.
struct Idle;

#[async_trait]
impl ConsumerFactory for Idle {
    async fn start(&self, _: &Partition, _: Grant) -> Result<Box<dyn Consumer>, HookError> {
        Ok(Box::new(()))
    }
}

/// Measures a worker that takes partitions, and keeps them.
pub(super) async fn measure(
    store: &Arc<dyn Leases>,
    name: &str,
    partitions: u32,
    interval: Duration,
) -> Result<Vec<Figure>, ControllerError> {
    let settings = ControllerSettings {
        worker: Some("divvy-bench".to_owned()),
        groups: vec![Group::new(GROUP, partitions)?],
        lease: LeaseSettings {
            lease_ttl: TTL_MIN.max(interval * TTL_INTERVALS),
            renew_interval: interval,
            ..LeaseSettings::default()
        },
        ..ControllerSettings::default()
    };
    let mut watch = Stopwatch::start();
    let began = Instant::now();
    let controller = Controller::builder(Arc::clone(store), Idle)
        .settings(settings)
        .start()
        .await?;
    let view = controller.view();
    let all = partitions as usize;
    let taken = view.wait_until(|owned| owned.len() == all);
    if timeout(TAKING, taken).await.is_err() {
        let text = format!("it did not own all {partitions} within {TAKING:?}");
        return Err(ControllerError::Problem(text.into()));
    }
    watch.lap(began.elapsed());
    let took = watch.stop(
        name,
        format!("a worker takes {partitions} partitions"),
        partitions,
    );

    let watch = Stopwatch::start();
    let span = paced(Duration::ZERO, interval);
    sleep_until(Instant::now() + span).await;
    let load = format!("a worker keeps {partitions}, renewed every {interval:?}");
    let rate = f64::from(partitions) / interval.as_secs_f64();
    let kept = watch.tally().cost(name, load, rate);
    let owned = view.owned().len();
    controller.stop().await?;
    match owned == all {
        true => Ok(vec![took, kept]),
        false => {
            let text = format!("{} partitions were lost while they were kept", all - owned);
            Err(ControllerError::Problem(text.into()))
        }
    }
}
