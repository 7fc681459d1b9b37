//! Sixteen keys at a time against many workers.
//!
//! A key stays in its lane while the workers pass by. In every lane the best
//! is kept by maximum, comparison and selection: an `if` would be turned into
//! masked stores, which are several times slower.

use super::native::Mix;
use crate::simd::{Batch, vectorised};

const LANES: usize = 16;

/// The mix with the highest hash for a key; of equal ones the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Highest {
    pub(super) index: u32,
    pub(super) hash: u32,
}

/// For each key the highest of `mixes`, of which there is at least one.
pub(super) fn highest(keys: &[u64], mixes: &[Mix], found: &mut Vec<Highest>) {
    vectorised(HighestOf { keys, mixes, found });
}

struct HighestOf<'a> {
    keys: &'a [u64],
    mixes: &'a [Mix],
    found: &'a mut Vec<Highest>,
}

impl HighestOf<'_> {
    #[inline(always)]
    fn block(&self, keys: &[u64; LANES]) -> ([u32; LANES], [u32; LANES]) {
        let (low, high) = halves(keys);
        let mut best = [0u32; LANES];
        let mut index = [0u32; LANES];
        for (number, mix) in self.mixes.iter().enumerate() {
            for lane in 0..LANES {
                let hash = mix.hash_halves(low[lane], high[lane]);
                let top = hash.max(best[lane]);
                index[lane] = if top == best[lane] {
                    index[lane]
                } else {
                    number as u32
                };
                best[lane] = top;
            }
        }
        (index, best)
    }
}

impl Batch for HighestOf<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.found.reserve(self.keys.len());
        for keys in self.keys.chunks(LANES) {
            let (index, hash) = self.block(&filled(keys));
            let lanes = index.iter().zip(&hash).take(keys.len());
            let highest = |(&index, &hash): (&u32, &u32)| Highest { index, hash };
            self.found.extend(lanes.map(highest));
        }
    }
}

/// The mix of the lowest cost for a key, by a bound of the cost from below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cheapest {
    pub(super) index: u32,
    /// The bound of every other mix is at least this.
    pub(super) second: f32,
}

/// How much a bound in `f32` may be above what it should be, for its nine
/// roundings of 2^-24 each.
pub(super) const BOUND_ERROR: f64 = 1.0 / 1_048_576.0;

/// For each key the cheapest of `mixes`, which have the given inverse weights.
///
/// The cost of a hash is `-ln(u) / weight`. With `v = 1 - u` it is at least
/// `(v + v²/2 + v³/3) / weight`, since all further terms are positive; that
/// bound, computed in single precision, is what is compared here.
pub(super) fn cheapest(
    keys: &[u64],
    mixes: &[Mix],
    inverse_weights: &[f32],
    found: &mut Vec<Cheapest>,
) {
    vectorised(CheapestOf {
        keys,
        mixes,
        inverse_weights,
        found,
    });
}

struct CheapestOf<'a> {
    keys: &'a [u64],
    mixes: &'a [Mix],
    inverse_weights: &'a [f32],
    found: &'a mut Vec<Cheapest>,
}

impl CheapestOf<'_> {
    #[inline(always)]
    fn block(&self, keys: &[u64; LANES]) -> ([u32; LANES], [u32; LANES]) {
        let (low, high) = halves(keys);
        // Bounds are positive, so their bits are in the order of their values,
        // and integers are compared without a thought of NaN.
        let mut best = [u32::MAX; LANES];
        let mut second = [u32::MAX; LANES];
        let mut index = [0u32; LANES];
        let weighted = self.mixes.iter().zip(self.inverse_weights);
        for (number, (mix, &inverse)) in weighted.enumerate() {
            for lane in 0..LANES {
                let hash = mix.hash_halves(low[lane], high[lane]);
                let bound = (least_cost(hash) * inverse).to_bits();
                let lowest = bound.min(best[lane]);
                second[lane] = second[lane].min(bound.max(best[lane]));
                index[lane] = if lowest == best[lane] {
                    index[lane]
                } else {
                    number as u32
                };
                best[lane] = lowest;
            }
        }
        (index, second)
    }
}

impl Batch for CheapestOf<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.found.reserve(self.keys.len());
        for keys in self.keys.chunks(LANES) {
            let (index, second) = self.block(&filled(keys));
            let lanes = index.iter().zip(&second).take(keys.len());
            self.found.extend(lanes.map(|(&index, &second)| Cheapest {
                index,
                second: f32::from_bits(second),
            }));
        }
    }
}

/// A bound of `-ln(u)` from below, up to [`BOUND_ERROR`].
#[inline(always)]
fn least_cost(hash: u32) -> f32 {
    // Rounded down to 31 bits, because only signed integers are converted by
    // one instruction.
    let v = (!hash >> 1) as i32 as f32 * (1.0 / 2_147_483_648.0);
    v + v * v * (0.5 + v * (1.0 / 3.0))
}

/// The numbers of the keys whose hash by `mix` is at least what `hashes` has
/// for them.
pub(super) fn challenge(keys: &[u64], mix: Mix, hashes: &[u32], found: &mut Vec<u32>) {
    vectorised(Challenge {
        keys,
        mix,
        hashes,
        found,
    });
}

struct Challenge<'a> {
    keys: &'a [u64],
    mix: Mix,
    hashes: &'a [u32],
    found: &'a mut Vec<u32>,
}

