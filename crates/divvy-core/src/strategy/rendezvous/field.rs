//! Native workers made ready to be met by many keys at once.
//!
//! Weights decide how. With one weight the highest hash wins. With a few, the
//! highest hash of each class of equal weights is found, and only those are
//! compared by score. With many, a bound of the cost is compared, and whoever
//! is not certain to have won by it is scored exactly.

use super::lanes::{self, BOUND_ERROR, Cheapest, Highest};
use super::native::{Mix, cost_bounds, score};

/// Classes of equal weights are worth their comparisons while they have this
/// many workers on average.
const CLASS_SIZE_MIN: usize = 12;

/// Workers that compete, each with a number that stands for it. Of equal
/// scores the higher hash wins, then the smaller position in the list they
/// were given in.
#[derive(Debug, Clone)]
pub(super) struct Field {
    mixes: Vec<Mix>,
    weights: Vec<f64>,
    numbers: Vec<u32>,
    /// By position here, the position in the list they were given in.
    given: Vec<u32>,
    weighing: Weighing,
}

#[derive(Debug, Clone)]
enum Weighing {
    Uniform,
    /// Where each class of equal weights ends.
    Classes(Vec<usize>),
    Distinct(Vec<f32>),
}

/// A worker's number and its hash for the key at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Winner {
    pub(super) number: u32,
    pub(super) hash: u32,
}

impl Field {
    /// The workers with these numbers, mixes and weights; at least one.
    pub(super) fn new(workers: impl IntoIterator<Item = (u32, Mix, f64)>) -> Self {
        let mut all: Vec<(u32, (u32, Mix, f64))> = (0..).zip(workers).collect();
        // Classes side by side; inside of one, the order stays.
        all.sort_by(|(_, (_, _, a)), (_, (_, _, b))| a.total_cmp(b));
        let weights: Vec<f64> = all.iter().map(|&(_, (_, _, weight))| weight).collect();
        let mut ends: Vec<usize> = (1..weights.len())
            .filter(|&index| weights[index] != weights[index - 1])
            .collect();
        ends.push(weights.len());
        let weighing = if ends.len() == 1 {
            Weighing::Uniform
        } else if ends.len() * CLASS_SIZE_MIN <= weights.len() {
            Weighing::Classes(ends)
        } else {
            Weighing::Distinct(weights.iter().map(|weight| (1.0 / weight) as f32).collect())
        };
        Self {
            mixes: all.iter().map(|&(_, (_, mix, _))| mix).collect(),
            numbers: all.iter().map(|&(_, (number, _, _))| number).collect(),
            given: all.iter().map(|&(given, _)| given).collect(),
            weights,
            weighing,
        }
    }

    /// Appends the winner of each key.
    pub(super) fn winners(&self, keys: &[u64], winners: &mut Vec<Winner>) {
        match &self.weighing {
            Weighing::Uniform => {
                let mut found = Vec::with_capacity(keys.len());
                lanes::highest(keys, &self.mixes, &mut found);
                winners.extend(found.into_iter().map(|highest| self.winner(highest)));
            }
            Weighing::Classes(ends) => self.by_class(keys, ends, winners),
            Weighing::Distinct(inverse) => self.by_bound(keys, inverse, winners),
        }
    }

    fn by_class(&self, keys: &[u64], ends: &[usize], winners: &mut Vec<Winner>) {
        let mut best: Vec<Highest> = Vec::with_capacity(keys.len());
        let mut found = Vec::with_capacity(keys.len());
        let mut start = 0;
        for &end in ends {
            found.clear();
            lanes::highest(keys, &self.mixes[start..end], &mut found);
            for highest in &mut found {
                highest.index += start as u32;
            }
            if start == 0 {
                best.extend_from_slice(&found);
            } else {
                for (best, &challenger) in best.iter_mut().zip(&found) {
                    if self.beats(challenger, *best) {
                        *best = challenger;
                    }
                }
            }
            start = end;
        }
        winners.extend(best.into_iter().map(|highest| self.winner(highest)));
    }

    fn by_bound(&self, keys: &[u64], inverse: &[f32], winners: &mut Vec<Winner>) {
        let mut found = Vec::with_capacity(keys.len());
        lanes::cheapest(keys, &self.mixes, inverse, &mut found);
        for (&key, cheapest) in keys.iter().zip(found) {
            let highest = self
                .certain(key, cheapest)
                .unwrap_or_else(|| self.exact(key));
            winners.push(self.winner(highest));
        }
    }

    /// The cheapest by its bound, if it is certain to be the cheapest.
    fn certain(&self, key: u64, cheapest: Cheapest) -> Option<Highest> {
        let index = cheapest.index;
        let hash = self.mixes[index as usize].hash(key);
        let most = cost_bounds(hash).1 / self.weights[index as usize];
        // Others cost at least `second`, less the error of its rounding; the
        // same again is far more than the rounding of `most` and of scores.
        let certain = most * (1.0 + 2.0 * BOUND_ERROR) < f64::from(cheapest.second);
        certain.then_some(Highest { index, hash })
    }

