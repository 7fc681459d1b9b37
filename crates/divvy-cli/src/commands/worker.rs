//! `divvy worker`: a member of a cluster as a process, which says what happens
//! to it.

mod attended;
mod config;
mod ending;
mod line;
mod partitions;
mod printed;
mod reload;
mod working;
mod written;

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::anyhow;
use divvy::manager::{
    EventKind, Manager, ManagerBuilder, ManagerError, ManagerEvent, MetricLabels, Settings,
    Shutdown, StoreChoice, View,
};
use divvy::store::StoreUrl;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use self::attended::{AttendedWorker, Grants};
use self::config::settings;
use self::line::{line, micros};
use self::partitions::Origin;
use self::reload::Reloading;
use self::working::Working;
use self::written::WrittenDown;
use crate::args::{STORE_VARIABLE, WorkerArgs};
use crate::config::Layered;
use crate::exec;
use crate::failure::Failure;
use crate::http::Listening;
use crate::input;
use crate::runtime;
use crate::signals::{Heard, Signals};
use crate::voice::{self, say};
use crate::webhook::Deadlines;
use crate::work::Doing;

/// Lines that wait for whoever reads them.
const LINES_MAX: usize = 1 << 16;
/// How long the last lines may take.
const LAST_LINES: Duration = Duration::from_secs(2);

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Failure> {
    let layered: Layered<WorkerArgs> = Layered::read()?;
    if layered.args.print_config {
        return printed::print(layered, out);
    }
    voice::begin();
    let args = &layered.args;
    if args.die_with_parent {
        exec::end_with_parent()?;
    }
    let runtime = runtime::with_threads(2).map_err(Failure::Failed)?;
    let (lines, printing) = mpsc::channel(LINES_MAX);
    let (events, happening) = mpsc::channel(LINES_MAX);
    let deadlines = args.deadlines;
    let (life, output) = Life::new(layered, &runtime, lines.clone())?;
    let telling = Telling {
        instance: Arc::clone(&life.attending.instance),
        deadlines,
    };
    // Events have stdout to themselves.
    let (written, all_written) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        exec::print(output, &mut std::io::stderr());
        drop(written);
    });
    let (unread, nobody_reads) = oneshot::channel();
    let (printed, all_printed) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Signals are heard whatever becomes of those who read.
        let living = scope.spawn(move || {
            let outcome = runtime.block_on(async {
                let told = tokio::spawn(telling.run(happening, lines));
                let outcome = life.live(events, nobody_reads).await;
                // What was said last is on its way.
                let _late = timeout(LAST_LINES, told).await;
                outcome
            });
            runtime.shutdown_background();
            if all_printed.recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
                say!("ending although nobody has read all lines");
                voice::end(LAST_LINES);
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
        // What a command has left running may never close what it writes to.
        let _late = all_written.recv_timeout(LAST_LINES);
        voice::end(LAST_LINES);
        lived.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        print_outcome
    })
}

/// A worker before it begins.
struct Life {
    builder: ManagerBuilder,
    attending: Attending,
    reloading: Reloading,
    shutdown: Shutdown,
    run_for: Option<Duration>,
}

impl Life {
    /// What was asked for, and what has to be printed of the commands' output.
    fn new(
        layered: Layered<WorkerArgs>,
        runtime: &Runtime,
        lines: mpsc::Sender<Value>,
    ) -> Result<(Self, exec::Lines), Failure> {
        let settings = settings(&layered)?;
        let args = &layered.args;
        let url = store_of(args.store.as_ref());
        let (origin, url) = Failure::both(Origin::of(args, &settings), url)?;
        let previous = input::previous(args.previous.as_deref())?;
        let store = store(url, args, &settings, runtime)?;
        let attending = Attending {
            instance: settings.resolved_instance()?.into(),
            labels: args.reach.labels()?,
            grants: Arc::default(),
            listening: Listening::open(&args.http, runtime)?,
            lines,
            view: Arc::default(),
        };
        let deadlines = Deadlines {
            start: settings.leader.start_deadline,
            stop: settings.leader.stop_deadline,
        };
        let cluster = &args.reach.cluster;
        let doing = Doing::new(&args.run, &args.webhook, cluster, deadlines)?;
        let (doing, output) = doing.unzip();
        let hooks = Working {
            instance: Arc::clone(&attending.instance),
            tick: args.tick,
            lines: attending.lines.clone(),
            grants: Arc::clone(&attending.grants),
            doing,
            under_way: Mutex::default(),
            view: Arc::clone(&attending.view),
        };
        let mut builder = Manager::builder(store, origin.source());
        if let Some(previous) = previous {
            builder = builder.previous(previous);
        }
        let life = Self {
            run_for: args.run_for,
            shutdown: settings.shutdown,
            reloading: Reloading::new(layered, settings.clone(), origin),
            builder: builder.settings(settings).hooks(hooks),
            attending,
        };
        Ok((life, output.flatten()))
    }

