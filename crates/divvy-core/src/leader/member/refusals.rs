//! Partitions that this worker could not start, and until when it asks not to
//! be given them.
//!
//! The memory is the worker's and not the leader's: it outlasts leaders, and is
//! gone with the process, whose next one may be sound.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::moment::Moment;

/// Most partitions that are remembered; the one whose time is over first gives
/// way.
const REMEMBERED_MAX: usize = 1024;

#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// How often in a row it had to be given up.
    strikes: u32,
    until: Moment,
    /// When that it ever happened is forgotten.
    forgotten: Moment,
}

/// What could not be started, by the hash of its name.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusals {
    entries: BTreeMap<u64, Refusal>,
}

impl Refusals {
    /// Gives a partition up, for longer each time: from `first` on, doubled up
    /// to `longest`. For how long; nothing if it was given up already.
    pub(super) fn add(
        &mut self,
        partition: u64,
        now: Moment,
        (first, longest): (Duration, Duration),
    ) -> Option<Duration> {
        self.entries.retain(|_, refusal| refusal.forgotten > now);
        let known = self.entries.get(&partition);
        if known.is_some_and(|refusal| refusal.until > now) {
            return None;
        }
        let strikes = known.map_or(0, |refusal| refusal.strikes) + 1;
        let lasts = doubled(first, strikes - 1, longest);
        if known.is_none() && self.entries.len() >= REMEMBERED_MAX {
            let first_over = self.entries.iter().min_by_key(|(_, refusal)| refusal.until);
            let first_over = first_over.map(|(partition, _)| *partition);
            first_over.and_then(|partition| self.entries.remove(&partition));
        }
        let refusal = Refusal {
            strikes,
            until: now + lasts,
            forgotten: now + lasts + longest,
        };
        self.entries.insert(partition, refusal);
        Some(lasts)
    }

    /// It was started after all. Whether others were told that it cannot be.
    pub(super) fn remove(&mut self, partition: u64, now: Moment) -> bool {
        let refusal = self.entries.remove(&partition);
        refusal.is_some_and(|refusal| refusal.until > now)
    }

    /// What is not to be given to this worker now, in order.
    pub(super) fn current(&self, now: Moment) -> Vec<u64> {
        let current = self.entries.iter();
        let current = current.filter(|(_, refusal)| refusal.until > now);
        current.map(|(partition, _)| *partition).collect()
    }
}

/// `span`, doubled so often, at most `longest`.
pub(super) fn doubled(span: Duration, times: u32, longest: Duration) -> Duration {
    let factor = 1_u32.checked_shl(times).unwrap_or(u32::MAX);
    span.saturating_mul(factor).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(10);
    const LONGEST: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_partition_is_given_up_for_longer_each_time_and_up_to_a_bound() {
        let mut refusals = Refusals::default();
        let mut now = at(0);
        let lasted: Vec<u64> = (0..5)
            .map(|_| {
                let lasts = refusals.add(7, now, (FIRST, LONGEST)).expect("it is news");
                assert_eq!(refusals.add(7, now, (FIRST, LONGEST)), None);
                assert_eq!(refusals.current(now), [7]);
                now = now + lasts;
                assert!(refusals.current(now).is_empty());
                lasts.as_secs()
            })
            .collect();
        assert_eq!(lasted, [10, 20, 40, 60, 60]);
        assert!(!refusals.remove(7, now));
        assert_eq!(refusals.add(7, now, (FIRST, LONGEST)), Some(FIRST));
        assert!(refusals.remove(7, now));
        refusals.add(7, now, (FIRST, LONGEST));
        let later = now + FIRST + LONGEST;
        assert_eq!(refusals.add(7, later, (FIRST, LONGEST)), Some(FIRST));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_stay() {
        let mut refusals = Refusals::default();
        for partition in 0..3000 {
            let now = at(0) + Duration::from_millis(partition);
            refusals.add(partition, now, (FIRST, LONGEST));
        }
        assert_eq!(refusals.entries.len(), REMEMBERED_MAX);
        assert!(refusals.entries.contains_key(&2999));
    }

    #[test]
    fn doubling_ends_at_its_bound_however_often() {
        for times in [6, 31, 32, 1000] {
            assert_eq!(doubled(FIRST, times, LONGEST), LONGEST);
        }
    }
}
