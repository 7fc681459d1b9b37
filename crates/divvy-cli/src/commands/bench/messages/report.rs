//! What a run came to.

use std::io::Write;

use serde::Serialize;

use super::faults::Happened;
use super::ledger::Account;
use super::overhead::Overhead;
use crate::commands::bench::failover::Spread;
use crate::failure::Failure;

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
        for (name, value) in rows {
            writeln!(out, "{name:<36} {value:>12}").map_err(Failure::output)?;
        }
        Ok(())
    }
}
