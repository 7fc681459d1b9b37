//! A plan for people: what it does in numbers, why, to whom, and to what.

use std::io::{self, Write};

use divvy::StrategyName;

use super::account::{self, Ground};
use super::workers;
use crate::preview::Preview;
use crate::table::{Align, Table, Tone, counted};
use crate::terminal::Terminal;
use crate::wrap::wrap;

/// Columns beyond which a sentence is hard to read.
const SENTENCE_WIDTH_MAX: usize = 80;

/// What to print of a plan, and where to.
pub(super) struct Report<'a> {
    pub(super) preview: Preview<'a>,
    pub(super) terminal: Terminal,
    /// Whether to show all changes.
    pub(super) list: bool,
    /// Whether to show all workers however many there are.
    pub(super) all: bool,
}

impl Report<'_> {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (preview, terminal) = (&self.preview, &self.terminal);
        writeln!(out, "{}", preview.heading())?;
        writeln!(out, "{}", self.moves())?;
        writeln!(out)?;
        self.write_balance(out)?;
        for sentence in self.sentences() {
            writeln!(out)?;
            let width = terminal.width.min(SENTENCE_WIDTH_MAX);
            for line in wrap(sentence.split(' '), "", width) {
                writeln!(out, "{line}")?;
            }
        }
        let (changes, ground) = (&preview.proposal.changes, Ground::of(preview));
        if !changes.is_empty() {
            writeln!(out)?;
            account::write_causes(changes, ground, terminal, out)?;
        }
        writeln!(out)?;
        workers::write(preview, terminal, self.all, out)?;
        if !changes.is_empty() {
            writeln!(out)?;
            account::write_changes(changes, ground, terminal, self.list, out)?;
        }
        Ok(())
    }

    /// How much moves, in one line.
    fn moves(&self) -> String {
        let certificate = self.preview.certificate();
        let after = self.preview.after().partitions();
        let gone = self.preview.before.partitions().iter();
        let gone = gone
            .filter(|p| after.index_of(p.as_str()).is_none())
            .count();
        let gone = if gone > 0 {
            format!(", {gone} gone")
        } else {
            String::new()
        };
        let new = certificate.new;
        if certificate.moves == 0 {
            let new = if new > 0 {
                format!(", {new} new")
            } else {
                String::new()
            };
            return format!("nothing moves{new}{gone}");
        }
        let percent = |some: f64, all: f64| 100.0 * some / all;
        format!(
            "{} ({:.1} % of partitions, {:.1} % of weight), at least {} needed, {}, {new} new{gone}",
            counted(certificate.moves as usize, "move"),
            percent(f64::from(certificate.moves), after.len() as f64),
            percent(
                certificate.moved_weight as f64,
                after.loads().sum::<u64>() as f64
            ),
            certificate.lower_bound,
            counted(certificate.orphans as usize, "orphan"),
        )
    }

    fn write_balance(&self, out: &mut dyn Write) -> io::Result<()> {
        let headings = [
            ("", Align::Left),
            ("before", Align::Right),
            ("after", Align::Right),
        ];
        let mut table = Table::new(headings.map(|(name, align)| (name.to_owned(), align)));
        let (before, after) = (
            self.preview.before.balance(),
            self.preview.after().balance(),
        );
        for (name, before, after) in [
            ("max/mean", before.max_over_mean, after.max_over_mean),
            ("min/mean", before.min_over_mean, after.min_over_mean),
            (
                "stddev/mean",
                before.stddev_over_mean,
                after.stddev_over_mean,
            ),
        ] {
            let cells = vec![
                name.to_owned(),
                format!("{before:.3}"),
                format!("{after:.3}"),
            ];
            table.push(Tone::Plain, cells);
        }
        table.write(out, self.terminal.colour)
    }

    /// What the certificate has to say beyond numbers.
    fn sentences(&self) -> Vec<String> {
        let certificate = self.preview.certificate();
        let mut sentences = Vec::new();
        if certificate.giants > 0 {
            let (giants, verb) = noun(certificate.giants, "partition");
            let each = if certificate.giants == 1 {
                "it"
            } else {
                "each"
            };
            let target = match certificate.target_over_mean {
                0.0 => "nothing is left for the others".to_owned(),
                target => {
                    format!(
                        "the band is around what the others average, {target:.3} times the mean"
                    )
                }
            };
            sentences.push(format!(
                "{giants} {verb} too heavy for the band of any worker: {each} has a worker of its \
                 own, and {target}."
            ));
        }
        if let Some(edges) = self.preview.edges().filter(|_| certificate.outside > 0) {
            let (workers, verb) = noun(certificate.outside, "worker");
            sentences.push(format!(
                "{workers} {verb} outside of the band, {:.2} to {:.2} times the share: no moves \
                 were found that change that. A wider --band allows for coarse partitions.",
                edges.low, edges.high
            ));
        }
        if certificate.zones_outside > 0 {
            let (zones, verb) = noun(certificate.zones_outside, "zone");
            sentences.push(format!(
                "{zones} {verb} outside of the band of zones, which is a third of that of workers."
            ));
        }
        sentences.extend(self.fast_path());
        sentences
    }

    /// That no band was kept, where that shows.
    fn fast_path(&self) -> Option<String> {
        let preview = &self.preview;
        let width = preview.band.filter(|_| !preview.is_banded())?;
        let balance = preview.after().balance();
        let inside = balance.max_over_mean <= 1.0 + width && balance.min_over_mean >= 1.0 - width;
        let name = StrategyName::WeightedConsistentHash.as_str();
        (preview.strategy == name && !inside).then(|| {
            "All partitions weigh the same, so the ring alone places them and no band is kept: \
             --no-fast-path keeps it, and the strategy balanced is even to 1."
                .to_owned()
        })
    }
}

/// A count with its noun, and the verb that goes with it.
fn noun(count: u32, noun: &str) -> (String, &'static str) {
    let verb = if count == 1 { "is" } else { "are" };
    (counted(count as usize, noun), verb)
}
