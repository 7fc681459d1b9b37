//! The profile of a world in lease mode: all that its seed decides before it
//! begins.

use std::collections::BTreeSet;
use std::time::Duration;

use divvy_core::lease::{Batches, Defect, LeaseSettings};

use super::draw;
use super::fault::{LeaseFault, LeaseFaultKind};
use crate::hands::Room;
use crate::profile::LATENCY;
use crate::time::TrueTime;
use crate::world::DriverPlan;

/// Timings that a world uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeasePreset {
    /// [`LeaseSettings::fast`].
    Fast,
    /// [`LeaseSettings::default`].
    Default,
    /// [`LeaseSettings::rendezgo`].
    Rendezgo,
}

impl LeasePreset {
    /// Its settings.
    pub fn settings(self) -> LeaseSettings {
        match self {
            Self::Fast => LeaseSettings::fast(),
            Self::Default => LeaseSettings::default(),
            Self::Rendezgo => LeaseSettings::rendezgo(),
        }
    }
}

/// A group of partitions, at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPlan {
    /// Its name.
    pub name: &'static str,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many of them one worker may have; 0 is no limit.
    pub most: u32,
    /// Whether it is in the store, and served by all; otherwise it is in the
    /// settings of those who serve it.
    pub stored: bool,
}

/// How many partitions the settings of a worker let it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerLimits {
    /// Of all groups; 0 is no limit.
    pub max_partitions: u32,
    /// Of one group; 0 is no limit.
    pub max_per_group: u32,
    /// What else they were changed to; nothing while they are as at first.
    pub tuning: Option<Tuning>,
}

/// What settings of a worker can be changed while it runs, beside its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// [`LeaseSettings::shedding`].
    pub shedding: bool,
    /// [`LeaseSettings::gentle_handoff`].
    pub gentle_handoff: bool,
    /// [`LeaseSettings::releases_per_reconcile`].
    pub releases_per_reconcile: u32,
    /// [`LeaseSettings::acquires_per_reconcile`].
    pub acquires_per_reconcile: u32,
    /// [`LeaseSettings::min_runtime`].
    pub min_runtime: Duration,
    /// [`LeaseSettings::move_cooldown`].
    pub move_cooldown: Duration,
    /// [`LeaseSettings::min_partitions`].
    pub min_partitions: u32,
}

impl Tuning {
    fn of(self, settings: LeaseSettings) -> LeaseSettings {
        LeaseSettings {
            shedding: self.shedding,
            gentle_handoff: self.gentle_handoff,
            releases_per_reconcile: self.releases_per_reconcile,
            acquires_per_reconcile: self.acquires_per_reconcile,
            min_runtime: self.min_runtime,
            move_cooldown: self.move_cooldown,
            ..settings
        }
    }
}

/// What tells one place for a member from another.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacePlan {
    /// Its weight.
    pub weight: f64,
    /// Which groups it serves, beside those in the store.
    pub serves: Vec<bool>,
    /// How many it may have, unless it reads its settings again.
    pub limits: WorkerLimits,
    /// Below how many it gives up none.
    pub min_partitions: u32,
    /// The timings that it has; nothing for those of the world.
    pub preset: Option<LeasePreset>,
    /// How many times as long as by its timings its lease is.
    pub lease_factor: u32,
}

impl PlacePlan {
    /// Below how many it gives up none, where it may have so many.
    pub(super) fn least(&self, limits: WorkerLimits) -> u32 {
        let least = limits
            .tuning
            .map_or(self.min_partitions, |tuning| tuning.min_partitions);
        match limits.max_partitions {
            0 => least,
            most => most.min(least),
        }
    }
}

