//! A source of your own: each file of a directory is a partition, while files come and go.
//!
//! A source says which partitions there are, and when that may have changed.
//! Whoever leads asks it; workers then start what has appeared and stop what
//! has gone. Here two workers share the mailboxes of a directory. The program
//! itself adds and removes some, takes the directory away for a while, and ends.
//!
//! ```console
//! $ cargo run --release -p divvy --example custom_source
//! ```
//!
//! Lists in CSV, JSON and YAML files, and those that a command prints, need no
//! source of your own: see `FileSource` and `CommandSource`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::{
    Grant, HookError, Hooks, Manager, ManagerError, PartitionSource, Retry, Settings, Shutdown,
};
use divvy::store::MemoryKeyValue;
use divvy::{Balanced, Partition, Partitions};
use tokio::sync::mpsc;

/// How often the directory is looked at. Who can be told of changes, by a
/// database or by the kernel, waits for that in place of looking.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Every file of a directory is a partition.
struct Directory {
    path: PathBuf,
    /// What `changed` has told of last; nothing where it could not be read. It
    /// is kept between two calls: what happens while nobody waits must be told
    /// by the next.
    told: Mutex<Option<BTreeSet<String>>>,
}

impl Directory {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            told: Mutex::new(read(path).ok()),
        }
    }
}

#[async_trait]
impl PartitionSource for Directory {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        // An error leaves the last list in force, and is told by `Hooks::error`.
        // Disks block, and this runs among everything else of the program.
        let path = self.path.clone();
        let found = tokio::task::spawn_blocking(move || read(&path)).await??;
        let partitions = found.iter().map(|name| Partition::new(["mailbox", name]));
        let partitions = partitions.collect::<Result<Vec<_>, _>>()?;
        Ok(Partitions::new(partitions)?)
    }

    async fn changed(&self) {
        let mut looks = tokio::time::interval(LOOK_INTERVAL);
        loop {
            looks.tick().await;
            let now = read(&self.path).ok();
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if *told != now {
                *told = now;
                return;
            }
        }
    }
}

fn read(path: &Path) -> std::io::Result<BTreeSet<String>> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        Ok(entry?.file_name().to_string_lossy().into_owned())
    };
    let files = fs::read_dir(path).map_err(|error| {
        let directory = path.file_name().unwrap_or_default().display();
        std::io::Error::new(error.kind(), format!("{directory}: {error}"))
    })?;
    files.map(name).collect()
}

struct Worker {
    name: &'static str,
    errors: mpsc::UnboundedSender<String>,
}

#[async_trait]
impl Hooks for Worker {
    async fn assigned(&self, partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        println!("  {:<5} starts {partition}", self.name);
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        println!("  {:<5} stops  {partition}", self.name);
        Ok(())
    }

    async fn error(&self, error: &ManagerError) {
        // Nobody has to listen.
        let _heard = self.errors.send(error.to_string());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let (path, aside) = (scratch.path().join("mail"), scratch.path().join("aside"));
    fs::create_dir(&path)?;
    let deliver = |name: &str| fs::write(path.join(name), "");
    for name in ["ada", "bob", "cyd", "dan"] {
        deliver(name)?;
    }

    println!("two workers, four mailboxes");
    let store = MemoryKeyValue::new();
    let (errors, mut told) = mpsc::unbounded_channel();
    let mut workers = Vec::new();
    for name in ["one", "two"] {
        let settings = Settings {
            instance: Some(name.to_owned()),
            // Told when it has failed once; by default it is asked again first.
            retry: Retry {
                max_retries: 0,
                ..Retry::default()
            },
            ..Settings::fast()
        };
        let errors = errors.clone();
        let manager = Manager::builder(store.clone(), Directory::new(&path))
            .settings(settings)
            .strategy(Balanced::new())
            .hooks(Worker { name, errors });
        workers.push(manager.start().await?);
    }
    owned(&workers, &["ada", "bob", "cyd", "dan"]).await;

    println!("\neve and fay get mailboxes: the source tells of it by itself");
    deliver("eve")?;
    deliver("fay")?;
    owned(&workers, &["ada", "bob", "cyd", "dan", "eve", "fay"]).await;

    println!("\nbob's is deleted");
    fs::remove_file(path.join("bob"))?;
    owned(&workers, &["ada", "cyd", "dan", "eve", "fay"]).await;

    println!("\ngus gets one, and refresh_partitions has it looked for at once");
    deliver("gus")?;
    workers[1].refresh_partitions().await?;
    owned(&workers, &["ada", "cyd", "dan", "eve", "fay", "gus"]).await;

    println!("\nthe directory is gone: nothing stops, and the error hook is told");
    fs::rename(&path, &aside)?;
    let mut error = String::new();
    while !error.contains("mail: ") {
        error = told.recv().await.ok_or("nobody is left to tell")?;
    }
    println!("  {error}");
    fs::rename(&aside, &path)?;
    owned(&workers, &["ada", "cyd", "dan", "eve", "fay", "gus"]).await;

    println!("\nthe workers leave");
    for manager in workers {
        manager.stop(Shutdown::Leave).await?;
    }
    Ok(())
}

/// Waits until the workers own these mailboxes between them, each some of them.
async fn owned(workers: &[Manager], names: &[&str]) {
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    loop {
        looks.tick().await;
        let mut found = Vec::new();
        let mut has_each = true;
        for worker in workers {
            let assignment = worker.current_assignment();
            has_each &= !assignment.partitions.is_empty();
            let owned = assignment.partitions.iter();
            found.extend(owned.map(|owned| owned.partition.to_string()));
        }
        found.sort();
        let expected = names.iter().map(|name| format!("mailbox:{name}"));
        if has_each && found.into_iter().eq(expected) {
            return;
        }
    }
}
