//! The profile of a world: all that its seed decides before it begins.

mod draw;

use std::collections::BTreeSet;
use std::time::Duration;

use divvy_core::StrategyName;
use divvy_core::leader::{Batches, Defect, LeaderSettings};

use crate::fault::Fault;
use crate::hands::Room;
use crate::time::TrueTime;
use crate::world::DriverPlan;

/// How long one way to a store takes that is nearby and well.
pub(crate) const LATENCY: (Duration, Duration) =
    (Duration::from_micros(200), Duration::from_micros(1000));

/// Timings that a world uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// [`LeaderSettings::fast`].
    Fast,
    /// [`LeaderSettings::default`].
    Default,
    /// [`LeaderSettings::calm`].
    Calm,
}

impl Preset {
    /// Its settings.
    pub fn settings(self) -> LeaderSettings {
        match self {
            Self::Fast => LeaderSettings::fast(),
            Self::Default => LeaderSettings::default(),
            Self::Calm => LeaderSettings::calm(),
        }
    }
}

/// Who says who leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Election {
    /// The store, by the protocol.
    Store,
    /// An agent that lets one lead at a time.
    Agent,
    /// An agent that lets two lead, until the world heals.
    TwoLead,
    /// An agent that lets everyone lead, until the world heals.
    AllLead,
}

/// All that is decided before a world begins.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Where it comes from.
    pub seed: u64,
    /// The timings.
    pub preset: Preset,
    /// The settings of all members; of those with the longer lease, where
    /// `mixed`.
    pub settings: LeaderSettings,
    /// Whether every other member has leases half as long: a cluster whose
    /// settings are being changed.
    pub mixed: bool,
    /// How many members there are at first.
    pub members: usize,
    /// How many partitions there are at first.
    pub partitions: usize,
    /// Whether partitions have weights of their own.
    pub weighted: bool,
    /// Who places partitions.
    pub strategy: StrategyName,
    /// Who says who leads.
    pub election: Election,
    /// The time that one way between a member and the store takes.
    pub latency: (Duration, Duration),
    /// The time that a sound hook takes.
    pub hook: (Duration, Duration),
    /// The largest value that the store takes.
    pub value_bytes_max: usize,
    /// How much members do at once.
    pub batches: Batches,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Faults that are left out, by their place among them.
    pub without: BTreeSet<usize>,
    /// When faults end.
    pub faults_until: TrueTime,
    /// How long the world then has to heal.
    pub healing: Duration,
    /// How long nothing may move after that.
    pub quiet: Duration,
    /// Whether clocks run at the rates of the protocol's assumption, or are
    /// exact.
    pub drifting: bool,
    /// How drivers behave.
    pub driver: DriverPlan,
    /// A mistake in every member.
    pub defect: Option<Defect>,
    /// How far hands may let it grow; nothing where none reach into it.
    pub room: Option<Room>,
}

impl Profile {
    /// The profile of this seed.
    pub fn of_seed(seed: u64) -> Self {
        draw::profile(seed)
    }

    /// A world in which nothing goes wrong: for figures and for tests that
    /// bring their own faults.
    pub fn sound(seed: u64, preset: Preset, members: usize, partitions: usize) -> Self {
        let settings = preset.settings();
        let mut profile = Self {
            seed,
            preset,
            mixed: false,
            members,
            partitions,
            weighted: false,
            strategy: StrategyName::Balanced,
            election: Election::Store,
            latency: LATENCY,
            hook: (Duration::from_micros(100), Duration::from_millis(2)),
            value_bytes_max: 512 * 1024,
            batches: Batches::default(),
            faults: Vec::new(),
            without: BTreeSet::new(),
            faults_until: TrueTime::ZERO,
            healing: Duration::ZERO,
            quiet: Duration::ZERO,
            drifting: true,
            driver: DriverPlan::default(),
            defect: None,
            room: None,
            settings,
        };
        profile.settings.start_backoff_max = profile
            .settings
            .start_deadline
            .max(profile.settings.heartbeat_ttl)
            * 2;
        profile.healing = profile.healing_time();
        profile.quiet =
            profile.settings.rebalance_cooldown * 3 + profile.settings.root_poll_interval * 2;
        profile
    }

