//! A worker, as it is looked at and asked by HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use divvy::manager::{Grant, Holder, MetricLabels, State, View, now, state_name};
use divvy::{Health, Moment, Partition};
use serde_json::{Value, json};

use crate::exec::render_metrics;
use crate::http::{Attended, unix_ms};

/// What was assigned and is not given back, each with its grant.
#[derive(Debug, Default)]
pub(super) struct Grants {
    all: Mutex<BTreeMap<Partition, (Grant, Moment)>>,
}

impl Grants {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Partition, (Grant, Moment)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, partition: &Partition, grant: Grant) {
        self.all().insert(partition.clone(), (grant, now()));
    }

    pub(super) fn remove(&self, partition: &Partition) {
        self.all().remove(partition);
    }
}

#[derive(Debug)]
pub(super) struct AttendedWorker {
    view: View,
    instance: Arc<str>,
    labels: MetricLabels,
    grants: Arc<Grants>,
    is_drained: AtomicBool,
    pub(super) is_stopping: AtomicBool,
}

impl AttendedWorker {
    pub(super) fn new(
        view: View,
        instance: Arc<str>,
        labels: MetricLabels,
        grants: Arc<Grants>,
    ) -> Self {
        Self {
            view,
            instance,
            labels,
            grants,
            is_drained: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Its stable id, or what it was called before it had one.
    fn name(&self) -> Arc<str> {
        let id = self.view.worker_id();
        id.unwrap_or_else(|| Arc::clone(&self.instance))
    }
}

#[async_trait]
impl Attended for AttendedWorker {
    fn health(&self) -> Result<(), String> {
        match self.view.state() {
            State::Shutdown if !self.is_stopping.load(Ordering::Relaxed) => {
                Err("it has ended".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn readiness(&self) -> Result<(), String> {
        self.health()?;
        let why = if self.is_stopping.load(Ordering::Relaxed) {
            "it stops".to_owned()
        } else if self.view.worker_id().is_none() {
            "it has no id: the store is not reached, or its session is over".to_owned()
        } else if self.view.current_assignment().version.is_none() {
            let state = state_name(self.view.state());
            format!("it has no assignment yet: {state}")
        } else if let Some(trouble) = self.view.trouble() {
            trouble.to_string()
        } else if self.is_draining() {
            "it hands everything on: DELETE /v1/drain ends that".to_owned()
        } else {
            return Ok(());
        };
        Err(why)
    }

    fn metrics(&self) -> String {
        let metrics = self.view.metrics();
        let name = self.name();
        metrics.render_with(&name, &self.labels) + &render_metrics(&name, &self.labels)
    }

    fn owned(&self) -> Value {
        let grants = self.grants.all();
        let owned = grants.iter().map(|(partition, (grant, since))| {
            json!({
                "partition": partition.as_str(),
                "token": grant.token().to_string(),
                "since_ms": unix_ms(*since),
                "stopping": grant.is_revoked(),
            })
        });
        json!({"worker": &*self.name(), "partitions": owned.collect::<Vec<_>>()})
    }

    async fn explain(&self, partition: &str) -> Result<Option<Value>, String> {
        if self.view.current_assignment().version.is_none() {
            return self.readiness().map(|()| None);
        }
        let Some(holder) = self.view.holder_of(partition).await else {
            return Ok(None);
        };
        let (state, worker) = match &holder {
            Holder::Nobody => ("nobody", None),
            Holder::Granted(worker, _) => ("granted", Some(worker)),
            Holder::AskedBack(worker) => ("asked_back", Some(worker)),
        };
        let here = {
            let grants = self.grants.all();
            let mut grants = grants.iter();
            let found = grants.find(|(owned, _)| owned.as_str() == partition);
            found.map(|(_, (grant, _))| grant.token().to_string())
        };
        Ok(Some(json!({
            "partition": partition,
            "worker": &*self.name(),
            "owned_here": here.is_some(),
            "token": here,
            "holder": worker,
            "state": state,
        })))
    }

    fn drain(&self, wanted: bool) {
        self.is_drained.store(wanted, Ordering::Relaxed);
        self.view.report_health(match wanted {
            true => Health::Unhealthy,
            false => Health::Healthy,
        });
    }

    fn is_draining(&self) -> bool {
        self.is_drained.load(Ordering::Relaxed)
    }
}
