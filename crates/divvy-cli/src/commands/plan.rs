//! `divvy plan`: what a change would do, before it is done.

mod account;
mod report;
mod workers;

use std::io::Write;

use divvy::{Assignment, Partition, Partitions, PlanDocument, Strategy, StrategyName};

use super::{picture, write_json};
use crate::args::PlanArgs;
use crate::failure::Failure;
use crate::input::{self, Change, Given};
use crate::plot;
use crate::preview::Preview;
use crate::spinner::Spinner;
use crate::terminal::{self, Terminal};
use report::Report;

pub(crate) fn run(args: &PlanArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let plot = picture::path(args.plot.as_deref())?;
    let strategy = input::strategy(&args.placement)?;
    let spinner = Spinner::start("reading");
    let given = Given::read(&args.placement)?;
    let change = Change::read(&args.change)?;
    let base = given.workers()?;
    let partitions = given.partitions()?;
    let target = change.target(&base)?;
    spinner.turn_to("planning");
    let before = match given.previous() {
        Some(previous) => previous.clone(),
        None => first(strategy.as_ref(), &given, &change, &partitions)?,
    };
    if matches!(change, Change::To(_)) && given.previous().is_some() && given.names_workers() {
        tracing::warn!(
            "--workers is not used: --previous says who there is, --to who there will be"
        );
    }
    if let Some(other) = given.previous_strategy() {
        warn_of_another(other, args.placement.strategy);
    }
    let proposal = strategy.propose(&target, &partitions, Some(&before))?;
    let before = reweighed(before, proposal.assignment.partitions())?;
    drop(spinner);
    let banded = matches!(
        args.placement.strategy,
        StrategyName::WeightedConsistentHash | StrategyName::Zoned
    );
    let preview = Preview {
        strategy: strategy.name(),
        before: &before,
        proposal: &proposal,
        band: banded.then(|| input::band_width(&args.placement)),
    };
    if let Some(path) = plot {
        picture::write(path, &plot::change_svg(&preview))?;
    }
    if args.json {
        let document = PlanDocument::new(strategy.name(), &before, &proposal);
        return write_json(out, &document);
    }
    let report = Report {
        preview,
        terminal: Terminal::of_stdout(),
        list: args.list,
        all: args.all,
    };
    report.write(out).map_err(Failure::output)
}

/// Where no assignment is in force: what the strategy makes of the workers
/// that there are.
fn first(
    strategy: &dyn Strategy,
    given: &Given,
    change: &Change,
    partitions: &Partitions,
) -> Result<Assignment, Failure> {
    if matches!(change, Change::None) {
        return Err(Failure::Usage(
            "nothing to plan: give --to, --add or --remove, or --previous to plan from".to_owned(),
        ));
    }
    Ok(strategy.assign(&given.workers()?, partitions, None)?)
}

/// Says that what is planned from was made by another strategy, where it may
/// have placed otherwise.
fn warn_of_another(made_by: &str, used: StrategyName) {
    let placement = |name| match name {
        StrategyName::RendezvousParallel => StrategyName::Rendezvous,
        name => name,
    };
    let same = made_by
        .parse()
        .is_ok_and(|made_by| placement(made_by) == placement(used));
    if !same {
        tracing::warn!(
            "--previous was made by the strategy {}, this plan is by {used}: what moves may be \
             due to that",
            terminal::excerpt(made_by)
        );
    }
}

/// The same assignment with the weights that partitions have now: what there
/// will be if nothing is done, which is what a plan is to be compared to.
fn reweighed(before: Assignment, now: &Partitions) -> Result<Assignment, Failure> {
    if before.partitions() == now {
        return Ok(before);
    }
    let weighed = |partition: &Partition| match now.index_of(partition.as_str()) {
        Some(index) => now.as_slice()[index].clone(),
        None => partition.clone(),
    };
    let partitions = Partitions::new(before.partitions().iter().map(weighed))?
        .with_default_weight(now.default_weight())?;
    let owners = before.owners().to_vec();
    Ok(Assignment::new(before.workers(), &partitions, owners)?)
}