    /// The settings of one member.
    pub fn settings_of(&self, member: usize) -> LeaderSettings {
        let mut settings = self.settings.clone();
        if self.mixed && member % 2 == 1 {
            settings.heartbeat_interval /= 2;
            settings.heartbeat_ttl /= 2;
            settings.leader_lease /= 2;
        }
        settings
    }

    /// How long everything takes at most, once faults are over: leases and
    /// leadership that run out, a quarantine, hooks that end late, windows and
    /// reservations.
    fn healing_time(&self) -> Duration {
        let settings = &self.settings;
        let wait = LeaderSettings::observed(settings.heartbeat_ttl);
        let lead = LeaderSettings::observed(settings.leader_lease);
        let leases = wait * 4 + lead * 2;
        let windows = settings.cold_start_window
            + settings.planned_scale_window
            + settings.rebalance_cooldown * 2
            + settings.grace;
        let hooks = settings.start_deadline * 2 + settings.stop_deadline * 2;
        // What is not given to a worker for a while, and the balance after it.
        let given_up = settings.start_backoff_max
            + settings.planned_scale_window
            + settings.rebalance_cooldown;
        let polls = settings.root_poll_interval * 3 + settings.operation_timeout;
        let kept = self.keep_for();
        // Lost records are created again with every listing.
        let missing = self.members_max().div_ceil(self.batches.missing) as u32;
        let polls = polls + settings.root_poll_interval * (missing - 1);
        let hooks = hooks + self.hook.1 * 2 * (self.hook_rounds() - 1);
        let waits = leases + windows + hooks + given_up + polls;
        waits + kept + self.latency.1 * 100 + Duration::from_secs(2)
    }

    /// How often as many hooks run as can at once, until all have.
    pub fn hook_rounds(&self) -> u32 {
        self.partitions_max().max(1).div_ceil(self.batches.hooks) as u32
    }

    /// How long a member that will return asks others to keep its place.
    pub fn keep_for(&self) -> Duration {
        self.settings.heartbeat_ttl * 2
    }

    /// Within which the partitions of a lost worker run elsewhere: LL + W +
    /// 2 polls + 1 s.
    pub fn handed_on_within(&self) -> Duration {
        let settings = &self.settings;
        LeaderSettings::observed(settings.leader_lease)
            + LeaderSettings::observed(settings.heartbeat_ttl)
            + settings.root_poll_interval * 2
            + Duration::from_secs(1)
            + self.latency.1 * 20
            + self.hook.1 * (self.hook_rounds() - 1)
    }

    /// Within which the partitions of a lost worker run, if one of the others
    /// cannot start them: it tries them all first, and gives them back.
    pub fn taken_over_within(&self) -> Duration {
        let settings = &self.settings;
        let mut tries = Duration::ZERO;
        for attempt in 1..settings.start_attempts {
            tries += settings.heartbeat_interval * (1 << (attempt - 1));
        }
        let attempts = self.hook.1 * (settings.start_attempts + 1) * self.hook_rounds();
        let given_back = settings.heartbeat_interval + settings.root_poll_interval * 2;
        self.handed_on_within() + settings.grace + tries + attempts + given_back
    }

    /// Whether the strategy gives each of so many members one of so many
    /// partitions at least.
    pub fn shares_with_all(&self, partitions: usize, members: usize) -> bool {
        let is_even = matches!(
            self.strategy,
            StrategyName::Balanced | StrategyName::RoundRobin
        );
        is_even && !self.weighted && partitions >= members
    }

    /// Most members that there can ever be.
    pub fn members_max(&self) -> usize {
        let joins = self.faults.iter();
        let joins = joins.filter(|fault| fault.kind == crate::fault::FaultKind::Join);
        // One more joins when the cluster is probed.
        let drawn = self.members + joins.count() + 1;
        self.room.map_or(drawn, |room| drawn.max(room.members))
    }

    /// Most partitions that there can ever be.
    pub fn partitions_max(&self) -> usize {
        let added = self.faults.iter().map(|fault| match fault.kind {
            crate::fault::FaultKind::Partitions(change) => change.max(0) as usize,
            _ => 0,
        });
        let drawn = self.partitions + added.sum::<usize>();
        self.room.map_or(drawn, |room| drawn.max(room.partitions))
    }
}
