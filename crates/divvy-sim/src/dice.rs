//! The one source of chance in a world.

use std::time::Duration;

/// Seeded randomness: the same seed gives the same world.
#[derive(Debug, Clone)]
pub struct Dice(fastrand::Rng);

impl Dice {
    /// Dice that fall as `seed` says.
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds shall have nothing in common.
        let mixed = (seed ^ 0x5bd1_e995_9d1c_62a7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(fastrand::Rng::with_seed(mixed ^ (mixed >> 29)))
    }

    /// Whether something of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.f64() < probability
    }

    /// A span from `least` to `most`.
    pub fn span(&mut self, least: Duration, most: Duration) -> Duration {
        let (low, high) = (least.as_nanos() as u64, most.as_nanos() as u64);
        Duration::from_nanos(self.0.u64(low.min(high)..=high))
    }

    /// A number of `0..bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.usize(0..bound.max(1))
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        self.0.i64(least..=most)
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.u64(..)
    }
}
