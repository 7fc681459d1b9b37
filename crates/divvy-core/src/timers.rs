//! The one table of everything that a member of either mode waits for.

use std::marker::PhantomData;

use crate::moment::Moment;

/// Most kinds of things that a member waits for.
const KINDS_MAX: usize = 16;

/// A kind of thing that is waited for.
pub(crate) trait Awaited: Copy + 'static {
    /// All of them. Of two that are due at one moment, the earlier here comes
    /// first: one that takes authority away before all others.
    const ALL: &'static [Self];

    /// Its place among all.
    fn place(self) -> usize;
}

/// When each is due.
#[derive(Debug, Clone)]
pub(crate) struct Timers<T> {
    due: [Option<Moment>; KINDS_MAX],
    /// The earliest of them: a member is asked for it after everything that
    /// happens, and mostly nothing is due.
    next: Option<Moment>,
    kind: PhantomData<T>,
}

impl<T: Awaited> Default for Timers<T> {
    fn default() -> Self {
        const { assert!(T::ALL.len() <= KINDS_MAX, "too many kinds of timers") };
        Self {
            due: [None; KINDS_MAX],
            next: None,
            kind: PhantomData,
        }
    }
}

impl<T: Awaited> Timers<T> {
    pub(crate) fn set(&mut self, timer: T, at: Moment) {
        let before = self.due[timer.place()].replace(at);
        match self.next {
            Some(next) if next <= at && before != Some(next) => {}
            Some(next) if next < at => self.find_next(),
            _ => self.next = Some(at),
        }
    }

    /// Sets it to what may be nothing.
    pub(crate) fn put(&mut self, timer: T, at: Option<Moment>) {
        match at {
            Some(at) => self.set(timer, at),
            None => self.cancel(timer),
        }
    }

    /// Sets it unless it is due earlier already.
    pub(crate) fn set_earlier(&mut self, timer: T, at: Moment) {
        if self.due[timer.place()].is_none_or(|known| at < known) {
            self.set(timer, at);
        }
    }

    pub(crate) fn cancel(&mut self, timer: T) {
        let before = self.due[timer.place()].take();
        if before.is_some() && before == self.next {
            self.find_next();
        }
    }

    pub(crate) fn cancel_all(&mut self) {
        *self = Self::default();
    }

    /// When the next is due.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.next
    }

    /// The earliest that is due at `now`, which is then no longer set.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<T> {
        let next = self.next.filter(|next| *next <= now)?;
        let mut all = T::ALL.iter().copied();
        let timer = all.find(|timer| self.due[timer.place()] == Some(next))?;
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

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Expire,
        Claim,
        Poll,
    }

    impl Awaited for Kind {
        const ALL: &'static [Self] = &[Self::Expire, Self::Claim, Self::Poll];

        fn place(self) -> usize {
            self as usize
        }
    }

    fn at(ms: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(ms))
    }

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let mut timers = Timers::default();
        timers.set(Kind::Poll, at(5));
        timers.set(Kind::Claim, at(3));
        timers.set(Kind::Expire, at(5));
        timers.set_earlier(Kind::Claim, at(9));
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.take_due(at(2)), None);
        assert_eq!(timers.take_due(at(5)), Some(Kind::Claim));
        assert_eq!(timers.take_due(at(5)), Some(Kind::Expire));
        assert_eq!(timers.take_due(at(5)), Some(Kind::Poll));
        assert_eq!(timers.take_due(at(5)), None);
    }

    #[test]
    fn the_next_is_the_earliest_whatever_was_set_and_cancelled() {
        let mut timers = Timers::default();
        let mut number = 1_u64;
        for step in 0..5000 {
            number = crate::hash::mix64(number);
            let timer = Kind::ALL[number as usize % Kind::ALL.len()];
            let when = at(step + (number >> 32) % 40);
            match number >> 8 & 7 {
                0 => timers.cancel(timer),
                1..4 => timers.set_earlier(timer, when),
                4..6 => timers.set(timer, when),
                6 => timers.put(timer, (step % 2 == 0).then_some(when)),
                _ => while timers.take_due(at(step)).is_some() {},
            }
            let earliest = timers.due.iter().flatten().min().copied();
            assert_eq!(timers.next(), earliest, "after step {step}");
        }
    }
}
