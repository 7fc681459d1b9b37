//! `divvy assign`: partitions placed on workers.

mod report;

use std::io::Write;

use divvy::{Assignment, AssignmentDocument};

use super::{picture, write_csv, write_json};
use crate::args::AssignArgs;
use crate::failure::Failure;
use crate::holding::Holding;
use crate::input::{self, Chosen, Given};
use crate::plot;
use crate::preview::Preview;
use crate::shortfall;
use crate::spinner::Spinner;
use crate::terminal::Terminal;
use report::Report;

pub(crate) fn run(args: &AssignArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let plot = picture::path(args.plot.as_deref())?;
    let spinner = Spinner::start("reading");
    let given = Given::read(&args.placement)?;
    let chosen = given.chosen(&args.placement)?;
    let strategy = &chosen.strategy;
    let (workers, partitions) = Failure::both(given.workers(), given.partitions())?;
    spinner.turn_to("placing");
    let assignment = strategy.assign(&workers, &partitions, given.previous())?;
    let moves = given
        .previous()
        .map(|previous| assignment.moves_from(previous));
    let shortfall = shortfall(&chosen, &given, &assignment)?;
    drop(spinner);
    input::note_of_overlooked(chosen.name(), &given, &workers, &partitions);
    if let Some(path) = plot {
        picture::write(path, &plot::load_svg(strategy.name(), &assignment))?;
    }
    if args.csv {
        return write_owners(&assignment, out);
    }
    if args.json {
        let document = AssignmentDocument::new(strategy.name(), &assignment);
        let document = document.with_options(&chosen.settings.options);
        return match &moves {
            Some(moves) => write_json(out, &document.with_moves(moves)),
            None => write_json(out, &document),
        };
    }
    let report = Report {
        strategy: strategy.name(),
        assignment: &assignment,
        moves: moves.as_ref(),
        shortfall,
        terminal: Terminal::of_stdout(),
        list: args.list,
        all: args.all,
    };
    report.write(out).map_err(Failure::output)
}

/// What the band could not hold. Only an assignment that shows it is accounted
/// for, because that takes as long as making it.
fn shortfall(
    chosen: &Chosen,
    given: &Given,
    assignment: &Assignment,
) -> Result<Vec<String>, Failure> {
    let Some(width) = chosen.band() else {
        return Ok(Vec::new());
    };
    let eligible = Holding::all(assignment).into_iter();
    let mut ratios = eligible.filter(|held| held.worker.is_eligible());
    if ratios.all(|held| (held.ratio() - 1.0).abs() <= width) || assignment.owners().is_empty() {
        return Ok(Vec::new());
    }
    let (workers, partitions) = (assignment.workers(), assignment.partitions());
    let strategy = &chosen.strategy;
    let proposal = strategy.propose(workers, partitions, given.previous())?;
    Ok(shortfall::sentences(&Preview {
        strategy: strategy.name(),
        before: given.previous().unwrap_or(assignment),
        proposal: &proposal,
        band: Some(width),
    }))
}

/// Who owns what, as `--previous` reads it.
fn write_owners(assignment: &Assignment, out: &mut dyn Write) -> Result<(), Failure> {
    let owned = assignment.partitions().iter().zip(assignment.owners());
    let rows = owned.map(|(partition, &owner)| {
        let worker = &assignment.workers().as_slice()[owner as usize];
        let weight = Some(partition.weight()).filter(|&weight| weight != 0);
        [
            partition.to_string(),
            worker.id().to_owned(),
            weight.map_or_else(String::new, |weight| weight.to_string()),
        ]
    });
    write_csv(out, ["key", "worker", "weight"], rows)
}
