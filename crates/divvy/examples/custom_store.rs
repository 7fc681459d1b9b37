//! A store of your own: one table with revisions, judged by the suite that every store passes.
//!
//! Members of a cluster coordinate through a store that compares and sets. Who
//! has a database that can do that needs no other server: this shows all that
//! has to be written. The table is a map here; beside each operation stands
//! what it is in SQL. The program has the conformance suite judge the store,
//! runs two workers on it, and ends.
//!
//! ```console
//! $ cargo run --release -p divvy --features conformance --example custom_store
//! $ cargo run --release -p divvy --features conformance --example custom_store -- broken
//! ```
//!
//! The second one leaves out the comparison, and shows how the suite finds it.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Invalid;
use divvy::manager::{Manager, Settings, Shutdown, StaticSource};
use divvy::store::conformance::{CaseRun, KeyValueSubject, Options, key_value};
use divvy::store::{
    Connection, ConnectionReport, Entry, Expected, Hint, Hints, Incarnation, Key, KeyValue,
    LIST_MAX, Outcome, Prefix, Revision, Store, StoreError, Watch,
};
use tokio::sync::watch;

/// The largest value that a row takes; longer ones come in pieces by themselves.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// The database: all clusters' rows, and who is told of changes.
#[derive(Debug)]
struct Database {
    table: Mutex<Table>,
    /// Grows with every write. Whoever watches learns that something happened,
    /// not what; divvy's own `Watch` then reads and compares.
    writes: watch::Sender<u64>,
    /// Leaves out what a store is for, to show that the suite finds it.
    is_broken: bool,
}

/// The primary key: cluster and key.
type Place = (String, Key);
/// Value and revision.
type Row = (Arc<[u8]>, Revision);

/// `CREATE TABLE entries (cluster text, key text, value bytea, revision bigint,
/// PRIMARY KEY (cluster, key))`, and `CREATE SEQUENCE revisions`.
#[derive(Debug, Default)]
struct Table {
    entries: BTreeMap<Place, Row>,
    last: u64,
}

impl Table {
    /// `nextval('revisions')`: one sequence for all keys, so that a key that is
    /// deleted and made anew still goes up.
    fn next_revision(&mut self) -> Revision {
        self.last += 1;
        Revision::new(self.last).expect("it was counted up from 0")
    }
}

impl Database {
    fn new(is_broken: bool) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            writes: watch::Sender::new(0),
            is_broken,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client, as one of the members of `cluster` has it.
    fn client(self: &Arc<Self>, cluster: &str) -> TableStore {
        TableStore {
            database: Arc::clone(self),
            cluster: cluster.to_owned(),
            connection: ConnectionReport::connected(),
        }
    }
}

/// The store: a client of the database that sees one cluster's keys.
#[derive(Debug, Clone)]
struct TableStore {
    database: Arc<Database>,
    cluster: String,
    connection: ConnectionReport,
}

impl TableStore {
    fn at(&self, key: &Key) -> Place {
        (self.cluster.clone(), key.clone())
    }

    /// `NOTIFY entries`.
    fn tell(&self) {
        self.database.writes.send_modify(|writes| *writes += 1);
    }
}

#[async_trait]
impl Store for TableStore {
    fn describe(&self) -> String {
        "a table in memory".to_owned()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        // Whatever changes when rows can have got lost: of a database the
        // number that it gets when it is made, or restored from a backup.
        Ok(Incarnation::new("1"))
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        // A client over a network says `lost` and `regained` here.
        self.connection.subscribe()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }
}

