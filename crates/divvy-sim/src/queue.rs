//! What is still to happen, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::TrueTime;

/// A queue by time; what is due at the same time comes out as it went in.
#[derive(Debug, Clone)]
pub(crate) struct Queue<T> {
    due: BinaryHeap<Reverse<(TrueTime, u64, u32)>>,
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    pushed: u64,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            due: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            pushed: 0,
        }
    }

    pub(crate) fn push(&mut self, at: TrueTime, what: T) {
        let slot = match self.free.pop() {
            Some(slot) => {
                // It was taken from there: there is nothing to drop.
                std::mem::forget(self.slots[slot as usize].replace(what));
                slot
            }
            None => {
                self.slots.push(Some(what));
                u32::try_from(self.slots.len() - 1).expect("far fewer things are pending")
            }
        };
        self.pushed += 1;
        self.due.push(Reverse((at, self.pushed, slot)));
    }

    /// What comes next, if it comes at `until` or before.
    pub(crate) fn pop(&mut self, until: TrueTime) -> Option<(TrueTime, T)> {
        let Reverse((at, _, _)) = *self.due.peek()?;
        if at > until {
            return None;
        }
        let Reverse((at, _, slot)) = self.due.pop()?;
        self.free.push(slot);
        let what = self.slots[slot as usize].take();
        Some((at, what.expect("a slot is filled until it is due")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_once_comes_out_as_it_went_in() {
        let mut queue = Queue::new();
        let at = TrueTime::from_nanos;
        for (time, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (2, 'b')] {
            queue.push(at(time), what);
        }
        let out: String = std::iter::from_fn(|| queue.pop(at(9)))
            .map(|(_, what)| what)
            .collect();
        assert_eq!(out, "abcd");
        queue.push(at(10), 'e');
        assert!(queue.pop(at(9)).is_none());
    }
}