    /// Starts, waits for a signal, and stops.
    async fn live(
        mut self,
        events: mpsc::Sender<ManagerEvent>,
        nobody_reads: oneshot::Receiver<()>,
    ) -> Result<(), Failure> {
        let mut signals = Signals::new().map_err(|error| Failure::Failed(error.into()))?;
        let over = over(self.run_for, nobody_reads);
        tokio::pin!(over);
        let (attending, mut attended) = (self.attending, None);
        let view = Arc::clone(&attending.view);
        let builder = self.builder.events(events);
        let start = builder.start_with(|view| attended = Some(attending.attend(view)));
        let manager = tokio::select! {
            started = start => started.map_err(refused)?,
            () = signals.end() => return Ok(()),
            over = &mut over => {
                // It may wait for others, with an id of its own.
                let has_joined = view.get().and_then(View::worker_id).is_some();
                return match over {
                    Over::Spent if !has_joined => {
                        let text = "it had not joined when --run-for was over";
                        Err(Failure::Failed(anyhow!(text)))
                    }
                    _ => Ok(()),
                };
            }
        };
        loop {
            tokio::select! {
                heard = signals.next() => match heard {
                    Heard::End => break,
                    Heard::Reload => match self.reloading.reload(&manager).await {
                        Ok(read) => say!("read again: {read}"),
                        Err(why) => say!("SIGHUP: {why}; everything stays as it is"),
                    },
                },
                _over = &mut over => break,
            }
        }
        if let Some(attended) = attended {
            attended.is_stopping.store(true, Ordering::Relaxed);
        }
        tokio::select! {
            stopped = manager.stop(self.shutdown) => stopped.map_err(refused),
            () = signals.end() => {
                let text = "ended by a second signal; others take over when the lease is over";
                Err(Failure::Failed(anyhow!(text)))
            }
        }
    }
}

/// The store, which the manager opens, unless what it writes is written down.
fn store(
    url: StoreUrl,
    args: &WorkerArgs,
    settings: &Settings,
    runtime: &Runtime,
) -> Result<StoreChoice, Failure> {
    let mut reach = args.reach.settings()?;
    let Some(path) = &args.writes else {
        return Ok((url, reach).into());
    };
    reach.operation_timeout = settings.leader.operation_timeout;
    let opened = runtime.block_on(WrittenDown::open(&url, &reach, path))?;
    Ok(opened.into())
}

/// Why there is no reason to go on.
enum Over {
    /// The time is spent.
    Spent,
    /// Nobody reads any more.
    Unread,
}

/// Waits until there is no reason to go on.
async fn over(run_for: Option<Duration>, nobody_reads: oneshot::Receiver<()>) -> Over {
    let spent = async {
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
    tokio::select! {
        () = spent => Over::Spent,
        () = unread => Over::Unread,
    }
}

/// What it takes to answer for a worker that begins.
struct Attending {
    instance: Arc<str>,
    labels: MetricLabels,
    grants: Arc<Grants>,
    listening: Option<Listening>,
    lines: mpsc::Sender<Value>,
    view: Arc<OnceLock<View>>,
}

impl Attending {
    fn attend(self, view: View) -> Arc<AttendedWorker> {
        let _first = self.view.set(view.clone());
        let instance = Arc::clone(&self.instance);
        let attended = AttendedWorker::new(view, instance, self.labels, self.grants);
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

/// Whether the store that is named, if one is, can be one.
pub(crate) fn check_store(named: Option<&StoreUrl>) -> Result<(), Failure> {
    let is_named = named.is_some() || std::env::var_os(STORE_VARIABLE).is_some();
    match is_named {
        true => store_of(named).map(|_store| ()),
        false => Ok(()),
    }
}

/// The store that a flag names, or else the environment.
pub(crate) fn store_of(typed: Option<&StoreUrl>) -> Result<StoreUrl, Failure> {
    store_among(
        typed,
        "memory, file:PATH, nats://HOST:PORT or redis://HOST:PORT",
    )
}

/// The same, where only stores of these forms will do.
pub(crate) fn store_among(typed: Option<&StoreUrl>, forms: &str) -> Result<StoreUrl, Failure> {
    if let Some(store) = typed {
        return Ok(store.clone());
    }
    let Some(text) = std::env::var_os(STORE_VARIABLE) else {
        let text = format!("--store is missing: give {forms}, or set {STORE_VARIABLE}");
        return Err(Failure::Usage(text));
    };
    let text = text
        .to_str()
        .ok_or_else(|| Failure::Usage(format!("{STORE_VARIABLE} is not UTF-8")))?;
    text.parse()
        .map_err(|error: divvy::Invalid| Failure::Usage(error.to_string()))
}
