//! Worlds of lease mode: members, each the machine that runs in production,
//! over a lease store with its own clock that fails in every way that the
//! protocol allows for, and in some that it does not.

mod act;
mod coordination;
mod draw;
mod fault;
mod foreign;
mod groups;
mod hands;
mod machine;
mod operation;
mod phase;
mod process;
mod profile;
mod spoil;
mod store;
mod strike;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use divvy_core::lease::Hashes;
use divvy_core::store::{LeaseKey, Nonce, QuarantineId, Token, WorkerId};

use crate::clock::{MemberClock, RATE_ERROR_MAX_PPM};
use crate::dice::Dice;
use crate::invariants::{Bounds, LeaseInvariants};
use crate::time::TrueTime;
use crate::world::{Beginning, Happening, OPERATIONS_MAX, WorldOf};
pub use fault::{LeaseFault, LeaseFaultKind, SpoiltKey};
use groups::Groups;
pub use profile::{GroupPlan, LeasePreset, LeaseProfile, PlacePlan, Tuning, WorkerLimits};
use spoil::Victim;
use store::Store;
use wishes::Wishes;

/// The cluster that all members belong to.
const CLUSTER: &str = "c";
/// What the store's clock shows when the world begins: it can be set back.
const STORE_CLOCK_BASE: Duration = Duration::from_secs(1_000_000);

/// A world of lease mode.
pub type LeaseWorld = WorldOf<LeaseMode>;

/// What only worlds of lease mode have.
#[derive(Debug, Clone)]
pub struct LeaseMode {
    groups: Groups,
    /// What members would all calculate by themselves, where hands let a world
    /// grow.
    hashes: Arc<Hashes>,
    wishes: Wishes,
    /// What each token of each partition was granted with.
    nonces: BTreeMap<(usize, Token), Nonce>,
    /// The quarantine of the store that was last over.
    granting: Option<QuarantineId>,
    /// The longest lease that the store told each process of, while it granted.
    told_leases: BTreeMap<(usize, u32), Duration>,
    /// When each process last kept its name, by name.
    named: BTreeMap<WorkerId, BTreeMap<(usize, u32), TrueTime>>,
    /// Until when a name may be held by nobody: the store's clock was set.
    names_linger: TrueTime,
    /// Keys that another program has written over and nobody has deleted since,
    /// by the fault.
    spoilt: BTreeMap<usize, Victim>,
    /// Partitions that were ever started.
    started: BTreeSet<usize>,
    /// When a partition was last started or stopped.
    moved: TrueTime,
}

impl LeaseWorld {
    /// The world of this profile, before anything has happened.
    pub fn new(profile: LeaseProfile, traced: bool) -> Self {
        let mut dice = Dice::new(!profile.seed);
        let rate = match profile.drifting {
            true => dice.between(-RATE_ERROR_MAX_PPM, RATE_ERROR_MAX_PPM),
            false => 0,
        };
        let clock = MemberClock::new(STORE_CLOCK_BASE, rate, 0);
        let groups = Groups::new(&profile);
        let mut store = Store::new(clock, profile.fresh);
        groups.write(&mut store.table);
        let faults = profile.faults.iter();
        let faults = faults.map(|fault| (fault.at, back(&fault.kind)));
        let beginning = Beginning {
            dice,
            store,
            invariants: LeaseInvariants::new(&bounds(&profile, &groups)),
            partitions_max: groups.partitions_max(),
            faults: faults.collect(),
            without: profile.without.clone(),
            own: LeaseMode {
                groups,
                hashes: Arc::default(),
                wishes: Wishes::default(),
                nonces: BTreeMap::new(),
                granting: None,
                told_leases: BTreeMap::new(),
                named: BTreeMap::new(),
                names_linger: TrueTime::ZERO,
                spoilt: BTreeMap::new(),
                started: BTreeSet::new(),
                moved: TrueTime::ZERO,
            },
        };
        let mut world = Self::begun(profile, traced, beginning);
        world.share_hashes();
        if world.profile.room.is_none() {
            world.explain_some();
        }
        world
    }

    /// Somebody asks every member why a partition is where it is, now and then.
    fn explain_some(&mut self) {
        for member in 0..self.processes.len() {
            let partition = self.dice.below(self.own.groups.partitions_max());
            let key = self.own.groups.key_of(partition);
            if let Some(machine) = &self.processes[member].machine {
                machine.explain(&key);
            }
        }
        let interval = self.profile.settings.heartbeat_interval;
        self.after(interval, Happening::Errand(Self::explain_some));
    }

    /// A world that runs its course while somebody watches: event for event
    /// the one that [`Self::run`] runs.
    pub fn watched(profile: LeaseProfile) -> Self {
        Self::new(profile, true).watch()
    }

    /// Calculates for all members what each would for itself, where there may
    /// be many of them.
    fn share_hashes(&mut self) {
        if self.profile.room.is_none() {
            return;
        }
        let mut hashes = (*self.own.hashes).clone();
        for group in self.own.groups.present() {
            for process in &self.processes {
                hashes.add(&group, &process.host.worker);
            }
        }
        self.own.hashes = Arc::new(hashes);
        for process in &mut self.processes {
            if let Some(machine) = &mut process.machine {
                machine.share(Arc::clone(&self.own.hashes));
            }
        }
    }

    /// The number of the partition that a lease is for.
    fn partition_of(&self, key: &LeaseKey) -> usize {
        let partition = self.own.groups.partition_of(key);
        partition.expect("members know only groups that there are")
    }
}

/// How far back a fault lets the store go.
const fn back(kind: &LeaseFaultKind) -> Option<Duration> {
    match kind {
        LeaseFaultKind::RestartBehind(back) => *back,
        _ => None,
    }
}

fn bounds(profile: &LeaseProfile, groups: &Groups) -> Bounds {
    let settings = &profile.settings;
    Bounds {
        lease: profile.longest_lease(),
        is_exclusive: true,
        is_stale: false,
        is_calm: profile.is_calm(),
        ends_late: false,
        leader_lease: settings.lease_ttl,
        value_bytes_max: usize::MAX,
        // Beside those of one each, one of each kind for each partition, where
        // it has an operation of its own.
        operations_max: OPERATIONS_MAX + groups.partitions_max() * 5,
        members_max: profile.members_max(),
        partitions_max: groups.partitions_max(),
        start_within: settings.lease_ttl,
        beat_within: settings.lease_ttl,
    }
}
