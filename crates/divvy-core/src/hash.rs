//! The hash functions that placement stands on, pinned for ever.
//!
//! Every function here takes explicit bytes and never changes: a different
//! output would move partitions on every cluster. [`bytes64`] is the native
//! one. The others reproduce, bit for bit, what other systems compute, so that
//! a running cluster can be taken over without moving anything; they are not
//! meant for new ones.

use xxhash_rust::{xxh3, xxh64};

/// Keeps the hashes of workers apart from those of partitions, so that a
/// worker named like a partition is not correlated with it.
const WORKER_DOMAIN: u64 = u64::from_be_bytes(*b"\0\0worker");

/// The native hash: XXH3 with 64 bits of output.
///
/// ```
/// assert_eq!(divvy_core::hash::bytes64(b"", 0), 0x2d06_8005_38d3_94c2);
/// ```
pub fn bytes64(bytes: &[u8], seed: u64) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, seed)
}

/// The native hash of a worker's id: XXH3 with 128 bits of output, in a
/// domain of its own.
pub fn worker128(id: &str, seed: u64) -> u128 {
    xxh3::xxh3_128_with_seed(id.as_bytes(), seed ^ WORKER_DOMAIN)
}

/// XXH64 with seed 0, which the lease-based system behind the `rendezgo`
/// scheme uses.
pub fn xxh64(bytes: &[u8]) -> u64 {
    xxh64::xxh64(bytes, 0)
}

/// djb2 over UTF-16 code units in wrapping 32-bit signed arithmetic, as
/// JavaScript code with `charCodeAt` and `hash & hash` computes it. Takes units
/// because a JavaScript string may hold lone surrogates, which no `&str` can.
pub fn djb2_js(units: impl IntoIterator<Item = u16>) -> i32 {
    units.into_iter().fold(5381, |hash: i32, unit| {
        hash.wrapping_mul(33).wrapping_add(i32::from(unit))
    })
}

/// djb2 over bytes in wrapping 32-bit unsigned arithmetic.
pub fn djb2_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5381, |hash: u32, &byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(byte))
    })
}

/// djb2 over bytes in wrapping 64-bit unsigned arithmetic.
pub fn djb2_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(5381, |hash: u64, &byte| {
        hash.wrapping_mul(33).wrapping_add(u64::from(byte))
    })
}

/// The shard hash of the `cruster` scheme over the concatenation of `parts`:
/// byte-wise rounds with XXH64's primes and its final avalanche. Equal to XXH64
/// only for inputs under 4 bytes.
pub fn cruster64(parts: &[&[u8]]) -> u64 {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = parts.iter().copied().flatten();
    let state = bytes.fold(Cruster::start(length), |state, &byte| {
        state.round(Cruster::part(byte))
    });
    state.finish()
}

/// The steps of [`cruster64`]: a start that depends on the length of the whole
/// input, a round for each byte, and an end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cruster(u64);

impl Cruster {
    const P1: u64 = 0x9E37_79B1_85EB_CA87;
    const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
    const P3: u64 = 0x1656_67B1_9E37_79F9;
    const P5: u64 = 0x27D4_EB2F_1656_67C5;

    pub(crate) fn start(length: usize) -> Self {
        Self(Self::P5.wrapping_add(length as u64))
    }

    /// What a byte brings to its round.
    pub(crate) fn part(byte: u8) -> u64 {
        u64::from(byte).wrapping_mul(Self::P5)
    }

    #[inline(always)]
    pub(crate) fn round(self, part: u64) -> Self {
        Self((self.0 ^ part).rotate_left(11).wrapping_mul(Self::P1))
    }

    #[inline(always)]
    pub(crate) fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(Self::P2);
        hash = (hash ^ (hash >> 29)).wrapping_mul(Self::P3);
        hash ^ (hash >> 32)
    }
}

/// One step of the SplitMix64 generator's output function: a bijection of 64
/// bits in which every input bit reaches every output bit.
pub(crate) fn mix64(input: u64) -> u64 {
    let mut z = input;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