    fn exact(&self, key: u64) -> Highest {
        let candidate = |index: usize| Highest {
            index: index as u32,
            hash: self.mixes[index].hash(key),
        };
        (1..self.mixes.len())
            .map(candidate)
            .fold(candidate(0), |best, challenger| {
                if self.beats(challenger, best) {
                    challenger
                } else {
                    best
                }
            })
    }

    fn beats(&self, challenger: Highest, champion: Highest) -> bool {
        let side = |highest: Highest| (highest.hash, self.weights[highest.index as usize]);
        let given = |highest: Highest| self.given[highest.index as usize];
        beats(side(challenger), side(champion), || {
            given(challenger) < given(champion)
        })
    }

    fn winner(&self, highest: Highest) -> Winner {
        Winner {
            number: self.numbers[highest.index as usize],
            hash: highest.hash,
        }
    }
}

/// Whether the challenger's hash and weight win over the champion's: by score,
/// then by hash, then as `first` says. A logarithm is taken only where bounds
/// do not tell.
pub(super) fn beats(
    challenger: (u32, f64),
    champion: (u32, f64),
    first: impl FnOnce() -> bool,
) -> bool {
    let ((hash, weight), (champion_hash, champion_weight)) = (challenger, champion);
    if weight == champion_weight {
        return hash > champion_hash || hash == champion_hash && first();
    }
    /// Far above the rounding of bounds and scores.
    const SLACK: f64 = 1.0 + 1e-12;
    let (least, most) = cost_bounds(hash);
    let (champion_least, champion_most) = cost_bounds(champion_hash);
    if least * champion_weight > champion_most * weight * SLACK {
        return false;
    }
    if most * champion_weight * SLACK < champion_least * weight {
        return true;
    }
    let (score, champion_score) = (score(hash, weight), score(champion_hash, champion_weight));
    score > champion_score
        || score == champion_score && (hash > champion_hash || hash == champion_hash && first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    /// The definition, word by word.
    fn plain(keys: &[u64], workers: &[(u32, Mix, f64)]) -> Vec<Winner> {
        let winner = |&key: &u64| {
            let mut best: Option<(f64, Winner)> = None;
            for &(number, mix, weight) in workers {
                let hash = mix.hash(key);
                let score = score(hash, weight);
                let better = best
                    .is_none_or(|(top, winner)| score > top || score == top && hash > winner.hash);
                if better {
                    best = Some((score, Winner { number, hash }));
                }
            }
            best.expect("there are workers").1
        };
        keys.iter().map(winner).collect()
    }

    #[test]
    fn every_way_of_weighing_finds_the_winners_of_the_definition() {
        let keys: Vec<u64> = (0..3000u64)
            .map(|n| hash::bytes64(&n.to_le_bytes(), 9))
            .collect();
        for count in [1usize, 2, 3, 5, 10, 40, 200] {
            for classes in [1, 2, 3, 10, 1000] {
                let weight = |n: usize| 0.25 + ((n * 7919) % classes) as f64 * 0.37;
                let worker =
                    |n: usize| (n as u32 * 3, Mix::new(&format!("worker-{n}"), 0), weight(n));
                let workers: Vec<_> = (0..count).map(worker).collect();
                let mut found = Vec::new();
                Field::new(workers.iter().copied()).winners(&keys, &mut found);
                assert_eq!(
                    found,
                    plain(&keys, &workers),
                    "{count} workers, {classes} classes"
                );
            }
        }
    }

    #[test]
    fn extreme_weights_find_the_winners_of_the_definition() {
        let keys: Vec<u64> = (0..3000u64)
            .map(|n| hash::bytes64(&n.to_le_bytes(), 4))
            .collect();
        let weights = [
            1e-6,
            1e6,
            1.0,
            1e-6,
            0.999_999_9,
            1.000_000_1,
            1e6,
            3e5,
            2e-6,
        ];
        let worker = |(n, weight): (usize, f64)| (n as u32, Mix::new(&format!("w{n}"), 0), weight);
        for count in 1..=weights.len() {
            let workers: Vec<_> = weights[..count]
                .iter()
                .copied()
                .enumerate()
                .map(worker)
                .collect();
            let mut found = Vec::new();
            Field::new(workers.iter().copied()).winners(&keys, &mut found);
            assert_eq!(found, plain(&keys, &workers), "{count} workers");
        }
    }

    #[test]
    fn twins_are_told_apart_by_their_place() {
        let twin = Mix::new("twin", 0);
        let keys: Vec<u64> = (0..50).collect();
        let mut found = Vec::new();
        Field::new([(7, twin, 2.0), (8, twin, 2.0), (9, twin, 1.0)]).winners(&keys, &mut found);
        assert!(found.iter().all(|winner| winner.number == 7), "{found:?}");
    }
}
