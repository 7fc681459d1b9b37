//! `divvy agent`: a worker in lease mode as a process, which runs a command for
//! each partition that it owns.

mod attended;
mod config;
mod consumers;
mod health;
mod printed;
mod reload;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::anyhow;
use divvy::controller::{
    Controller, ControllerBuilder, ControllerError, ControllerEvent, ControllerEventKind as Told,
    ControllerSettings, ControllerView,
};
use divvy::manager::MetricLabels;
use divvy::store::{StoreErrorKind, StoreKind, StoreUrl};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::attended::AttendedAgent;
use self::config::settings;
use self::consumers::Consumers;
use self::health::Fitness;
use self::reload::Reloading;
use crate::args::AgentArgs;
use crate::commands::worker::store_among;
use crate::config::Layered;
use crate::exec::{self, CommandLine};
use crate::failure::Failure;
use crate::http::Listening;
use crate::runtime;
use crate::signals::{Heard, Signals};
use crate::voice::{self, say};
use crate::webhook::Deadlines;
use crate::work::Doing;

/// The stores that have leases.
const STORES: &str = "redis://HOST:PORT, file:PATH or memory";
/// Events that wait to be told.
const EVENTS_MAX: usize = 1 << 16;
/// How long the last of them may take.
const LAST_LINES: Duration = Duration::from_secs(1);

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Failure> {
    let layered: Layered<AgentArgs> = Layered::read()?;
    if layered.args.print_config {
        return printed::print(layered, out);
    }
    voice::begin_with_times();
    let args = &layered.args;
    let store = store_among(args.store.as_ref(), STORES);
    let needed = Failure::both(has_work(args), store);
    let (settings, ((), store)) = Failure::both(settings(&layered), needed)?;
    let deadlines = Deadlines {
        start: settings.lease.start_deadline,
        stop: settings.lease.stop_deadline,
    };
    let cluster = &args.reach.cluster;
    let doing = Doing::new(&args.run, &args.webhook, cluster, deadlines)?;
    let (doing, lines) = doing.expect("there is work");
    let health = health_command(args)?;
    let store = (store, args.reach.settings()?);
    let runtime = runtime::with_threads(2).map_err(Failure::Failed)?;
    let listening = Listening::open(&args.http, &runtime)?;
    let worker = settings.worker.clone();
    let worker = worker.unwrap_or_else(divvy::controller::default_worker_name);
    announce(&worker, cluster, &store.0, &settings);
    let consumers = Consumers {
        worker: worker.as_str().into(),
        doing,
    };
    let living = Living {
        run_for: args.run_for,
        health: health.map(|command| (command, args.health_interval)),
        labels: args.reach.labels()?,
        listening,
    };
    let reloading = Reloading::new(layered, settings.clone());
    let (events, happening) = mpsc::channel(EVENTS_MAX);
    let builder = Controller::builder(store, consumers)
        .settings(settings)
        .worker(worker)
        .events(events);
    let (printed, all_printed) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Signals are heard whatever becomes of those who read.
        let life = scope.spawn(move || {
            let outcome = runtime.block_on(async {
                let told = tokio::spawn(tell(happening));
                let outcome = live(builder, living, reloading).await;
                // What was said last is on its way.
                let _late = timeout(LAST_LINES, told).await;
                outcome
            });
            runtime.shutdown_timeout(LAST_LINES);
            if all_printed.recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
                unread(&outcome);
            }
            voice::end(LAST_LINES);
            outcome
        });
        exec::print(lines, out);
        drop(printed);
        let lived = life.join();
        lived.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whether there is something to do about partitions.
fn has_work(args: &AgentArgs) -> Result<(), Failure> {
    if args.run.exec.is_some() || args.webhook.webhook.is_some() {
        return Ok(());
    }
    let text = "--exec is missing: give the command to run for each partition, such as \
                --exec 'consume {workload} {unit} {token}', or --webhook";
    Err(Failure::Usage(text.to_owned()))
}

/// What is asked whether this worker is healthy.
fn health_command(args: &AgentArgs) -> Result<Option<CommandLine>, Failure> {
    let text = args.health_cmd.as_deref();
    let command = text.map(|text| CommandLine::parse("health-cmd", text));
    let command = command.transpose()?;
    command.iter().for_each(CommandLine::warn);
    Ok(command)
}

/// Ends although nobody has read all that commands wrote: nothing runs any
/// more, and what was owned is given back.
fn unread(outcome: &Result<(), Failure>) {
    if let Err(failure) = outcome {
        failure.report();
    }
    say!("ended, although nobody has read all that commands wrote");
    voice::end(LAST_LINES);
    std::process::exit(1);
}

