//! YAML lists, and what the library has to say of them in plain words.

use divvy_core::{PARTITIONS_MAX, WORKERS_MAX};
use serde::de::DeserializeSeed as _;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::granit_parser::{Event, Parser};
use serde_saphyr::{Error, MessageFormatter as _, Options, UserMessageFormatter};

use super::list::{List, ONE_VALUE, Reading, twice};
use super::row::{Field, Row};
use super::{Fault, LIST_BYTES_MAX};

/// Parts of an entry that count: the map, its end, five fields and their
/// values.
const NODES_PER_ENTRY: usize = 12;
/// How deep values are nested: the list and its maps.
const DEPTH_MAX: usize = 2;
/// The same where maps that are merged may be made of merged ones.
const MERGED_DEPTH_MAX: usize = 64;
/// What puts the fields of one map into another, most often by an alias.
const MERGE: &str = "<<";
/// How often aliases may be used, which counts the parts that they stand for
/// too: some for each of as many workers as there may be.
const ALIASES_MAX: usize = 10 * WORKERS_MAX;
/// How many parts of the file may stand behind anchors, which are kept.
const ANCHORED_MAX: usize = 100_000;

/// Reads a YAML list and hands each entry to `keep`.
pub(super) fn read(
    text: &str,
    fields: &[Field],
    keep: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Fault> {
    check_depth(text)?;
    let mut list = List::new(fields, Reading::Written, keep);
    let options = options(text);
    let read =
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
            list.deserialize(deserializer)
        });
    read.map_err(|error| list.fault(|| told(&error)))
}

/// Refuses what is nested deeper than a list of maps, before anything of it is
/// kept: a merge is, and a field whose name is a list.
///
/// Without merges the budget does so in passing. It cannot where there are
/// some, for it also counts what aliases stand for.
fn check_depth(text: &str) -> Result<(), Fault> {
    if !text.contains(MERGE) {
        return Ok(());
    }
    let mut depth = 0_usize;
    for part in Parser::new_from_str(text) {
        // What is no YAML is told of where it is read.
        let Ok((event, span)) = part else { break };
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(Fault {
                place: Some(format!("line {}", span.start.line())),
                reason: format!("a field {ONE_VALUE}"),
            });
        }
    }
    Ok(())
}

/// The defaults suit settings files; ours is as long as a set may be and no
/// deeper than it has to. Aliases may be as many as entries, for what they
/// stand for is handed on and not kept: their number and not their ratio to
/// anchors is what is bounded.
fn options(text: &str) -> Options {
    let depth_max = if text.contains(MERGE) {
        MERGED_DEPTH_MAX
    } else {
        DEPTH_MAX
    };
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: PARTITIONS_MAX * NODES_PER_ENTRY,
            max_nodes: PARTITIONS_MAX * NODES_PER_ENTRY,
            max_total_scalar_bytes: LIST_BYTES_MAX as usize,
            max_depth: depth_max,
            max_aliases: ALIASES_MAX,
            max_merge_keys: WORKERS_MAX,
            max_recorded_anchor_events: ANCHORED_MAX,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIASES_MAX,
        },
        with_snippet: false,
    }
}

/// What is wrong with the file, with the line where that is known.
fn told(error: &Error) -> Fault {
    let line = error.location().map(|location| location.line());
    Fault {
        place: line
            .filter(|&line| line > 0)
            .map(|line| format!("line {line}")),
        reason: reason(error),
    }
}

fn reason(error: &Error) -> String {
    let plain = match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => return reason(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => return twice(key),
        Error::DuplicateMappingKey { key: None, .. } => "a field stands twice",
        Error::MultipleDocuments { .. } => "has several documents, one with a list is read",
        Error::NonFiniteFloat { .. } => "is a number beyond bounds; put quotes around a name",
        Error::Unexpected { expected, .. } if *expected == "sequence start" => "must be a list",
        Error::Unexpected { expected, .. } if *expected == "string scalar" => {
            return format!("a field {ONE_VALUE}");
        }
        Error::Budget { breach, .. } => return breached(breach),
        Error::AliasReplayLimitExceeded { .. } => "aliases stand for too much",
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an alias stands for itself",
        Error::UnknownAnchor { .. } => "an alias has no anchor",
        Error::TaggedScalarCannotDeserializeIntoString { .. } => "its tag says that it is no text",
        other => return UserMessageFormatter.format_message(other).into_owned(),
    };
    plain.to_owned()
}

/// What there is too much of.
fn breached(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { depth } if *depth > MERGED_DEPTH_MAX => {
            format!("has merges ({MERGE}) of merges, at most {MERGED_DEPTH_MAX} deep are read")
        }
        BudgetBreach::Depth { .. } => format!("a field {ONE_VALUE}"),
        BudgetBreach::Aliases { .. } => {
            format!("has too many aliases, at most {ALIASES_MAX} are read")
        }
        BudgetBreach::Anchors { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. } => {
            "has too much behind anchors, which is kept".to_owned()
        }
        BudgetBreach::MergeKeys { .. } => {
            format!("has too many merges ({MERGE}), at most {WORKERS_MAX} are read")
        }
        BudgetBreach::Documents { .. } => {
            "has several documents, one with a list is read".to_owned()
        }
        _ => "has more than a list may have".to_owned(),
    }
}
