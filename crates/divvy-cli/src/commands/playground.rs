//! `divvy playground`: a cluster to break, in the browser.

mod real;

pub(crate) use self::real::play;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use divvy::observer::{self, Observer};
use divvy_playground::{
    Engine, Listed, Outcome, Playground, Scenario, Setup, builtin, builtins, listen,
};
use divvy_sim::{Defect, Trial};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::{live, write_json};
use crate::args::{Mode, PlaygroundArgs};
use crate::commands::worker::store_of;
use crate::config::read_limited;
use crate::failure::{Failure, plain};
use crate::http::read_token;
use crate::runtime;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// Time between two looks at a live cluster.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &PlaygroundArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let of_store = args.interval.map(|_| "--interval".to_owned());
    let of_store = of_store.or_else(|| args.reach.first_flag());
    let has_store = args.observe || args.store.is_some();
    if let Some(flag) = of_store.filter(|_| !has_store) {
        let rule = format!("{flag} goes with --store, or with --observe");
        return Err(Failure::Usage(rule));
    }
    if args.list {
        return list(args, out);
    }
    if args.json && !args.headless {
        let rule = "goes with --headless or --list";
        return Err(Failure::Usage(format!("--json {rule}")));
    }
    if has_store {
        return serve(args, None, out);
    }
    let scenario = match &args.scenario {
        Some(name) => Some(scenario(name, args.seed)?),
        None => None,
    };
    match scenario {
        Some(scenario) if args.headless => headless(args, scenario, out),
        scenario => serve(args, scenario, out),
    }
}

/// The scenario of this name, or in this file.
fn scenario(name: &str, seed: Option<u64>) -> Result<Scenario, Failure> {
    let scenario = match builtin(name) {
        Some(scenario) => scenario,
        None => read(name)?,
    };
    let Some(seed) = seed else {
        return Ok(scenario);
    };
    let scenario = scenario.with_seed(seed);
    scenario.setup().check().map_err(divvy::Error::from)?;
    Ok(scenario)
}

fn read(name: &str) -> Result<Scenario, Failure> {
    let path = Path::new(name);
    if !path.exists() {
        let rule = "is neither built in, as --list shows them, nor a file";
        return Err(Failure::usage("scenario", name, rule));
    }
    let (text, _mode) = read_limited(path, name)?;
    Scenario::from_yaml(&text)
        .map_err(|invalid| Failure::Usage(format!("{}: {invalid}", path.display())))
}

fn list(args: &PlaygroundArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let scenarios = builtins();
    if args.json {
        let shown: Vec<Listed> = scenarios.iter().map(Listed::from).collect();
        return write_json(out, &json!({ "scenarios": shown }));
    }
    let mut table = table(["scenario", "mode", "goal"]);
    for scenario in &scenarios {
        let mode = scenario.setup().mode.as_str();
        let cells = [scenario.name(), mode, scenario.goal()];
        table.push(Tone::Plain, cells.map(str::to_owned).to_vec());
    }
    let terminal = Terminal::of_stdout();
    table
        .folded(&terminal, &[("goal", 20), ("scenario", 10)], &["mode"])
        .write(out, terminal.colour)
        .map_err(Failure::output)
}

/// Runs a scenario to its end.
fn headless(args: &PlaygroundArgs, scenario: Scenario, out: &mut dyn Write) -> Result<(), Failure> {
    let outcome = Engine::run_scenario(scenario).map_err(divvy::Error::from)?;
    match args.json {
        true => write_json(out, &outcome)?,
        false => write_outcome(out, &outcome).map_err(Failure::output)?,
    }
    match (outcome.passed, &outcome.reason) {
        (true, _) => Ok(()),
        (false, Some(reason)) => Err(Failure::Failed(anyhow!("{}: {reason}", outcome.scenario))),
        (false, None) => {
            let missed = outcome.numbers.iter().filter(|number| !number.met);
            let missed: Vec<_> = missed.map(|number| number.name).collect();
            let text = format!(
                "{} missed its goal: {}",
                outcome.scenario,
                missed.join(", ")
            );
            Err(Failure::Failed(anyhow!(text)))
        }
    }
}

fn write_outcome(out: &mut dyn Write, outcome: &Outcome) -> std::io::Result<()> {
    writeln!(out, "{}: {}", outcome.title, outcome.goal)?;
    writeln!(out)?;
    let mut table = table(["number", "measured", "bound", "goal"]);
    for number in &outcome.numbers {
        let rule = number.rule.replace('_', " ");
        let bound = format!("{rule} {}", number.bound);
        let (tone, met) = match number.met {
            true => (Tone::Plain, "met"),
            false => (Tone::LastHigh, "missed"),
        };
        let measured = number.measured.to_string();
        let cells = vec![number.name.to_owned(), measured, bound, met.to_owned()];
        table.push(tone, cells);
    }
    table.write(out, Terminal::of_stdout().colour)?;
    writeln!(out)?;
    if let Some(reason) = &outcome.reason {
        writeln!(out, "{reason}")?;
    }
    let verdict = if outcome.passed { "passed" } else { "failed" };
    let seconds = outcome.lasted_ms as f64 / 1000.0;
    let (seed, violations) = (outcome.seed, outcome.violations);
    writeln!(
        out,
        "{verdict} after {seconds} s of the world with seed {seed}; invariants broken: {violations}"
    )
}

