//! What operators wish of a cluster: the record `ctl` of leader mode, and the
//! wishes that a lease store keeps.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::Invalid;

/// Largest record of wishes, in bytes.
pub const CONTROL_BYTES_MAX: usize = 256 * 1024;
/// The format of the record.
const FORMAT: u32 = 1;

/// What operators wish of a cluster. Whoever leads honours it; where nobody
/// does, everybody.
///
/// ```
/// use divvy_core::Control;
///
/// let mut control = Control::default();
/// control.cordoned.insert("worker-3".into());
/// assert_eq!(Control::decode(&control.encode())?, control);
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    format: u32,
    /// Workers that keep what they have, and get nothing more.
    #[serde(default)]
    pub cordoned: BTreeSet<String>,
    /// Workers that give everything back, and get nothing.
    #[serde(default)]
    pub drained: BTreeSet<String>,
    /// Partitions that shall be with this worker while it can have them.
    #[serde(default)]
    pub pinned: BTreeMap<String, String>,
    /// Counts requests to read the partitions anew.
    #[serde(default)]
    pub refresh: u64,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            format: FORMAT,
            cordoned: BTreeSet::new(),
            drained: BTreeSet::new(),
            pinned: BTreeMap::new(),
            refresh: 0,
        }
    }
}

impl Control {
    /// The record as it is stored: JSON.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("sets of texts have a JSON form")
    }

    /// Reads a record, and refuses what is too large or of another format.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() > CONTROL_BYTES_MAX {
            let rule = format!("must be at most {CONTROL_BYTES_MAX}");
            return Err(Invalid::new("ctl bytes", bytes.len(), rule));
        }
        let control: Self = serde_json::from_slice(bytes)
            .map_err(|error| Invalid::new("ctl", error, "must be a JSON record of wishes"))?;
        if control.format != FORMAT {
            let rule = format!("must be {FORMAT}");
            return Err(Invalid::new("ctl format", control.format, rule));
        }
        Ok(control)
    }
}
