//! Which messages of a partition this process has handled.
//!
//! An acknowledgement can get lost with a connection, and then a message comes
//! again that was handled. Within one process that is known.

use std::collections::BTreeMap;

use super::message::Position;
use super::settings::Mode;

/// Messages of concurrent mode that are remembered.
const REMEMBERED_MAX: usize = 4096;

/// What was handled, by sequence. With each its time: in a stream that was
/// deleted and made again, sequences begin anew, but times do not.
#[derive(Debug, Clone, Default)]
pub(super) struct Done {
    /// Everything of the partition up to here; of ordered mode.
    floor: Option<(u64, u64)>,
    /// Single ones; of concurrent mode.
    single: BTreeMap<u64, u64>,
}

impl Done {
    pub(super) fn add(&mut self, mode: Mode, position: Position) {
        match mode {
            Mode::Ordered => self.floor = Some((position.sequence, position.stored)),
            Mode::Concurrent => {
                self.single.insert(position.sequence, position.stored);
                if self.single.len() > REMEMBERED_MAX {
                    self.single.pop_first();
                }
            }
        }
    }

    pub(super) fn holds(&self, position: Position) -> bool {
        let Position {
            sequence, stored, ..
        } = position;
        self.single.get(&sequence) == Some(&stored)
            || self
                .floor
                .is_some_and(|(last, at)| sequence <= last && stored <= at)
    }

    /// The sequence up to which everything of the partition was handled, if
    /// that is known.
    pub(super) fn floor(&self) -> Option<u64> {
        self.floor.map(|(sequence, _)| sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sequence: u64, stored: u64) -> Position {
        Position {
            deliveries: 1,
            sequence,
            stored,
            pending: 0,
        }
    }

    #[test]
    fn in_order_everything_up_to_the_last_is_done() {
        let mut done = Done::default();
        assert!(!done.holds(at(1, 10)));
        done.add(Mode::Ordered, at(7, 70));
        assert!(done.holds(at(7, 70)) && done.holds(at(3, 30)) && !done.holds(at(8, 80)));
        assert_eq!(done.floor(), Some(7));
    }

    #[test]
    fn a_stream_that_was_made_anew_has_new_messages_under_old_numbers() {
        let mut done = Done::default();
        done.add(Mode::Ordered, at(7, 70));
        assert!(!done.holds(at(1, 90)));
        done.add(Mode::Ordered, at(1, 90));
        assert!(!done.holds(at(2, 91)));
        let mut done = Done::default();
        done.add(Mode::Concurrent, at(7, 70));
        assert!(!done.holds(at(7, 90)));
    }

    #[test]
    fn at_once_only_what_was_done_is_done_and_memory_is_bounded() {
        let mut done = Done::default();
        done.add(Mode::Concurrent, at(7, 70));
        assert!(done.holds(at(7, 70)) && !done.holds(at(6, 60)));
        assert_eq!(done.floor(), None);
        for number in 100..100 + 2 * REMEMBERED_MAX as u64 {
            done.add(Mode::Concurrent, at(number, number));
        }
        assert_eq!(done.single.len(), REMEMBERED_MAX);
    }
}
