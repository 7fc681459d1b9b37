//! A value that one writes and many read, none of whom waits for another.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;

/// A value that is replaced as a whole. Reading it takes no lock; only who waits
/// for a change is woken by one.
#[derive(Debug)]
pub(super) struct Shown<T> {
    value: ArcSwap<T>,
    pub(super) changes: watch::Sender<()>,
}

impl<T: Clone> Shown<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            value: ArcSwap::from_pointee(value),
            changes: watch::Sender::new(()),
        }
    }

    pub(super) fn get(&self) -> T {
        T::clone(&self.value.load())
    }

    pub(super) fn set(&self, value: T) {
        self.value.store(Arc::new(value));
        self.changes.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_holds_a_value_holds_up_nobody() {
        let shown = Shown::new(1);
        let held = shown.value.load();
        let waiting = shown.changes.subscribe();
        // With a lock, this would wait for `held`.
        shown.set(2);
        assert_eq!((**held, shown.get()), (1, 2));
        assert!(waiting.has_changed().is_ok_and(|changed| changed));
    }
}
