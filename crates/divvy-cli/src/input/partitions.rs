//! `--partitions N | GROUP:N,... | @FILE`.

use divvy::{PARTITIONS_MAX, Partition, Partitions};

use super::row::Row;
use super::{count, file};
use crate::failure::Failure;

/// The group of partitions that are only counted.
const GROUP_DEFAULT: &str = "default";

/// Fields of a file of partitions.
const KEY: usize = 0;
const WEIGHT: usize = 1;
const FIELDS: [&str; 2] = ["key", "weight"];

/// What `--partitions` may be.
pub(super) const FORMS: &str = "a count, groups such as orders:64,users:32, or @FILE";

/// The partitions that were typed or that a file lists.
pub(super) fn partitions(text: &str) -> Result<Partitions, Failure> {
    if let Some(path) = text.strip_prefix('@') {
        let partitions = file::rows("partitions", path, &FIELDS, partition_of_row)?;
        return Partitions::new(partitions).map_err(|error| file::wrong(path, &error));
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
        let rule = format!("must be {FORMS}");
        return Err(Failure::usage("partitions", text, rule));
    };
    Ok((group, number? as u32))
}

fn partition_of_row(row: &Row<'_>) -> Result<Partition, String> {
    let told = |error: divvy::Error| error.to_string();
    let partition: Partition = row.required(KEY)?.parse().map_err(told)?;
    match row.parsed::<i64>(WEIGHT, "must be a whole number in 0..=9223372036854775807")? {
        Some(weight) => partition.with_weight(weight).map_err(told),
        None => Ok(partition),
    }
}
