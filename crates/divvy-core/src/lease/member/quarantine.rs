//! Waiting for leases that the store forgot.
//!
//! A member never acts on its own count alone: the store grants nothing before
//! some member has reported that it waited, in this very quarantine, for the
//! longest lease that anybody has reported.

use std::time::Duration;

use super::Member;
use super::operations::Purpose;
use super::timers::Timer;
use crate::lease::action::Report;
use crate::lease::defect::Defect;
use crate::lease::settings::LEASE_TIMING_MAX;
use crate::moment::Moment;
use crate::store::{Quarantine, QuarantineReport};

/// Heartbeats that a member waits longer, if it knows nothing of the time
/// before: those who do know report longer leases meanwhile.
const HEARTBEATS_WAITED: u32 = 2;

/// What a member knows of the store's quarantine.
#[derive(Debug, Clone, Default)]
pub(super) struct QuarantineWait {
    /// The longest lease of others that it has ever known of.
    longest_lease: Duration,
    /// It has known this store to grant leases, and so the longest of those.
    remembers: bool,
    /// What the store last answered.
    known: Option<Known>,
}

#[derive(Debug, Clone)]
struct Known {
    quarantine: Quarantine,
    /// When the store first answered so.
    since: Moment,
    /// How much longer than the longest lease is waited.
    extra: Duration,
}

impl QuarantineWait {
    /// Whether the store grants leases, as far as is known.
    pub(super) fn is_over(&self) -> bool {
        self.known
            .as_ref()
            .is_some_and(|known| known.quarantine.is_over)
    }

    /// Remembers a lease of this length. What no setting allows is no length.
    pub(super) fn cover(&mut self, lease: Duration) {
        if lease <= LEASE_TIMING_MAX {
            self.longest_lease = self.longest_lease.max(lease);
        }
    }
}

impl Member {
    /// Whether the store has answered that it grants nothing yet.
    pub(super) fn is_quarantined(&self) -> bool {
        let known = self.quarantine.known.as_ref();
        known.is_some_and(|known| !known.quarantine.is_over)
    }

    fn longest_lease(&self) -> Duration {
        let own = self.setup.settings.lease_ttl;
        if self.is_planted(Defect::QuarantineByOwnLease) {
            return own;
        }
        own.max(self.quarantine.longest_lease)
    }

    /// What a heartbeat reports.
    pub(super) fn quarantine_report(&self) -> QuarantineReport {
        let waited = self.quarantine.known.as_ref().map(|known| {
            let waited = self.now.since(known.since).saturating_sub(known.extra);
            let is_short = waited >= self.setup.settings.lease_ttl;
            if is_short && self.is_planted(Defect::QuarantineByOwnLease) {
                return (known.quarantine.id.clone(), Duration::MAX);
            }
            (known.quarantine.id.clone(), waited)
        });
        QuarantineReport {
            longest_lease: self.longest_lease(),
            waited,
        }
    }

    /// A heartbeat was answered: this is the store's quarantine.
    pub(super) fn quarantine_seen(&mut self, mut seen: Quarantine) {
        let (was_waiting, was_over) = (self.is_quarantined(), self.quarantine.is_over());
        self.quarantine.cover(seen.longest_lease);
        let known = self.quarantine.known.take();
        let same = known.filter(|known| known.quarantine.id == seen.id);
        let (since, extra) = match same {
            Some(known) => {
                // Answers may overtake each other, but what is over stays so.
                seen.is_over |= known.quarantine.is_over;
                (known.since, known.extra)
            }
            None if self.quarantine.remembers => (self.now, Duration::ZERO),
            None => {
                let beat = self.setup.settings.heartbeat_interval;
                (self.now, beat * HEARTBEATS_WAITED)
            }
        };
        let is_over = seen.is_over;
        self.quarantine.remembers |= is_over;
        self.quarantine.known = Some(Known {
            quarantine: seen,
            since,
            extra,
        });
        if is_over {
            if was_waiting {
                self.quarantine_ended();
            }
            self.is_taking |= !was_over;
            return;
        }
        let until = since + self.longest_lease() + extra;
        // Not at once again, where the wait became longer meanwhile.
        let soon = self.now + self.setup.settings.renewal_retry();
        self.timers.set_earlier(Timer::Beat, until.max(soon));
        if !was_waiting {
            self.report(Report::Quarantined(until.since(self.now)));
            // Others see why nobody has anything.
            self.beat();
        }
    }

    fn quarantine_ended(&mut self) {
        self.beat();
        // Nobody could take anything before: all have the same time now.
        self.units.free_since(self.now);
    }

    /// The store refused a lease: it restarted or lost its data since the last
    /// heartbeat, and the next one tells.
    pub(super) fn quarantine_met(&mut self) {
        if self.quarantine.is_over() {
            self.quarantine.known = None;
        }
        let is_beating = self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Beat(_)));
        if !is_beating {
            self.beat();
        }
    }
}
