//! `--partitions N | GROUP:N,... | @FILE`.

use divvy::{PARTITIONS_MAX, Partition, Partitions};

use super::count;
use super::file::{Shape, Source};
use super::row::{Field, Row};
use crate::failure::Failure;

/// The group of partitions that are only counted.
const GROUP_DEFAULT: &str = "default";

/// Fields of a file of partitions.
const KEY: usize = 0;
const WEIGHT: usize = 1;
const SHAPE: Shape = Shape {
    noun: "partitions",
    count: "partition count",
    count_max: PARTITIONS_MAX,
    fields: &[Field::of_name("key"), Field::of_value("weight")],
};

/// What `--partitions` may be.
pub(super) const FORMS: &str = "a count, groups such as orders:64,users:32, or @FILE";

/// The partitions that were typed or that a file lists.
pub(super) fn partitions(text: &str) -> Result<Partitions, Failure> {
    if let Some(source) = Source::of("--partitions", text) {
        let partitions = source.rows(&SHAPE, partition_of_row)?;
        return Partitions::new(partitions).map_err(|error| source.wrong(&error));
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
