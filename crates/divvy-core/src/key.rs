//! From an application's key to the number of a partition.
//!
//! A [`KeySpace`] has a fixed number of partitions and a scheme. The count is
//! chosen once: changing it sends nearly every key to another partition.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Invalid};
use crate::hash;
use crate::partition::{PARTITIONS_MAX, Partition};

/// Number of partitions of a [`KeySpace`] unless another is chosen.
pub const KEY_PARTITIONS_DEFAULT: u32 = 100;
/// Smallest count under [`KeyScheme::Djb2Js`].
pub const DJB2_JS_PARTITIONS_MIN: u32 = 10;
/// Largest count under [`KeyScheme::Djb2Js`].
pub const DJB2_JS_PARTITIONS_MAX: u32 = 1000;

/// djb2 multiplies by 33, so the remainder by a multiple of 33 hangs on a
/// key's last character alone as long as nothing overflows.
const DJB2_FACTOR: u32 = 33;

/// How a key becomes a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum KeyScheme {
    /// XXH3, 64 bits, modulo the count. The one to use.
    #[default]
    #[serde(rename = "xxh3")]
    Xxh3,
    /// djb2 over UTF-16 code units in 32 signed bits, bit for bit what
    /// JavaScript computes. For data that was placed that way.
    #[serde(rename = "djb2-js")]
    Djb2Js,
    /// djb2 over UTF-8 bytes in 32 bits, as `cruster` maps entities to shards.
    #[serde(rename = "djb2-32")]
    Djb2Bits32,
    /// djb2 over UTF-8 bytes in 64 bits.
    #[serde(rename = "djb2-64")]
    Djb2Bits64,
}

impl KeyScheme {
    /// All schemes, the default one first.
    pub const ALL: [Self; 4] = [Self::Xxh3, Self::Djb2Js, Self::Djb2Bits32, Self::Djb2Bits64];

    /// The name used in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xxh3 => "xxh3",
            Self::Djb2Js => "djb2-js",
            Self::Djb2Bits32 => "djb2-32",
            Self::Djb2Bits64 => "djb2-64",
        }
    }
}

impl fmt::Display for KeyScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KeyScheme {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|scheme| scheme.name() == name)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::name).join(", ");
                Invalid::new("key scheme", name, format!("must be one of {known}")).into()
            })
    }
}

/// Where a key belongs: the partition's number and the hash that led to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPlace {
    /// The partition's number, below the count of the key space.
    pub partition: u32,
    /// The hash of the key. 32-bit schemes fill the lower half; for
    /// [`KeyScheme::Djb2Js`] it is the two's complement of the signed hash.
    pub hash: u64,
}

/// Maps application keys to a fixed number of partitions.
///
/// # Choosing the count
///
/// The count caps how far the work can spread: a partition is handled by one
/// worker, and in a store that limits throughput per partition it is one unit
/// of that limit. With Cosmos DB's 10,000 RU/s per partition, 10 partitions
/// top out at about 100,000 RU/s, 100 (the default) at about 1,000,000 and 1000
/// at about 10,000,000. More partitions than the largest fleet you expect, by
/// a factor of 10 or so, keep the load of workers even; far more only cost
/// bookkeeping.
///
/// # Guarantees
///
/// The same key gives the same partition on every platform and in every
/// release. Under [`KeyScheme::Xxh3`] keys spread evenly whatever they look
/// like. djb2 does not promise that: see [`KeySpace::leaves_partitions_empty`].
///
/// ```
/// use divvy_core::{KeyScheme, KeySpace};
///
/// let space = KeySpace::new(KeyScheme::Xxh3, 100)?;
/// assert!(space.locate("customer-4711").partition < 100);
///
/// // What the JavaScript code `Math.abs(djb2(key)) % 100` gives.
/// let legacy = KeySpace::new(KeyScheme::Djb2Js, 100)?;
/// assert_eq!(legacy.name_of("hello"), "partition_37");
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpace {
    scheme: KeyScheme,
    partitions: u32,
}