#[async_trait]
impl KeyValue for TableStore {
    /// `SELECT value, revision FROM entries WHERE cluster = $1 AND key = $2`
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        let table = self.database.table();
        let found = table.entries.get(&self.at(key));
        Ok(found.map(|(value, revision)| Entry {
            key: key.clone(),
            value: Arc::clone(value),
            revision: *revision,
        }))
    }

    /// For `Absent`, `INSERT … ON CONFLICT DO NOTHING`; otherwise `UPDATE … WHERE
    /// cluster = $1 AND key = $2 AND revision = $3`. No row is a conflict.
    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        if value.len() > VALUE_BYTES_MAX {
            let rule = format!("must be at most {VALUE_BYTES_MAX}");
            return Err(Invalid::new("value bytes", value.len(), rule).into());
        }
        let mut table = self.database.table();
        let found = table.entries.get(&self.at(key)).map(|(_, at)| *at);
        if Expected::from(found) != expected && !self.database.is_broken {
            return Ok(Outcome::Conflict);
        }
        let revision = table.next_revision();
        table.entries.insert(self.at(key), (value.into(), revision));
        drop(table);
        self.tell();
        Ok(Outcome::Done(revision))
    }

    /// `DELETE FROM entries WHERE cluster = $1 AND key = $2 AND revision = $3`
    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let mut table = self.database.table();
        let found = table.entries.get(&self.at(key)).map(|(_, at)| *at);
        if found != Some(revision) {
            return Ok(Outcome::Conflict);
        }
        table.entries.remove(&self.at(key));
        let deletion = table.next_revision();
        drop(table);
        self.tell();
        Ok(Outcome::Done(deletion))
    }

    /// `SELECT … WHERE cluster = $1 AND starts_with(key, $2) ORDER BY key COLLATE "C"`,
    /// by [`Prefix::text`]; [`Prefix::holds`] then drops what only looks alike.
    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        let table = self.database.table();
        let rows = table.entries.iter();
        let held = rows.filter(|((cluster, key), _)| *cluster == self.cluster && prefix.holds(key));
        let found = held.map(|((_, key), (value, revision))| Entry {
            key: key.clone(),
            value: Arc::clone(value),
            revision: *revision,
        });
        let found: Vec<Entry> = found.collect();
        if found.len() > LIST_MAX {
            let rule = format!("must be at most {LIST_MAX}");
            return Err(Invalid::new("listed keys", found.len(), rule).into());
        }
        Ok(found)
    }

    /// `LISTEN entries`, before anything is read: `Watch` does the rest.
    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        let writes = Writes(self.database.writes.subscribe());
        let store = Arc::new(self.clone());
        Ok(Watch::start(store, prefix.clone(), Box::new(writes)))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }
}

/// The least that a store can tell: something may have happened.
struct Writes(watch::Receiver<u64>);

#[async_trait]
impl Hints for Writes {
    async fn next(&mut self) -> Hint {
        match self.0.changed().await {
            Ok(()) => Hint::Missed,
            // The database is gone, and nothing will happen any more.
            Err(_gone) => std::future::pending().await,
        }
    }
}

/// How the suite gets at the store, and what is shown of its progress.
struct Judged(Arc<Database>);

#[async_trait]
impl KeyValueSubject for Judged {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError> {
        Ok(Arc::new(self.0.client(cluster)))
    }

    fn passed(&self, case: &CaseRun) {
        let name = case.name.replace('_', " ");
        println!("  passed in {:>4} ms: {name}", case.took.as_millis());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let is_broken = std::env::args().nth(1).is_some_and(|word| word == "broken");
    let database = Database::new(is_broken);

    println!("the suite judges the store:");
    let options = Options::seeded(fastrand::u64(..));
    let report = key_value(&Judged(Arc::clone(&database)), &options).await?;
    println!("{}", report.summary());
    // Servers that can be cut off are judged by how they come back, too.
    for case in &report.not_offered {
        println!("  not tried: {}", case.replace('_', " "));
    }

    println!("\ntwo workers share 12 partitions through it:");
    let mut workers = Vec::new();
    for name in ["alpha", "beta"] {
        let store = Arc::new(database.client("orders"));
        let settings = Settings {
            instance: Some(name.to_owned()),
            ..Settings::fast()
        };
        let source = StaticSource::shards(["orders"], 12)?;
        let manager = Manager::builder(store, source).settings(settings).start();
        workers.push((name, manager.await?));
    }
    settled(&workers).await;
    show(&workers);

    let (name, leaving) = workers.remove(0);
    println!("\n{name} leaves:");
    leaving.stop(Shutdown::Leave).await?;
    settled(&workers).await;
    show(&workers);

    for (_, manager) in workers {
        manager.stop(Shutdown::Leave).await?;
    }
    Ok(())
}

/// Waits until everybody has something, and all 12 have somebody.
async fn settled(workers: &[(&str, Manager)]) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    loop {
        looks.tick().await;
        let assignments = workers.iter().map(|(_, one)| one.current_assignment());
        let counts: Vec<usize> = assignments.map(|one| one.partitions.len()).collect();
        if counts.iter().sum::<usize>() == 12 && !counts.contains(&0) {
            return;
        }
    }
}

/// Prints who owns what.
fn show(workers: &[(&str, Manager)]) {
    for (name, manager) in workers {
        let assignment = manager.current_assignment();
        let owned = assignment.partitions.iter();
        let owned: Vec<_> = owned.map(|owned| owned.partition.to_string()).collect();
        println!("  {name:<5} owns {}", owned.join(" "));
    }
}