/// All that is decided before a world begins.
#[derive(Debug, Clone)]
pub struct LeaseProfile {
    /// Where it comes from.
    pub seed: u64,
    /// The timings.
    pub preset: LeasePreset,
    /// The settings of all members, but for their limits.
    pub settings: LeaseSettings,
    /// How many members there are at first.
    pub members: usize,
    /// What members are like, in the order of their places; after the last
    /// comes the first.
    pub places: Vec<PlacePlan>,
    /// The groups.
    pub groups: Vec<GroupPlan>,
    /// The time that one way between a member and the store takes.
    pub latency: (Duration, Duration),
    /// The time that a sound hook takes.
    pub hook: (Duration, Duration),
    /// Whether the store has just been started.
    pub fresh: bool,
    /// What goes wrong.
    pub faults: Vec<LeaseFault>,
    /// Faults that are left out, by their place among them.
    pub without: BTreeSet<usize>,
    /// When faults end.
    pub faults_until: TrueTime,
    /// Whether clocks run at the rates of the protocol's assumption, or are
    /// exact.
    pub drifting: bool,
    /// How many leases members put into one operation.
    pub batches: Batches,
    /// How drivers behave.
    pub driver: DriverPlan,
    /// A mistake in every member.
    pub defect: Option<Defect>,
    /// How far hands may let it grow; nothing where none reach into it.
    pub room: Option<Room>,
}

impl LeaseProfile {
    /// The profile of this seed.
    pub fn of_seed(seed: u64) -> Self {
        draw::profile(seed)
    }

    /// A world in which nothing goes wrong: for figures and for tests that
    /// bring their own faults.
    pub fn sound(seed: u64, preset: LeasePreset, members: usize, partitions: u32) -> Self {
        Self {
            seed,
            preset,
            settings: preset.settings(),
            members,
            places: vec![PlacePlan {
                weight: 1.0,
                serves: vec![true],
                limits: WorkerLimits::default(),
                min_partitions: 0,
                preset: None,
                lease_factor: 1,
            }],
            groups: vec![GroupPlan {
                name: "orders",
                partitions,
                most: 0,
                stored: false,
            }],
            latency: LATENCY,
            hook: (Duration::from_micros(100), Duration::from_millis(2)),
            fresh: false,
            faults: Vec::new(),
            without: BTreeSet::new(),
            faults_until: TrueTime::ZERO,
            drifting: true,
            batches: Batches::default(),
            driver: DriverPlan::default(),
            defect: None,
            room: None,
        }
    }

    /// What the member at a place is like.
    pub fn plan_of(&self, place: usize) -> &PlacePlan {
        &self.places[place % self.places.len()]
    }

    /// The settings of the member at a place that may have so many partitions.
    pub(super) fn settings_of(&self, place: usize, limits: WorkerLimits) -> LeaseSettings {
        let plan = self.plan_of(place);
        let timings = self.timings_of(plan);
        let timings = match limits.tuning {
            Some(tuning) => tuning.of(timings),
            None => timings,
        };
        LeaseSettings {
            max_partitions: limits.max_partitions,
            max_per_group: limits.max_per_group,
            min_partitions: plan.least(limits),
            lease_ttl: timings.lease_ttl * plan.lease_factor,
            ..timings
        }
    }

    /// The settings of the world with the timings of a place, but for the factor
    /// of its lease.
    fn timings_of(&self, plan: &PlacePlan) -> LeaseSettings {
        let Some(preset) = plan.preset else {
            return self.settings.clone();
        };
        let preset = preset.settings();
        LeaseSettings {
            heartbeat_ttl: preset.heartbeat_ttl,
            heartbeat_interval: preset.heartbeat_interval,
            lease_ttl: preset.lease_ttl,
            renew_interval: preset.renew_interval,
            reconcile_interval: preset.reconcile_interval,
            backoff: preset.backoff.min(preset.lease_ttl),
            backoff_max: preset.backoff_max.min(preset.lease_ttl),
            operation_timeout: preset.operation_timeout,
            ..self.settings.clone()
        }
    }

    /// The settings of all places.
    fn all_settings(&self) -> impl Iterator<Item = LeaseSettings> {
        let places = 0..self.places.len();
        places.map(|place| self.settings_of(place, WorkerLimits::default()))
    }

