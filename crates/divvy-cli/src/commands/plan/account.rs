//! Why partitions move: by cause, and one by one.

use std::collections::BTreeMap;
use std::io::{self, Write};

use divvy::{Cause, Change, StrategyName};

use crate::natural;
use crate::preview::Preview;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// Changes that are shown unless all are asked for.
const CHANGES_MAX: usize = 20;

/// What decides who has too much or too little, which causes are told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// A band around each worker's share.
    Band,
    /// The share itself.
    Share,
    /// Nothing: partitions are dealt in turn.
    Turn,
}

impl Ground {
    pub(super) fn of(preview: &Preview<'_>) -> Self {
        if preview.strategy == StrategyName::RoundRobin.as_str() {
            Self::Turn
        } else if preview.is_banded() {
            Self::Band
        } else {
            Self::Share
        }
    }
}

/// Writes how many partitions change their owner for which cause.
pub(super) fn write_causes(
    changes: &[Change],
    ground: Ground,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut counts: BTreeMap<Cause, usize> = BTreeMap::new();
    for change in changes {
        *counts.entry(change.cause).or_default() += 1;
    }
    let mut counts: Vec<(Cause, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|&(cause, count)| (std::cmp::Reverse(count), cause));
    let mut table = Table::new([
        ("cause".to_owned(), Align::Left),
        ("partitions".to_owned(), Align::Right),
        ("meaning".to_owned(), Align::Left),
    ]);
    for (cause, count) in counts {
        let cells = vec![
            shown(cause, ground),
            count.to_string(),
            meaning(cause, ground).to_owned(),
        ];
        table.push(Tone::Plain, cells);
    }
    table.write_within(out, terminal)
}

/// Writes the first changes, or all, in natural order.
pub(super) fn write_changes(
    changes: &[Change],
    ground: Ground,
    terminal: &Terminal,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut ordered: Vec<&Change> = changes.iter().collect();
    ordered.sort_by(|a, b| natural::compare(&a.partition, &b.partition));
    if !all {
        ordered.truncate(CHANGES_MAX);
    }
    let passed = ordered.iter().any(|change| passed_over(change).is_some());
    let mut headings = vec!["partition", "from", "to", "cause"];
    headings.extend(passed.then_some("passed over"));
    let headings = headings.into_iter();
    let mut table = Table::new(headings.map(|name| (name.to_owned(), Align::Left)));
    for change in &ordered {
        let mut cells = vec![
            change.partition.clone(),
            change.from.clone().unwrap_or_else(|| "-".to_owned()),
            change.to.clone(),
            shown(change.cause, ground),
        ];
        cells.extend(passed.then(|| passed_over(change).unwrap_or_default()));
        table.push(Tone::Plain, cells);
    }
    table.write_within(out, terminal)?;
    let left_out = changes.len() - ordered.len();
    if left_out > 0 {
        writeln!(
            out,
            "\n{left_out} of {} changes left out: --list or --json shows all",
            changes.len()
        )?;
    }
    Ok(())
}

/// A cause in a few words.
fn shown(cause: Cause, ground: Ground) -> String {
    match (cause, ground) {
        (Cause::Over, Ground::Share) => "over its share".to_owned(),
        (Cause::Under, Ground::Share) => "another under its share".to_owned(),
        (Cause::Preferred, Ground::Turn) => "dealt anew".to_owned(),
        (cause, _) => cause.to_string(),
    }
}

/// Who hashing prefers, and why it did not get the partition. Where that is
/// who had it, the cause has said so.
fn passed_over(change: &Change) -> Option<String> {
    let rejected = change.rejected.as_ref()?;
    let had_it = change.from.as_ref() == Some(&rejected.worker);
    (!had_it).then(|| format!("{}: {}", rejected.worker, rejected.reason))
}

fn meaning(cause: Cause, ground: Ground) -> &'static str {
    match cause {
        Cause::Cap => "its worker had more partitions than it may",
        Cause::Extremes => "its worker had more of the heaviest than one may",
        Cause::New => "nobody had it before",
        Cause::Over => "its worker had more than it should",
        Cause::Preferred if ground == Ground::Turn => "the turns begin again with every change",
        Cause::Preferred => "hashing now gives it to another worker",
        Cause::Under => "the worker it goes to had less than it should",
        Cause::WorkerGone => "its worker left, or may own nothing",
        Cause::Zone => "its zone had more than its share, or another less",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use divvy::{Reason, Rejected};

    use super::*;

    fn written(count: usize, all: bool, rejected: Option<Rejected>) -> String {
        let change = |number| Change {
            partition: format!("default:{number}"),
            from: None,
            to: "worker-1".to_owned(),
            cause: Cause::New,
            rejected: rejected.clone(),
        };
        let changes: Vec<Change> = (0..count).rev().map(change).collect();
        let terminal = Terminal {
            interactive: false,
            colour: false,
            width: 80,
        };
        let mut out = Vec::new();
        write_changes(&changes, Ground::Share, &terminal, all, &mut out)
            .expect("a vector takes anything");
        String::from_utf8(out).expect("tables are text")
    }

    #[test]
    fn twenty_changes_are_shown_unless_all_are_asked_for() {
        let rows = |text: &str| text.matches("default:").count();
        let text = written(21, false, None);
        assert_eq!(rows(&text), 20);
        assert!(text.ends_with("\n1 of 21 changes left out: --list or --json shows all\n"));
        assert_eq!(rows(&written(21, true, None)), 21);
        assert!(!written(20, false, None).contains("left out"));
        let second = text.lines().nth(2).expect("two changes");
        assert!(second.starts_with("default:1 "), "{text}");
    }

    #[test]
    fn who_was_passed_over_is_said_where_somebody_was() {
        assert!(!written(1, false, None).contains("passed over"));
        let rejected = Rejected {
            worker: "worker-7".to_owned(),
            reason: Reason::OverBand,
        };
        let text = written(1, false, Some(rejected));
        assert!(text.contains("passed over"), "{text}");
        assert!(text.contains("worker-7: would be over the band"), "{text}");
    }
}
