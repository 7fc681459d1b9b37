//! The one table of everything that a member waits for.

use crate::moment::Moment;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// Authority ends.
    Expire,
    /// Work begins to stop, because the lease was not renewed.
    Drain,
    /// The next renewal.
    Renew,
    /// The next step of claiming an id.
    Claim,
    /// Taking the lead.
    Take,
    /// The next renewal of the lead.
    Beat,
    /// Reading what no watch told.
    Poll,
    /// A worker's lease may be over.
    Fence,
    /// The next look at what the root should be.
    Round,
    /// Reading, or writing again, the root.
    Root,
    /// Asking the source of partitions.
    Source,
    /// Deleting chunks.
    Garbage,
    /// A hook may be overdue.
    Hooks,
    /// Starting again what failed to start.
    Restart,
    /// The time for stopping is over.
    Shutdown,
    /// An operation was never answered.
    Lost,
}

const COUNT: usize = Timer::Lost as usize + 1;

const ALL: [Timer; COUNT] = [
    Timer::Expire,
    Timer::Drain,
    Timer::Renew,
    Timer::Claim,
    Timer::Take,
    Timer::Beat,
    Timer::Poll,
    Timer::Fence,
    Timer::Round,
    Timer::Root,
    Timer::Source,
    Timer::Garbage,
    Timer::Hooks,
    Timer::Restart,
    Timer::Shutdown,
    Timer::Lost,
];

/// When each is due.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers {
    due: [Option<Moment>; COUNT],
}

impl Timers {
    pub(super) fn set(&mut self, timer: Timer, at: Moment) {
        self.due[timer as usize] = Some(at);
    }

    /// Sets it unless it is due earlier already.
    pub(super) fn set_earlier(&mut self, timer: Timer, at: Moment) {
        let due = &mut self.due[timer as usize];
        *due = Some(due.map_or(at, |known| known.min(at)));
    }

    pub(super) fn cancel(&mut self, timer: Timer) {
        self.due[timer as usize] = None;
    }

    pub(super) fn cancel_all(&mut self) {
        self.due = [None; COUNT];
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<Moment> {
        self.due.iter().flatten().min().copied()
    }

    /// The earliest that is due at `now`, which is then no longer set. Of two
    /// at one moment, the one that takes authority away comes first.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Timer> {
        let due = ALL.into_iter().filter_map(|timer| {
            let at = self.due[timer as usize].filter(|at| *at <= now)?;
            Some((at, timer))
        });
        let (_, timer) = due.min_by_key(|(at, timer)| (*at, *timer as usize))?;
        self.cancel(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let at = |ms| Moment::from_origin(Duration::from_millis(ms));
        let mut timers = Timers::default();
        timers.set(Timer::Poll, at(5));
        timers.set(Timer::Claim, at(3));
        timers.set(Timer::Expire, at(5));
        timers.set_earlier(Timer::Claim, at(9));
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.take_due(at(2)), None);
        assert_eq!(timers.take_due(at(5)), Some(Timer::Claim));
        assert_eq!(timers.take_due(at(5)), Some(Timer::Expire));
        assert_eq!(timers.take_due(at(5)), Some(Timer::Poll));
        assert_eq!(timers.take_due(at(5)), None);
    }
}
