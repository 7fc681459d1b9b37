//! The two kinds of coordination that worlds are made of.

use std::fmt;

/// A kind of coordination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A leader places partitions, by compare-and-set in a store.
    Leader,
    /// Workers take leases that a store lets expire.
    Lease,
}

impl Mode {
    /// Its name on the command line and in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Lease => "lease",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
