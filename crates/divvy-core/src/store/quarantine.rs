//! The quarantine of a lease store that may have forgotten leases.
//!
//! A store that restarted or lost its data does not know which leases it had
//! granted. It grants none until the longest of them must have expired. Only
//! members can tell how long that takes: they know the lengths of leases from
//! before, and their clocks ran on meanwhile.

use std::fmt;
use std::time::Duration;

/// Which quarantine of a store it is. A store uses another one after every
/// restart and after every loss of its data.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarantineId(Box<str>);

impl QuarantineId {
    /// The quarantine with this name.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QuarantineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a store remembers of its quarantine. While it is not over, no lease is
/// granted; renewals and releases go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// Which one it is.
    pub id: QuarantineId,
    /// The longest lease that any member has reported or been granted.
    pub longest_lease: Duration,
    /// Whether leases are granted.
    pub is_over: bool,
}

impl Quarantine {
    /// One that begins now, after `before`, if the store still has that.
    pub fn begin(id: QuarantineId, before: Option<&Self>) -> Self {
        Self {
            id,
            longest_lease: before.map_or(Duration::ZERO, |before| before.longest_lease),
            is_over: false,
        }
    }

    /// Takes in what a member reports: it ends when a member has waited in this
    /// very quarantine for the longest lease that anybody has reported.
    pub fn report(&mut self, report: &QuarantineReport) {
        self.cover(report.longest_lease);
        let waited = report.waited.as_ref();
        let has_waited =
            waited.is_some_and(|(id, time)| *id == self.id && *time >= self.longest_lease);
        self.is_over |= has_waited;
    }

    /// A lease of this length is or will be granted.
    pub fn cover(&mut self, lease: Duration) {
        self.longest_lease = self.longest_lease.max(lease);
    }
}

/// No quarantine: for a store that cannot forget a lease while its holder
/// lives.
impl Default for Quarantine {
    fn default() -> Self {
        Self {
            id: QuarantineId::default(),
            longest_lease: Duration::ZERO,
            is_over: true,
        }
    }
}

/// What a member tells a store with its heartbeat, so that a quarantine lasts
/// long enough and ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuarantineReport {
    /// The longest lease that it knows of, its own included, also from before
    /// the store forgot.
    pub longest_lease: Duration,
    /// How long it has waited, by its own clock, since it first heard of which
    /// quarantine.
    pub waited: Option<(QuarantineId, Duration)>,
}