impl KeySpace {
    /// A key space of `partitions` partitions.
    ///
    /// Under [`KeyScheme::Djb2Js`] a count outside of
    /// [`DJB2_JS_PARTITIONS_MIN`]..=[`DJB2_JS_PARTITIONS_MAX`] is corrected to
    /// the nearer bound and one warning is logged, as the system that it
    /// reproduces does. Under the other schemes such a key space could not be
    /// told from the one that was meant, so a count outside of
    /// 1..=[`PARTITIONS_MAX`] is an error.
    pub fn new(scheme: KeyScheme, partitions: i64) -> Result<Self, Error> {
        let bounds = match scheme {
            KeyScheme::Djb2Js => DJB2_JS_PARTITIONS_MIN..=DJB2_JS_PARTITIONS_MAX,
            KeyScheme::Xxh3 | KeyScheme::Djb2Bits32 | KeyScheme::Djb2Bits64 => {
                1..=PARTITIONS_MAX as u32
            }
        };
        let (min, max) = (*bounds.start(), *bounds.end());
        let count = match u32::try_from(partitions) {
            Ok(count) if bounds.contains(&count) => count,
            _ if scheme == KeyScheme::Djb2Js => {
                let used = if partitions < i64::from(min) {
                    min
                } else {
                    max
                };
                tracing::warn!(
                    given = partitions,
                    used,
                    "partition count {partitions} is outside of {min}..={max}, using {used}"
                );
                used
            }
            _ => {
                let rule = format!("must be in {min}..={max}");
                return Err(Invalid::new("partition count", partitions, rule).into());
            }
        };
        let space = Self {
            scheme,
            partitions: count,
        };
        if space.leaves_partitions_empty() {
            tracing::warn!(
                partitions = count,
                "{count} partitions are a multiple of {DJB2_FACTOR}, the factor of djb2: many \
                 stay empty where keys are alike; take another count, or the scheme xxh3"
            );
        }
        Ok(space)
    }

    /// The scheme.
    pub fn scheme(&self) -> KeyScheme {
        self.scheme
    }

    /// The number of partitions.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Whether djb2 may leave many partitions of this space empty, as it does
    /// where the count is a multiple of its factor 33 and keys are alike, such
    /// as numbered ones. Keys that are random and long fill them.
    /// [`KeySpace::new`] warns of it.
    pub fn leaves_partitions_empty(&self) -> bool {
        self.scheme != KeyScheme::Xxh3 && self.partitions.is_multiple_of(DJB2_FACTOR)
    }

    /// The partition of `key`.
    pub fn locate(&self, key: &str) -> KeyPlace {
        match self.scheme {
            KeyScheme::Xxh3 => self.reduce(hash::bytes64(key.as_bytes(), 0)),
            KeyScheme::Djb2Js => self.reduce_js(hash::djb2_js(key.encode_utf16())),
            KeyScheme::Djb2Bits32 => self.reduce(u64::from(hash::djb2_32(key.as_bytes()))),
            KeyScheme::Djb2Bits64 => self.reduce(hash::djb2_64(key.as_bytes())),
        }
    }

    /// The partition of a key given as UTF-16 code units, lone surrogates
    /// included: what [`KeyScheme::Djb2Js`] hashes. The other schemes hash
    /// UTF-8, where a lone surrogate does not exist, and take it as U+FFFD.
    pub fn locate_utf16(&self, units: &[u16]) -> KeyPlace {
        match self.scheme {
            KeyScheme::Djb2Js => self.reduce_js(hash::djb2_js(units.iter().copied())),
            KeyScheme::Xxh3 | KeyScheme::Djb2Bits32 | KeyScheme::Djb2Bits64 => {
                self.locate(&String::from_utf16_lossy(units))
            }
        }
    }

    /// The name of `key`'s partition: `partition_<number>`.
    pub fn name_of(&self, key: &str) -> String {
        Self::name(self.locate(key).partition)
    }

    /// The name of the partition with this number: `partition_<number>`.
    pub fn name(partition: u32) -> String {
        format!("partition_{partition}")
    }

    /// `key`'s partition as a shard of `group`, such as `orders:17`, which is
    /// what a [`Strategy`](crate::Strategy) places.
    pub fn shard_of(&self, group: &str, key: &str) -> Result<Partition, Error> {
        Partition::shard(group, self.locate(key).partition)
    }

    fn reduce(&self, hash: u64) -> KeyPlace {
        KeyPlace {
            partition: (hash % u64::from(self.partitions)) as u32,
            hash,
        }
    }

    fn reduce_js(&self, hash: i32) -> KeyPlace {
        KeyPlace {
            // JavaScript's Math.abs has no overflow at i32::MIN.
            partition: hash.unsigned_abs() % self.partitions,
            hash: u64::from(hash.cast_unsigned()),
        }
    }
}

impl Default for KeySpace {
    fn default() -> Self {
        Self {
            scheme: KeyScheme::default(),
            partitions: KEY_PARTITIONS_DEFAULT,
        }
    }
}
