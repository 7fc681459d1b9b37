//! Which messages of a partition were handled, as far as this process knows.
//!
//! An acknowledgement can get lost with a connection, and then a message comes
//! again that was handled. Within one process that is known.

use std::collections::{BTreeMap, BTreeSet};

use super::message::Position;
use super::settings::Mode;

/// Messages of concurrent mode that are remembered.
const REMEMBERED_MAX: usize = 4096;
/// Messages of ordered mode that came and were not handled yet. There is one,
/// unless somebody has edited the consumer.
const OPEN_MAX: usize = 4096;

/// What was handled, by sequence. Times are compared besides: in a stream that
/// was deleted and made again, sequences begin anew, but times do not.
#[derive(Debug, Clone, Default)]
pub(super) struct Done {
    /// The server has seen everything up to here acknowledged.
    acknowledged: u64,
    /// When the latest message was stored that was handled here.
    latest: u64,
    run: Run,
    /// Single ones; of concurrent mode.
    single: BTreeMap<u64, u64>,
}

/// What was handled in ordered mode: everything of the partition between two
/// sequences, but for what is open.
#[derive(Debug, Clone, Default)]
struct Run {
    ends: Option<(u64, u64)>,
    /// Messages that came and were not handled yet.
    open: BTreeSet<u64>,
    /// Up to here, what is open is not known.
    unknown: u64,
    /// What the consumer gave out last, by its own number.
    number: Option<u64>,
    /// The consumer has given out something that did not come here, and that
    /// may lie before what comes next.
    is_broken: bool,
}

impl Done {
    /// A message has come; whether it was handled before.
    pub(super) fn came(&mut self, mode: Mode, position: Position) -> bool {
        let is_done = self.holds(position);
        if mode == Mode::Ordered {
            self.run.came(position, is_done);
        }
        is_done
    }

    /// A message was handled.
    pub(super) fn add(&mut self, mode: Mode, position: Position) {
        self.latest = self.latest.max(position.stored);
        match mode {
            Mode::Ordered => self.run.add(position.sequence),
            Mode::Concurrent => {
                self.single.insert(position.sequence, position.stored);
                if self.single.len() > REMEMBERED_MAX {
                    self.single.pop_first();
                }
            }
        }
    }

    /// The server has seen everything up to here acknowledged.
    pub(super) fn acknowledged(&mut self, sequence: u64) {
        self.acknowledged = self.acknowledged.max(sequence);
        self.single = self.single.split_off(&(self.acknowledged + 1));
    }

    /// Another consumer takes the place of the one before, and counts anew.
    pub(super) fn consumer_is_new(&mut self) {
        self.run.number = None;
    }

    /// The sequence up to which the server has seen everything acknowledged,
    /// if that is known.
    pub(super) fn floor(&self) -> Option<u64> {
        (self.acknowledged > 0).then_some(self.acknowledged)
    }

    /// Whether nothing is known to have been handled.
    pub(super) fn is_empty(&self) -> bool {
        self.acknowledged == 0 && self.latest == 0
    }

    fn holds(&self, position: Position) -> bool {
        let Position {
            sequence, stored, ..
        } = position;
        let is_among = sequence <= self.acknowledged || self.run.holds(sequence);
        self.single.get(&sequence) == Some(&stored) || (is_among && stored <= self.latest)
    }
}

impl Run {
    fn came(&mut self, position: Position, is_done: bool) {
        let follows = self.number.map(|last| last + 1);
        self.is_broken |= follows != Some(position.number);
        self.number = Some(position.number);
        if is_done {
            return;
        }
        self.open.insert(position.sequence);
        if self.open.len() > OPEN_MAX {
            let first = self.open.pop_first();
            self.unknown = self.unknown.max(first.unwrap_or(0));
        }
    }

    fn add(&mut self, sequence: u64) {
        self.open.remove(&sequence);
        self.ends = match self.ends {
            Some((from, to)) if !self.is_broken => Some((from, to.max(sequence))),
            _ => {
                self.open = self.open.split_off(&sequence);
                Some((sequence, sequence))
            }
        };
        self.is_broken = false;
    }

