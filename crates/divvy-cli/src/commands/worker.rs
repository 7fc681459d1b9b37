//! `divvy worker`: a member of a cluster as a process, which says what happens
//! to it.

mod line;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use divvy::manager::{
    EventKind, FileSource, Grant, HookError, Hooks, Manager, ManagerError, ManagerEvent,
    PartitionSource, Settings, Shutdown, StaticSource,
};
use divvy::store::StoreUrl;
use divvy::{Partition, StrategySettings};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::line::{line, micros};
use crate::args::{OnStop, Preset, STORE_VARIABLE, WorkerArgs};
use crate::failure::Failure;
use crate::input;

/// Lines that wait for whoever reads them.
const LINES_MAX: usize = 1 << 16;
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
    let source = source(args, &settings)?;
    let store = (store_of(args.store.as_ref())?, args.reach.settings()?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no threads")
        .map_err(Failure::Failed)?;
    runtime.block_on(async {
        let (lines, printing) = mpsc::channel(LINES_MAX);
        let (events, happening) = mpsc::channel(LINES_MAX);
        let instance: Arc<str> = settings.instance.as_deref().unwrap_or("host").into();
        let hooks = Working {
            instance: Arc::clone(&instance),
            tick: args.tick,
            lines: lines.clone(),
        };
        let builder = Manager::builder(store, source).settings(settings);
        let builder = builder.hooks(hooks).events(events);
        let telling = Telling {
            instance,
            deadlines: args.deadlines,
        };
        let told = tokio::spawn(telling.run(happening, lines));
        let living = live(builder, args);
        let printed = print(printing, out, living).await;
        told.abort();
        printed
    })
}

/// Starts, waits for a signal, and stops.
async fn live(builder: divvy::manager::ManagerBuilder, args: &WorkerArgs) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(error.into());
    let mut term = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let ended = async {
        let over = async {
            match args.run_for {
                Some(span) => tokio::time::sleep(span).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
            () = over => {}
        }
    };
    tokio::pin!(ended);
    let manager = tokio::select! {
        started = builder.start() => started.map_err(refused)?,
        () = &mut ended => return Ok(()),
    };
    ended.await;
    manager.stop(how(args)).await.map_err(refused)
}

fn refused(error: ManagerError) -> Failure {
    match error {
        ManagerError::Invalid(invalid) => Failure::Usage(invalid.to_string()),
        error => Failure::Failed(error.into()),
    }
}

fn how(args: &WorkerArgs) -> Shutdown {
    match args.on_stop {
        Some(OnStop::Return) => Shutdown::Return {
            within: args.return_within,
        },
        Some(OnStop::Leave) | None => Shutdown::Leave,
    }
}

/// Prints lines until the worker has ended and everything is printed.
async fn print(
    mut lines: mpsc::Receiver<Value>,
    out: &mut dyn Write,
    living: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    tokio::pin!(living);
    let mut outcome = None;
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            ended = &mut living, if outcome.is_none() => {
                outcome = Some(ended);
                continue;
            }
            // What was said last is on its way.
            () = tokio::time::sleep(Duration::from_millis(200)), if outcome.is_some() => None,
        };
        match (line, &outcome) {
            (Some(line), _) => {
                writeln!(out, "{line}").map_err(Failure::output)?;
                if lines.is_empty() {
                    out.flush().map_err(Failure::output)?;
                }
                if line["event"] == "ended" {
                    // Nothing comes after it.
                    return match outcome {
                        Some(outcome) => outcome,
                        None => living.await,
                    };
                }
            }
            (None, _) => return outcome.unwrap_or(Ok(())),
        }
    }
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
            if is_wanted && lines.send(line(&self.instance, &event)).await.is_err() {
                return;
            }
        }
    }
}

/// Works on partitions by saying so.
struct Working {
    instance: Arc<str>,
    tick: Option<Duration>,
    lines: mpsc::Sender<Value>,
}

#[async_trait::async_trait]
impl Hooks for Working {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
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

fn read_config(path: &Path) -> Result<Settings, Failure> {
    let named = || format!("--config {}", path.display());
    let size = std::fs::metadata(path).with_context(named);
    let size = size.map_err(Failure::Failed)?.len();
    if size > CONFIG_BYTES_MAX {
        let text = format!("has {size} bytes, at most {CONFIG_BYTES_MAX} are read");
        return Err(Failure::Failed(anyhow!("{}: {text}", named())));
    }
    let text = std::fs::read_to_string(path).with_context(named);
    let text = text.map_err(Failure::Failed)?;
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
