//! How drivers behave: what production does around a machine, beside what the
//! machine decides.

use std::time::Duration;

use crate::dice::Dice;

/// Drivers are drawn on their own, beside what a seed has had before them.
pub(crate) const DRIVERS: u64 = 0x6472_6976;

/// What tells the drivers of one world from those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriverPlan {
    /// How many start hooks run at once, and how many stop hooks; none where
    /// hooks never wait.
    pub hook_concurrency: Option<usize>,
    /// Whether commands do the work: they go on while their agent stands still,
    /// until a fencer ends them. Otherwise work stands still with its process.
    pub commands: bool,
    /// How late a driver wakes at most, while faults happen.
    pub late: Duration,
    /// How long a driver that has an answer stands still before it looks at it
    /// at most, while faults happen.
    pub stalls: Duration,
    /// How long after a connection a driver knows the life of the store on it at
    /// most, beyond a round trip.
    pub life: Duration,
    /// A mistake in every driver.
    pub defect: Option<DriverDefect>,
}

impl DriverPlan {
    pub(crate) fn drawn(dice: &mut Dice, lease: Duration) -> Self {
        let second = Duration::from_secs(1);
        let zero = Duration::ZERO;
        Self {
            hook_concurrency: dice.pick(&[None, Some(1), Some(2), Some(4)]),
            commands: dice.chance(0.5),
            late: dice.pick(&[
                zero,
                zero,
                zero,
                lease / 20,
                (lease / 4).min(second),
                second,
            ]),
            stalls: dice.pick(&[zero, zero, zero, lease]),
            life: dice.pick(&[zero, lease / 20, lease / 2]),
            ..Self::default()
        }
    }

    /// The time that sound hooks take, so that so many are called one after
    /// another within a twentieth of a lease.
    pub(crate) fn hooks_in_time(
        &self,
        (least, most): (Duration, Duration),
        lease: Duration,
        hooks: usize,
    ) -> (Duration, Duration) {
        let Some(concurrency) = self.hook_concurrency else {
            return (least, most);
        };
        let in_time = lease / 20 * concurrency as u32 / hooks.max(1) as u32;
        (least.min(in_time), most.min(in_time))
    }

    /// How long a sound hook waits for its turn at most.
    pub(crate) fn hook_wait(&self, lease: Duration) -> Duration {
        match self.hook_concurrency {
            None => Duration::ZERO,
            Some(_) => lease / 20,
        }
    }

    /// Whether drivers do what is due when it is due.
    pub(crate) const fn is_prompt(&self) -> bool {
        self.late.is_zero() && self.stalls.is_zero()
    }

    /// How late a driver wakes.
    pub(crate) fn lateness(&self, dice: &mut Dice) -> Duration {
        if self.late.is_zero() || !dice.chance(0.1) {
            return Duration::ZERO;
        }
        dice.span(Duration::ZERO, self.late)
    }

    /// How long a driver stands still before it looks at an answer. Those that
    /// grant something are few beside all others.
    pub(crate) fn stall(&self, dice: &mut Dice, is_grant: bool) -> Option<Duration> {
        let chance = if is_grant { 0.1 } else { 0.01 };
        if self.stalls.is_zero() || !dice.chance(chance) {
            return None;
        }
        // Often for about as long as what the answer grants.
        let least = dice.pick(&[Duration::ZERO, self.stalls * 4 / 5]);
        Some(dice.span(least, self.stalls))
    }

    pub(crate) fn has(&self, defect: DriverDefect) -> bool {
        self.defect == Some(defect)
    }
}

/// A mistake in one line of a driver; each must be caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverDefect {
    /// A start is called although its grant has ended while it waited.
    StartWithoutGrant,
    /// Stops wait in the queue of the starts.
    StopBehindStarts,
    /// The commands of an agent that stands still run on when their grants
    /// have ended.
    NoFencer,
    /// What a command left behind runs on after its stop.
    GroupLeftBehind,
}

impl DriverDefect {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::StartWithoutGrant,
        Self::StopBehindStarts,
        Self::NoFencer,
        Self::GroupLeftBehind,
    ];
}