fn table<const N: usize>(headings: [&str; N]) -> Table {
    Table::new(headings.map(|heading| (heading.to_owned(), Align::Left)))
}

/// Serves the page until a signal comes.
fn serve(
    args: &PlaygroundArgs,
    scenario: Option<Scenario>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    // What a scenario brings is its own: a reset goes back to this.
    let setup = setup(args)?;
    let replayed = trial(args)?;
    let token = match &args.listen_token_file {
        Some(path) => Some(read_token("listen-token-file", path)?),
        None if args.listen.ip().is_loopback() => None,
        None => {
            let rule = "can be reached from other machines: give --listen-token-file beside it, \
                        or take 127.0.0.1";
            return Err(Failure::usage("listen", args.listen, rule));
        }
    };
    let runtime = runtime::with_threads(2).map_err(Failure::Failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await.map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::AddrInUse => ": give another port, or 0 for any",
                _ => "",
            };
            Failure::Failed(anyhow!("--listen {}: {}{hint}", args.listen, plain(&error)))
        })?;
        let failed = |error: std::io::Error| Failure::Failed(error.into());
        let address = listener.local_addr().map_err(failed)?;
        let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
        let playground = match replayed {
            Some(trial) => Playground::replay(&trial),
            None if args.observe => observed(args).await?,
            None if args.store.is_some() => real::opened(args, setup).await?,
            None => Playground::open(setup, scenario).map_err(divvy::Error::from)?,
        };
        let hint = match token {
            Some(_) => "/#token=…, with your token",
            None => "/",
        };
        let shown = async {
            writeln!(out, "playground at http://{address}{hint}").map_err(Failure::output)?;
            writeln!(out, "Ctrl-C ends it").map_err(Failure::output)?;
            out.flush().map_err(Failure::output)?;
            tokio::select! {
                () = listen(listener, playground.clone(), token) => {}
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
            Ok::<(), Failure>(())
        };
        let shown = shown.await;
        // Whatever came of it, nothing that was started goes on.
        real::ended(&playground).await?;
        shown
    })?;
    runtime.shutdown_background();
    Ok(())
}

/// The live cluster that is to be looked at.
async fn observed(args: &PlaygroundArgs) -> Result<Playground, Failure> {
    let url = store_of(args.store.as_ref())?;
    let settings = args.reach.settings()?;
    let mode = args.mode.map(|mode| match mode {
        Mode::Leader => observer::Mode::Leader,
        Mode::Lease => observer::Mode::Lease,
    });
    let observer = Observer::open(&url, &settings, mode).await;
    let observer = observer.map_err(live::refused)?;
    let every = args.interval.unwrap_or(LOOK_EVERY);
    let playground = Playground::observe(observer, every).await;
    playground.map_err(live::refused)
}

/// The seed that is to be replayed, if one is.
fn trial(args: &PlaygroundArgs) -> Result<Option<Trial>, Failure> {
    let Some((mode, seed)) = args.replay else {
        return Ok(None);
    };
    let mode = mode_of(mode);
    let defect = match &args.defect {
        None => None,
        Some(name) => {
            let rule = "is not among those that divvy simulate --defects shows";
            let defect = Defect::named(mode, name);
            Some(defect.ok_or_else(|| Failure::usage("defect", name, rule))?)
        }
    };
    Ok(Some(Trial {
        mode,
        seed,
        without: args.without.iter().copied().collect(),
        defect,
    }))
}

const fn mode_of(mode: Mode) -> divvy_sim::Mode {
    match mode {
        Mode::Leader => divvy_sim::Mode::Leader,
        Mode::Lease => divvy_sim::Mode::Lease,
    }
}

fn setup(args: &PlaygroundArgs) -> Result<Setup, Failure> {
    let mut setup = Setup::default();
    if let Some(mode) = args.mode {
        setup = setup.in_mode(mode_of(mode));
    }
    setup.workers = args.workers.unwrap_or(setup.workers);
    setup.partitions = args.partitions.unwrap_or(setup.partitions);
    setup.strategy = args.strategy.unwrap_or(setup.strategy);
    setup.seed = args.seed.unwrap_or(setup.seed);
    if args.overlap && setup.mode == divvy_sim::Mode::Lease {
        let rule = "--overlap is for leader mode: in lease mode no partition ever has two owners";
        return Err(Failure::Usage(rule.to_owned()));
    }
    setup.exclusive = !args.overlap;
    if let Some(preset) = &args.preset {
        setup.preset.clone_from(preset);
    }
    setup.check().map_err(divvy::Error::from)?;
    Ok(setup)
}
