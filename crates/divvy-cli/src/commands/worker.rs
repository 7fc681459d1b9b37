//! `divvy worker`: a member of a cluster as a process, which says what happens
//! to it.

mod attended;
mod ending;
mod line;

use std::fs::File;
use std::io::{Read as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use divvy::manager::{
    EventKind, FileSource, Grant, HookError, Hooks, Manager, ManagerError, ManagerEvent,
    PartitionSource, Settings, Shutdown, StaticSource, View,
};
use divvy::store::StoreUrl;
use divvy::{Partition, StrategySettings};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use self::attended::{AttendedWorker, Grants};
use self::ending::{Signals, how};
use self::line::{line, micros};
use crate::args::{Preset, STORE_VARIABLE, WorkerArgs};
use crate::failure::Failure;
use crate::http::Listening;
use crate::input;

/// Lines that wait for whoever reads them.
const LINES_MAX: usize = 1 << 16;
/// How long the last lines may take.
const LAST_LINES: Duration = Duration::from_secs(2);
/// Largest file of settings.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &WorkerArgs, out: &mut dyn Write) -> Result<(), Failure> {
    if args.die_with_parent {
        let signal = Some(rustix::process::Signal::KILL);
        rustix::process::set_parent_process_death_signal(signal)
            .context("cannot end with the parent")
            .map_err(Failure::Failed)?;
    }
    let settings = settings(args)?;
    let how = how(args, &settings)?;
    let source = source(args, &settings)?;
    let store = (store_of(args.store.as_ref())?, args.reach.settings()?);
    let instance: Arc<str> = settings.resolved_instance()?.into();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no threads")
        .map_err(Failure::Failed)?;
    let (lines, printing) = mpsc::channel(LINES_MAX);
    let (events, happening) = mpsc::channel(LINES_MAX);
    let listening = Listening::open(&args.http, &runtime)?;
    let grants = Arc::new(Grants::default());
    let hooks = Working {
        instance: Arc::clone(&instance),
        tick: args.tick,
        lines: lines.clone(),
        grants: Arc::clone(&grants),
    };
    let attending = Attending {
        instance: Arc::clone(&instance),
        grants,
        listening,
        lines: lines.clone(),
    };
    let builder = Manager::builder(store, source).settings(settings);
    let builder = builder.hooks(hooks).events(events);
    let telling = Telling {
        instance,
        deadlines: args.deadlines,
    };
    let (unread, nobody_reads) = oneshot::channel();
    let (printed, all_printed) = std::sync::mpsc::channel::<()>();
    let run_for = args.run_for;
    // Signals are heard whatever becomes of those who read.
    let living = std::thread::spawn(move || {
        let outcome = runtime.block_on(async {
            let told = tokio::spawn(telling.run(happening, lines));
            let outcome = live(builder, attending, (how, run_for), nobody_reads).await;
            // What was said last is on its way.
            let _late = timeout(LAST_LINES, told).await;
            outcome
        });
        runtime.shutdown_background();
        if all_printed.recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
            eprintln!("divvy: ending although nobody has read all lines");
            std::process::exit(1);
        }
        outcome
    });
    let print_outcome = print(printing, out);
    if print_outcome.is_err() {
        // It leaves in order; the error is told then.
        let _over = unread.send(());
    }
    drop(printed);
    let lived = living.join();
    lived.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    print_outcome
}

