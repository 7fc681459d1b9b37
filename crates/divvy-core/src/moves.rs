//! A move as it is remembered: what changed its owner, and why.

use serde::{Deserialize, Serialize};

use crate::error::Invalid;

/// Most moves that a leader remembers.
pub const MOVES_MAX: usize = 256;
/// Largest log of moves, in bytes.
pub const MOVES_BYTES_MAX: usize = 256 * 1024;
/// Largest entry of a log of moves, in bytes.
pub const MOVE_BYTES_MAX: usize = 2 * 1024;
/// Most workers that an entry tells the ranks of.
pub(crate) const CONSIDERED_MAX: usize = 3;

/// A partition that got another owner, or lost its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveEntry {
    /// The partition's text form.
    pub partition: String,
    /// Who had it last, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Who got it; nobody, where its owner gave it up or lost it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why, in words.
    pub cause: String,
    /// The root that granted it, in leader mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The token that it was granted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// When, by the wall clock of the leader or of the store.
    pub unix_ms: u64,
    /// The first of those that could have got it, in order of rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<Considered>,
}

/// A worker that could have got a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Considered {
    /// Its name.
    pub worker: String,
    /// How it scores for that partition, where placement goes by scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why it did not get it, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

impl MoveEntry {
    /// Reads the record `moves` of leader mode, oldest first.
    pub fn decode_log(bytes: &[u8]) -> Result<Vec<Self>, Invalid> {
        if bytes.len() > MOVES_BYTES_MAX {
            let rule = format!("must be at most {MOVES_BYTES_MAX}");
            return Err(Invalid::new("moves bytes", bytes.len(), rule));
        }
        let entries: Vec<Self> = serde_json::from_slice(bytes)
            .map_err(|error| Invalid::new("moves", error, "must be a JSON list of moves"))?;
        if entries.len() > MOVES_MAX {
            let rule = format!("must be at most {MOVES_MAX}");
            return Err(Invalid::new("moves", entries.len(), rule));
        }
        Ok(entries)
    }

    /// One line of a lease store's log.
    ///
    /// ```
    /// use divvy_core::MoveEntry;
    ///
    /// let line = r#"{"partition":"orders:7","to":"b","cause":"it is first in rank","unix_ms":5}"#;
    /// assert_eq!(MoveEntry::from_line(line)?.to_line(), line);
    /// assert!(MoveEntry::from_line("{}").is_err());
    /// # Ok::<(), divvy_core::Invalid>(())
    /// ```
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers have a JSON form")
    }

    /// Reads what [`MoveEntry::to_line`] wrote.
    pub fn from_line(line: &str) -> Result<Self, Invalid> {
        check_line(line)?;
        serde_json::from_str(line)
            .map_err(|error| Invalid::new("move", error, "must be a JSON record of a move"))
    }
}

/// Whether this can be a line of a log.
pub(crate) fn check_line(line: &str) -> Result<(), Invalid> {
    if line.is_empty() || line.len() > MOVE_BYTES_MAX {
        let rule = format!("must be in 1..={MOVE_BYTES_MAX}");
        return Err(Invalid::new("move bytes", line.len(), rule));
    }
    match line.contains('\n') {
        true => Err(Invalid::new("move", line, "must be one line")),
        false => Ok(()),
    }
}
