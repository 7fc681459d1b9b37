//! Beginning and ending: what a manager leaves behind, which is nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::{
    ElectionAgent, HookError, Hooks, LeaderSettings, Manager, ManagerError, NoHooks,
    PartitionSource, Settings, Shutdown, State, StaticSource, View,
};
use divvy::{Partition, Partitions, WeightedConsistentHash};
use divvy_testbed::until;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// A name that no other test has, so that its thread can be told.
fn unique() -> String {
    format!("t{:08x}", fastrand::u32(..))
}

/// Threads of the manager of this instance.
fn threads(instance: &str) -> usize {
    let name = format!("divvy-{instance}");
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| {
        let path = task.ok()?.path().join("comm");
        std::fs::read_to_string(path).ok()
    });
    names.filter(|found| found.trim_end() == name).count()
}

/// After a stop there is neither a thread nor a task nor a connection.
pub(crate) async fn no_task_outlives_a_stopped_manager(bed: Bed) {
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let mut fleet = Fleet::unrecorded(bed, 20);
    let before = alive();
    let name = unique();
    let number = fleet.join(&name).await;
    fleet.owned().await;
    assert_eq!(threads(&name), 1);
    fleet.stop(number, Shutdown::Leave).await.unwrap();
    // A thread that has been joined may be listed for a moment longer.
    until(SOON, "its thread is gone", async || threads(&name) == 0).await;
    until(SOON, "its tasks are gone", async || alive() <= before).await;
    fleet.check();
}

/// A manager that is dropped leaves: others get its partitions without having
/// to wait for its lease.
pub(crate) async fn a_dropped_manager_leaves(bed: Bed) {
    let mut fleet = Fleet::unrecorded(bed, 10);
    let name = unique();
    let dropped = fleet.join(&name).await;
    fleet.join("other").await;
    fleet.balanced().await;
    drop(fleet.workers[dropped].take());
    fleet.owned().await;
    until(SOON, "its thread is gone", async || threads(&name) == 0).await;
    fleet.end().await;
}

/// A start that is given up leaves nothing behind.
pub(crate) async fn a_cancelled_start_leaves_nothing(bed: Bed) {
    let mut fleet = Fleet::unrecorded(bed, 10);
    let name = unique();
    for round in 0..3 {
        let recruit = fleet.recruit(&name, NoHooks).await;
        let mut starting = tokio::spawn(recruit.builder.start());
        for _ in 0..round * 50 {
            tokio::task::yield_now().await;
        }
        if let Ok(started) =
            tokio::time::timeout(Duration::from_millis(round * 40), &mut starting).await
        {
            drop(started);
        }
        starting.abort();
        until(SOON, "its thread is gone", async || threads(&name) == 0).await;
    }
    fleet.join("after").await;
    fleet.owned().await;
    fleet.end().await;
}

/// When every id is taken, a start fails and says so, and nothing is left.
pub(crate) async fn a_start_without_a_free_id_says_so(bed: Bed) {
    let mut fleet = Fleet::unrecorded(bed, 4);
    fleet.settings.leader.worker_id_max = 1;
    fleet.join("one").await;
    fleet.join("two").await;
    // Enough to reach the store and to see that nothing is free.
    fleet.settings.leader.startup_timeout = Duration::from_secs(3);
    let name = unique();
    let recruit = fleet.recruit(&name, NoHooks).await;
    let told = recruit.builder.start().await.unwrap_err();
    assert!(
        matches!(told, ManagerError::StableIdExhausted { .. }),
        "{told:?}"
    );
    let text = "all stable ids in range are claimed: worker-0 to worker-1";
    assert_eq!(told.to_string(), text);
    until(SOON, "its thread is gone", async || threads(&name) == 0).await;
    fleet.end().await;
}

/// Gives what it is told to.
struct Changing(Arc<AtomicUsize>, Arc<AtomicUsize>);

#[async_trait]
impl PartitionSource for Changing {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        match self.0.load(Ordering::SeqCst) {
            0 => {
                self.1.fetch_add(1, Ordering::SeqCst);
                Err("the source is down".into())
            }
            count => Ok(Partitions::shards([("p", count as u32)])?),
        }
    }
}

