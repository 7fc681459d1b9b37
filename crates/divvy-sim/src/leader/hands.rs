//! Hands on a world of leader mode.

use std::time::Duration;

use divvy_core::leader::{Event, Keys, Operation, Report, Shutdown, State, StoreOutage};
use divvy_core::lease::Outlook;
use divvy_core::store::Expected;
use divvy_core::{Control, Health, Partitions};

use super::World;
use crate::hands::{Deed, Hands, Newcomer, Place, PlaceState, StoreState};
use crate::invariants::Broken;
use crate::world::{Arrival, Life};

/// The zones that places are spread over.
const ZONES: [&str; 3] = ["a", "b", "c"];

/// The zone of a place that nobody gave one.
pub(super) fn zone_of(place: usize) -> Box<str> {
    ZONES[place % ZONES.len()].into()
}

impl World {
    /// Lets hands know what a member reports.
    pub(super) fn reported(&mut self, place: usize, report: &Report) {
        let deed = match report {
            Report::Leading(_) => Deed::Leads { place },
            Report::Problem(text) => Deed::Problem {
                place,
                text: text.to_string(),
            },
            _ => return,
        };
        self.note_deed(deed);
    }

    fn state_of(&self, place: usize) -> PlaceState {
        let process = &self.processes[place];
        let Some(machine) = &process.machine else {
            return PlaceState::Gone;
        };
        if process.stopping {
            return PlaceState::Stopping;
        }
        match machine.state() {
            State::Init | State::ClaimingId | State::Election | State::WaitingAssignment => {
                PlaceState::Joining
            }
            State::Stable => PlaceState::Stable,
            State::Scaling => PlaceState::Scaling,
            State::Rebalancing => PlaceState::Rebalancing,
            State::Emergency => PlaceState::Emergency,
            State::Shutdown => PlaceState::Stopping,
        }
    }
}

impl Hands for World {
    fn place(&self, place: usize) -> Place {
        let process = &self.processes[place];
        let machine = process.machine.as_deref();
        let now = process.clock.at(self.now);
        let lease = self.profile.settings.heartbeat_ttl;
        // Whoever may work on beside others has no clock that runs out.
        let is_exclusive = self.profile.settings.store_outage == StoreOutage::Exclusive;
        let left = process.host.deadline.filter(|_| is_exclusive);
        let left = left.map(|deadline| deadline.since(now));
        let left = left.filter(|left| !left.is_zero());
        let is_reached = process.stillness.is_none() && process.isolation.is_none();
        let is_long = process
            .silent_since
            .is_some_and(|since| self.now >= since + lease);
        Place {
            name: process.host.instance.clone(),
            id: machine.and_then(|machine| machine.worker_id().map(str::to_owned)),
            state: self.state_of(place),
            is_leader: machine.is_some_and(divvy_core::leader::Member::is_leader),
            health: process.host.description.health,
            weight: process.host.description.weight,
            zone: process.host.description.zone.as_deref().map(str::to_owned),
            is_paused: process.stillness.is_some(),
            isolation: process.isolation,
            hooks: process.hooks,
            lease_left: left,
            is_lapsed: !is_reached
                && if is_exclusive {
                    left.is_none()
                } else {
                    is_long
                },
            lease,
        }
    }

    fn count_partitions(&self) -> usize {
        self.own.source.count()
    }

    fn name_of(&self, partition: usize) -> String {
        self.own.source.name_of(partition)
    }

    fn weight_of(&self, partition: usize) -> i64 {
        self.own.source.weight_of(partition)
    }

    fn list(&self) -> Partitions {
        self.own.source.partitions()
    }

    fn add(&mut self, newcomer: &Newcomer) -> usize {
        let place = self.add_member();
        let process = &mut self.processes[place];
        if let Some(name) = &newcomer.name {
            process.host.instance.clone_from(name);
        }
        if let Some(weight) = newcomer.weight {
            process.host.description.weight = weight;
        }
        if let Some(zone) = &newcomer.zone {
            process.host.description.zone = Some(zone.as_str().into());
        }
        place
    }

    fn ask_to_stop(&mut self, place: usize, keep: Option<Duration>) {
        let how = keep.map_or(Shutdown::Leave, |within| Shutdown::Return { within });
        Self::ask_to_stop(self, place, Event::Stop(how), Duration::ZERO);
        self.processes[place].comes_back = None;
    }

    fn set_description(
        &mut self,
        place: usize,
        health: Health,
        weight: f64,
        zone: Option<&str>,
    ) -> Result<(), Broken> {
        let description = &mut self.processes[place].host.description;
        description.health = health;
        description.weight = weight;
        description.zone = zone.map(Into::into);
        let event = Event::Described(description.clone());
        self.arrive(place, Arrival::Event(event))
    }

    fn set_partitions(&mut self, count: usize) -> Result<(), Broken> {
        self.own.source.set_count(count);
        self.refresh_all()
    }

    fn set_weight(&mut self, partition: usize, weight: i64) -> Result<(), Broken> {
        self.own.source.set_weight(partition, weight);
        self.refresh_all()
    }

    fn wish(&mut self, control: &Control) {
        let key = Keys::default().control;
        let before = self.store.table.get(&key).map(|entry| entry.revision);
        let operation = Operation::CompareAndSet {
            key,
            expected: Expected::from(before),
            value: control.encode().into(),
        };
        if let (_, Some(change)) = self.store.apply(&operation, self.now) {
            self.spread(&std::sync::Arc::new(change));
        }
    }

    fn fork(&self) -> Option<Box<dyn Hands>> {
        let mut fork = self.clone();
        fork.trace = None;
        Some(Box::new(fork))
    }

    fn set_store(&mut self, state: StoreState) {
        let settings = &self.profile.settings;
        self.reach.set(state);
        self.profile.latency = match state {
            StoreState::Slow => {
                let lease = settings.heartbeat_ttl;
                (lease / 100, (lease / 12).min(settings.renewal_try() / 2))
            }
            StoreState::Up | StoreState::Down => crate::profile::LATENCY,
        };
    }

    fn forget_all(&mut self, announced: bool) -> Result<(), Broken> {
        self.forget(usize::MAX, None, announced)
    }

    fn held_back(&self, _place: usize, _partition: usize) -> Option<&'static str> {
        None
    }

    fn outlook(&self, _places: &[usize]) -> Option<Outlook> {
        None
    }

    fn handed_on_within(&self) -> Duration {
        self.profile.handed_on_within()
    }

    fn pace(&self) -> (Duration, Duration) {
        let settings = &self.profile.settings;
        (settings.rebalance_cooldown, settings.planned_scale_window)
    }
}
