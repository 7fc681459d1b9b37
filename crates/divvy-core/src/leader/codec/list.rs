//! The list of partitions that a root is about, in the order of their text.
//!
//! Each text is written as what it adds to the one before, which makes a list
//! of numbered shards a few bytes each.

use super::frame::{Reader, Writer};
use crate::error::{Error, Invalid};
use crate::partition::{PARTITIONS_MAX, Partition, Partitions, SEGMENT_BYTES_MAX, SEGMENTS_MAX};

const TEXT_BYTES_MAX: usize = SEGMENTS_MAX * (SEGMENT_BYTES_MAX + 1);

pub(super) fn encode(partitions: &Partitions) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(partitions.default_weight());
    writer.number(partitions.len() as u64);
    let mut before: &[u8] = b"";
    for partition in partitions {
        let text = partition.as_str().as_bytes();
        let same = before.iter().zip(text).take_while(|(a, b)| a == b).count();
        writer.number(same as u64);
        writer.bytes(&text[same..]);
        writer.number(partition.weight().unsigned_abs());
        before = text;
    }
    writer.into_bytes()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Partitions, Invalid> {
    let mut reader = Reader::plain("partition list", bytes);
    let default_weight = reader.number()?;
    let count = reader.count(PARTITIONS_MAX)?;
    let mut partitions = Vec::with_capacity(count);
    let mut text = Vec::with_capacity(TEXT_BYTES_MAX);
    for _ in 0..count {
        let same = reader.number()?;
        let kept = usize::try_from(same)
            .ok()
            .filter(|same| *same <= text.len());
        let kept = kept.ok_or_else(|| reader.wrong(same, "is more than the text before has"))?;
        text.truncate(kept);
        text.extend_from_slice(reader.bytes(TEXT_BYTES_MAX - kept.min(TEXT_BYTES_MAX))?);
        let name = std::str::from_utf8(&text)
            .map_err(|_error| reader.wrong("a partition", "is not UTF-8"))?;
        let weight = reader.number()?;
        let weight = i64::try_from(weight)
            .map_err(|_error| reader.wrong(weight, "does not fit a weight"))?;
        partitions.push(made(name, weight)?);
    }
    reader.finish()?;
    let set = Partitions::new(partitions);
    set.and_then(|set| set.with_default_weight(default_weight))
        .map_err(invalid)
}

fn made(name: &str, weight: i64) -> Result<Partition, Invalid> {
    let partition = name.parse::<Partition>();
    partition
        .and_then(|partition| partition.with_weight(weight))
        .map_err(invalid)
}

fn invalid(error: Error) -> Invalid {
    match error {
        Error::Invalid(invalid) => invalid,
        other => Invalid::new("partition list", other, "cannot be read"),
    }
}