    /// The settings of the world with the longest timings of any place.
    fn slowest(&self) -> LeaseSettings {
        let all = self.all_settings();
        all.fold(self.settings.clone(), |slowest, one| LeaseSettings {
            heartbeat_ttl: slowest.heartbeat_ttl.max(one.heartbeat_ttl),
            heartbeat_interval: slowest.heartbeat_interval.max(one.heartbeat_interval),
            lease_ttl: slowest.lease_ttl.max(one.lease_ttl),
            renew_interval: slowest.renew_interval.max(one.renew_interval),
            reconcile_interval: slowest.reconcile_interval.max(one.reconcile_interval),
            backoff_max: slowest.backoff_max.max(one.backoff_max),
            operation_timeout: slowest.operation_timeout.max(one.operation_timeout),
            ..slowest
        })
    }

    /// The longest that one way to the store may take, so that operations of
    /// all places are answered in time.
    pub(super) fn slowest_way(&self) -> Duration {
        let tries = self.all_settings().map(|settings| settings.renewal_try());
        tries.min().unwrap_or_default() / 3
    }

    /// Whether groups come from the store.
    pub fn is_dynamic(&self) -> bool {
        self.groups.iter().any(|group| group.stored)
    }

    /// Most partitions that any group can ever have.
    pub fn partitions_max(&self) -> u32 {
        let added = self.faults.iter().map(|fault| match fault.kind {
            LeaseFaultKind::Resize(_, change) => change.max(0) as u32,
            _ => 0,
        });
        let largest = self.groups.iter().map(|group| group.partitions).max();
        let drawn = largest.unwrap_or(0) + added.sum::<u32>();
        self.room
            .map_or(drawn, |room| drawn.max(room.partitions as u32))
    }

    /// Most places that there can ever be: one more joins for figures.
    pub fn members_max(&self) -> usize {
        let more = self.faults.iter().filter(|fault| {
            matches!(
                fault.kind,
                LeaseFaultKind::Join | LeaseFaultKind::Namesake(_)
            )
        });
        let drawn = self.members + more.count() + 1;
        self.room.map_or(drawn, |room| drawn.max(room.members))
    }

    /// How long leases of the member at a place last.
    pub fn lease_of(&self, place: usize) -> Duration {
        self.settings_of(place, WorkerLimits::default()).lease_ttl
    }

    /// The longest lease of any member.
    pub fn longest_lease(&self) -> Duration {
        let leases = self.all_settings().map(|settings| settings.lease_ttl);
        leases.max().unwrap_or_default()
    }

    /// That lease by the slowest clock that a store may have.
    pub fn lease_at_most(&self) -> Duration {
        self.longest_lease().mul_f64(1.03)
    }

    /// How long a quarantine lasts at most, by the slowest clock: until a member
    /// that knows of no lease but its own has waited for the longest one and two
    /// heartbeats, after the first heartbeat that is answered.
    fn quarantine(&self) -> Duration {
        let beat = self.slowest().heartbeat_interval;
        (self.longest_lease() + beat * 2).mul_f64(1.05) + beat
    }

    /// For how long the member at a place must reach the store without a break
    /// to renew all its leases: an operation that was lost before is given up and
    /// tried again.
    pub fn reach_for(&self, place: usize) -> Duration {
        let settings = self.settings_of(place, WorkerLimits::default());
        let tries = settings.renewal_try() + settings.renewal_retry() * 2;
        let answered = self.latency.1 * 6 + Duration::from_millis(10);
        (tries + answered + self.driver.late).mul_f64(1.05)
    }

    /// For how long a member that has reached the store for so long may then
    /// not reach it, without a partition that stops: a lease by all clocks, less
    /// the time since its last renewal and the time that a stop takes.
    pub fn bears(&self, place: usize) -> Duration {
        let settings = self.settings_of(place, WorkerLimits::default());
        let since_renewal = settings.renew_interval + self.reach_for(place);
        let spent = since_renewal + settings.drain_ahead();
        settings.usable().mul_f64(0.96).saturating_sub(spent)
    }