impl Batch for Challenge<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, _) = self.keys.as_chunks::<LANES>();
        let (champions, _) = self.hashes.as_chunks::<LANES>();
        for (number, (keys, champions)) in blocks.iter().zip(champions).enumerate() {
            let (low, high) = halves(keys);
            let mut above = [0u32; LANES];
            for lane in 0..LANES {
                let hash = self.mix.hash_halves(low[lane], high[lane]);
                above[lane] = u32::from(hash.max(champions[lane]) == hash);
            }
            // Most blocks have none, and then this is all there is to do.
            if above.iter().fold(0, |any, &lane| any | lane) == 0 {
                continue;
            }
            let first = (number * LANES) as u32;
            let lanes = (first..).zip(above);
            self.found
                .extend(lanes.filter(|&(_, above)| above != 0).map(|(key, _)| key));
        }
        let rest = blocks.len() * LANES;
        for key in rest..self.keys.len() {
            if self.mix.hash(self.keys[key]) >= self.hashes[key] {
                self.found.push(key as u32);
            }
        }
    }
}

/// Up to sixteen keys as sixteen; the missing ones are made up.
#[inline(always)]
fn filled(keys: &[u64]) -> [u64; LANES] {
    let mut block = [0; LANES];
    block[..keys.len()].copy_from_slice(keys);
    block
}

#[inline(always)]
fn halves(keys: &[u64; LANES]) -> ([u32; LANES], [u32; LANES]) {
    (
        keys.map(|key| key as u32),
        keys.map(|key| (key >> 32) as u32),
    )
}

#[cfg(test)]
mod tests {
    use super::super::native;
    use super::*;
    use crate::hash;

    fn keys(count: u64) -> Vec<u64> {
        (0..count)
            .map(|n| hash::bytes64(&n.to_le_bytes(), 1))
            .collect()
    }

    fn mixes(count: usize) -> Vec<Mix> {
        (0..count)
            .map(|n| Mix::new(&format!("worker-{n}"), 0))
            .collect()
    }

    #[test]
    fn every_lane_finds_what_a_plain_loop_finds() {
        for (key_count, mix_count) in [
            (0, 3),
            (1, 1),
            (15, 2),
            (16, 7),
            (17, 16),
            (100, 33),
            (1000, 100),
        ] {
            let (keys, mixes) = (keys(key_count), mixes(mix_count));
            let mut found = Vec::new();
            highest(&keys, &mixes, &mut found);
            let mut portable = Vec::new();
            HighestOf {
                keys: &keys,
                mixes: &mixes,
                found: &mut portable,
            }
            .run();
            assert_eq!(found, portable);
            for (lane, key) in keys.iter().enumerate() {
                let mut best = Highest { index: 0, hash: 0 };
                for (index, mix) in mixes.iter().enumerate() {
                    let hash = mix.hash(*key);
                    if hash > best.hash {
                        best = Highest {
                            index: index as u32,
                            hash,
                        };
                    }
                }
                assert_eq!(
                    found[lane], best,
                    "key {lane} of {key_count}, {mix_count} mixes"
                );
            }
        }
    }

    #[test]
    fn ties_stay_with_the_first() {
        let mix = Mix::new("twin", 0);
        let mut found = Vec::new();
        highest(&keys(40), &[mix, mix, mix], &mut found);
        assert!(found.iter().all(|highest| highest.index == 0));
    }

    #[test]
    fn bounds_are_below_the_cost_they_bound() {
        let ends = (0..2000).chain(u32::MAX - 2000..=u32::MAX);
        let spread = (0..20_000u32).map(|n| n.wrapping_mul(0x9E37_79B9));
        for hash in ends.chain(spread) {
            let cost = 1.0 / native::score(hash, 1.0);
            let bound = f64::from(least_cost(hash));
            assert!(
                bound <= cost * (1.0 + BOUND_ERROR),
                "{hash}: {bound} over {cost}"
            );
            assert!(bound >= 0.0);
        }
    }

    #[test]
    fn the_second_is_the_least_bound_of_the_others() {
        let (keys, mixes) = (keys(100), mixes(37));
        let inverse: Vec<f32> = (0..37).map(|n| 1.0 / (1.0 + n as f32)).collect();
        let mut found = Vec::new();
        cheapest(&keys, &mixes, &inverse, &mut found);
        for (key, cheapest) in keys.iter().zip(&found) {
            let bound = |index: usize| least_cost(mixes[index].hash(*key)) * inverse[index];
            let others = (0..37).filter(|&index| index as u32 != cheapest.index);
            let second = others.map(bound).fold(f32::INFINITY, f32::min);
            assert_eq!(cheapest.second, second);
            assert!(bound(cheapest.index as usize) <= second);
        }
    }

    #[test]
    fn a_challenge_finds_every_key_at_or_above_its_champion() {
        for count in [0, 5, 16, 100, 1003] {
            let keys = keys(count);
            let (champion, challenger) = (Mix::new("a", 0), Mix::new("b", 0));
            let mut hashes: Vec<u32> = keys.iter().map(|&key| champion.hash(key)).collect();
            if let (Some(hash), Some(&key)) = (hashes.last_mut(), keys.last()) {
                *hash = challenger.hash(key);
            }
            let mut found = Vec::new();
            challenge(&keys, challenger, &hashes, &mut found);
            let expected: Vec<u32> = (0..keys.len() as u32)
                .filter(|&key| challenger.hash(keys[key as usize]) >= hashes[key as usize])
                .collect();
            assert_eq!(found, expected);
        }
    }
}
