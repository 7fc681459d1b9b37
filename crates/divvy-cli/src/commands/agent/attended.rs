//! An agent, as it is looked at and asked by HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use divvy::controller::ControllerView;
use divvy::lease::{Explained, Misalignment};
use divvy::manager::MetricLabels;
use divvy::store::LeaseKey;
use serde_json::{Value, json};

use super::health::Fitness;
use crate::exec::render_metrics;
use crate::http::{Attended, unix_ms};
use crate::voice::say;

#[derive(Debug)]
pub(super) struct AttendedAgent {
    pub(super) view: ControllerView,
    pub(super) labels: MetricLabels,
    pub(super) fitness: Arc<Fitness>,
    pub(super) is_stopping: AtomicBool,
}

#[async_trait]
impl Attended for AttendedAgent {
    fn health(&self) -> Result<(), String> {
        match self.view.has_ended() {
            true => Err("it has ended".to_owned()),
            false => Ok(()),
        }
    }

    fn readiness(&self) -> Result<(), String> {
        self.health()?;
        let why = if self.is_stopping.load(Ordering::Relaxed) {
            "it stops"
        } else if !self.view.is_joined() {
            "it does not take part yet: the store is not reached, or has not taken its name"
        } else if self.view.backoff_active() {
            "the store has failed lately: nothing is taken or given up for a while"
        } else if self.fitness.is_drained() {
            "it hands everything on: DELETE /v1/drain ends that"
        } else if self.view.is_drain_wished() {
            "it hands everything on: divvy uncordon ends that"
        } else if !self.fitness.is_healthy() {
            "it is unhealthy, by --health-cmd"
        } else {
            return Ok(());
        };
        Err(why.to_owned())
    }

    fn metrics(&self) -> String {
        let commands = render_metrics(self.view.worker(), &self.labels);
        self.view.render_metrics_with(&self.labels) + &commands
    }

    fn owned(&self) -> Value {
        let owned = self.view.owned();
        let owned = owned.iter().map(|owned| {
            json!({
                "partition": owned.partition.as_str(),
                "token": owned.token.to_string(),
                "since_ms": unix_ms(owned.since),
                "stopping": owned.is_stopping,
                "stop_unconfirmed": owned.is_stop_unconfirmed,
            })
        });
        json!({"worker": self.view.worker(), "partitions": owned.collect::<Vec<_>>()})
    }

    async fn explain(&self, partition: &str) -> Result<Option<Value>, String> {
        let Some(key) = key(partition) else {
            return Ok(None);
        };
        if !self.view.is_joined() {
            return self.readiness().map(|()| None);
        }
        let explained = self.view.explain(key).await;
        Ok(explained.map(|explained| self.told(partition, &explained)))
    }

    fn drain(&self, wanted: bool) {
        if self.fitness.is_drained() != wanted {
            say!(
                "{}",
                match wanted {
                    true => "hands everything on, as POST /v1/drain asked for",
                    false => "takes partitions again, as DELETE /v1/drain asked for",
                }
            );
        }
        self.fitness.drain(wanted);
    }

    fn is_draining(&self) -> bool {
        self.fitness.is_drained()
    }
}

impl AttendedAgent {
    fn told(&self, partition: &str, explained: &Explained) -> Value {
        let by = match &explained.why {
            Some(Misalignment::HeldBy(by)) => Some(by),
            _ => None,
        };
        json!({
            "partition": partition,
            "worker": self.view.worker(),
            "owned_here": explained.token.is_some(),
            "token": explained.token.map(|token| token.to_string()),
            "holder": explained.holder,
            "holder_known": explained.is_holder_known,
            "desired": explained.desired,
            "misaligned": explained.why.as_ref().map(Misalignment::as_str),
            "held_by": by,
            "ranking": explained.ranking,
        })
    }
}

/// A partition as it is named: `workload:unit`.
fn key(partition: &str) -> Option<LeaseKey> {
    let (workload, unit) = partition.rsplit_once(':')?;
    let number = unit
        .parse()
        .ok()
        .filter(|number: &u32| number.to_string() == unit)?;
    LeaseKey::new(workload, number).ok()
}
