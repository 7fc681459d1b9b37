//! An assignment for people: a row per worker, a bar, a summary.

use std::io::{self, Write};

use divvy::{Assignment, Moves, Partition, Worker};

use crate::bar::Scale;
use crate::holding::Holding;
use crate::natural;
use crate::table::{Align, GAP, Table, Tone, counted};
use crate::terminal::{ROWS_MAX, SENTENCE_WIDTH_MAX, Terminal, printable};
use crate::wrap::wrap;

/// How many of the heaviest, and of the lightest, a shortened table shows.
const ENDS: usize = ROWS_MAX / 2;

/// What to print of an assignment, and where to.
pub(super) struct Report<'a> {
    pub(super) strategy: &'a str,
    pub(super) assignment: &'a Assignment,
    pub(super) moves: Option<&'a Moves>,
    /// What could not be reached, in sentences.
    pub(super) shortfall: Vec<String>,
    pub(super) terminal: Terminal,
    /// Whether to list the partitions of each worker.
    pub(super) list: bool,
    /// Whether to show all workers however many there are.
    pub(super) all: bool,
}

/// One worker with what it has.
struct Line<'a> {
    worker: &'a Worker,
    partitions: Vec<&'a Partition>,
    load: u64,
    /// The load in relation to the mean, by weight; 0 for who gets nothing.
    ratio: f64,
}

