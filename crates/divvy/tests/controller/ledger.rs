//! Consumers that write down what they do, and whether they were alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use divvy::Partition;
use divvy::controller::{Consumer, ConsumerFactory};
use divvy::lease::StopReason;
use divvy::manager::{Grant, HookError};

/// What runs, and what ran, of all workers of a test.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pages: Mutex<Pages>,
    /// Starts fail while this is set.
    pub(crate) fails: AtomicBool,
}

#[derive(Debug, Default)]
struct Pages {
    running: BTreeMap<String, Vec<(String, Grant)>>,
    tokens: BTreeMap<String, i64>,
    starts: usize,
    stops: BTreeMap<StopReason, usize>,
    wrong: Vec<String>,
}

impl Ledger {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn factory(self: &Arc<Self>, worker: &str) -> Recorder {
        Recorder {
            worker: worker.to_owned(),
            ledger: Arc::clone(self),
        }
    }

    /// How many partitions run somewhere.
    pub(crate) fn running(&self) -> usize {
        let pages = self.pages.lock().unwrap();
        pages.running.values().filter(|who| !who.is_empty()).count()
    }

    /// How many run at this worker.
    pub(crate) fn running_at(&self, worker: &str) -> usize {
        let pages = self.pages.lock().unwrap();
        let all = pages.running.values().flatten();
        all.filter(|(who, _)| who == worker).count()
    }

    pub(crate) fn starts(&self) -> usize {
        self.pages.lock().unwrap().starts
    }

    pub(crate) fn stops(&self, reason: StopReason) -> usize {
        let pages = self.pages.lock().unwrap();
        pages.stops.get(&reason).copied().unwrap_or(0)
    }

    /// No partition had two owners, and tokens only rose.
    pub(crate) fn check(&self) {
        let pages = self.pages.lock().unwrap();
        assert!(pages.wrong.is_empty(), "{:?}", pages.wrong);
    }

    fn started(&self, worker: &str, partition: &Partition, grant: Grant) {
        let mut pages = self.pages.lock().unwrap();
        let name = partition.to_string();
        let token = grant.token().get();
        let last = pages.tokens.insert(name.clone(), token).unwrap_or(0);
        if token <= last {
            let wrong = format!("{name} has token {token} after {last}");
            pages.wrong.push(wrong);
        }
        let others = pages.running.entry(name.clone()).or_default();
        let current = others.iter().find(|(_, grant)| grant.is_current());
        let wrong = current.map(|(who, _)| format!("{name} starts at {worker} and runs at {who}"));
        others.push((worker.to_owned(), grant));
        pages.wrong.extend(wrong);
        pages.starts += 1;
    }

    fn stopped(&self, worker: &str, partition: &Partition, reason: StopReason) {
        let mut pages = self.pages.lock().unwrap();
        let name = partition.to_string();
        if let Some(who) = pages.running.get_mut(&name) {
            who.retain(|(other, _)| other != worker);
        }
        *pages.stops.entry(reason).or_default() += 1;
    }
}

#[derive(Debug)]
pub(crate) struct Recorder {
    worker: String,
    ledger: Arc<Ledger>,
}

#[async_trait]
impl ConsumerFactory for Recorder {
    async fn start(
        &self,
        partition: &Partition,
        grant: Grant,
    ) -> Result<Box<dyn Consumer>, HookError> {
        if self.ledger.fails.load(Ordering::SeqCst) {
            return Err("it cannot be started today".into());
        }
        self.ledger.started(&self.worker, partition, grant);
        Ok(Box::new(Recorded {
            worker: self.worker.clone(),
            partition: partition.clone(),
            ledger: Arc::clone(&self.ledger),
        }))
    }
}

struct Recorded {
    worker: String,
    partition: Partition,
    ledger: Arc<Ledger>,
}

#[async_trait]
impl Consumer for Recorded {
    async fn stop(self: Box<Self>, reason: StopReason) -> Result<(), HookError> {
        self.ledger.stopped(&self.worker, &self.partition, reason);
        Ok(())
    }
}
