//! `divvy key`: which partition a key belongs to.

use std::io::Write;
use std::num::IntErrorKind;

use divvy::{KeyPlace, KeyScheme, KeySpace, PARTITIONS_MAX};
use serde::Serialize;

use super::write_json;
use crate::args::KeyArgs;
use crate::failure::Failure;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// Where a key belongs, as printed.
#[derive(Serialize)]
struct Located<'a> {
    key: &'a str,
    partition: u32,
    name: String,
    hash: String,
}

pub(crate) fn run(args: &KeyArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let space = KeySpace::new(args.scheme, count(&args.partitions, args.scheme)?)?;
    let located: Result<Vec<Located<'_>>, Failure> = args
        .keys
        .iter()
        .map(|key| locate(&space, key, args.group.as_deref()))
        .collect();
    let located = located?;
    if args.json {
        return write_json(out, &located);
    }
    let mut table = Table::new([
        ("key".to_owned(), Align::Left),
        ("partition".to_owned(), Align::Right),
        ("name".to_owned(), Align::Left),
        ("hash".to_owned(), Align::Left),
    ]);
    for Located {
        key,
        partition,
        name,
        hash,
    } in located
    {
        table.push(
            Tone::Plain,
            vec![key.to_owned(), partition.to_string(), name, hash],
        );
    }
    let colour = Terminal::of_stdout().colour;
    table.write(out, colour).map_err(Failure::output)
}

fn locate<'a>(space: &KeySpace, key: &'a str, group: Option<&str>) -> Result<Located<'a>, Failure> {
    let KeyPlace { partition, hash } = space.locate(key);
    let name = match group {
        Some(group) => space.shard_of(group, key)?.to_string(),
        None => KeySpace::name(partition),
    };
    let hash = match space.scheme() {
        KeyScheme::Djb2Js | KeyScheme::Djb2Bits32 => format!("{hash:08x}"),
        _ => format!("{hash:016x}"),
    };
    Ok(Located {
        key,
        partition,
        name,
        hash,
    })
}

/// The number of partitions. Under djb2-js any number goes, and the library
/// corrects it; a larger one than it can be handed is not told from the
/// largest.
fn count(text: &str, scheme: KeyScheme) -> Result<i64, Failure> {
    text.parse()
        .or_else(|error: std::num::ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow if scheme == KeyScheme::Djb2Js => Ok(i64::MAX),
            IntErrorKind::NegOverflow if scheme == KeyScheme::Djb2Js => Ok(i64::MIN),
            _ => {
                let rule = format!("must be a whole number in 1..={PARTITIONS_MAX}");
                Err(Failure::usage("partition count", text, rule))
            }
        })
}
