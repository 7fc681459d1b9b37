//! Hands on a world of leader mode.

use std::time::Duration;

use divvy_core::leader::{Event, Keys, Operation, Report, Shutdown, State, StoreOutage};
use divvy_core::lease::Outlook;
use divvy_core::store::{Expected, Token};
use divvy_core::{Control, Health, Partitions};

use super::World;
use super::source::Source;
use crate::fault::{HookWeather, Isolation};
use crate::hands::{
    Chronicle, Deed, Done, Hands, Newcomer, Place, PlaceState, StoreState, StoreView, Trace,
};
use crate::invariants::Broken;
use crate::mode::Mode;
use crate::time::TrueTime;
use crate::world::Arrival;

/// For ever.
const NEVER: TrueTime = TrueTime::from_nanos(u64::MAX);
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
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.note(self.now, deed);
        }
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

    /// Tells every member that is there.
    fn tell_all(&mut self, event: &Event) -> Result<(), Broken> {
        for place in 0..self.processes.len() {
            self.arrive(place, Arrival::Event(event.clone()))?;
        }
        Ok(())
    }

    fn source(&self) -> &Source {
        &self.own.source
    }
}

impl Hands for World {
    fn mode(&self) -> Mode {
        Mode::Leader
    }

    fn time(&self) -> TrueTime {
        self.now
    }

    fn go_on_while(
        &mut self,
        until: TrueTime,
        more: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Broken> {
        while !self.has_ended() {
            let stage = self.next_stage_at(until);
            let stop = stage.unwrap_or(until);
            while let Some((at, happening)) = self.queue.pop(stop) {
                self.begin_at(at);
                self.happen(happening)?;
                if !more() {
                    return Ok(false);
                }
            }
            self.run_until(stop)?;
            match stage {
                Some(_) => self.next_stage()?,
                None => return Ok(true),
            }
        }
        Ok(true)
    }

    fn has_ended(&self) -> bool {
        self.profile.room.is_none() && self.course.is_none()
    }

    fn count_places(&self) -> usize {
        self.processes.len()
    }

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

    fn each_working(&self, work: &mut dyn FnMut(usize, usize, Token)) {
        for (place, process) in self.processes.iter().enumerate() {
            for (partition, token) in process.working(self.now) {
                work(place, partition, token);
            }
        }
    }

    fn each_hook(&self, hook: &mut dyn FnMut(usize, usize)) {
        for (place, process) in self.processes.iter().enumerate() {
            for call in process.calls.values() {
                hook(place, call.partition);
            }
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
        self.source().partitions()
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

    fn crash(&mut self, place: usize) -> Result<(), Broken> {
        self.processes[place].stillness = None;
        self.processes[place].comes_back = None;
        self.end(place, false)
    }

    fn ask_to_stop(&mut self, place: usize, keep: Option<Duration>) {
        let how = keep.map_or(Shutdown::Leave, |within| Shutdown::Return { within });
        Self::ask_to_stop(self, place, Event::Stop(how), Duration::ZERO);
        self.processes[place].comes_back = None;
    }

    fn boot_again(&mut self, place: usize) -> Result<(), Broken> {
        self.processes[place].stillness = None;
        self.processes[place].silent_since = None;
        self.boot(place)
    }

    fn pause(&mut self, place: usize) {
        self.processes[place].silent_since.get_or_insert(self.now);
        self.stand_still(place, NEVER.elapsed(), false);
    }

    fn go_on_at(&mut self, place: usize) -> Result<(), Broken> {
        if let Some(still) = &mut self.processes[place].stillness {
            still.until = self.now;
        }
        let process = &mut self.processes[place];
        process.silent_since = process.silent_since.filter(|_| process.isolation.is_some());
        self.resume(place)
    }

    fn cut_off(&mut self, place: usize, how: Option<Isolation>) {
        let process = &mut self.processes[place];
        match how {
            Some(_) => {
                process.silent_since.get_or_insert(self.now);
            }
            None if process.stillness.is_none() => process.silent_since = None,
            None => {}
        }
        self.isolate(place, how);
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

    fn set_hooks(&mut self, place: usize, hooks: HookWeather) {
        self.processes[place].hooks = hooks;
    }

    fn set_partitions(&mut self, count: usize) -> Result<(), Broken> {
        self.own.source.set_count(count);
        self.tell_all(&Event::RefreshRequested)
    }

    fn set_weight(&mut self, partition: usize, weight: i64) -> Result<(), Broken> {
        self.own.source.set_weight(partition, weight);
        self.tell_all(&Event::RefreshRequested)
    }

    fn wish(&mut self, control: &Control) {
        let key = Keys::default().control;
        let before = self.store.table.get(&key).map(|entry| entry.revision);
        let operation = Operation::CompareAndSet {
            key,
            expected: Expected::from(before),
            value: control.encode().into(),
        };
        if let (_, Some(change)) = self.store.apply(&operation) {
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
        self.reach.refuses_until = match state {
            StoreState::Down => NEVER,
            StoreState::Up | StoreState::Slow => TrueTime::ZERO,
        };
        self.profile.latency = match state {
            StoreState::Slow => {
                let lease = settings.heartbeat_ttl;
                (lease / 100, (lease / 12).min(settings.renewal_try() / 2))
            }
            StoreState::Up | StoreState::Down => crate::profile::LATENCY,
        };
    }

    fn store(&self) -> StoreView {
        StoreView {
            state: match self.reach.refuses_until > self.now {
                true => StoreState::Down,
                false if self.profile.latency == crate::profile::LATENCY => StoreState::Up,
                false => StoreState::Slow,
            },
            latency: self.profile.latency.1,
            incarnation: self.reach.incarnation().as_str().to_owned(),
        }
    }

    fn forget_all(&mut self, announced: bool) -> Result<(), Broken> {
        self.forget(usize::MAX, None, announced)
    }

    fn refresh_all(&mut self) -> Result<(), Broken> {
        self.tell_all(&Event::RefreshRequested)
    }

    fn take_deeds(&mut self) -> Vec<Done> {
        self.chronicle
            .as_mut()
            .map_or_else(Vec::new, Chronicle::take)
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

    fn facts_told(&self) -> u64 {
        self.chronicle.as_ref().map_or(0, Chronicle::told)
    }

    fn last_lines(&self) -> Vec<String> {
        self.trace.as_ref().map_or_else(Vec::new, Trace::lines)
    }
}
