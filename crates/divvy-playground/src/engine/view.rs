//! What is shown of a world.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::Health;
use divvy_sim::{Mode, Place, PlaceState, StoreState};

use super::Engine;
use crate::action::{Action, ISOLATIONS, STORE_STATES};
use crate::compass::counts;
use crate::document::{
    ChoicesView, ClockView, InvariantsView, PartitionsView, SettingsView, StoreDocument, Summary,
    WorkerView,
};
use crate::scenario::Run;
use crate::setup::{MODES, presets, strategies};
use crate::shown::{Origin, Shown};

/// How far a world is behind when that is told.
const LAG: Duration = Duration::from_secs(1);
/// Workers up to which every lease clock is told every time.
const CLOCKS_TOLD_MAX: usize = 50;
/// Otherwise each is told so rarely.
const CLOCKS_TURN: u64 = 10;
/// Partitions whose members are asked what holds them back, each time.
const ASKED_MAX: usize = 500;
/// What one partition weighs by default, inside.
const WEIGHT: f64 = 100.0;

/// The loads of workers.
#[derive(Debug, Clone, Default)]
pub(super) struct Loads {
    pub(super) owned: Vec<usize>,
    pub(super) load: Vec<f64>,
    pub(super) share: Vec<f64>,
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Engine {
    /// All that is shown now. Where it is not whole, lease clocks of many
    /// workers are shown by turns.
    pub(super) fn see(&mut self, is_whole: bool) -> Shown {
        let places = self.places();
        self.forget_gone(&places);
        let marks = self.marks(&places);
        self.turn += 1;
        let turn = self.turn;
        let (loads, imbalance) = self.loads(&places);
        Shown {
            clock: ClockView {
                now_ms: self.now_ms(),
                running: self.is_running,
                speed: self.speed,
                lagging: self.is_running && self.behind > LAG,
                began_unix_ms: None,
            },
            settings: self.settings_view(&places),
            store: self.store_view(),
            workers: self.workers_view(&places, &loads, turn, is_whole),
            summary: self.summary(&marks, &loads, imbalance),
            partitions: self.partitions_view(marks),
            invariants: InvariantsView {
                checked: self.world.facts_told(),
                violations: self.violations.clone(),
            },
            scenario: self.scenario.as_ref().map(Run::state),
            point: self.points.back().cloned(),
        }
    }

    /// Where it comes from, and what can be done and chosen there.
    pub(super) fn origin(&self) -> Origin {
        let mode = self.setup.mode;
        Origin {
            run: format!("{:x}-{}", self.run_base, self.worlds),
            source: match self.is_replay {
                true => "replayed",
                false => "simulated",
            },
            mode: mode.as_str(),
            actions: match self.is_replay {
                true => Action::REPLAY.to_vec(),
                false => Action::names(mode),
            },
            choices: ChoicesView {
                presets: presets(mode),
                strategies: strategies(mode),
                modes: MODES.map(|(name, _)| name).to_vec(),
                isolations: ISOLATIONS.map(|(name, _)| name).to_vec(),
            },
        }
    }

    fn settings_view(&self, places: &[Place]) -> SettingsView {
        let lease = places.first().map_or(Duration::ZERO, |place| place.lease);
        SettingsView {
            preset: Some(self.setup.preset.clone()),
            strategy: Some(self.setup.strategy.as_str()),
            exclusive: Some(self.setup.exclusive),
            lease_ms: Some(lease.as_millis() as u64),
            seed: Some(self.setup.seed),
        }
    }

    fn store_view(&self) -> StoreDocument {
        let store = self.world.store();
        let named = |state: StoreState| {
            let mut names = STORE_STATES.iter();
            let name = names.find(|(_, known)| *known == state);
            name.expect("all states have names").0
        };
        StoreDocument {
            state: named(store.state),
            latency_ms: Some(store.latency.as_secs_f64() * 1000.0),
            incarnation: Some(store.incarnation),
            trouble: None,
        }
    }

    /// The load of every worker, and the most in relation to its share.
    pub(super) fn loads(&self, places: &[Place]) -> (Loads, f64) {
        let count = places.len();
        let mut loads = Loads {
            owned: vec![0; count],
            load: vec![0.0; count],
            share: vec![0.0; count],
            ..Loads::default()
        };
        let mut total = 0.0;
        for (partition, &owner) in self.gauge.owners.iter().enumerate() {
            let weight = self.world.weight_of(partition) as f64 / WEIGHT;
            total += weight;
            let owner = usize::try_from(owner).ok();
            let also = self.gauge.also.get(&partition).into_iter().flatten();
            for owner in owner.into_iter().chain(also.copied()) {
                loads.owned[owner] += 1;
                loads.load[owner] += weight;
            }
        }
        let is_eligible = |place: &Place| {
            let id = place.id.as_ref();
            let is_drained = id.is_some_and(|id| self.control.drained.contains(id));
            counts(place) && place.health == Health::Healthy && !is_drained && place.weight > 0.0
        };
        let eligible: Vec<usize> = (0..count)
            .filter(|&number| is_eligible(&places[number]))
            .collect();
        let capacity: f64 = eligible.iter().map(|&number| places[number].weight).sum();
        let mut imbalance = 1.0_f64;
        for &number in &eligible {
            let share = total * places[number].weight / capacity;
            loads.share[number] = share;
            imbalance = imbalance.max(loads.load[number] / share);
        }
        if !eligible.is_empty() {
            let of = |number: &usize| loads.load[*number];
            loads.mean = total / eligible.len() as f64;
            loads.least = eligible.iter().map(of).fold(f64::INFINITY, f64::min);
            loads.most = eligible.iter().map(of).fold(0.0, f64::max);
        }
        (loads, rounded(imbalance))
    }

    fn workers_view(
        &self,
        places: &[Place],
        loads: &Loads,
        turn: u64,
        is_whole: bool,
    ) -> BTreeMap<usize, WorkerView> {
        let shown = (0..places.len()).filter(|number| !self.removed.contains(number));
        let before = self.audience.view().filter(|_| !is_whole);
        let all_clocks = places.len() <= CLOCKS_TOLD_MAX;
        let views = shown.map(|number| {
            let view = self.worker_view(number, &places[number], loads);
            let is_turn = all_clocks || number as u64 % CLOCKS_TURN == turn % CLOCKS_TURN;
            let old = before.and_then(|shown| shown.workers.get(&number));
            match old.filter(|old| !is_turn && !view.differs(old)) {
                Some(old) => (number, old.clone()),
                None => (number, view),
            }
        });
        views.collect()
    }

    pub(super) fn worker_view(&self, number: usize, place: &Place, loads: &Loads) -> WorkerView {
        let id = place.id.as_ref();
        let isolated = place.isolation.map(|how| {
            let name = ISOLATIONS.iter().find(|(_, known)| *known == how);
            name.expect("all ways have names").0
        });
        WorkerView {
            number,
            name: place.name.clone(),
            id: place.id.clone(),
            state: place.state.as_str(),
            alive: place.is_alive(),
            leader: place.is_leader,
            health: match place.health {
                Health::Healthy => "healthy",
                Health::Unhealthy => "unhealthy",
            },
            weight: place.weight,
            zone: place.zone.clone(),
            paused: Some(place.is_paused),
            isolated,
            slow: Some(place.hooks.slow > 0.0),
            broken: Some(place.hooks.failing > 0.0),
            cordoned: id.is_some_and(|id| self.control.cordoned.contains(id)),
            draining: id.is_some_and(|id| self.control.drained.contains(id)),
            owned: loads.owned[number],
            load: rounded(loads.load[number]),
            share: rounded(loads.share[number]),
            lease_left_ms: place.lease_left.map(|left| left.as_millis() as u64),
            lease_ms: Some(place.lease.as_millis() as u64),
        }
    }

    fn partitions_view(&self, marks: Vec<u8>) -> PartitionsView {
        let count = self.gauge.owners.len();
        let old = self.audience.view().map(|shown| &shown.partitions);
        let weights: Vec<f64> = (0..count)
            .map(|number| self.world.weight_of(number) as f64 / WEIGHT)
            .collect();
        let is_even = weights.iter().all(|weight| *weight == 1.0);
        let same_names = old.filter(|old| {
            let is_last = |name: &String| *name == self.world.name_of(count.saturating_sub(1));
            old.names.len() == count && old.names.last().is_some_and(is_last)
        });
        let tokens = self.gauge.tokens.iter();
        let tokens = tokens.map(|token| token.map_or_else(String::new, |token| token.to_string()));
        PartitionsView {
            names: match same_names {
                Some(old) => old.names.clone(),
                None => (0..count)
                    .map(|number| self.world.name_of(number))
                    .collect(),
            },
            weights: (!is_even).then_some(weights),
            owners: self.gauge.owners.clone(),
            tokens: tokens.collect(),
            marks,
        }
    }

    fn summary(&self, marks: &[u8], loads: &Loads, imbalance: f64) -> Summary {
        let misplaced = marks.iter().filter(|mark| matches!(**mark, 2..=7 | 10));
        let since = self.converged_since;
        Summary {
            owned: self.gauge.owned,
            partitions: self.gauge.count,
            moving: self.gauge.moving,
            misplaced: Some(misplaced.count()),
            two_owners: Some(self.gauge.two_owners),
            mean: rounded(loads.mean),
            least: rounded(loads.least),
            most: rounded(loads.most),
            imbalance,
            moves: self.gauge.moves,
            converged: since.is_some(),
            converged_for_ms: since.map_or(0, |since| self.now_ms() - since),
        }
    }

    /// What is the matter with each partition.
    pub(super) fn marks(&mut self, places: &[Place]) -> Vec<u8> {
        let world = &*self.world;
        let gauge = &self.gauge;
        let desired = self.compass.desired(world, places, &self.control, gauge);
        let now_ms = world.time().nanos() / 1_000_000;
        let (cooldown, _) = world.pace();
        let cools = now_ms < gauge.moved_ms + cooldown.as_millis() as u64;
        let leader = places.iter().find(|place| place.is_leader);
        let leader = leader.map(|place| place.state);
        let mut asked = 0;
        let marks = (0..gauge.owners.len()).map(|number| {
            let (owner, wanted) = (gauge.owners[number], desired.get(number));
            if gauge.doubles[number] {
                return 9;
            }
            if gauge.hooks[number] {
                return 1;
            }
            let Ok(owner) = usize::try_from(owner) else {
                return if gauge.wanted[number] { 8 } else { 0 };
            };
            let place = &places[owner];
            if place.is_paused || place.isolation.is_some() {
                return 5;
            }
            let wanted = wanted.copied().unwrap_or(-1);
            if wanted < 0 || wanted == owner as i32 {
                return 0;
            }
            if world.mode() == Mode::Lease {
                asked += 1;
                let why = (asked <= ASKED_MAX).then(|| world.held_back(owner, number));
                return mark_of(why.flatten());
            }
            match leader {
                Some(PlaceState::Scaling) => 10,
                Some(PlaceState::Rebalancing | PlaceState::Emergency) => 1,
                None => 7,
                // What a leader that has thought about it leaves, is well placed.
                Some(_) if cools => 2,
                Some(_) => 0,
            }
        });
        marks.collect()
    }
}

/// What holds a partition back, as a mark.
fn mark_of(why: Option<&str>) -> u8 {
    match why {
        Some("moving" | "pace") => 1,
        Some("cooldown") => 2,
        Some("min_runtime") => 3,
        Some("cap" | "minimum") => 4,
        Some("backoff" | "quarantine") => 6,
        Some("cordoned") => 0,
        _ => 7,
    }
}

/// Enough digits for people.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
