//! `divvy explain`: the ranking behind the place of one partition.

use std::borrow::Cow;
use std::io::{self, Write};

use divvy::{Explanation, LoadsAt, Partition, Partitions, Ranked, StrategyName, Worker, Workers};
use serde::Serialize;

use super::write_json;
use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::input::{self, Given};
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone};
use crate::terminal::{SENTENCE_WIDTH_MAX, Terminal, printable};
use crate::wrap::wrap;

/// Rows of the table unless another number is chosen.
const TOP_DEFAULT: usize = 10;
/// Workers before the owner that a sentence names.
const PASSED_MAX: usize = 3;

pub(crate) fn run(args: &ExplainArgs, verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let spinner = Spinner::start("reading");
    let given = Given::read(&args.placement)?;
    let chosen = given.chosen(&args.placement)?;
    let partitions = partitions(args, &given, chosen.name())?;
    let workers = given.workers()?;
    spinner.turn_to("ranking");
    let strategy = &chosen.strategy;
    let mut explanation =
        strategy.explain(&args.partition, &workers, &partitions, given.previous())?;
    let today = given.previous();
    let today = today.and_then(|previous| previous.owner_of(&args.partition));
    let today = today.map(|worker| worker.id().to_owned());
    if args.json {
        let top = args.top.unwrap_or(usize::MAX);
        let owner = explanation.owner.clone();
        explanation
            .ranking
            .retain(|ranked| ranked.rank <= top || ranked.worker == owner);
        drop(spinner);
        return write_json(out, &Document { today, explanation });
    }
    let answer = Answer {
        explanation: &explanation,
        strategy: chosen.name(),
        today: today.as_deref(),
        workers: &workers,
        top: args.top.unwrap_or(TOP_DEFAULT),
        verbose,
        terminal: Terminal::of_stdout(),
    };
    drop(spinner);
    input::note_of_overlooked(chosen.name(), &given, &workers, &partitions);
    answer.write(out).map_err(Failure::output)
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Document {
    /// Who owns the partition by the assignment in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    today: Option<String>,
    #[serde(flatten)]
    explanation: Explanation,
}

/// Whether the place of a partition depends on the partition alone.
fn places_each_alone(strategy: StrategyName) -> bool {
    matches!(
        strategy,
        StrategyName::Rendezvous
            | StrategyName::RendezvousParallel
            | StrategyName::RendezvousFiltered
            | StrategyName::ConsistentHash
    )
}

/// The set that the partition is one of; it alone where none was named and
/// the strategy places each by itself.
fn partitions(
    args: &ExplainArgs,
    given: &Given,
    strategy: StrategyName,
) -> Result<Partitions, Failure> {
    if let Some(partitions) = given.named_partitions() {
        return Ok(partitions);
    }
    let partition: Partition = args.partition.parse()?;
    match given.previous() {
        _ if places_each_alone(strategy) => Ok(Partitions::new([partition])?),
        Some(previous) => Ok(previous.partitions().clone()),
        None => Err(Failure::Usage(format!(
            "strategy '{strategy}': places a partition by all of them, give --partitions or \
             --previous"
        ))),
    }
}

/// What to print, and where to.
struct Answer<'a> {
    explanation: &'a Explanation,
    strategy: StrategyName,
    /// Who owns the partition by the assignment in force.
    today: Option<&'a str>,
    workers: &'a Workers,
    top: usize,
    /// Whether to say how the ranking comes about.
    verbose: bool,
    terminal: Terminal,
}

