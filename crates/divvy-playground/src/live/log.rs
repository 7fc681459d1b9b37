//! The log of moves of a live cluster: what is new in it, and who had a
//! partition before.

use std::collections::VecDeque;

use divvy_core::MoveEntry;

/// Moves that are kept: the store keeps fewer.
const KEPT_MAX: usize = 10_000;

/// All moves that were seen, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: VecDeque<MoveEntry>,
    /// The log as the store had it last.
    last: Vec<MoveEntry>,
}

/// What a look at the log gave.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// What was not there before, oldest first.
    pub(crate) entries: Vec<MoveEntry>,
    /// Whether there was more than the store remembers.
    pub(crate) is_torn: bool,
}

impl Log {
    /// Takes in the log of the store.
    pub(crate) fn take_in(&mut self, log: Vec<MoveEntry>) -> Fresh {
        if log == self.last {
            return Fresh::default();
        }
        let entries: Vec<MoveEntry> = log
            .iter()
            .filter(|entry| !self.last.contains(entry))
            .cloned()
            .collect();
        let is_torn = !self.last.is_empty() && entries.len() == log.len();
        self.kept.extend(entries.iter().cloned());
        let surplus = self.kept.len().saturating_sub(KEPT_MAX);
        self.kept.drain(..surplus);
        self.last = log;
        Fresh { entries, is_torn }
    }

    /// The moves of a partition, oldest first.
    pub(crate) fn of<'a>(&'a self, partition: &'a str) -> impl Iterator<Item = &'a MoveEntry> {
        let kept = self.kept.iter();
        kept.filter(move |entry| entry.partition == partition)
    }

    /// Whether a token is known to have been granted to somebody else: what does
    /// not know tokens writes leases without one.
    pub(crate) fn is_of_another(&self, partition: &str, token: &str, owner: &str) -> bool {
        let mut granted = self.of(partition);
        granted.any(|entry| {
            let is_it = entry.token.as_deref() == Some(token);
            is_it && entry.to.as_deref().is_some_and(|to| to != owner)
        })
    }
}

/// What kind of event a move is, and what it says.
pub(crate) fn told(entry: &MoveEntry) -> (&'static str, String) {
    let (partition, cause) = (&entry.partition, &entry.cause);
    match (&entry.from, &entry.to) {
        (Some(from), Some(to)) if from != to => (
            "moved",
            format!("{partition} moved from {from} to {to}: {cause}"),
        ),
        (_, Some(to)) => ("started", format!("{to} got {partition}: {cause}")),
        (Some(from), None) => (
            "stopped",
            format!("{from} has {partition} no longer: {cause}"),
        ),
        (None, None) => ("stopped", format!("nobody has {partition}: {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(partition: &str, from: Option<&str>, to: Option<&str>, unix_ms: u64) -> MoveEntry {
        MoveEntry {
            partition: partition.to_owned(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            cause: "it is first in rank".to_owned(),
            version: None,
            token: Some(unix_ms.to_string()),
            unix_ms,
            considered: Vec::new(),
        }
    }

    #[test]
    fn every_move_is_told_once_and_a_torn_log_is_noticed() {
        let mut log = Log::default();
        let first = entry("a:0", None, Some("one"), 1);
        let second = entry("a:1", Some("one"), Some("two"), 2);
        let third = entry("a:0", Some("one"), None, 3);
        assert_eq!(log.take_in(vec![first.clone()]).entries.len(), 1);
        let fresh = log.take_in(vec![first.clone(), second.clone()]);
        assert_eq!(
            (fresh.entries, fresh.is_torn),
            (vec![second.clone()], false)
        );
        let fresh = log.take_in(vec![first, second.clone()]);
        assert!(fresh.entries.is_empty() && !fresh.is_torn);
        let fresh = log.take_in(vec![third]);
        assert_eq!((fresh.entries.len(), fresh.is_torn), (1, true));
        assert_eq!(log.of("a:0").count(), 2);
        assert_eq!(told(&second).0, "moved");
    }

    #[test]
    fn a_token_of_another_owner_is_known() {
        let mut log = Log::default();
        log.take_in(vec![entry("a:0", None, Some("one"), 7)]);
        assert!(log.is_of_another("a:0", "7", "two"));
        assert!(!log.is_of_another("a:0", "7", "one"));
        assert!(!log.is_of_another("a:0", "8", "two"));
    }
}
