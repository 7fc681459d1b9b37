//! A queue of workers, lightest first, whose loads only grow while it is in use.
//!
//! Entries are corrected when they surface, not when loads change: a worker that became heavier after it was
//! queued has a key that is too low, comes up early, and is queued again. So a placement by preference costs
//! the queue nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Workers by load per unit of weight; ties to the smaller index.
#[derive(Debug, Default)]
pub(super) struct Lightest {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Lightest {
    pub(super) fn push(&mut self, level: f64, worker: u32) {
        self.heap.push(Reverse((key(level), worker)));
    }

    /// The lightest worker, which is then queued with the level it gets, or no more. For queues that see
    /// every change.
    pub(super) fn next(&mut self, level_after: impl FnOnce(u32) -> Option<f64>) -> Option<u32> {
        let mut top = self.heap.peek_mut()?;
        let Reverse((_, worker)) = *top;
        match level_after(worker) {
            Some(level) => *top = Reverse((key(level), worker)),
            None => {
                PeekMut::pop(top);
            }
        }
        Some(worker)
    }

    /// The lightest worker that `is_open`; one that is not is forgotten.
    pub(super) fn peek(
        &mut self,
        level: impl Fn(u32) -> f64,
        is_open: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        loop {
            let mut top = self.heap.peek_mut()?;
            let Reverse((queued, worker)) = *top;
            if !is_open(worker) {
                PeekMut::pop(top);
                continue;
            }
            let current = key(level(worker));
            if current == queued {
                return Some(worker);
            }
            *top = Reverse((current, worker));
        }
    }

    /// Among the `count` lightest that are open, the one of the lowest `score`; at least one must be open.
    pub(super) fn best_of(
        &mut self,
        count: usize,
        level: impl Fn(u32) -> f64,
        is_open: impl Fn(u32) -> bool,
        score: impl Fn(u32) -> f64,
    ) -> u32 {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            let Some(worker) = self.peek(&level, &is_open) else {
                break;
            };
            self.heap.pop();
            taken.push(worker);
        }
        for &worker in &taken {
            self.push(level(worker), worker);
        }
        let best = taken
            .into_iter()
            .min_by(|&a, &b| score(a).total_cmp(&score(b)));
        best.expect("one worker is open")
    }
}

/// Order-preserving integer of a level: non-negative floats compare as their bits do.
pub(super) fn key(level: f64) -> u64 {
    level.to_bits()
}
