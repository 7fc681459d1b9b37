//! The native score.
//!
//! Pinned for ever: another output would move partitions on every cluster.
//!
//! ```text
//! key    = XXH3-64(partition, seed)            low 32 bits kl, high 32 bits kh
//! worker = XXH3-128(id, seed ^ domain)         words w0 (lowest) to w3
//! x      = kl * (w0 | 1) + w1                  all in wrapping 32 bits
//! x      = (x ^ (x >> 16)) ^ kh
//! hash   = x * (w2 | 1)
//! u      = (hash + 0.5) / 2^32
//! score  = weight / -ln(u)
//! ```
//!
//! Each side is hashed once, which takes care of any structure in names; a
//! pair costs two 32-bit multiplications and fits SIMD lanes. The multipliers
//! are the worker's own, so two workers see two different functions of the
//! key, and together with the addend they carry 94 bits of the worker's
//! identity: that two workers share a function does not happen. 32 bits of hash are enough,
//! because what counts is the gap between the best and the second, about
//! 2^32 / workers.

use crate::hash;
use crate::logarithm;

/// A worker's function from keys to hashes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    multiplier: u32,
    addend: u32,
    finisher: u32,
}

impl Mix {
    pub(super) fn new(id: &str, seed: u64) -> Self {
        let identity = hash::worker128(id, seed);
        Self {
            multiplier: identity as u32 | 1,
            addend: (identity >> 32) as u32,
            finisher: (identity >> 64) as u32 | 1,
        }
    }

    #[inline(always)]
    pub(super) fn hash(self, key: u64) -> u32 {
        self.hash_halves(key as u32, (key >> 32) as u32)
    }

    /// The same of a key given as its low and high half.
    #[inline(always)]
    pub(super) fn hash_halves(self, low: u32, high: u32) -> u32 {
        let mut x = low.wrapping_mul(self.multiplier).wrapping_add(self.addend);
        x ^= x >> 16;
        x ^= high;
        x.wrapping_mul(self.finisher)
    }
}

/// Bounds of `-ln(u)` from below and above, without a logarithm: with
/// `v = 1 - u` it is `v + v²/2 + v³/3` and a rest of at most `v⁴ / (4 (1 - v))`.
/// Both are exact to the rounding of a few operations.
pub(super) fn cost_bounds(hash: u32) -> (f64, f64) {
    let v = (f64::from(!hash) + 0.5) / 4_294_967_296.0;
    let lower = v + v * v * (0.5 + v * (1.0 / 3.0));
    (lower, lower + v * v * v * v / (4.0 * (1.0 - v)))
}

/// The score of a hash. At one weight, a higher hash has a higher score.
pub(super) fn score(hash: u32, weight: f64) -> f64 {
    let u = (f64::from(hash) + 0.5) / 4_294_967_296.0;
    weight / -logarithm::ln(u)
}