/// What an agent does while it lives, beside its work.
struct Living {
    run_for: Option<Duration>,
    /// Whom to ask whether it is healthy, and how often.
    health: Option<(CommandLine, Duration)>,
    labels: MetricLabels,
    listening: Option<Listening>,
}

/// Starts, waits for a signal, and stops.
async fn live(
    builder: ControllerBuilder,
    living: Living,
    mut reloading: Reloading,
) -> Result<(), Failure> {
    let Living {
        run_for,
        health,
        labels,
        listening,
    } = living;
    let mut signals = Signals::new().map_err(|error| Failure::Failed(error.into()))?;
    let over = async {
        match run_for {
            Some(span) => tokio::time::sleep(span).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let mut attended = None;
    let start = builder.start_with(|view| {
        let attending = attend(view, labels, listening);
        if health.is_some() {
            attending.fitness.wait_for_answer();
        }
        attended = Some(attending);
    });
    let controller = tokio::select! {
        started = start => started.map_err(refused)?,
        () = signals.end() => return Ok(()),
        () = &mut over => {
            let text = "it did not start within --run-for";
            return Err(Failure::Failed(anyhow!(text)));
        }
    };
    let attended = attended.expect("what starts is looked at first");
    let view = controller.view();
    if let Some((command, every)) = health {
        let fitness = Arc::clone(&attended.fitness);
        tokio::spawn(health::watch(command, every, fitness));
    }
    loop {
        tokio::select! {
            heard = signals.next() => match heard {
                Heard::End => break,
                Heard::Reload => match reloading.reload(&view).await {
                    Ok(read) => say!("read again: {read}"),
                    Err(why) => say!("SIGHUP: {why}; everything stays as it is"),
                },
            },
            () = &mut over => break,
            () = view.until_ended() => {
                return controller.ended().await.map_err(refused);
            }
        }
    }
    attended.is_stopping.store(true, Ordering::Relaxed);
    say!("stopping what runs, and giving it back");
    tokio::select! {
        stopped = controller.stop() => stopped.map_err(refused),
        () = signals.end() => Err(second_signal()),
    }
}

/// Says who begins, where, and what for.
fn announce(worker: &str, cluster: &str, store: &StoreUrl, settings: &ControllerSettings) {
    if store.kind() == StoreKind::Nats {
        // It has no leases, which is told next.
        return;
    }
    let groups = settings.groups.iter();
    let mut served: Vec<String> = groups
        .map(|group| format!("{}:{}", group.name(), group.partitions()))
        .collect();
    if settings.dynamic {
        served.push("the workloads of the store".to_owned());
    }
    let served = served.join(", ");
    say!("{worker} of cluster '{cluster}' at {store}, for {served}");
    if settings.weight == 0.0 {
        say!("its weight is 0: it takes nothing");
    }
}

/// Answers for an agent that begins, where that is asked for.
fn attend(
    view: ControllerView,
    labels: MetricLabels,
    listening: Option<Listening>,
) -> Arc<AttendedAgent> {
    let attended = Arc::new(AttendedAgent {
        fitness: Fitness::new(view.clone()),
        view,
        labels,
        is_stopping: AtomicBool::new(false),
    });
    if let Some(listening) = listening {
        listening.serve(attended.clone());
    }
    attended
}

fn second_signal() -> Failure {
    let text = "ended by a second signal; others take over when the leases are over";
    Failure::Failed(anyhow!(text))
}

fn refused(error: ControllerError) -> Failure {
    match error {
        ControllerError::Invalid(invalid) => Failure::Usage(invalid.to_string()),
        ControllerError::Store(error) if error.kind() == StoreErrorKind::Invalid => {
            Failure::Usage(error.to_string())
        }
        error => Failure::Failed(anyhow!("{error}")),
    }
}

/// Tells people what happens.
async fn tell(mut events: mpsc::Receiver<ControllerEvent>) {
    let mut tokens = BTreeMap::new();
    while let Some(event) = events.recv().await {
        let line = match event.kind {
            Told::Joined => "takes part".to_owned(),
            Told::Members(members) => format!("workers: {}", members.join(", ")),
            Told::Starting { key, token, .. } => {
                tokens.insert(key, token);
                continue;
            }
            Told::Started { key, failed } => match tokens.remove(&key) {
                Some(token) if !failed => format!("{key} runs, with token {token}"),
                // Why it could not be started is told as a warning.
                _ => continue,
            },
            Told::Stopping { key, reason } => format!("{key} stops: {reason}"),
            Told::Stopped { key } => format!("{key} has stopped"),
            Told::Recovered => "the store works again".to_owned(),
            Told::Ended => "ended".to_owned(),
            // What is wrong is told as a warning.
            _ => continue,
        };
        say!("{line}");
    }
}