    fn holds(&self, sequence: u64) -> bool {
        let Some((from, to)) = self.ends else {
            return false;
        };
        (from..=to).contains(&sequence) && sequence > self.unknown && !self.open.contains(&sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::{Concurrent, Ordered};

    /// The `number`-th message that a consumer gave out.
    fn at(number: u64, sequence: u64, stored: u64) -> Position {
        Position {
            deliveries: 1,
            sequence,
            number,
            stored,
            pending: 0,
        }
    }

    fn handle(done: &mut Done, position: Position) {
        assert!(!done.came(Ordered, position));
        done.add(Ordered, position);
    }

    #[test]
    fn in_order_everything_since_the_first_is_done() {
        let mut done = Done::default();
        for number in 1..=5 {
            handle(&mut done, at(number, number * 2, number * 20));
        }
        for number in 1..=5 {
            assert!(done.holds(at(9, number * 2, number * 20)));
        }
        assert!(!done.holds(at(9, 1, 10)) && !done.holds(at(9, 12, 120)));
        // The server has forgotten what it had seen of the last two, and goes on.
        assert!(done.came(Ordered, at(4, 8, 80)) && done.came(Ordered, at(5, 10, 100)));
        handle(&mut done, at(6, 12, 120));
        assert!(done.holds(at(7, 12, 120)));
    }

    #[test]
    fn what_failed_is_not_done_though_later_ones_are() {
        let mut done = Done::default();
        handle(&mut done, at(1, 1, 10));
        assert!(!done.came(Ordered, at(2, 2, 20)));
        handle(&mut done, at(3, 3, 30));
        assert!(!done.came(Ordered, at(4, 2, 20)));
        assert!(done.holds(at(5, 3, 30)));
        done.add(Ordered, at(4, 2, 20));
        assert!(done.holds(at(5, 2, 20)));
    }

    #[test]
    fn what_was_given_out_and_did_not_come_is_not_done() {
        let mut done = Done::default();
        handle(&mut done, at(1, 1, 10));
        // 2 and 3 went to a connection that broke; 1 comes again before 4.
        assert!(done.came(Ordered, at(4, 1, 10)));
        handle(&mut done, at(5, 4, 40));
        for position in [at(6, 2, 20), at(7, 3, 30)] {
            handle(&mut done, position);
        }
        assert!(done.holds(at(8, 4, 40)));
        done.consumer_is_new();
        handle(&mut done, at(8, 7, 70));
        assert!(!done.holds(at(9, 6, 60)));
    }

    #[test]
    fn what_the_server_has_seen_acknowledged_is_done() {
        for mode in [Ordered, Concurrent] {
            let mut done = Done::default();
            assert!(done.is_empty() && done.floor().is_none());
            done.add(mode, at(9, 9, 90));
            done.acknowledged(7);
            assert!(done.holds(at(1, 3, 30)) && !done.holds(at(1, 8, 80)));
            assert!(done.holds(at(1, 9, 90)) && !done.is_empty());
            assert_eq!(done.floor(), Some(7));
        }
    }

    #[test]
    fn a_stream_that_was_made_anew_has_new_messages_under_old_numbers() {
        let mut done = Done::default();
        handle(&mut done, at(1, 7, 70));
        done.acknowledged(7);
        assert!(!done.holds(at(1, 1, 90)) && !done.holds(at(1, 7, 90)));
        let mut done = Done::default();
        done.add(Concurrent, at(1, 7, 70));
        assert!(!done.holds(at(1, 7, 90)));
    }

    #[test]
    fn at_once_only_what_was_done_is_done() {
        let mut done = Done::default();
        done.add(Concurrent, at(1, 7, 70));
        assert!(done.holds(at(1, 7, 70)) && !done.holds(at(1, 6, 60)));
    }

    #[test]
    fn memory_is_bounded_and_what_it_does_not_hold_is_not_done() {
        let mut done = Done::default();
        for number in 1..=2 * REMEMBERED_MAX as u64 {
            done.add(Concurrent, at(number, number, number));
        }
        assert_eq!(done.single.len(), REMEMBERED_MAX);
        let mut done = Done::default();
        handle(&mut done, at(1, 1, 1));
        let last = 2 * OPEN_MAX as u64;
        for number in 2..last {
            assert!(!done.came(Ordered, at(number, number, number)));
        }
        assert_eq!(done.run.open.len(), OPEN_MAX);
        handle(&mut done, at(last, last, last));
        assert!((2..last).all(|number| !done.holds(at(1, number, number))));
    }
}