/// Starts, waits for a signal, and stops.
async fn live(
    builder: divvy::manager::ManagerBuilder,
    attending: Attending,
    (how, run_for): (Shutdown, Option<Duration>),
    nobody_reads: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let mut signals = Signals::new().map_err(|error| Failure::Failed(error.into()))?;
    let over = async {
        match run_for {
            Some(span) => tokio::time::sleep(span).await,
            None => std::future::pending().await,
        }
    };
    let unread = async {
        if nobody_reads.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let ended = async {
        tokio::select! {
            () = signals.next() => {}
            () = over => {}
            () = unread => {}
        }
        signals
    };
    tokio::pin!(ended);
    let mut attended = None;
    let start = builder.start_with(|view| attended = Some(attending.attend(view)));
    let manager = tokio::select! {
        started = start => started.map_err(refused)?,
        _ = &mut ended => return Ok(()),
    };
    let mut signals = ended.await;
    if let Some(attended) = attended {
        attended.is_stopping.store(true, Ordering::Relaxed);
    }
    tokio::select! {
        stopped = manager.stop(how) => stopped.map_err(refused),
        () = signals.next() => {
            let text = "ended by a second signal; others take over when the lease is over";
            Err(Failure::Failed(anyhow!(text)))
        }
    }
}

/// What it takes to answer for a worker that begins.
struct Attending {
    instance: Arc<str>,
    grants: Arc<Grants>,
    listening: Option<Listening>,
    lines: mpsc::Sender<Value>,
}

impl Attending {
    fn attend(self, view: View) -> Arc<AttendedWorker> {
        let attended = AttendedWorker::new(view, Arc::clone(&self.instance), self.grants);
        let attended = Arc::new(attended);
        if let Some(listening) = self.listening {
            let line = json!({
                "at_us": micros(divvy::manager::now()),
                "instance": &*self.instance,
                "event": "listening",
                "address": listening.address().to_string(),
            });
            // There is room: these are the first lines.
            let _unread = self.lines.try_send(line);
            listening.serve(attended.clone());
        }
        attended
    }
}

fn refused(error: ManagerError) -> Failure {
    match error {
        ManagerError::Invalid(invalid) => Failure::Usage(invalid.to_string()),
        error => Failure::Failed(error.into()),
    }
}

/// Prints lines until nobody has any more to say.
fn print(mut lines: mpsc::Receiver<Value>, out: &mut dyn Write) -> Result<(), Failure> {
    while let Some(line) = lines.blocking_recv() {
        writeln!(out, "{line}").map_err(Failure::output)?;
        if lines.is_empty() {
            out.flush().map_err(Failure::output)?;
        }
    }
    Ok(())
}

/// Turns events into lines.
struct Telling {
    instance: Arc<str>,
    deadlines: bool,
}

impl Telling {
    async fn run(self, mut events: mpsc::Receiver<ManagerEvent>, lines: mpsc::Sender<Value>) {
        while let Some(event) = events.recv().await {
            let is_wanted = self.deadlines || !matches!(event.kind, EventKind::Deadline { .. });
            if is_wanted {
                // Who reads no more has what it wanted.
                let _unread = lines.send(line(&self.instance, &event)).await;
            }
        }
    }
}

/// Works on partitions by saying so.
struct Working {
    instance: Arc<str>,
    tick: Option<Duration>,
    lines: mpsc::Sender<Value>,
    grants: Arc<Grants>,
}

#[async_trait::async_trait]
impl Hooks for Working {
    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        self.grants.remove(partition);
        Ok(())
    }

    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        self.grants.add(partition, grant.clone());
        let Some(tick) = self.tick else { return Ok(()) };
        let (instance, lines) = (Arc::clone(&self.instance), self.lines.clone());
        let partition = partition.to_string();
        tokio::spawn(async move {
            while !grant.is_revoked() {
                let done = grant.run(async |token| {
                    let line = json!({
                        "at_us": micros(divvy::manager::now()),
                        "instance": &*instance,
                        "event": "worked",
                        "partition": partition,
                        "token": token.get().to_string(),
                    });
                    lines.send(line).await.is_ok()
                });
                if !matches!(done.await, Ok(true)) {
                    return;
                }
                tokio::time::sleep(tick).await;
            }
        });
        Ok(())
    }
}

/// The store that a flag names, or else the environment.
pub(crate) fn store_of(typed: Option<&StoreUrl>) -> Result<StoreUrl, Failure> {
    if let Some(store) = typed {
        return Ok(store.clone());
    }
    let Some(text) = std::env::var_os(STORE_VARIABLE) else {
        let forms = "memory, file:PATH, nats://HOST:PORT or redis://HOST:PORT";
        let text = format!("--store is missing: give {forms}, or set {STORE_VARIABLE}");
        return Err(Failure::Usage(text));
    };
    let text = text
        .to_str()
        .ok_or_else(|| Failure::Usage(format!("{STORE_VARIABLE} is not UTF-8")))?;
    text.parse()
        .map_err(|error: divvy::Invalid| Failure::Usage(error.to_string()))
}

fn settings(args: &WorkerArgs) -> Result<Settings, Failure> {
    let mut settings = match (&args.config, args.preset) {
        (Some(path), _) => read_config(path)?,
        (None, Some(Preset::Fast)) => Settings::fast(),
        (None, Some(Preset::Calm)) => Settings::calm(),
        (None, Some(Preset::Default) | None) => Settings::default(),
    };
    if let Some(instance) = &args.instance {
        settings.instance = Some(instance.clone());
    }
    if let Some(name) = args.strategy {
        settings.strategy = StrategySettings::new(name);
    }
    settings.check()?;
    Ok(settings)
}

/// Reads a file of settings, which errors call `named`.
pub(crate) fn read_limited(path: &Path, named: &str) -> Result<String, Failure> {
    let file = File::open(path).with_context(|| named.to_owned());
    let mut text = String::new();
    let read = file.map_err(Failure::Failed)?.take(CONFIG_BYTES_MAX + 1);
    let mut read = std::io::BufReader::new(read);
    let read = read.read_to_string(&mut text);
    let read = read.with_context(|| named.to_owned());
    if read.map_err(Failure::Failed)? as u64 > CONFIG_BYTES_MAX {
        let text = format!("has more than the {CONFIG_BYTES_MAX} bytes that are read");
        return Err(Failure::Failed(anyhow!("{named}: {text}")));
    }
    Ok(text)
}

fn read_config(path: &Path) -> Result<Settings, Failure> {
    let named = || format!("--config {}", path.display());
    let text = read_limited(path, &named())?;
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    let read = match is_json {
        true => Settings::from_json(&text),
        false => Settings::from_yaml(&text),
    };
    read.map_err(|error| Failure::Failed(anyhow!("{}: {error}", named())))
}

fn source(args: &WorkerArgs, settings: &Settings) -> Result<Arc<dyn PartitionSource>, Failure> {
    if let Some(text) = &args.partitions {
        if let Some(path) = text.strip_prefix('@') {
            let source = FileSource::new(path);
            let source = source.map_err(|error| Failure::Usage(error.to_string()))?;
            return Ok(Arc::new(source));
        }
        return Ok(Arc::new(StaticSource::new(input::partitions(text)?)));
    }
    match settings.source()? {
        Some(source) => Ok(Arc::new(source)),
        None => {
            let forms = "a count, groups such as orders:64,users:32, or @FILE";
            let text = format!(
                "--partitions is missing: give {forms}, or groups and shards_per_group in --config"
            );
            Err(Failure::Usage(text))
        }
    }
}
