//! What a run came to.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Failure;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// How long something took, over several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::commands::bench) struct Spread {
    pub(in crate::commands::bench) p50: f64,
    pub(in crate::commands::bench) p99: f64,
    pub(in crate::commands::bench) max: f64,
}

impl Spread {
    /// In milliseconds; nothing was measured is 0.
    pub(in crate::commands::bench) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| {
            let place = (times.len() as f64 * share).ceil() as usize;
            let time = times.get(place.max(1) - 1).or_else(|| times.last());
            time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Self {
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

/// A figure beside what it has to stay below.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Bound {
    name: &'static str,
    measured: f64,
    bound: f64,
}

impl Bound {
    fn is_kept(&self) -> bool {
        self.measured <= self.bound
    }

    pub(super) const fn new(name: &'static str, measured: f64, bound: f64) -> Self {
        Self {
            name,
            measured,
            bound,
        }
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) preset: &'static str,
    pub(super) store: String,
    pub(super) workers: u32,
    pub(super) partitions: u32,
    pub(super) start_workers: u32,
    pub(super) start_partitions: u32,
    pub(super) failed_starts: usize,
    pub(super) cold_start_ms: f64,
    pub(super) follower_kill_ms: Spread,
    pub(super) leader_kill_ms: Spread,
    pub(super) graceful_stop_ms: Spread,
    pub(super) claim_ms: Spread,
    pub(super) two_owner_partition_seconds: f64,
    pub(super) duplicate_ids: usize,
    pub(super) bounds: Vec<Bound>,
}

impl Figures {
    /// Everything that is not as it has to be.
    pub(super) fn missed(&self) -> Vec<String> {
        let beyond = self.bounds.iter().filter(|row| !row.is_kept());
        let mut missed: Vec<_> = beyond
            .map(|row| format!("{} {:.1} is above {:.1}", row.name, row.measured, row.bound))
            .collect();
        let counts = [
            ("failed starts", self.failed_starts as f64),
            (
                "partition-seconds with two owners",
                self.two_owner_partition_seconds,
            ),
            ("ids held twice", self.duplicate_ids as f64),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0.0) {
            missed.push(format!("{count} {name}"));
        }
        missed
    }

    pub(super) fn write_table(
        &self,
        out: &mut dyn Write,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        let headings = [
            ("what", Align::Left),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("max", Align::Right),
        ];
        let mut table = Table::new(headings.map(|(text, align)| (text.to_owned(), align)));
        let ms = |value: f64| format!("{value:.0} ms");
        for (name, spread) in [
            ("a follower is killed", self.follower_kill_ms),
            ("the leader is killed", self.leader_kill_ms),
            ("a worker is stopped", self.graceful_stop_ms),
            ("an id is claimed", self.claim_ms),
        ] {
            let cells = vec![
                name.to_owned(),
                ms(spread.p50),
                ms(spread.p99),
                ms(spread.max),
            ];
            table.push(Tone::Plain, cells);
        }
        table
            .folded(terminal, &[("what", 12)], &["p50", "max"])
            .write(out, terminal.colour)
            .map_err(Failure::output)?;
        let headings = [
            ("beside its bound", Align::Left),
            ("measured", Align::Right),
            ("bound", Align::Right),
        ];
        let mut table = Table::new(headings.map(|(text, align)| (text.to_owned(), align)));
        for row in &self.bounds {
            let number = |value: f64| format!("{value:.1}");
            let cells = vec![row.name.to_owned(), number(row.measured), number(row.bound)];
            let tone = match row.is_kept() {
                true => Tone::Plain,
                false => Tone::LastHigh,
            };
            table.push(tone, cells);
        }
        writeln!(out).map_err(Failure::output)?;
        table
            .folded(terminal, &[("beside its bound", 12)], &[])
            .write(out, terminal.colour)
            .map_err(Failure::output)?;
        writeln!(out).map_err(Failure::output)?;
        for sentence in self.sentences() {
            for line in terminal.lines(&sentence) {
                writeln!(out, "{line}").map_err(Failure::output)?;
            }
        }
        Ok(())
    }

    fn sentences(&self) -> [String; 2] {
        [
            format!(
                "{} workers with {} partitions started in {:.0} ms, window and first lease included",
                self.start_workers, self.start_partitions, self.cold_start_ms,
            ),
            format!(
                "{} failed starts, {} partition-seconds with two owners, {} ids held twice",
                self.failed_starts, self.two_owner_partition_seconds, self.duplicate_ids
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let spread = Spread::of(vec![Duration::from_millis(12_345)]);
        Figures {
            preset: "fast",
            store: String::new(),
            workers: 2,
            partitions: 2,
            start_workers: 2,
            start_partitions: 2,
            failed_starts: 0,
            cold_start_ms: 1.0,
            follower_kill_ms: spread,
            leader_kill_ms: spread,
            graceful_stop_ms: spread,
            claim_ms: spread,
            two_owner_partition_seconds: 0.0,
            duplicate_ids: 0,
            bounds: vec![Bound::new("kept", 5.0, 5.0)],
        }
    }

    #[test]
    fn what_is_beyond_its_bound_is_missed_and_so_is_what_must_not_be() {
        let mut figures = figures();
        assert!(figures.missed().is_empty());
        figures.bounds.push(Bound::new("election, ms", 5.5, 5.0));
        figures.failed_starts = 2;
        let expected = ["election, ms 5.5 is above 5.0", "2 failed starts"];
        assert_eq!(figures.missed(), expected);
    }

    #[test]
    fn figures_fit_the_terminal_and_are_whole_where_they_are_piped() {
        let long = "first assignment, from the end of its window to the last start, ms";
        let mut figures = figures();
        figures.bounds.push(Bound::new(long, 12_345.6, 5000.0));
        let on = |interactive, width| {
            let terminal = Terminal {
                interactive,
                colour: false,
                width,
            };
            let mut out = Vec::new();
            let written = figures.write_table(&mut out, &terminal);
            written.expect("a vector takes anything");
            String::from_utf8(out).expect("tables are text")
        };
        for width in [40, 80, 120] {
            let text = on(true, width);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}: {text}");
            for word in long.split(' ').chain(["12345", "5000.0", "held"]) {
                assert!(text.contains(word), "{width}: {word} is not in {text}");
            }
        }
        assert!(on(false, 40).contains(&format!("\n{long}   12345.6  5000.0\n")));
    }
}
