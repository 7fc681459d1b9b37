//! What a run came to.

use std::io::Write;

use serde::Serialize;

use super::faults::Happened;
use super::ledger::Account;
use super::overhead::Overhead;
use crate::commands::bench::failover::Spread;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::wrap::fold;

/// Characters that a name keeps on a narrow terminal.
const NAME_CHARS_MIN: usize = 16;

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) retention: &'static str,
    pub(super) partitions: u32,
    pub(super) workers: u32,
    #[serde(flatten)]
    pub(super) account: Account,
    pub(super) faults: Happened,
    pub(super) latency_ms: Spread,
    pub(super) seconds: f64,
    /// How much longer a backlog takes with divvy than without.
    pub(super) overhead: Option<f64>,
    pub(super) backlog: Option<Overhead>,
}

impl Figures {
    /// What must not be.
    pub(super) fn wrong(&self) -> u64 {
        let account = &self.account;
        let twice = account.duplicates_outside_kills;
        account.lost + twice + account.stale_effects + account.out_of_order
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (latency, account) = (&self.latency_ms, &self.account);
        let mut rows = vec![
            ("published", account.published.to_string()),
            ("processed", account.processed.to_string()),
            ("lost", account.lost.to_string()),
            ("processed twice", account.duplicates.to_string()),
            (
                "  not in flight at a kill",
                account.duplicates_outside_kills.to_string(),
            ),
            ("out of order", account.out_of_order.to_string()),
            ("done under an old token", account.stale_effects.to_string()),
            (
                "refused under an old token",
                account.stale_refused.to_string(),
            ),
            (
                "from publishing to the ledger, p50",
                format!("{:.1} ms", latency.p50),
            ),
            (
                "from publishing to the ledger, p99",
                format!("{:.1} ms", latency.p99),
            ),
        ];
        if let Some(backlog) = &self.backlog {
            rows.extend([
                (
                    "a backlog, in a second",
                    format!("{:.0}", backlog.per_second),
                ),
                (
                    "  by plain consumers",
                    format!("{:.0}", backlog.plain_per_second),
                ),
                ("  longer by a factor of", format!("{:.2}", backlog.ratio)),
            ]);
        }
        let rows = rows
            .into_iter()
            .map(|(name, value)| (name, format!("{value:>12}")));
        let rows: Vec<_> = rows.collect();
        write_named(out, &Terminal::of_stdout(), 36, &rows)
    }
}

/// Writes values, each behind its name, for which there are so many columns;
/// on a narrow terminal names go on below themselves.
pub(super) fn write_named(
    out: &mut dyn Write,
    terminal: &Terminal,
    columns: usize,
    rows: &[(&str, String)],
) -> Result<(), Failure> {
    let values = rows.iter().map(|(_, value)| value.chars().count());
    let left = terminal.width.saturating_sub(values.max().unwrap_or(0) + 1);
    let columns = match terminal.interactive {
        true => columns.min(left.max(NAME_CHARS_MIN)),
        false => columns,
    };
    for (name, value) in rows {
        let mut value = value.as_str();
        for line in fold(name, columns) {
            let line = format!("{line:<columns$} {value}");
            writeln!(out, "{}", line.trim_end()).map_err(Failure::output)?;
            value = "";
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(interactive: bool, width: usize) -> String {
        let rows = [
            ("  not in flight at a kill", format!("{:>12}", 0)),
            (
                "from publishing to the ledger, p50",
                format!("{:>12}", "1.5 ms"),
            ),
        ];
        let terminal = Terminal {
            interactive,
            colour: false,
            width,
        };
        let mut out = Vec::new();
        let written = write_named(&mut out, &terminal, 36, &rows);
        written.expect("a vector takes anything");
        String::from_utf8(out).expect("names and values are text")
    }

    #[test]
    fn names_go_on_below_themselves_where_a_terminal_is_narrow() {
        assert_eq!(
            on(true, 40),
            "  not in flight at a kill              0\n\
             from publishing to the            1.5 ms\n\
             ledger, p50\n"
        );
        let whole = "  not in flight at a kill                       0\n\
                     from publishing to the ledger, p50         1.5 ms\n";
        for (interactive, width) in [(true, 80), (true, 120), (false, 40)] {
            assert_eq!(on(interactive, width), whole);
        }
    }
}
