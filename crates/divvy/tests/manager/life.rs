//! Beginning and ending: what a manager leaves behind, which is nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::{
    ElectionAgent, HookError, LeaderSettings, Manager, ManagerError, NoHooks, PartitionSource,
    Settings, Shutdown, State, StaticSource,
};
use divvy::{Balanced, Partition, Partitions};
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
    let mut managers = Vec::new();
    for number in 0..2 {
        let settings = Settings {
            instance: Some(format!("host-{number}")),
            ..bed.settings()
        };
        let source = Changing(Arc::clone(&count), Arc::clone(&failures));
        let builder = Manager::builder(bed.store(), source);
        let manager = builder.settings(settings).strategy(Balanced::new()).start();
        managers.push(manager.await.unwrap());
    }
    let owned = || {
        let counts = managers.iter().map(|manager| manager.current_assignment());
        counts
            .map(|current| current.partitions.len())
            .sum::<usize>()
    };
    until(SOON, "all are owned", async || owned() == 10).await;
    for (asker, wanted) in [(0, 14), (1, 12), (1, 20)] {
        count.store(wanted, Ordering::SeqCst);
        managers[asker].refresh_partitions().await.unwrap();
        until(SOON, "what changed is owned", async || owned() == wanted).await;
    }
    count.store(0, Ordering::SeqCst);
    managers[0].refresh_partitions().await.unwrap();
    until(SOON, "the source failed", async || {
        failures.load(Ordering::SeqCst) > 1
    })
    .await;
    assert_eq!(owned(), 20, "the last good list stays");
    for manager in managers {
        manager.stop(Shutdown::Leave).await.unwrap();
    }
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

#[async_trait]
impl PartitionSource for Weighing {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        let mut partitions = Vec::new();
        for number in 0..40 {
            let partition = Partition::shard("p", number)?;
            let weight = self.weight(partition.as_str());
            partitions.push(partition.with_weight(weight)?);
        }
        Ok(Partitions::new(partitions)?)
    }
}

/// What one worker has becomes heavy: a part of it goes to the other, until
/// both are inside the band of the default strategy.
pub(crate) async fn loads_follow_the_weights_of_partitions(bed: Bed) {
    let source = Weighing::default();
    let mut managers = Vec::new();
    for number in 0..2 {
        let settings = Settings {
            instance: Some(format!("host-{number}")),
            ..bed.settings()
        };
        let builder = Manager::builder(bed.store(), source.clone());
        managers.push(builder.settings(settings).start().await.unwrap());
    }
    let load = |manager: &Manager| {
        let owned = manager.current_assignment();
        let owned = owned.partitions.iter();
        let weights = owned.map(|owned| source.weight(owned.partition.as_str()));
        weights.sum::<i64>()
    };
    until(SOON, "both have some", async || {
        managers.iter().all(|manager| load(manager) > 0)
            && managers.iter().map(load).sum::<i64>() == 40
    })
    .await;
    let busiest = managers.iter().max_by_key(|manager| load(manager)).unwrap();
    let owned = busiest.current_assignment();
    let names = owned.partitions.iter();
    let names: BTreeSet<_> = names.map(|owned| owned.partition.to_string()).collect();
    let all = 40 + 4 * names.len() as i64;
    *source.0.lock().unwrap() = names;
    // At most 1.3 times the mean of two, which is 13 of 20.
    let is_inside = |manager: &Manager| load(manager) * 20 <= all * 13;
    assert!(!is_inside(busiest));
    managers[1].refresh_partitions().await.unwrap();
    until(SOON, "both are inside the band", async || {
        managers.iter().map(load).sum::<i64>() == all && managers.iter().all(is_inside)
    })
    .await;
    for manager in managers {
        manager.stop(Shutdown::Leave).await.unwrap();
    }
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
    let starting = (0..3).map(|number| {
        let settings = Settings {
            instance: Some(format!("host-{number}")),
            ..bed.settings()
        };
        let source = StaticSource::shards(["p"], 12).unwrap();
        let builder = Manager::builder(bed.store(), source).settings(settings);
        let agent = Chosen(Arc::clone(&chosen), number);
        tokio::spawn(
            builder
                .election_agent(agent)
                .strategy(Balanced::new())
                .start(),
        )
    });
    let mut managers = Vec::new();
    for started in starting.collect::<Vec<_>>() {
        managers.push(started.await.unwrap().unwrap());
    }
    let leaders = || {
        let leads = managers.iter().map(|manager| manager.is_leader());
        leads.collect::<Vec<_>>()
    };
    until(SOON, "the chosen one leads", async || {
        leaders() == [false, true, false]
    })
    .await;
    chosen.store(2, Ordering::SeqCst);
    until(SOON, "the next leads", async || {
        leaders() == [false, false, true]
    })
    .await;
    for manager in managers {
        manager.stop(Shutdown::Leave).await.unwrap();
    }
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
    assert!(matches!(told, ManagerError::ConnectionLost(_)), "{told:?}");
    let view = looked.unwrap();
    assert_eq!((view.state(), view.worker_id()), (State::Shutdown, None));
}
