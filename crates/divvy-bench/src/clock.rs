//! Interleaved rounds and their medians.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A side of a duel is repeated until a round takes about so long.
const ROUND: Duration = Duration::from_millis(2);

/// How long `work` takes, without the time to drop its result.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let elapsed = start.elapsed();
    drop(result);
    elapsed
}

/// The median times in nanoseconds of two sides that take turns for so many rounds.
///
/// Both are handed in as something that runs once and says how long it took, so that a side can put
/// things back in order off the clock. Both run once before, to warm up.
pub(crate) fn duel(
    rounds: usize,
    mut first: impl FnMut() -> Duration,
    mut second: impl FnMut() -> Duration,
) -> (f64, f64) {
    let first_repeats = repeats(first());
    let second_repeats = repeats(second());
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        times.0.push(mean_of(first_repeats, &mut first));
        times.1.push(mean_of(second_repeats, &mut second));
    }
    (median(times.0), median(times.1))
}

/// The median time in nanoseconds of so many rounds, after one to warm up.
pub(crate) fn median_of(rounds: usize, mut run: impl FnMut() -> Duration) -> f64 {
    let repeats = repeats(run());
    let times = (0..rounds.max(1)).map(|_| mean_of(repeats, &mut run));
    median(times.collect())
}

fn repeats(once: Duration) -> u32 {
    let fits = ROUND.as_nanos() / once.as_nanos().max(1);
    fits.clamp(1, 10_000) as u32
}

fn mean_of(repeats: u32, run: &mut impl FnMut() -> Duration) -> f64 {
    let total: Duration = (0..repeats).map(|_| run()).sum();
    total.as_nanos() as f64 / f64::from(repeats)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len() % 2 == 1 {
        times[middle]
    } else {
        (times[middle - 1] + times[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 9.0, 1.0, 2.0]), 3.0);
    }

    #[test]
    fn sides_take_turns() {
        let log = std::cell::RefCell::new(String::new());
        let side = |name| {
            log.borrow_mut().push(name);
            Duration::from_secs(1)
        };
        let medians = duel(3, || side('a'), || side('b'));
        assert_eq!(log.into_inner(), "abababab");
        assert_eq!(medians, (1e9, 1e9));
    }
}
