//! Several managers over one store, and everything that they said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use divvy::manager::{
    EventKind, Hooks, Manager, ManagerBuilder, ManagerError, ManagerEvent, NoHooks,
    PartitionSource, Settings, Shutdown, StaticSource, StoreChoice, View,
};
use divvy::store::KeyValue;
use divvy::{Balanced, Partitions};
use divvy_testbed::{until, until_some};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::bed::{Bed, SOON};
use crate::chronicle::Chronicle;
use crate::recorder::{Record, Recorder};

/// More than any test has happen.
const EVENTS_MAX: usize = 1 << 18;

pub(crate) struct Fleet {
    pub(crate) bed: Bed,
    pub(crate) settings: Settings,
    pub(crate) partitions: Partitions,
    pub(crate) workers: Vec<Option<Manager>>,
    /// Whether what is written is recorded. Managers then do not open their
    /// stores themselves.
    pub(crate) is_recorded: bool,
    record: Record,
    /// What sources give besides, and since when.
    listed: Vec<(divvy::Moment, Partitions)>,
    cuts: Vec<Arc<AtomicBool>>,
    /// Serves the connections of recorded stores.
    runtime: Option<Runtime>,
    heard: Vec<mpsc::Receiver<ManagerEvent>>,
    events: Vec<Vec<ManagerEvent>>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A manager that is not started yet.
pub(crate) struct Recruit {
    number: usize,
    pub(crate) builder: ManagerBuilder,
}

impl Fleet {
    pub(crate) fn new(bed: Bed, partitions: u32) -> Self {
        Self {
            settings: bed.settings(),
            bed,
            partitions: Partitions::shards([("p", partitions)]).unwrap(),
            workers: Vec::new(),
            is_recorded: true,
            record: Record::default(),
            listed: Vec::new(),
            cuts: Vec::new(),
            runtime: None,
            heard: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The store as its managers open it themselves: nothing is recorded.
    pub(crate) fn unrecorded(bed: Bed, partitions: u32) -> Self {
        let mut fleet = Self::new(bed, partitions);
        fleet.is_recorded = false;
        fleet
    }

    /// A fleet of so many, started at once, that has come to rest.
    pub(crate) async fn settled(bed: Bed, workers: usize, partitions: u32) -> Self {
        let mut fleet = Self::new(bed, partitions);
        fleet.settings.leader.expected_workers = Some(workers as u32);
        fleet.join_many(workers).await;
        fleet.owned().await;
        fleet
    }

    /// From now on, sources may give this.
    pub(crate) fn list(&mut self, partitions: Partitions) {
        self.listed.push((divvy::manager::now(), partitions));
    }

    /// The store of the next member.
    async fn store(&mut self, is_cut: &Arc<AtomicBool>) -> StoreChoice {
        if !self.is_recorded {
            return self.bed.store();
        }
        let serving = || {
            Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
        };
        let runtime = self.runtime.get_or_insert_with(|| serving().unwrap());
        let limit = self.settings.leader.operation_timeout;
        let store = self.bed.open(runtime.handle(), limit).await;
        let (member, record) = (self.workers.len(), self.record.clone());
        let recorder: Arc<dyn KeyValue> =
            Arc::new(Recorder::new(store, member, record, Arc::clone(is_cut)));
        recorder.into()
    }

    /// Nothing that this one asks of the store is answered from now on, or
    /// again.
    pub(crate) fn cut(&self, number: usize, is_cut: bool) {
        self.cuts[number].store(is_cut, Ordering::SeqCst);
    }

    pub(crate) async fn recruit(&mut self, instance: &str, hooks: impl Hooks) -> Recruit {
        let source = StaticSource::new(self.partitions.clone());
        self.recruit_from(instance, hooks, source).await
    }

    pub(crate) async fn recruit_from(
        &mut self,
        instance: &str,
        hooks: impl Hooks,
        source: impl PartitionSource,
    ) -> Recruit {
        let is_cut = Arc::new(AtomicBool::new(false));
        let store = self.store(&is_cut).await;
        let (told, heard) = mpsc::channel(EVENTS_MAX);
        let settings = Settings {
            instance: Some(instance.to_owned()),
            ..self.settings.clone()
        };
        let builder = Manager::builder(store, source)
            .settings(settings)
            .strategy(Balanced::new())
            .hooks(hooks)
            .events(told);
        self.workers.push(None);
        self.cuts.push(is_cut);
        self.heard.push(heard);
        self.events.push(Vec::new());
        Recruit {
            number: self.workers.len() - 1,
            builder,
        }
    }

    /// Starts one, and gives its number.
    pub(crate) async fn join(&mut self, instance: &str) -> usize {
        self.join_with(instance, NoHooks).await
    }

    pub(crate) async fn join_with(&mut self, instance: &str, hooks: impl Hooks) -> usize {
        let recruit = self.recruit(instance, hooks).await;
        self.enlist(recruit).await
    }

    /// Starts one that gets its partitions elsewhere.
    pub(crate) async fn enlist(&mut self, recruit: Recruit) -> usize {
        let started = recruit.builder.start().await;
        self.workers[recruit.number] = Some(started.unwrap());
        recruit.number
    }

    /// The same for one whose sources, agents and hooks have a runtime of their
    /// own: threads that they block take neither the test's time nor the
    /// connection to the store with them.
    pub(crate) async fn enlist_on(&mut self, runtime: &Runtime, recruit: Recruit) -> usize {
        let started = runtime.spawn(recruit.builder.start()).await.unwrap();
        self.workers[recruit.number] = Some(started.unwrap());
        recruit.number
    }

    /// Starts so many at once; none may fail.
    pub(crate) async fn join_many(&mut self, count: usize) {
        let mut starting = tokio::task::JoinSet::new();
        for number in 0..count {
            let recruit = self.recruit(&format!("host-{number}"), NoHooks).await;
            starting.spawn(async move { (recruit.number, recruit.builder.start().await) });
        }
        while let Some(started) = starting.join_next().await {
            let (number, started) = started.unwrap();
            self.workers[number] = Some(started.unwrap());
        }
    }

    pub(crate) async fn stop(&mut self, number: usize, how: Shutdown) -> Result<(), ManagerError> {
        let manager = self.workers[number].take().unwrap();
        manager.stop(how).await
    }

    pub(crate) fn views(&self) -> Vec<View> {
        self.workers.iter().flatten().map(Manager::view).collect()
    }

    /// Who owns each partition.
    pub(crate) fn owners(&self) -> BTreeMap<String, Vec<Arc<str>>> {
        owners(&self.views())
    }

    pub(crate) fn counts(&self) -> Vec<usize> {
        let counts = self.views().into_iter();
        counts
            .map(|view| view.current_assignment().partitions.len())
            .collect()
    }

    /// Waits until one of them leads, and no other, and gives its number.
    pub(crate) async fn leader(&self) -> usize {
        let leads = |worker: &Option<Manager>| worker.as_ref().is_some_and(|m| m.is_leader());
        until_some(SOON, "one leads", async || {
            let numbers = 0..self.workers.len();
            let leaders: Vec<_> = numbers.filter(|n| leads(&self.workers[*n])).collect();
            (leaders.len() == 1).then(|| leaders[0])
        })
        .await
    }

    /// Waits until every partition has exactly one owner.
    pub(crate) async fn owned(&self) {
        let views = self.views();
        let names: Vec<_> = self.partitions.iter().map(ToString::to_string).collect();
        until(SOON, "every partition has one owner", async || {
            let owners = owners(&views);
            names
                .iter()
                .all(|name| owners.get(name).is_some_and(|by| by.len() == 1))
        })
        .await;
    }

    /// Waits until all own about the same.
    pub(crate) async fn balanced(&self) {
        let views = self.views();
        let total = self.partitions.len();
        until(SOON, "everybody owns a fair share", async || {
            let counts = views
                .iter()
                .map(|view| view.current_assignment().partitions.len());
            let counts: Vec<_> = counts.collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            counts.iter().sum::<usize>() == total && most - least <= 1
        })
        .await;
    }

    /// What happened at one of them so far.
    pub(crate) fn events(&mut self, number: usize) -> &[ManagerEvent] {
        while let Ok(event) = self.heard[number].try_recv() {
            self.events[number].push(event);
        }
        assert!(self.events[number].len() < EVENTS_MAX, "events were lost");
        &self.events[number]
    }

    /// All grants so far were made by one root: whoever wrote it says so.
    pub(crate) async fn granted_once(&mut self) {
        until(SOON, "a root with grants is told of", async || {
            self.grants_committed() > 0
        })
        .await;
        assert_eq!(self.grants_committed(), 1);
    }

    fn grants_committed(&mut self) -> usize {
        let is_grant =
            |event: &&ManagerEvent| matches!(event.kind, EventKind::Committed { granted: 1.., .. });
        let workers = 0..self.workers.len();
        workers
            .map(|number| self.events(number).iter().filter(is_grant).count())
            .sum()
    }

    /// How many grants were started so far. One that was paused, because a busy
    /// machine could not keep the lease, and taken up again is one.
    pub(crate) fn starts(&mut self) -> usize {
        let mut started = BTreeSet::new();
        for number in 0..self.workers.len() {
            for event in self.events(number) {
                if let EventKind::Assigned { partition, token } = &event.kind {
                    started.insert((partition.clone(), *token));
                }
            }
        }
        started.len()
    }

    /// Everybody leaves, and what they said must hold together.
    pub(crate) async fn end(mut self) {
        for number in 0..self.workers.len() {
            if self.workers[number].is_some() {
                self.stop(number, Shutdown::Leave).await.unwrap();
            }
        }
        self.check();
    }

    /// What was said and written so far must hold together.
    pub(crate) fn check(&mut self) {
        let mut chronicle = Chronicle::default();
        for number in 0..self.workers.len() {
            for event in self.events(number) {
                chronicle.say(number, event);
            }
        }
        self.record.tell(&mut chronicle.history);
        chronicle
            .history
            .listed(Default::default(), self.partitions.clone());
        for (at, partitions) in &self.listed {
            chronicle.history.listed(*at, partitions.clone());
        }
        chronicle.check(self.settings.leader.heartbeat_ttl);
    }
}

fn owners(views: &[View]) -> BTreeMap<String, Vec<Arc<str>>> {
    let mut owners: BTreeMap<String, Vec<Arc<str>>> = BTreeMap::new();
    for view in views {
        let id = view.worker_id().unwrap_or_else(|| "nobody".into());
        for owned in view.current_assignment().partitions.iter() {
            let owner = owners.entry(owned.partition.to_string()).or_default();
            owner.push(Arc::clone(&id));
        }
    }
    owners
}
