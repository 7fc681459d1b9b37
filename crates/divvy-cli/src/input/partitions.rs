//! `--partitions N | GROUP:N,... | @FILE`.

use divvy::{PARTITIONS_MAX, Partitions};

use super::count;
use super::file::{self, Source};
use crate::failure::Failure;

/// The group of partitions that are only counted.
const GROUP_DEFAULT: &str = "default";

/// What `--partitions` may be.
pub(super) const FORMS: &str = "a count, groups such as orders:64,users:32, or @FILE";

/// The partitions that were typed or that a file lists.
pub(crate) fn partitions(text: &str) -> Result<Partitions, Failure> {
    if let Some(source) = Source::of("--partitions", text) {
        return source.partitions();
    }
    if let Some(count) = count::read("partition count", text, PARTITIONS_MAX) {
        return Ok(Partitions::shards([(GROUP_DEFAULT, count? as u32)])?);
    }
    let groups: Result<Vec<(&str, u32)>, Failure> = text.split(',').map(group_of_text).collect();
    Ok(Partitions::shards(groups?)?)
}

/// `GROUP:N`.
fn group_of_text(text: &str) -> Result<(&str, u32), Failure> {
    let text = text.trim();
    let counted = text.rsplit_once(':').and_then(|(group, number)| {
        Some((
            group,
            count::read("partition count", number, PARTITIONS_MAX)?,
        ))
    });
    let Some((group, number)) = counted else {
        let rule = file::meant(text).unwrap_or_else(|| format!("must be {FORMS}"));
        return Err(Failure::usage("partitions", text, rule));
    };
    Ok((group, number? as u32))
}