    /// Whether some can have only so many, or give up only so many.
    fn is_limited(&self) -> bool {
        let places = self.places.iter();
        let mut limits = places
            .map(|plan| plan.limits != WorkerLimits::default() || plan.min_partitions > 0)
            .chain(self.groups.iter().map(|group| group.most > 0))
            .chain(self.faults.iter().map(|fault| match fault.kind {
                LeaseFaultKind::Limit(_, most) => most > 0,
                LeaseFaultKind::Reload(_, limits) => limits != WorkerLimits::default(),
                _ => false,
            }));
        limits.any(|is_limited| is_limited)
    }

    /// How far the store's clock goes back, all in all: leases last so much
    /// longer.
    fn set_back(&self) -> Duration {
        let back = self.faults.iter().map(|fault| match fault.kind {
            LeaseFaultKind::ClockStep(ms) if ms < 0 => Duration::from_millis(ms.unsigned_abs()),
            _ => Duration::ZERO,
        });
        back.sum()
    }

    /// Whether nothing goes wrong but hooks, and members come and go only in
    /// order.
    pub fn is_calm(&self) -> bool {
        let is_calm = self.faults.iter().all(|fault| fault.kind.is_calm());
        self.room.is_none() && is_calm && self.driver.is_prompt()
    }

    /// How long after the last fault something may still come from before it:
    /// names and leases that have to run out, operations under way, hooks that
    /// end late, a quarantine, groups that nobody was told of.
    pub fn aftermath(&self) -> Duration {
        let settings = &self.slowest();
        let expiry = settings.heartbeat_ttl.max(self.longest_lease());
        let expiry = expiry.mul_f64(1.03);
        let any = |is_one: fn(&LeaseFaultKind) -> bool| {
            self.faults.iter().any(|fault| is_one(&fault.kind))
        };
        // And nobody has looked since before all that.
        let looked = self.reconcile_at_most() * 2;
        let mut after = expiry + looked + self.set_back() + self.latency.1 * 100;
        if any(|kind| matches!(kind, LeaseFaultKind::Weather(weather) if weather.late > 0.0)) {
            after += settings.operation_timeout + self.longest_lease() * 2 + expiry;
        }
        if any(|kind| matches!(kind, LeaseFaultKind::Namesake(_))) {
            after += self.lease_at_most() + self.longest_lease() / 2;
        }
        if any(|kind| matches!(kind, LeaseFaultKind::Hooks(_))) {
            after += (settings.start_deadline + settings.stop_deadline) * 2;
        }
        let restarts = any(|kind| {
            matches!(
                kind,
                LeaseFaultKind::Restart | LeaseFaultKind::RestartBehind(_) | LeaseFaultKind::Empty
            )
        });
        if restarts || self.fresh {
            after += self.quarantine() * 2 + Duration::from_secs(2);
        }
        // Marks of a longer cooldown, and what was given up in vain by it.
        let tunings = self.faults.iter().filter_map(|fault| match fault.kind {
            LeaseFaultKind::Reload(_, limits) => limits.tuning,
            _ => None,
        });
        let cooldown = tunings.map(|tuning| tuning.move_cooldown).max();
        let longer = cooldown.filter(|cooldown| *cooldown > settings.move_cooldown);
        after += longer.unwrap_or_default().mul_f64(2.2);
        if self.is_dynamic() {
            after += settings.config_refresh_interval.mul_f64(1.2);
        }
        after
    }

    /// How long everything takes at most, once faults are over: what comes from
    /// before, pauses after failures, and moves that have to wait for their
    /// turn.
    pub fn healing(&self) -> Duration {
        let settings = &self.slowest();
        let reconcile = self.reconcile_at_most();
        let all: u32 = self.groups.iter().map(|group| group.partitions).sum();
        let each = match (settings.gentle_handoff, settings.releases_per_reconcile) {
            (false, _) | (_, 0) => u32::MAX,
            (true, each) => each,
        };
        // In each round, so many are asked for their cooldown.
        let each = each.min(self.batches.candidates as u32);
        let rounds = all.div_ceil(each) + 4;
        let held_back = (settings.min_runtime + settings.move_cooldown).mul_f64(1.1) * 2;
        // Where limits keep a unit from where it should be, every worker may
        // give it up twice before it stays where it is.
        let in_vain = match self.is_limited() {
            true => (held_back + reconcile * 4) * self.members_max() as u32,
            false => Duration::ZERO,
        };
        self.aftermath()
            + settings.backoff_max * 3
            + settings.start_window
            + settings.renewal_try()
            + held_back
            + in_vain
            + reconcile * rounds
            + Duration::from_secs(2)
    }

