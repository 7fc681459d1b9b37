//! `divvy simulate`: clusters that do not exist, in which everything goes
//! wrong.

mod defects;
mod figures;
mod progress;
mod report;

use std::collections::BTreeSet;
use std::io::Write;
use std::thread;

use anyhow::{Context as _, anyhow};
use divvy_sim::{Campaign, Defect, Goal, Mode, Trial};

use super::write_json;
use crate::args::SimulateArgs;
use crate::failure::Failure;
use progress::Progress;
use report::{Result as Printed, write_failure, write_totals};

/// Seeds that are run unless something else is asked for.
const SEEDS_DEFAULT: u64 = 1000;

pub(crate) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<(), Failure> {
    if args.defects {
        return defects::run(args, out);
    }
    if args.figures {
        return figures::run(args, out);
    }
    match args.seed {
        Some(seed) => one(args, seed, out),
        None => many(args, out),
    }
}

/// One seed, with its trace if that was asked for.
fn one(args: &SimulateArgs, seed: u64, out: &mut dyn Write) -> Result<(), Failure> {
    let trial = Trial {
        mode: mode(args),
        seed,
        without: args.without.iter().copied().collect::<BTreeSet<_>>(),
        defect: defect(args)?,
    };
    let outcome = trial.run(args.trace);
    for line in &outcome.trace {
        writeln!(out, "{line}").map_err(Failure::output)?;
    }
    let mut totals = divvy_sim::Totals::default();
    totals.add(&outcome);
    let failure = match (&outcome.broken, args.trace) {
        (Some(_), false) => trial.shrunk(),
        _ => None,
    };
    let failures: Vec<_> = failure.into_iter().collect();
    if args.json {
        write_json(out, &Printed::new(&totals, &failures))?;
    } else if !args.trace {
        write_totals(out, &totals)?;
        for failure in &failures {
            write_failure(out, failure)?;
        }
    }
    match outcome.broken {
        None => Ok(()),
        Some(broken) => Err(Failure::Failed(anyhow!("seed {seed} broke {broken}"))),
    }
}

/// Many seeds.
fn many(args: &SimulateArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let goal = match args.hours {
        Some(hours) => Goal::ClusterHours(hours),
        None => Goal::Seeds(args.seeds.unwrap_or(SEEDS_DEFAULT)),
    };
    if let (Some(from), Some(path)) = (args.from, args.resume.as_deref())
        && path.exists()
    {
        let rule = format!(
            "cannot be given: {} is there and says where to go on",
            path.display()
        );
        return Err(Failure::usage("from", from, rule));
    }
    let campaign = Campaign {
        mode: mode(args),
        first: args.from.unwrap_or(0),
        goal,
        defect: defect(args)?,
        jobs: args.jobs.unwrap_or_else(cores),
        resume: args.resume.clone(),
    };
    let progress = Progress::start();
    let report = campaign.run(|totals, done| progress.show(totals, done));
    drop(progress);
    let file = || match &args.resume {
        Some(path) => path.display().to_string(),
        None => "simulation".to_owned(),
    };
    let report = report.with_context(file).map_err(Failure::Failed)?;
    if args.json {
        write_json(out, &Printed::new(&report.totals, &report.failures))?;
    } else {
        write_totals(out, &report.totals)?;
        for failure in &report.failures {
            write_failure(out, failure)?;
        }
    }
    match report.totals.violations {
        0 => Ok(()),
        count => Err(Failure::Failed(anyhow!(
            "{count} of {} seeds broke an invariant",
            report.totals.seeds
        ))),
    }
}

fn defect(args: &SimulateArgs) -> Result<Option<Defect>, Failure> {
    let Some(name) = &args.defect else {
        return Ok(None);
    };
    let rule = "is not among those that --defects shows";
    let defect = Defect::named(mode(args), name);
    let defect = defect.ok_or_else(|| Failure::usage("defect", name, rule))?;
    Ok(Some(defect))
}

const fn mode(args: &SimulateArgs) -> Mode {
    match args.mode {
        crate::args::Mode::Leader => Mode::Leader,
        crate::args::Mode::Lease => Mode::Lease,
    }
}

/// Threads to run on unless a number is given.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