/// Partitions come and go by a refresh, which anybody may ask for; a source
/// that fails changes nothing.
pub(crate) async fn partitions_change_by_a_refresh(bed: Bed) {
    let count = Arc::new(AtomicUsize::new(10));
    let failures = Arc::new(AtomicUsize::new(0));
    let mut fleet = Fleet::new(bed, 10);
    for number in 0..2 {
        let source = Changing(Arc::clone(&count), Arc::clone(&failures));
        let host = format!("host-{number}");
        let recruit = fleet.recruit_from(&host, NoHooks, source).await;
        fleet.enlist(recruit).await;
    }
    let views = fleet.views();
    let owned = || {
        let counts = views.iter().map(View::current_assignment);
        counts
            .map(|current| current.partitions.len())
            .sum::<usize>()
    };
    until(SOON, "all are owned", async || owned() == 10).await;
    for (asker, wanted) in [(0, 14), (1, 12), (1, 20)] {
        fleet.list(Partitions::shards([("p", wanted)]).unwrap());
        count.store(wanted as usize, Ordering::SeqCst);
        views[asker].refresh_partitions().await.unwrap();
        until(SOON, "what changed is owned", async || {
            owned() == wanted as usize
        })
        .await;
    }
    count.store(0, Ordering::SeqCst);
    views[0].refresh_partitions().await.unwrap();
    until(SOON, "the source failed", async || {
        failures.load(Ordering::SeqCst) > 1
    })
    .await;
    // One may just be on its way from one to the other.
    until(SOON, "the last good list stays", async || owned() == 20).await;
    fleet.end().await;
}

/// Gives 40 partitions, of which some weigh more.
#[derive(Clone, Default)]
struct Weighing(Arc<Mutex<BTreeSet<String>>>);

impl Weighing {
    fn weight(&self, name: &str) -> i64 {
        let is_heavy = self.0.lock().unwrap().contains(name);
        if is_heavy { 5 } else { 1 }
    }
}

impl Weighing {
    fn partitions(&self) -> Result<Partitions, divvy::Error> {
        let mut partitions = Vec::new();
        for number in 0..40 {
            let partition = Partition::shard("p", number)?;
            let weight = self.weight(partition.as_str());
            partitions.push(partition.with_weight(weight)?);
        }
        Partitions::new(partitions)
    }
}

#[async_trait]
impl PartitionSource for Weighing {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        Ok(self.partitions()?)
    }
}

/// What one worker has becomes heavy: a part of it goes to the other, until
/// both are inside the band of the default strategy.
pub(crate) async fn loads_follow_the_weights_of_partitions(bed: Bed) {
    let source = Weighing::default();
    let mut fleet = Fleet::new(bed, 40);
    fleet.list(source.partitions().unwrap());
    for number in 0..2 {
        let host = format!("host-{number}");
        let mut recruit = fleet.recruit_from(&host, NoHooks, source.clone()).await;
        recruit.builder = recruit.builder.strategy(WeightedConsistentHash::new());
        fleet.enlist(recruit).await;
    }
    let views = fleet.views();
    let load = |view: &View| {
        let owned = view.current_assignment();
        let owned = owned.partitions.iter();
        let weights = owned.map(|owned| source.weight(owned.partition.as_str()));
        weights.sum::<i64>()
    };
    until(SOON, "both have some", async || {
        views.iter().all(|view| load(view) > 0) && views.iter().map(load).sum::<i64>() == 40
    })
    .await;
    let busiest = views.iter().max_by_key(|view| load(view)).unwrap();
    let owned = busiest.current_assignment();
    let names = owned.partitions.iter();
    let names: BTreeSet<_> = names.map(|owned| owned.partition.to_string()).collect();
    let all = 40 + 4 * names.len() as i64;
    *source.0.lock().unwrap() = names;
    fleet.list(source.partitions().unwrap());
    // At most 1.3 times the mean of two, which is 13 of 20.
    let is_inside = |view: &View| load(view) * 20 <= all * 13;
    assert!(!is_inside(busiest));
    views[1].refresh_partitions().await.unwrap();
    until(SOON, "both are inside the band", async || {
        views.iter().map(load).sum::<i64>() == all && views.iter().all(is_inside)
    })
    .await;
    fleet.end().await;
}

/// Elects whoever it is told to.
struct Chosen(Arc<AtomicUsize>, usize);

#[async_trait]
impl ElectionAgent for Chosen {
    async fn request_leadership(&self, _worker: &str, _lease: Duration) -> Result<bool, HookError> {
        Ok(self.0.load(Ordering::SeqCst) == self.1)
    }

    async fn renew_leadership(&self) -> Result<(), HookError> {
        match self.0.load(Ordering::SeqCst) == self.1 {
            true => Ok(()),
            false => Err("another was elected".into()),
        }
    }

    async fn release_leadership(&self) -> Result<(), HookError> {
        Ok(())
    }

    async fn is_leader(&self) -> bool {
        self.0.load(Ordering::SeqCst) == self.1
    }
}

