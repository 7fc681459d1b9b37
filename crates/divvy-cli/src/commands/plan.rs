//! `divvy plan`: what a change would do, before it is done.

mod account;
mod fit;
mod report;
mod workers;

use std::io::Write;

use divvy::{Assignment, Partition, Partitions, PlanDocument, Proposal, StrategyName, Workers};

use super::{picture, write_csv, write_json};
use crate::args::PlanArgs;
use crate::failure::Failure;
use crate::input::{self, Change, Chosen, Given};
use crate::plot;
use crate::preview::Preview;
use crate::spinner::Spinner;
use crate::terminal::{self, Terminal};
use fit::{Fit, Fitted};
use report::Report;

pub(crate) fn run(args: &PlanArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let plot = picture::path(args.plot.as_deref())?;
    let spinner = Spinner::start("reading");
    let mut given = Given::read(&args.placement)?;
    let chosen = given.chosen(&args.placement)?;
    let change = Change::read(&args.change)?;
    look_ahead(&mut given, &change)?;
    let (base, partitions) = Failure::both(given.workers(), given.partitions())?;
    spinner.turn_to("planning");
    let planner = Planner::new(chosen, &given, &change, &partitions)?;
    if let Some(other) = given.previous_strategy() {
        warn_of_another(other, planner.chosen.name());
    }
    let Fitted {
        target,
        proposal,
        notes,
    } = match &args.change.fit {
        Some(fit) => Fit::new(fit.load, &planner, &base).find()?,
        None => {
            let target = change.target(&base)?;
            Fitted {
                proposal: planner.propose(&target.workers)?,
                target,
                notes: Vec::new(),
            }
        }
    };
    let Planner { chosen, before, .. } = planner;
    let before = reweighed(before, proposal.assignment.partitions())?;
    let strategy = chosen.strategy.as_ref();
    drop(spinner);
    input::note_of_overlooked(chosen.name(), &given, &target.workers, &partitions);
    let preview = Preview {
        strategy: strategy.name(),
        before: &before,
        proposal: &proposal,
        band: chosen.band(),
    };
    if let Some(path) = plot {
        picture::write(path, &plot::change_svg(&preview))?;
    }
    if args.csv {
        return write_moves(&proposal, out);
    }
    if args.json {
        let document = PlanDocument::new(strategy.name(), &before, &proposal);
        return write_json(out, &document.with_options(&chosen.settings.options));
    }
    let report = Report {
        preview,
        added: target.added,
        notes,
        terminal: Terminal::of_stdout(),
        list: args.list,
        all: args.all,
    };
    report.write(out).map_err(Failure::output)
}

/// Uses what is told of workers where the assignment in force tells nothing,
/// and says where it is not used.
fn look_ahead(given: &mut Given, change: &Change) -> Result<(), Failure> {
    let Change::To(to) = change else {
        return Ok(());
    };
    if given.previous().is_none() {
        return Ok(());
    }
    if !given.names_workers() {
        return given.describe_previous(to);
    }
    if given.is_previous_described() {
        tracing::warn!(
            "--workers is not used: --previous says who there is, --to who there will be"
        );
    }
    Ok(())
}

/// The changes, one a line.
fn write_moves(proposal: &Proposal, out: &mut dyn Write) -> Result<(), Failure> {
    let partitions = proposal.assignment.partitions();
    let loads: Vec<u64> = partitions.loads().collect();
    let rows = proposal.changes.iter().map(|change| {
        let load = partitions.index_of(&change.partition);
        [
            change.partition.clone(),
            change.from.clone().unwrap_or_default(),
            change.to.clone(),
            change.cause.to_string(),
            load.map_or_else(String::new, |index| loads[index].to_string()),
        ]
    });
    write_csv(out, ["partition", "from", "to", "cause", "weight"], rows)
}

/// A strategy, and what it plans from.
struct Planner<'a> {
    chosen: Chosen,
    given: &'a Given,
    change: &'a Change,
    partitions: &'a Partitions,
    /// The assignment in force, or what the strategy makes of the workers that
    /// there are.
    before: Assignment,
}

impl<'a> Planner<'a> {
    fn new(
        chosen: Chosen,
        given: &'a Given,
        change: &'a Change,
        partitions: &'a Partitions,
    ) -> Result<Self, Failure> {
        let before = match given.previous() {
            Some(previous) => previous.clone(),
            None if matches!(change, Change::None) => {
                return Err(Failure::Usage(
                    "nothing to plan: give --to, --add or --remove, or --previous to plan from"
                        .to_owned(),
                ));
            }
            None => chosen
                .strategy
                .assign(&given.workers()?, partitions, None)?,
        };
        Ok(Self {
            chosen,
            given,
            change,
            partitions,
            before,
        })
    }

    /// The same with another band, as if it had been typed.
    fn with_band(&self, band: f64) -> Result<Self, Failure> {
        let chosen = self.chosen.with_band(band)?;
        Self::new(chosen, self.given, self.change, self.partitions)
    }

    fn propose(&self, workers: &Workers) -> Result<Proposal, Failure> {
        let strategy = &self.chosen.strategy;
        Ok(strategy.propose(workers, self.partitions, Some(&self.before))?)
    }
}

/// Says that what is planned from was made by another strategy, where it may
/// have placed otherwise.
fn warn_of_another(made_by: &str, used: StrategyName) {
    let same = made_by
        .parse()
        .is_ok_and(|made_by| input::places_as(made_by, used));
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