impl Report<'_> {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.lines();
        let scale = Scale::of(lines.iter().map(|line| line.ratio));
        let left_out = self.shorten(&mut lines);
        self.write_table(&lines, scale, out)?;
        if left_out > 0 {
            writeln!(
                out,
                "\n{left_out} of {} workers left out, between the {ENDS} heaviest and the {ENDS} \
                 lightest: --all or --json shows all",
                self.assignment.workers().len()
            )?;
        }
        if self.list {
            writeln!(out)?;
            self.write_lists(&mut lines, out)?;
        }
        writeln!(out)?;
        self.write_summary(out)
    }

    /// All workers in natural order.
    fn lines(&self) -> Vec<Line<'_>> {
        let holdings = Holding::all(self.assignment).into_iter();
        let mut lines: Vec<Line<'_>> = holdings
            .zip(self.assignment.by_worker())
            .map(|(holding, (worker, partitions))| Line {
                worker,
                partitions,
                load: holding.load,
                ratio: holding.ratio(),
            })
            .collect();
        lines.sort_by(|a, b| natural::compare(a.worker.id(), b.worker.id()));
        lines
    }

    /// Keeps the heaviest and the lightest of too many for a terminal, and
    /// returns how many are left out.
    fn shorten(&self, lines: &mut Vec<Line<'_>>) -> usize {
        if self.all || self.terminal.fits(lines.len()) {
            return 0;
        }
        let left_out = lines.len() - 2 * ENDS;
        lines.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
        lines.drain(ENDS..ENDS + left_out);
        left_out
    }

    fn write_table(&self, lines: &[Line<'_>], scale: Scale, out: &mut dyn Write) -> io::Result<()> {
        let table = match self.terminal.interactive {
            true => {
                let plain = self.table(lines, None);
                let room = self.terminal.width.saturating_sub(plain.width() + GAP);
                let bars = scale.within(room);
                bars.map_or(plain, |bars| self.table(lines, Some(bars)))
            }
            false => self.table(lines, Some(scale)),
        };
        table.write(out, self.terminal.colour)
    }

    /// A row per worker, at its end a bar, or why it gets nothing.
    fn table(&self, lines: &[Line<'_>], bars: Option<Scale>) -> Table {
        let workers = || self.assignment.workers().iter();
        let weighted = workers().any(|worker| worker.weight() != 1.0);
        let zoned = workers().any(|worker| worker.zone().is_some());
        let vetoed = lines.iter().any(|line| line.worker.veto().is_some());
        let loaded = self.assignment.partitions().iter().any(|p| p.weight() != 0);
        let total: u64 = self.assignment.partitions().loads().sum();

        let mut headings = vec![("worker", Align::Left)];
        headings.extend(weighted.then_some(("weight", Align::Right)));
        headings.extend(zoned.then_some(("zone", Align::Left)));
        headings.push(("partitions", Align::Right));
        headings.extend(loaded.then_some(("load", Align::Right)));
        headings.push(("share", Align::Right));
        let headings = headings
            .into_iter()
            .map(|(name, align)| (name.to_owned(), align));
        let last = match bars {
            Some(scale) => Some(scale.heading()),
            None => vetoed.then(|| "note".to_owned()),
        };
        let last = last.map(|heading| (heading, Align::Left));
        let mut table = Table::new(headings.chain(last));
        for line in lines {
            let mut cells = vec![line.worker.id().to_owned()];
            cells.extend(weighted.then(|| line.worker.weight().to_string()));
            cells.extend(zoned.then(|| line.worker.zone().unwrap_or_default().to_owned()));
            cells.push(line.partitions.len().to_string());
            cells.extend(loaded.then(|| line.load.to_string()));
            cells.push(share(line.load, total, workers().len()));
            let veto = line.worker.veto().map(|veto| veto.to_string());
            cells.extend(match bars {
                Some(scale) => veto.or_else(|| Some(scale.bar(line.ratio))),
                None => vetoed.then(|| veto.unwrap_or_default()),
            });
            table.push(tone(line), cells);
        }
        table
    }

    fn write_lists(&self, lines: &mut [Line<'_>], out: &mut dyn Write) -> io::Result<()> {
        for line in lines {
            line.partitions
                .sort_by(|a, b| natural::compare(a.as_str(), b.as_str()));
            let id = printable(line.worker.id());
            writeln!(out, "{id} ({})", line.partitions.len())?;
            let names = line.partitions.iter();
            let names: Vec<_> = names.map(|name| printable(name.as_str())).collect();
            for text in wrap(names.iter().map(AsRef::as_ref), "  ", self.terminal.width) {
                writeln!(out, "{text}")?;
            }
        }
        Ok(())
    }

    fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let balance = self.assignment.balance();
        let mut told = vec![format!(
            "{}: {} on {}, max/mean {:.3}, min/mean {:.3}, stddev/mean {:.3}",
            self.strategy,
            counted(self.assignment.partitions().len(), "partition"),
            counted(self.assignment.workers().len(), "worker"),
            balance.max_over_mean,
            balance.min_over_mean,
            balance.stddev_over_mean,
        )];
        if let Some(moves) = self.moves {
            let new = moves.iter().filter(|change| change.from.is_none()).count();
            let gone = moves.iter().filter(|change| change.to.is_none()).count();
            told.push(format!(
                "since the previous assignment: {} moved, {new} new, {gone} gone, affinity {:.3}",
                counted(moves.moved(), "partition"),
                moves.affinity(),
            ));
        }
        for line in told.iter().flat_map(|line| self.terminal.lines(line)) {
            writeln!(out, "{line}")?;
        }
        for sentence in &self.shortfall {
            writeln!(out)?;
            let width = self.terminal.width.min(SENTENCE_WIDTH_MAX);
            for line in wrap(sentence.split(' '), "", width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}

fn tone(line: &Line<'_>) -> Tone {
    if !line.worker.is_eligible() {
        Tone::Faint
    } else if line.ratio > 1.0 {
        Tone::LastHigh
    } else {
        Tone::LastLow
    }
}

/// A share of `total` in percent, with the decimals that tell so many workers
/// apart.
fn share(load: u64, total: u64, workers: usize) -> String {
    let share = if total == 0 {
        0.0
    } else {
        load as f64 / total as f64
    };
    let decimals = match workers {
        0..=100 => 1,
        101..=1000 => 2,
        _ => 3,
    };
    format!("{:.decimals$}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use divvy::{Partitions, Rendezvous, Strategy as _, Workers};

    use super::*;

    fn written(workers: usize, interactive: bool, all: bool) -> String {
        let workers = Workers::numbered("worker", workers).expect("a count within bounds");
        let partitions = Partitions::shards([("default", 1000)]).expect("a count within bounds");
        let assignment = Rendezvous::new()
            .assign(&workers, &partitions, None)
            .expect("there are workers");
        let report = Report {
            strategy: "rendezvous",
            assignment: &assignment,
            moves: None,
            shortfall: Vec::new(),
            terminal: Terminal {
                interactive,
                colour: false,
                width: 80,
            },
            list: false,
            all,
        };
        let mut out = Vec::new();
        report.write(&mut out).expect("a vector takes anything");
        String::from_utf8(out).expect("reports are text")
    }

    fn rows(text: &str) -> usize {
        text.lines()
            .filter(|line| line.starts_with("worker-"))
            .count()
    }

    #[test]
    fn a_terminal_sees_both_ends_of_a_long_table_and_how_to_see_the_rest() {
        let text = written(100, true, false);
        assert_eq!(rows(&text), 40);
        assert!(
            text.contains(
                "60 of 100 workers left out, between the 20 heaviest and the 20 lightest"
            ),
            "{text}"
        );
        let counts: Vec<usize> = text
            .lines()
            .filter(|line| line.starts_with("worker-"))
            .map(|line| {
                line.split_whitespace()
                    .nth(1)
                    .expect("a count")
                    .parse()
                    .expect("a number")
            })
            .collect();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    }

    #[test]
    fn a_file_a_short_table_and_all_have_every_worker() {
        assert_eq!(rows(&written(40, true, false)), 40);
        assert_eq!(rows(&written(100, true, true)), 100);
        let piped = written(100, false, false);
        assert_eq!(rows(&piped), 100);
        assert!(!piped.contains("left out"), "{piped}");
    }
}