/// An agent's choice leads, and nobody else does.
pub(crate) async fn an_election_agent_decides_who_leads(bed: Bed) {
    let chosen = Arc::new(AtomicUsize::new(1));
    let mut fleet = Fleet::new(bed, 12);
    let mut starting = Vec::new();
    for number in 0..3 {
        let recruit = fleet.recruit(&format!("host-{number}"), NoHooks).await;
        let agent = Chosen(Arc::clone(&chosen), number);
        starting.push(tokio::spawn(recruit.builder.election_agent(agent).start()));
    }
    for (number, started) in starting.into_iter().enumerate() {
        fleet.workers[number] = Some(started.await.unwrap().unwrap());
    }
    let views = fleet.views();
    let leaders = || views.iter().map(View::is_leader).collect::<Vec<_>>();
    until(SOON, "the chosen one leads", async || {
        leaders() == [false, true, false]
    })
    .await;
    chosen.store(2, Ordering::SeqCst);
    until(SOON, "the next leads", async || {
        leaders() == [false, false, true]
    })
    .await;
    fleet.owned().await;
    fleet.end().await;
}

/// Elects whoever asks, and takes its time to forget it.
#[derive(Default)]
struct Hesitant(AtomicUsize);

#[async_trait]
impl ElectionAgent for Hesitant {
    async fn request_leadership(&self, _worker: &str, _lease: Duration) -> Result<bool, HookError> {
        Ok(true)
    }

    async fn renew_leadership(&self) -> Result<(), HookError> {
        Ok(())
    }

    async fn release_leadership(&self) -> Result<(), HookError> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(300) {
            tokio::task::yield_now().await;
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn is_leader(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_let_finish_when_a_leader_stops() {
    let agent = Arc::new(Hesitant::default());
    let source = StaticSource::shards(["p"], 4).unwrap();
    let builder = Manager::builder(divvy::store::MemoryKeyValue::new(), source);
    let builder = builder.settings(Settings::fast());
    let manager = builder
        .election_agent(Arc::clone(&agent))
        .start()
        .await
        .unwrap();
    until(SOON, "it leads", async || manager.is_leader()).await;
    manager.stop(Shutdown::Leave).await.unwrap();
    assert_eq!(agent.0.load(Ordering::SeqCst), 1);
}

/// Stops late, says that this went wrong, and never returns when told so.
struct Late(Duration);

#[async_trait]
impl Hooks for Late {
    async fn revoked(&self, _partition: &Partition) -> Result<(), HookError> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < self.0 {
            tokio::task::yield_now().await;
        }
        Err("it was late".into())
    }

    async fn error(&self, _error: &ManagerError) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_a_stop_waits_for_has_one_deadline() {
    let limit = Duration::from_secs(2);
    let mut settings = Settings::fast();
    settings.leader.shutdown_timeout = limit;
    settings.leader.stop_deadline = limit;
    let source = StaticSource::shards(["p"], 1).unwrap();
    let builder = Manager::builder(divvy::store::MemoryKeyValue::new(), source);
    let hooks = Late(limit * 3 / 4);
    let manager = builder.settings(settings).hooks(hooks).start().await;
    let manager = manager.unwrap();
    until(SOON, "it owns all", async || {
        manager.current_assignment().partitions.len() == 1
    })
    .await;
    let begun = std::time::Instant::now();
    manager.stop(Shutdown::Leave).await.unwrap();
    // Both one after the other would be nearly twice as long.
    assert!(begun.elapsed() < limit * 5 / 4, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_settings_fail_a_start_before_anything_begins() {
    let source = StaticSource::shards(["p"], 4).unwrap();
    let settings = Settings {
        leader: LeaderSettings {
            heartbeat_interval: Duration::from_secs(5),
            ..LeaderSettings::default()
        },
        ..Settings::default()
    };
    let memory = divvy::store::MemoryKeyValue::new();
    let builder = Manager::builder(memory, source).settings(settings);
    let told = builder.start().await.unwrap_err().to_string();
    assert_eq!(told, "heartbeat_interval '5s': must be in 1ms..=2s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_its_server_ends_in_time_and_says_why() {
    let source = StaticSource::shards(["p"], 4).unwrap();
    let store = divvy::store::StoreSettings {
        connect_timeout: Duration::from_millis(300),
        ..Default::default()
    };
    let nobody = "redis://127.0.0.1:1".parse().unwrap();
    let mut looked = None;
    let mut settings = Settings::fast();
    settings.leader.startup_timeout = Duration::from_millis(800);
    let builder = Manager::builder((nobody, store), source).settings(settings);
    let started = builder.start_with(|view| looked = Some(view)).await;
    let told = started.unwrap_err();
    assert!(matches!(told, ManagerError::Unreached(_)), "{told:?}");
    let view = looked.unwrap();
    assert_eq!((view.state(), view.worker_id()), (State::Shutdown, None));
}