impl Answer<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = self.terminal.width.min(SENTENCE_WIDTH_MAX);
        let why = self.explanation.why.as_deref().map(printable);
        let sentences = [Some(self.sentence().into()), why, self.loads_are()];
        for sentence in sentences.into_iter().flatten() {
            for line in wrap(sentence.split_whitespace(), "", width) {
                writeln!(out, "{line}")?;
            }
        }
        let ranking = &self.explanation.ranking;
        if !ranking.is_empty() {
            writeln!(out)?;
            let scored = self.ranking(true);
            // Who owns it and why matters more than by how much.
            let fits = !self.terminal.interactive || scored.width() <= self.terminal.width;
            let table = if fits { scored } else { self.ranking(false) };
            table.write(out, self.terminal.colour)?;
            let left_out = ranking.iter().filter(|ranked| !self.shows(ranked)).count();
            if left_out > 0 {
                let all = ranking.len();
                writeln!(
                    out,
                    "{left_out} of {all} workers left out: --top {all} or --json shows all"
                )?;
            }
        }
        writeln!(out)?;
        if !self.verbose {
            return writeln!(out, "-v shows what was hashed, and how scores come about");
        }
        let method = printable(&self.explanation.method);
        for line in wrap(method.split_whitespace(), "", width) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Who owns the partition and why, in a sentence.
    fn sentence(&self) -> String {
        let Explanation {
            partition,
            owner,
            ranking,
            ..
        } = self.explanation;
        let (partition, owner) = (printable(partition), printable(owner));
        let belongs = match self.today.filter(|today| *today != self.explanation.owner) {
            None => format!("{partition} belongs to {owner}"),
            Some(today) => format!(
                "{partition}: today it is on {}; {} would put it on {owner}",
                printable(today),
                self.strategy
            ),
        };
        let before: Vec<&Ranked> = ranking.iter().take_while(|r| !self.owns(r)).collect();
        let all = ranking.len();
        let why = match before.len() {
            _ if all == 0 => String::new(),
            0 if all == 1 => ", the only worker".to_owned(),
            0 => format!(", which ranks first of {all} workers"),
            passed if passed <= PASSED_MAX => {
                let told = before.iter().map(|ranked| {
                    let veto = ranked.veto.map(|veto| veto.to_string());
                    let worker = printable(&ranked.worker);
                    format!("{worker} ({})", veto.unwrap_or_default())
                });
                let told = told.collect::<Vec<_>>().join(", ");
                format!(", number {} of {all}, after {told}", passed + 1)
            }
            passed => format!(
                ", number {} of {all}: the {passed} before it were passed over",
                passed + 1
            ),
        };
        format!("{belongs}{why}")
    }

    /// What the column of loads is: final loads would not show why a partition
    /// is where it is.
    fn loads_are(&self) -> Option<Cow<'static, str>> {
        let loads = self.explanation.loads?;
        let what = if loads.by_count {
            "Partitions"
        } else {
            "Loads"
        };
        Some(Cow::Owned(match loads.after {
            true => format!("{what} are those after the plan."),
            false => format!("{what} are those just before that, and not the final ones."),
        }))
    }

    fn owns(&self, ranked: &Ranked) -> bool {
        ranked.worker == self.explanation.owner
    }

    /// The first of the ranking are shown, and the owner wherever it is.
    fn shows(&self, ranked: &Ranked) -> bool {
        ranked.rank <= self.top || self.owns(ranked)
    }

    fn ranking(&self, scored: bool) -> Table {
        let zoned = self.workers.iter().any(|worker| worker.zone().is_some());
        let load = self.explanation.loads.map(|loads| match loads {
            LoadsAt {
                by_count: true,
                after: true,
                ..
            } => "partitions after",
            LoadsAt { by_count: true, .. } => "partitions then",
            LoadsAt { after: true, .. } => "load after",
            _ => "load then",
        });
        let mut headings = vec![
            ("rank", Align::Right),
            ("worker", Align::Left),
            ("weight", Align::Right),
        ];
        headings.extend(zoned.then_some(("zone", Align::Left)));
        headings.extend(load.map(|load| (load, Align::Right)));
        // The lighter of two workers is the one with less for its weight.
        let mut weights = self.workers.iter().map(Worker::weight);
        let first = weights.next();
        let uneven = load.is_some() && weights.any(|weight| Some(weight) != first);
        headings.extend(uneven.then_some(("per weight", Align::Right)));
        headings.extend(self.verbose.then_some(("hash", Align::Left)));
        headings.extend(scored.then_some(("score", Align::Right)));
        headings.push(("note", Align::Left));
        let headings = headings.into_iter();
        let mut table = Table::new(headings.map(|(name, align)| (name.to_owned(), align)));
        let absent = || "-".to_owned();
        let shown = self.explanation.ranking.iter();
        for ranked in shown.filter(|ranked| self.shows(ranked)) {
            let (tone, note) = match ranked.veto {
                Some(veto) => (Tone::Faint, veto.to_string()),
                None if self.owns(ranked) => (Tone::Strong, "owner".to_owned()),
                None => (Tone::Plain, String::new()),
            };
            let index = self.workers.index_of(&ranked.worker);
            let zone = index.and_then(|index| self.workers.as_slice()[index].zone());
            let mut cells = vec![
                ranked.rank.to_string(),
                ranked.worker.clone(),
                ranked.weight.to_string(),
            ];
            cells.extend(zoned.then(|| zone.unwrap_or_default().to_owned()));
            let had = || ranked.load.map_or_else(absent, |load| load.to_string());
            cells.extend(load.map(|_| had()));
            let level = |load| score(load as f64 / ranked.weight);
            cells.extend(uneven.then(|| ranked.load.map_or_else(absent, level)));
            let hash = || ranked.hash.clone().unwrap_or_else(absent);
            cells.extend(self.verbose.then(hash));
            cells.extend(scored.then(|| ranked.score.map_or_else(absent, score)));
            cells.push(note);
            table.push(tone, cells);
        }
        table
    }
}

/// A score with enough digits to compare by.
fn score(score: f64) -> String {
    if score == 0.0 || (1e-3..1e9).contains(&score) {
        format!("{score:.6}")
    } else {
        format!("{score:.6e}")
    }
}
