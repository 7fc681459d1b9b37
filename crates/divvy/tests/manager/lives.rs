//! A store that goes back to an earlier state, and says so to those who ask,
//! but late: what it answers before that proves nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
use divvy::store::{
    Connection, ConnectionReport, Entry, Expected, Hint, Hints, Incarnation, Key, KeyValue,
    Outcome, Prefix, Revision, Store, StoreError, VALUE_BYTES_MAX, Watch,
};
use divvy::{Balanced, Partition};
use divvy_core::store::KeyValueTable;
use divvy_testbed::until;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::bed::SOON;

const PARTITIONS: u32 = 4;
const LEASE: Duration = Duration::from_secs(3);
/// Long enough for several renewals, and too short for a lease to end in it.
const LIFE_TOLD_AFTER: Duration = Duration::from_millis(1200);

/// The server.
#[derive(Debug)]
struct Database {
    state: Mutex<State>,
    writes: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    table: KeyValueTable,
    life: u64,
    /// How long whoever asks for the life waits.
    delay: Duration,
    /// Writes that were begun on a connection on which the life was not told.
    blind_writes: u64,
}

impl Database {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// What one manager knows of it.
#[derive(Debug, Clone)]
struct Client {
    database: Arc<Database>,
    connection: ConnectionReport,
    /// The last connection on which the life was told.
    told_on: Arc<AtomicU64>,
    /// Has a receiver for each write under way.
    writing: Arc<watch::Sender<()>>,
}

impl Client {
    fn new(database: &Arc<Database>) -> Self {
        Self {
            database: Arc::clone(database),
            connection: ConnectionReport::connected(),
            told_on: Arc::default(),
            writing: Arc::default(),
        }
    }

    /// Waits for the server, as clients do that keep what they could not send
    /// for the next connection.
    async fn ask<T>(&self, operation: impl FnOnce(&mut State) -> T) -> T {
        let mut connection = self.connection.subscribe();
        loop {
            let reached = connection.wait_for(|connection| connection.up).await;
            drop(reached.expect("the test keeps the other end"));
            let mut state = self.database.state();
            if connection.borrow().up {
                return operation(&mut state);
            }
        }
    }

    /// The same to write, on what is the connection before it waits.
    async fn ask_to_write<T>(&self, operation: impl FnOnce(&mut KeyValueTable) -> T) -> T {
        let _under_way = self.writing.subscribe();
        let is_blind = self.told_on.load(Ordering::SeqCst) != self.connects();
        let written = self.ask(|state| {
            state.blind_writes += u64::from(is_blind);
            operation(&mut state.table)
        });
        let written = written.await;
        self.database.writes.send_modify(|writes| *writes += 1);
        written
    }
}

#[async_trait]
impl Store for Client {
    fn describe(&self) -> String {
        "a store that goes back".to_owned()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        let connects = self.connects();
        sleep_until(Instant::now() + self.ask(|state| state.delay).await).await;
        let life = self.ask(|state| state.life).await;
        self.told_on.store(connects, Ordering::SeqCst);
        Ok(Incarnation::new(life.to_string()))
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }
}

#[async_trait]
impl KeyValue for Client {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        Ok(self.ask(|state| state.table.get(key)).await)
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        let write = |table: &mut KeyValueTable| table.compare_and_set(key, expected, value);
        Ok(self.ask_to_write(write).await)
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let delete = |table: &mut KeyValueTable| table.delete(key, revision);
        Ok(self.ask_to_write(delete).await)
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        Ok(self.ask(|state| state.table.list(prefix)).await)
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        let writes = Box::new(Writes(self.database.writes.subscribe()));
        Ok(Watch::start(Arc::new(self.clone()), prefix.clone(), writes))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }
}

struct Writes(watch::Receiver<u64>);

#[async_trait]
impl Hints for Writes {
    async fn next(&mut self) -> Hint {
        match self.0.changed().await {
            Ok(()) => Hint::Missed,
            Err(_gone) => std::future::pending().await,
        }
    }
}

/// Every grant of everybody, with the number of who got it.
#[derive(Clone, Default)]
struct Grants(Arc<Mutex<Vec<(usize, Grant)>>>);

