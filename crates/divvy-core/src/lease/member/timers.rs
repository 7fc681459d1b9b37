//! The one table of everything that a member waits for.

use crate::moment::Moment;

/// What is waited for. Of two at one moment, the one that takes authority
/// away comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// A grant ends.
    Expire,
    /// A partition has to stop, because its lease was not renewed.
    Drain,
    /// The next renewal of leases.
    Renew,
    /// The next heartbeat.
    Beat,
    /// The next try to take the worker's name.
    Open,
    /// The next look at everything.
    Reconcile,
    /// The next reading of groups.
    Config,
    /// A lease that is not renewed may be over.
    Lapse,
    /// Something may be taken now.
    Take,
    /// Giving back what has stopped.
    Gather,
    /// Giving back what could not be given back.
    Release,
    /// A hook may be overdue.
    Hooks,
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
    Timer::Beat,
    Timer::Open,
    Timer::Reconcile,
    Timer::Config,
    Timer::Lapse,
    Timer::Take,
    Timer::Gather,
    Timer::Release,
    Timer::Hooks,
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

    /// Sets it to what may be nothing.
    pub(super) fn put(&mut self, timer: Timer, at: Option<Moment>) {
        self.due[timer as usize] = at;
    }

    /// Sets it unless it is due earlier already.
    pub(super) fn set_earlier(&mut self, timer: Timer, at: Moment) {
        let known = &mut self.due[timer as usize];
        *known = Some(known.map_or(at, |known| known.min(at)));
    }

    pub(super) fn cancel_all(&mut self) {
        *self = Self::default();
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<Moment> {
        self.due.iter().flatten().min().copied()
    }

    /// One that is due at `now`, the earliest first, which is then no longer
    /// set.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Timer> {
        let next = self.next().filter(|next| *next <= now)?;
        let mut all = ALL.into_iter();
        let timer = all.find(|timer| self.due[*timer as usize] == Some(next))?;
        self.due[timer as usize] = None;
        Some(timer)
    }
}
