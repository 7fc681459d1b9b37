//! Faults: what is done to a world, when, and for how long.
//!
//! The faults of a world are drawn before it begins, so that each can be left
//! out while all else stays as it is: that is how a failure is made smaller.

use std::fmt;
use std::time::Duration;

use crate::dice::Dice;
use crate::mode::Mode;
use crate::time::TrueTime;

/// One fault of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// When it begins.
    pub at: TrueTime,
    /// How long it lasts, where it does.
    pub lasts: Duration,
    /// What it is.
    pub kind: FaultKind,
}

/// What is done. Members are named by their number, modulo how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    /// The process ends, and is started again when the fault is over.
    Crash(usize),
    /// The same to whoever leads.
    CrashLeader,
    /// The process stands still.
    Pause(usize),
    /// Whoever leads stands still.
    PauseLeader,
    /// The machine sleeps.
    Suspend(usize),
    /// The member is cut off.
    Isolate(usize, Isolation),
    /// This part of all processes ends at once.
    MassRestart(f64),
    /// The member leaves for good, and its instance is started again later.
    Leave(usize),
    /// The member leaves to come back.
    Return(usize),
    /// Another member joins.
    Join,
    /// All members leave to come back, one after another.
    RollingRestart,
    /// The store does nothing.
    Stall,
    /// The store refuses whatever it is asked.
    Refuse,
    /// The store forgets the writes of the last span, or all.
    Amnesia {
        /// How far back it goes; nothing means that it is empty.
        back: Option<Duration>,
        /// Whether it says so by a new incarnation.
        announced: bool,
    },
    /// Rates at which single operations and watch events go wrong.
    Weather(Weather),
    /// Rates at which hooks go wrong.
    Hooks(HookWeather),
    /// A member cannot start every other partition.
    Lame(usize),
    /// The source of partitions is wrong.
    Source(SourceFault),
    /// Partitions are added (above 0) or removed.
    Partitions(i32),
    /// An application asks for a refresh.
    Refresh(usize),
    /// A worker is not well.
    Unhealthy(usize),
    /// A worker gets this weight.
    Weight(usize, f64),
    /// Whoever asks to lead is told yes, whoever leads already.
    FalseElection,
    /// A stranger writes something over a record, or beside the others.
    Scribble(usize),
    /// A stranger deletes a key, and watches show it or not.
    Delete(usize, bool),
    /// An operator overrides placement: cordons, drains, pins, or writes what
    /// nobody can read.
    Override(usize),
    /// The wall clock of a member is set by so many milliseconds.
    WallStep(usize, i64),
    /// One copy of the store lags behind, and every other member reads and
    /// watches that.
    Lag(Duration),
}

/// What a member cannot reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Anything.
    Full,
    /// The store, by what it sends; what others do it still sees.
    Outward,
    /// Itself: what it sends arrives, no reply or watch event comes back.
    Inward,
    /// The store; resources it does reach.
    Store,
}

impl Isolation {
    /// One of them.
    pub(crate) fn drawn(dice: &mut Dice) -> Self {
        dice.pick(&[Self::Full, Self::Outward, Self::Inward, Self::Store])
    }
}

/// What the source of partitions does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFault {
    /// It fails.
    Fails,
    /// It does not answer.
    Hangs,
    /// It gives nothing.
    Empty,
    /// It gives less than half.
    Shrinks,
    /// It gives some twice.
    Duplicates,
    /// It gives other weights each time.
    Noise,
}

/// Rates at which operations and watch events go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weather {
    /// Operations that never arrive.
    pub dropped: f64,
    /// Replies that never arrive.
    pub reply_lost: f64,
    /// Operations and replies that take far longer.
    pub delayed: f64,
    /// Operations that arrive twice.
    pub duplicated: f64,
    /// Operations that arrive after their caller was told that nobody knows.
    pub late: f64,
    /// Conditional writes that lose to nobody.
    pub spurious: f64,
    /// Reads of the past.
    pub stale: f64,
    /// Watch events that never come.
    pub watch_lost: f64,
    /// Watch events that come twice.
    pub watch_repeated: f64,
    /// Watch events that come late.
    pub watch_late: f64,
}

impl Weather {
    /// Rates of which some are above 0. Operations that arrive twice, conflicts
    /// with nobody and reads of the past are of leader mode alone.
    pub(crate) fn drawn(dice: &mut Dice, mode: Mode) -> Self {
        let mut weather = Self::default();
        let leads = mode == Mode::Leader;
        let rates = [
            (true, &mut weather.dropped),
            (true, &mut weather.reply_lost),
            (true, &mut weather.delayed),
            (leads, &mut weather.duplicated),
            (true, &mut weather.late),
            (leads, &mut weather.spurious),
            (leads, &mut weather.stale),
            (true, &mut weather.watch_lost),
            (true, &mut weather.watch_repeated),
            (true, &mut weather.watch_late),
        ];
        for (happens, rate) in rates {
            if happens && dice.chance(0.4) {
                *rate = dice.pick(&[0.01, 0.03, 0.1, 0.3]);
            }
        }
        weather
    }

    /// Both at once: the worse rate of each.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            dropped: self.dropped.max(other.dropped),
            reply_lost: self.reply_lost.max(other.reply_lost),
            delayed: self.delayed.max(other.delayed),
            duplicated: self.duplicated.max(other.duplicated),
            late: self.late.max(other.late),
            spurious: self.spurious.max(other.spurious),
            stale: self.stale.max(other.stale),
            watch_lost: self.watch_lost.max(other.watch_lost),
            watch_repeated: self.watch_repeated.max(other.watch_repeated),
            watch_late: self.watch_late.max(other.watch_late),
        }
    }
}

/// Rates at which hooks go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HookWeather {
    /// Hooks that take up to half of their deadline.
    pub slow: f64,
    /// Hooks that outlast their deadline.
    pub overdue: f64,
    /// Hooks that fail or panic.
    pub failing: f64,
    /// Hooks that never return.
    pub stuck: f64,
}

impl HookWeather {
    /// Rates of which some are above 0.
    pub(crate) fn drawn(dice: &mut Dice) -> Self {
        let rate = |dice: &mut Dice| dice.pick(&[0.0, 0.0, 0.05, 0.2]);
        Self {
            slow: rate(dice),
            overdue: rate(dice) / 2.0,
            failing: rate(dice),
            stuck: dice.pick(&[0.0, 0.0, 0.02]),
        }
    }

    /// Both at once: the worse rate of each.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            slow: self.slow.max(other.slow),
            overdue: self.overdue.max(other.overdue),
            failing: self.failing.max(other.failing),
            stuck: self.stuck.max(other.stuck),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.lasts.as_secs_f64();
        match self.kind {
            FaultKind::Weather(weather) => write!(f, "weather for {seconds:.3} s: {weather:?}"),
            FaultKind::Hooks(weather) => write!(f, "hooks for {seconds:.3} s: {weather:?}"),
            kind => write!(f, "{kind:?} for {seconds:.3} s"),
        }
    }
}