impl Grants {
    fn current(&self) -> Vec<(usize, Grant)> {
        let grants = self.0.lock().unwrap();
        let current = grants.iter().filter(|(_, grant)| grant.is_current());
        current.cloned().collect()
    }

    /// How many partitions each of two has now; none may be with both.
    fn counts(&self) -> [usize; 2] {
        let current = self.current();
        for (by, grant) in &current {
            let is_same = |other: &Grant| other.partition() == grant.partition();
            let mut others = current.iter().filter(|(other, _)| other != by);
            // Each was current when it was looked at, one after the other.
            let twice = others.find(|(_, other)| is_same(other) && other.is_current());
            assert!(
                twice.is_none() || !grant.is_current(),
                "{grant:?} is with two"
            );
        }
        let count = |number| current.iter().filter(|(by, _)| *by == number).count();
        [count(0), count(1)]
    }
}

struct Granted {
    number: usize,
    grants: Grants,
}

#[async_trait]
impl Hooks for Granted {
    async fn assigned(&self, _partition: &Partition, grant: Grant) -> Result<(), HookError> {
        self.grants.0.lock().unwrap().push((self.number, grant));
        Ok(())
    }
}

fn settings(instance: &str) -> Settings {
    let mut settings = Settings {
        instance: Some(instance.to_owned()),
        ..Settings::fast()
    };
    settings.leader.heartbeat_interval = Duration::from_millis(300);
    settings.leader.heartbeat_ttl = LEASE;
    settings.leader.leader_lease = LEASE / 2;
    settings.leader.operation_timeout = LIFE_TOLD_AFTER * 2;
    settings.leader.expected_workers = Some(2);
    settings.leader.startup_timeout = SOON;
    settings
}

/// One of two is cut off and replaced. Then the store goes back to when it was
/// not, is reached by both again, and takes its time to say that this is another
/// life of it. A renewal that waited for the connection is accepted there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_a_store_that_went_back_make_no_second_owner() {
    let database = Arc::new(Database {
        state: Mutex::new(State {
            table: KeyValueTable::default(),
            life: 1,
            delay: Duration::ZERO,
            blind_writes: 0,
        }),
        writes: watch::Sender::new(0),
    });
    let grants = Grants::default();
    let clients = [Client::new(&database), Client::new(&database)];
    let start = |number: usize| {
        let store: Arc<dyn KeyValue> = Arc::new(clients[number].clone());
        let source = StaticSource::shards(["p"], PARTITIONS).unwrap();
        let grants = grants.clone();
        Manager::builder(store, source)
            .settings(settings(&format!("host-{number}")))
            .strategy(Balanced::new())
            .hooks(Granted { number, grants })
            .start()
    };
    let (one, other) = tokio::try_join!(start(0), start(1)).unwrap();
    let managers = [one, other];
    let all = PARTITIONS as usize;
    until(SOON, "both own their half", async || {
        grants.counts() == [all / 2; 2]
    })
    .await;
    let leader = managers.iter().position(|manager| manager.is_leader());
    let leader = leader.unwrap();
    let victim = 1 - leader;
    let snapshot = {
        let state = database.state();
        clients[victim].connection.lost("cut off");
        state.table.clone()
    };
    until(SOON, "the other owns everything", async || {
        grants.counts()[leader] == all
    })
    .await;
    until(SOON, "a renewal waits for the connection", async || {
        clients[victim].writing.receiver_count() > 0
    })
    .await;
    {
        let mut state = database.state();
        state.table = snapshot;
        state.life = 2;
        state.delay = LIFE_TOLD_AFTER;
        for client in &clients {
            client.connection.lost("restarted");
            client.connection.regained();
        }
    }
    until(SOON, "who had everything has stopped", async || {
        grants.counts()[leader] == 0
    })
    .await;
    until(SOON, "everything is owned again", async || {
        grants.counts().iter().sum::<usize>() == all
    })
    .await;
    let blind_writes = database.state().blind_writes;
    assert_eq!(blind_writes, 0);
    for manager in managers {
        manager.stop(Shutdown::Leave).await.unwrap();
    }
}
