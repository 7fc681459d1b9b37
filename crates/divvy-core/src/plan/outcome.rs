//! What a planner hands back: owners, and for every change its cause and what was rejected.

use std::fmt;

use serde::Serialize;

use super::certificate::Certificate;

/// A plan: the owner of every partition and the account of how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Owner of each partition, an index into the slots.
    pub owners: Vec<u32>,
    /// Sum of partition weights per slot.
    pub loads: Vec<u64>,
    /// Number of partitions per slot.
    pub counts: Vec<u32>,
    /// Every partition whose owner changed or that is new, by partition.
    pub moves: Vec<Move>,
    /// How good the plan is, and how good it could have been.
    pub certificate: Certificate,
}

/// One partition that has another owner than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The partition.
    pub partition: u32,
    /// Its previous owner: a slot, [`NONE`](super::NONE) or [`GONE`](super::GONE).
    pub from: u32,
    /// Its owner now.
    pub to: u32,
    /// Why it could not stay.
    pub cause: Cause,
    /// The better choice that was turned down, if the partition was placed by preference.
    pub rejected: Option<Rejection>,
}

/// Why a partition did not stay where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// Its worker owned more partitions than its cap allows.
    Cap,
    /// Its worker owned more extreme partitions than one worker may.
    Extremes,
    /// It had no owner before.
    #[serde(rename = "new_partition")]
    New,
    /// Its worker was over the band, or over its quota.
    #[serde(rename = "over_band")]
    Over,
    /// Hashing prefers another worker. Of strategies that place by hash alone.
    Preferred,
    /// Another worker was under the band, or under its quota.
    #[serde(rename = "under_band")]
    Under,
    /// Its worker left or may own nothing.
    WorkerGone,
    /// Its zone was over its share, or another under it.
    Zone,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cap => "over its cap",
            Self::Extremes => "too many extremes",
            Self::New => "new partition",
            Self::Over => "over the band",
            Self::Preferred => "hash prefers another",
            Self::Under => "another under the band",
            Self::WorkerGone => "worker gone",
            Self::Zone => "zone",
        })
    }
}

/// A worker that was asked first and did not get the partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// The worker that hashing prefers.
    pub worker: u32,
    /// Why it was passed over.
    pub reason: Reason,
}

/// Why the preferred worker was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It owns as many partitions as its cap or quota allows.
    Full,
    /// It may own nothing.
    Ineligible,
    /// With this partition it would be over the band.
    OverBand,
    /// With this partition its zone would be over its share.
    OverZone,
    /// What is left to place is needed to lift other workers into the band.
    Reserved,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "has its share",
            Self::Ineligible => "may own nothing",
            Self::OverBand => "would be over the band",
            Self::OverZone => "its zone would be over its share",
            Self::Reserved => "others lack more",
        })
    }
}
