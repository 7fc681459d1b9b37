//! The list of partitions that a root is about, in the order of their text.
//!
//! Each text is written as what it adds to the one before, which makes a list
//! of numbered shards a few bytes each.

use super::frame::{Reader, Writer};
use crate::error::{Error, Invalid};
use crate::partition::{
    PARTITIONS_MAX, Partition, Partitions, SEGMENT_BYTES_MAX, SEGMENTS_MAX, check_bytes,
};

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
    check_bytes(text_bytes(reader.clone(), count)?)?;
    let mut partitions = Vec::with_capacity(count);
    let mut text = Vec::with_capacity(TEXT_BYTES_MAX);
    for _ in 0..count {
        let (kept, added) = one_more(&mut reader, text.len())?;
        text.truncate(kept);
        text.extend_from_slice(added);
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

/// How long all texts are. What they share is written once, so that a small
/// list can be of very long ones: that is found out before any is made.
fn text_bytes(mut reader: Reader<'_>, count: usize) -> Result<usize, Invalid> {
    let (mut length, mut sum) = (0, 0);
    for _ in 0..count {
        let (kept, added) = one_more(&mut reader, length)?;
        length = kept + added.len();
        sum += length;
        reader.number()?;
    }
    Ok(sum)
}

/// How much the next text shares with the one before, and what it adds.
fn one_more<'a>(reader: &mut Reader<'a>, before: usize) -> Result<(usize, &'a [u8]), Invalid> {
    let same = reader.number()?;
    let kept = usize::try_from(same).ok().filter(|same| *same <= before);
    let kept = kept.ok_or_else(|| reader.wrong(same, "is more than the text before has"))?;
    let added = reader.bytes(TEXT_BYTES_MAX - kept.min(TEXT_BYTES_MAX))?;
    Ok((kept, added))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_list_of_very_long_texts_is_refused_before_any_is_made() {
        let mut writer = Writer::default();
        let count = 1_u64 << 19;
        writer.number(1);
        writer.number(count);
        let prefix = "long/".repeat(400);
        writer.number(0);
        writer.bytes(prefix.as_bytes());
        writer.number(0);
        for number in 1..count {
            writer.number(prefix.len() as u64);
            writer.bytes(&number.to_le_bytes()[..3]);
            writer.number(0);
        }
        let bytes = writer.into_bytes();
        assert!(bytes.len() < 4 << 20);
        let told = decode(&bytes).unwrap_err().to_string();
        assert!(told.starts_with("bytes of partition texts '105"), "{told}");
    }
}
