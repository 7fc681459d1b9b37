//! `divvy explain`: the ranking behind the place of one partition.

use std::io::{self, Write};

use divvy::{Explanation, Partition, Partitions, Ranked, StrategyName};

use super::write_json;
use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::input::{self, Given};
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone};
use crate::terminal::{Terminal, printable};
use crate::wrap::wrap;

/// Rows of the table unless another number is chosen.
const TOP_DEFAULT: usize = 10;
/// Columns beyond which a sentence is hard to read.
const SENTENCE_WIDTH_MAX: usize = 80;

pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let strategy = input::strategy(&args.placement)?;
    let spinner = Spinner::start("reading");
    let given = Given::read(&args.placement)?;
    let partitions = partitions(args, &given)?;
    let workers = given.workers()?;
    spinner.turn_to("ranking");
    let mut explanation =
        strategy.explain(&args.partition, &workers, &partitions, given.previous())?;
    drop(spinner);
    if args.json {
        explanation.ranking.truncate(args.top.unwrap_or(usize::MAX));
        return write_json(out, &explanation);
    }
    let top = args.top.unwrap_or(TOP_DEFAULT);
    write(&explanation, top, &Terminal::of_stdout(), out).map_err(Failure::output)
}

/// The set that the partition is one of; it alone where none was named and
/// the strategy places each by itself.
fn partitions(args: &ExplainArgs, given: &Given) -> Result<Partitions, Failure> {
    if let Some(partitions) = given.named_partitions() {
        return Ok(partitions);
    }
    let partition: Partition = args.partition.parse()?;
    match (args.placement.strategy, given.previous()) {
        (
            StrategyName::Rendezvous
            | StrategyName::RendezvousParallel
            | StrategyName::RendezvousFiltered
            | StrategyName::ConsistentHash,
            _,
        ) => Ok(Partitions::new([partition])?),
        (_, Some(previous)) => Ok(previous.partitions().clone()),
        (strategy, None) => Err(Failure::Usage(format!(
            "strategy '{strategy}': places a partition by all of them, give --partitions or \
             --previous"
        ))),
    }
}

fn write(
    explanation: &Explanation,
    top: usize,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "{} belongs to {}",
        printable(&explanation.partition),
        printable(&explanation.owner)
    )?;
    writeln!(out)?;
    let ranking = &explanation.ranking;
    if !ranking.is_empty() {
        let left_out = write_ranking(explanation, top, terminal, out)?;
        if left_out > 0 {
            let all = ranking.len();
            writeln!(
                out,
                "{left_out} of {all} workers left out: --top {all} or --json shows all"
            )?;
        }
        writeln!(out)?;
    }
    let width = terminal.width.min(SENTENCE_WIDTH_MAX);
    let method = printable(&explanation.method);
    for line in wrap(method.split_whitespace(), "", width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Writes the first `top` of the ranking and the owner wherever it is, and
/// returns how many workers that leaves out.
fn write_ranking(
    explanation: &Explanation,
    top: usize,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<usize> {
    let mut table = Table::new([
        ("rank".to_owned(), Align::Right),
        ("worker".to_owned(), Align::Left),
        ("weight".to_owned(), Align::Right),
        ("hash".to_owned(), Align::Left),
        ("score".to_owned(), Align::Right),
        ("note".to_owned(), Align::Left),
    ]);
    let is_owner = |ranked: &Ranked| ranked.worker == explanation.owner;
    let shown = |ranked: &&Ranked| ranked.rank <= top || is_owner(ranked);
    for ranked in explanation.ranking.iter().filter(shown) {
        let (tone, note) = match ranked.veto {
            Some(veto) => (Tone::Faint, veto.to_string()),
            None if is_owner(ranked) => (Tone::Strong, "owner".to_owned()),
            None => (Tone::Plain, String::new()),
        };
        let cells = vec![
            ranked.rank.to_string(),
            ranked.worker.clone(),
            ranked.weight.to_string(),
            ranked.hash.clone().unwrap_or_else(|| "-".to_owned()),
            ranked.score.map_or_else(|| "-".to_owned(), score),
            note,
        ];
        table.push(tone, cells);
    }
    table.write(out, terminal.colour)?;
    Ok(explanation
        .ranking
        .iter()
        .filter(|ranked| !shown(ranked))
        .count())
}

/// A score with enough digits to compare by.
fn score(score: f64) -> String {
    if score == 0.0 || (1e-3..1e9).contains(&score) {
        format!("{score:.6}")
    } else {
        format!("{score:.6e}")
    }
}