    /// How long nothing may move after that: long enough to see a unit that is
    /// given up again and again.
    pub fn quiet(&self) -> Duration {
        let settings = &self.slowest();
        let held = settings.min_runtime.max(settings.move_cooldown);
        held.mul_f64(1.1) + self.reconcile_at_most() * 3 + settings.renew_interval * 2
    }

    /// The longest that a look at everything lets wait for itself.
    pub fn reconcile_at_most(&self) -> Duration {
        reconcile_at_most(&self.slowest())
    }

    /// For how long nothing has to have moved until nothing will: what was
    /// given up in vain is given up once more.
    pub fn still(&self) -> Duration {
        let settings = &self.slowest();
        let keep = settings.move_cooldown.max(settings.reconcile_interval) * 2;
        let held_back = keep + settings.min_runtime + settings.move_cooldown;
        held_back.mul_f64(1.1) + self.reconcile_at_most() * 3
    }

    /// Within which everything was started after all members were: the window
    /// in which they wait for each other, a quarantine by the slowest clock, and
    /// a second. Where limits are, and not all serve the same or know of each
    /// other in that window, not all agree on who has room, and a look more is
    /// needed for each.
    pub fn started_within(&self) -> Duration {
        let quarantine = match self.fresh {
            true => self.quarantine(),
            false => Duration::ZERO,
        };
        let agree = !self.is_parted()
            && !self.is_dynamic()
            && !self.fresh
            && self.latency.1 * 50 < self.settings.start_window;
        let looks = match agree || !self.is_limited() {
            true => 0,
            false => self.members_max() as u32 + 1,
        };
        let window = self.settings.start_window + self.reconcile_at_most() * looks;
        quarantine
            + window
            + Duration::from_secs(1)
            + self.latency.1 * 20
            + self.driver.hook_wait(self.settings.lease_ttl)
    }

    /// Within which a partition runs whose spoilt key was deleted: a lease whose
    /// holder has lost its token runs out, and then every worker looks in its
    /// turn.
    pub fn repaired_within(&self) -> Duration {
        self.handed_on_within() + self.reconcile_at_most() * (self.members_max() as u32 + 1)
    }

    /// Whether some serve groups that others do not.
    fn is_parted(&self) -> bool {
        let serves_all = |plan: &PlacePlan| {
            let mut served = self.groups.iter().zip(&plan.serves);
            served.all(|(group, serves)| group.stored || *serves)
        };
        !self.places.iter().all(serves_all)
    }

    /// Within which the partitions of a lost worker run elsewhere: a lease and
    /// a second. Where looks are so rare that one may not see that a lease is
    /// about to run out, as much as that one comes late; where limits are, one
    /// look more for each worker that may be full and comes first.
    pub fn handed_on_within(&self) -> Duration {
        let looks = match self.is_limited() {
            true => self.members_max() as u32 + 1,
            false => 0,
        };
        let missed = self.all_settings().map(|settings| {
            let unrenewed = settings.renew_interval.mul_f64(1.5 * 1.04);
            let seen = settings.lease_ttl.saturating_sub(unrenewed);
            reconcile_at_most(&settings).saturating_sub(seen)
        });
        self.lease_at_most()
            + missed.max().unwrap_or_default()
            + self.reconcile_at_most() * looks
            + Duration::from_secs(1)
            + self.latency.1 * 20
            + self.driver.hook_wait(self.settings.lease_ttl)
    }
}

/// The longest that a look at everything lets wait for itself, by these settings.
fn reconcile_at_most(settings: &LeaseSettings) -> Duration {
    settings
        .reconcile_interval
        .mul_f64((1.0 + settings.reconcile_jitter) * 1.03)
}
