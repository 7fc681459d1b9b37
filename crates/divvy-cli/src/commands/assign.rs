//! `divvy assign`: partitions placed on workers.

mod report;

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context as _;
use divvy::{Assignment, AssignmentDocument};

use super::write_json;
use crate::args::AssignArgs;
use crate::failure::Failure;
use crate::input;
use crate::plot;
use crate::spinner::Spinner;
use crate::terminal::Terminal;
use report::Report;

pub(crate) fn run(args: &AssignArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let plot = args.plot.as_deref().map(svg).transpose()?;
    let strategy = input::strategy(&args.placement)?;
    let spinner = Spinner::start("reading");
    let partitions = || {
        args.partitions
            .as_deref()
            .map(input::partitions)
            .transpose()
    };
    let (workers, partitions) = input::sets(args.placement.workers.as_deref(), partitions)?;
    let previous = input::previous(args.placement.previous.as_deref())?;
    spinner.turn_to("placing");
    let assignment = strategy.assign(&workers, &partitions, previous.as_ref())?;
    let moves = previous.map(|previous| assignment.moves_from(&previous));
    drop(spinner);
    if let Some(path) = plot {
        draw(path, strategy.name(), &assignment)?;
    }
    if args.json {
        let document = AssignmentDocument::new(strategy.name(), &assignment);
        return match &moves {
            Some(moves) => write_json(out, &document.with_moves(moves)),
            None => write_json(out, &document),
        };
    }
    let report = Report {
        strategy: strategy.name(),
        assignment: &assignment,
        moves: moves.as_ref(),
        terminal: Terminal::of_stdout(),
        list: args.list,
        all: args.all,
    };
    report.write(out).map_err(Failure::output)
}

/// The path of a plot, which is of one form only.
fn svg(path: &Path) -> Result<&Path, Failure> {
    if path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("svg"))
    {
        return Ok(path);
    }
    Err(Failure::usage(
        "plot",
        path.display(),
        "the name must end in .svg",
    ))
}

fn draw(path: &Path, strategy: &str, assignment: &Assignment) -> Result<(), Failure> {
    fs::write(path, plot::svg(strategy, assignment))
        .with_context(|| format!("plot '{}'", path.display()))
        .map_err(Failure::Failed)?;
    tracing::debug!("drew {}", path.display());
    Ok(())
}
