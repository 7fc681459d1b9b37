//! Worlds of leader mode: members, each the machine that runs in production,
//! one of which places partitions, over a store, an election and a source of
//! partitions that fail.

mod act;
mod coordination;
mod elect;
mod hands;
mod machine;
mod operation;
mod operators;
mod phase;
mod process;
mod source;
mod store;
mod strike;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::StoreOutage;
use divvy_core::{Strategy, StrategySettings};

use crate::coverage::Mishap;
use crate::dice::Dice;
use crate::fault::FaultKind;
use crate::invariants::{Bounds, Invariants};
use crate::ledger::Ledger;
use crate::profile::Profile;
use crate::world::{Beginning, OPERATIONS_MAX, WorldOf};
use elect::Agent;
use process::Lameness;
use source::Source;
use store::Store;

/// A world of leader mode.
pub type World = WorldOf<LeaderMode>;

/// What only worlds of leader mode have.
#[derive(Debug, Clone)]
pub struct LeaderMode {
    strategy: Arc<dyn Strategy>,
    source: Source,
    agent: Agent,
    /// Members that cannot start something.
    lame: BTreeMap<usize, Lameness>,
    /// How far one copy of the store lags behind.
    lag: Duration,
}

impl World {
    /// The world of this profile, before anything has happened.
    pub fn new(profile: Profile, traced: bool) -> Self {
        let strategy = StrategySettings::new(profile.strategy).build();
        let strategy = strategy.expect("defaults of built-in strategies are valid");
        let faults = profile.faults.iter();
        let faults = faults.map(|fault| (fault.at, back(&fault.kind)));
        let beginning = Beginning {
            dice: Dice::new(!profile.seed),
            store: Store::new(is_stale(&profile)),
            invariants: Invariants::new(&bounds(&profile)),
            partitions_max: profile.partitions_max(),
            faults: faults.collect(),
            without: profile.without.clone(),
            own: LeaderMode {
                strategy: strategy.into(),
                source: Source::new(&profile),
                agent: Agent::new(profile.election),
                lame: BTreeMap::new(),
                lag: Duration::ZERO,
            },
        };
        let is_mixed = profile.mixed;
        let mut world = Self::begun(profile, traced, beginning);
        if is_mixed {
            world.count(Mishap::MixedLeases);
        }
        world
    }

    /// A world that runs its course while somebody watches: event for event
    /// the one that [`Self::run`] runs.
    pub fn watched(profile: Profile) -> Self {
        Self::new(profile, true).watch()
    }

    /// The records of the store.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// How far back a fault lets the store go.
const fn back(kind: &FaultKind) -> Option<Duration> {
    match kind {
        FaultKind::Amnesia { back, .. } => *back,
        _ => None,
    }
}

/// Whether reads may show what was there before.
fn is_stale(profile: &Profile) -> bool {
    profile.faults.iter().any(|fault| match fault.kind {
        FaultKind::Weather(weather) => weather.stale > 0.0,
        FaultKind::Lag(_) => true,
        _ => false,
    })
}

fn bounds(profile: &Profile) -> Bounds {
    let settings = &profile.settings;
    let round_trip = profile.latency.1 * 2;
    Bounds {
        lease: settings.heartbeat_ttl,
        is_exclusive: settings.store_outage == StoreOutage::Exclusive,
        is_stale: is_stale(profile),
        is_calm: false,
        ends_late: true,
        leader_lease: settings.leader_lease,
        value_bytes_max: profile.value_bytes_max,
        operations_max: OPERATIONS_MAX,
        members_max: profile.members_max(),
        partitions_max: profile.partitions_max().max(1),
        // Hooks of one partition are serial: what stops must have stopped.
        start_within: settings.root_poll_interval * 2
            + round_trip * 4
            + profile.hook.1 * 2 * profile.hook_rounds()
            + profile.driver.hook_wait(settings.heartbeat_ttl) * 2,
        beat_within: settings.leader_lease,
    }
}
