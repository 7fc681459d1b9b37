//! `divvy assign`: partitions placed on workers.

mod report;

use std::io::Write;

use divvy::AssignmentDocument;

use super::{picture, write_json};
use crate::args::AssignArgs;
use crate::failure::Failure;
use crate::input::{self, Given};
use crate::plot;
use crate::spinner::Spinner;
use crate::terminal::Terminal;
use report::Report;

pub(crate) fn run(args: &AssignArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let plot = picture::path(args.plot.as_deref())?;
    let strategy = input::strategy(&args.placement)?;
    let spinner = Spinner::start("reading");
    let given = Given::read(&args.placement)?;
    let (workers, partitions) = (given.workers()?, given.partitions()?);
    spinner.turn_to("placing");
    let assignment = strategy.assign(&workers, &partitions, given.previous())?;
    let moves = given
        .previous()
        .map(|previous| assignment.moves_from(previous));
    drop(spinner);
    if let Some(path) = plot {
        picture::write(path, &plot::load_svg(strategy.name(), &assignment))?;
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
