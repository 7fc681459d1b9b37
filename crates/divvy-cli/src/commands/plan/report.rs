//! A plan for people: what it does in numbers, why, to whom, and to what.

use std::io::{self, Write};

use super::account::{self, Ground};
use super::workers;
use crate::preview::Preview;
use crate::shortfall;
use crate::table::{Align, Table, Tone, counted};
use crate::terminal::{SENTENCE_WIDTH_MAX, Terminal, printable};
use crate::wrap::wrap;

/// What to print of a plan, and where to.
pub(super) struct Report<'a> {
    pub(super) preview: Preview<'a>,
    /// Who was added, in a sentence.
    pub(super) added: Option<String>,
    /// What else there is to know of how many were added, in sentences.
    pub(super) notes: Vec<String>,
    pub(super) terminal: Terminal,
    /// Whether to show all changes.
    pub(super) list: bool,
    /// Whether to show all workers however many there are.
    pub(super) all: bool,
}

impl Report<'_> {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (preview, terminal) = (&self.preview, &self.terminal);
        let lines = [Some(self.first_line()), Some(self.second_line())];
        for line in lines.into_iter().chain([self.added.clone()]).flatten() {
            for line in terminal.lines(&printable(&line)) {
                writeln!(out, "{line}")?;
            }
        }
        let width = terminal.width.min(SENTENCE_WIDTH_MAX);
        for note in &self.notes {
            for line in wrap(note.split(' '), "", width) {
                writeln!(out, "{line}")?;
            }
        }
        writeln!(out)?;
        self.write_balance(out)?;
        for sentence in shortfall::sentences(preview) {
            writeln!(out)?;
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

    /// What whoever plans wants to know first: how much moves, and who will
    /// have most to bear.
    fn first_line(&self) -> String {
        let (preview, certificate) = (&self.preview, self.preview.certificate());
        let after = preview.after().partitions();
        let percent = |some: f64, all: f64| 100.0 * some / all;
        let moves = match certificate.moves {
            0 => "nothing moves".to_owned(),
            moves => format!(
                "{moves} of {} {} ({:.1} %), {:.1} % of the load",
                counted(after.len(), "partition"),
                if moves == 1 { "moves" } else { "move" },
                percent(f64::from(moves), after.len() as f64),
                percent(
                    certificate.moved_weight as f64,
                    after.loads().sum::<u64>() as f64
                ),
            ),
        };
        match preview.fullest() {
            None => moves,
            Some(fullest) => {
                let has = match preview.is_loaded() {
                    true => format!("a load of {}", fullest.load),
                    false => counted(fullest.partitions, "partition"),
                };
                format!(
                    "{moves}; the fullest worker is then {} with {has}, {:.2} times its share",
                    printable(fullest.worker.id()),
                    fullest.ratio()
                )
            }
        }
    }

    /// What is placed by whom, and what of the moves could not be helped.
    fn second_line(&self) -> String {
        let certificate = self.preview.certificate();
        let after = self.preview.after().partitions();
        let gone = self.preview.before.partitions().iter();
        let gone = gone.filter(|p| after.index_of(p.as_str()).is_none());
        let mut parts = vec![self.preview.heading()];
        if certificate.moves > 0 {
            // Of hashing alone the bound may say nothing.
            let needed = Some(certificate.lower_bound).filter(|&needed| needed > 0);
            parts.extend(needed.map(|needed| format!("at least {needed} needed")));
            parts.push(counted(certificate.orphans as usize, "orphan"));
        }
        let counts = [(certificate.new as usize, "new"), (gone.count(), "gone")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        parts.extend(counts.map(|(count, what)| format!("{count} {what}")));
        parts.join(", ")
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
}
