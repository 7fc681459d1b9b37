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
    /// The earliest of them: a member is asked for it after everything that
    /// happens, and mostly nothing is due.
    next: Option<Moment>,
}

impl Timers {
    pub(super) fn set(&mut self, timer: Timer, at: Moment) {
        let before = self.due[timer as usize].replace(at);
        match self.next {
            Some(next) if next <= at && before != Some(next) => {}
            Some(next) if next < at => self.find_next(),
            _ => self.next = Some(at),
        }
    }

    /// Sets it unless it is due earlier already.
    pub(super) fn set_earlier(&mut self, timer: Timer, at: Moment) {
        if self.due[timer as usize].is_none_or(|known| at < known) {
            self.set(timer, at);
        }
    }

    pub(super) fn cancel(&mut self, timer: Timer) {
        let before = self.due[timer as usize].take();
        if before.is_some() && before == self.next {
            self.find_next();
        }
    }

    pub(super) fn cancel_all(&mut self) {
        *self = Self::default();
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<Moment> {
        self.next
    }

    /// The earliest that is due at `now`, which is then no longer set. Of two
    /// at one moment, the one that takes authority away comes first.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Timer> {
        let next = self.next.filter(|next| *next <= now)?;
        let is_next = |timer: &Timer| self.due[*timer as usize] == Some(next);
        let timer = ALL.into_iter().find(is_next)?;
        self.cancel(timer);
        Some(timer)
    }

    fn find_next(&mut self) {
        self.next = self.due.iter().flatten().min().copied();
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

    #[test]
    fn the_next_is_the_earliest_whatever_was_set_and_cancelled() {
        let at = |ms| Moment::from_origin(Duration::from_millis(ms));
        let mut timers = Timers::default();
        let mut number = 1_u64;
        for step in 0..5000 {
            number = crate::hash::mix64(number);
            let timer = ALL[number as usize % COUNT];
            let when = at(step + (number >> 32) % 40);
            match number >> 8 & 7 {
                0 => timers.cancel(timer),
                1..4 => timers.set_earlier(timer, when),
                4..7 => timers.set(timer, when),
                _ => while timers.take_due(at(step)).is_some() {},
            }
            let earliest = timers.due.iter().flatten().min().copied();
            assert_eq!(timers.next(), earliest, "after step {step}");
        }
    }
}
