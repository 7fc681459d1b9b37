//! Hands on a world of lease mode.

use std::time::Duration;

use divvy_core::lease::{Outlook, Report, SelfDescription, StopReason};
use divvy_core::store::{LeaseName, Member, Token, WorkerId, WorkerInfo};
use divvy_core::{Control, Health, Partitions};

use super::wishes::Wishes;
use super::{CLUSTER, LeaseWorld};
use crate::hands::{Deed, Hands, Newcomer, Place, PlaceState, StoreState};
use crate::invariants::Broken;

/// The group that hands change: a sound world has one.
const GROUP: usize = 0;
/// What a partition weighs, where none has a weight of its own.
const WEIGHT: i64 = 100;
/// Tenures of one partition that are remembered where a world has no end.
const NONCES_KEPT: usize = 8;

impl LeaseWorld {
    /// Lets hands know what a member reports.
    pub(super) fn reported(&mut self, place: usize, report: &Report) {
        let text = match report {
            Report::Problem(text) => text.to_string(),
            Report::Quarantined(left) => {
                format!("the store grants nothing for {} ms", left.as_millis())
            }
            _ => return,
        };
        self.note_deed(Deed::Problem { place, text });
    }

    /// Lets hands know why a partition stops.
    pub(super) fn stop_reason(&mut self, place: usize, partition: usize, reason: StopReason) {
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.stops_because(place, partition, reason.as_str());
        }
    }

    /// Forgets old tenures of a partition where the world has no end.
    pub(super) fn forget_nonces(&mut self, partition: usize) {
        if self.profile.room.is_none() {
            return;
        }
        let first = Token::new(1).expect("1 is above 0");
        let of_it = |at: usize| (at, first)..(at + 1, first);
        while self.own.nonces.range(of_it(partition)).count() > NONCES_KEPT {
            let oldest = self.own.nonces.range(of_it(partition)).next();
            let Some((&oldest, _)) = oldest else {
                return;
            };
            self.own.nonces.remove(&oldest);
        }
    }

    /// The groups that a member serves; nothing if all.
    fn served_by(&self, place: usize) -> Option<Vec<String>> {
        let serves = &self.profile.plan_of(place).serves;
        let groups = 0..self.own.groups.count();
        let served = groups.filter(|&group| {
            self.own.groups.is_stored(group) || serves.get(group).copied().unwrap_or(false)
        });
        let served: Vec<usize> = served.collect();
        let name = |group: usize| self.own.groups.group(group).name().to_string();
        (served.len() < self.own.groups.count()).then(|| served.into_iter().map(name).collect())
    }

    fn state_of(&self, place: usize) -> PlaceState {
        let process = &self.processes[place];
        match &process.machine {
            None => PlaceState::Gone,
            Some(_) if process.stopping => PlaceState::Stopping,
            Some(machine) if machine.session().is_none() => PlaceState::Joining,
            Some(machine) if machine.backoff_active() => PlaceState::Backoff,
            Some(_) => PlaceState::Stable,
        }
    }
}

impl Hands for LeaseWorld {
    fn place(&self, place: usize) -> Place {
        let process = &self.processes[place];
        let now = process.clock.at(self.now);
        let name = process.host.worker.name.to_string();
        let ends = process.running.values().filter_map(|running| running.until);
        let left = ends.min().map(|end| end.since(now));
        let left = left.filter(|left| !left.is_zero());
        let is_reached = process.stillness.is_none() && process.isolation.is_none();
        Place {
            id: process.is_alive().then(|| name.clone()),
            name,
            state: self.state_of(place),
            is_leader: false,
            health: match process.host.description.healthy {
                true => Health::Healthy,
                false => Health::Unhealthy,
            },
            weight: process.host.description.weight,
            zone: None,
            is_paused: process.stillness.is_some(),
            isolation: process.isolation,
            hooks: process.hooks,
            is_lapsed: !is_reached && left.is_none(),
            lease_left: left,
            lease: self.profile.settings.lease_ttl,
        }
    }

    fn count_partitions(&self) -> usize {
        match self.own.groups.count() {
            1 => self.own.groups.group(GROUP).partitions() as usize,
            _ => self.own.groups.partitions_max(),
        }
    }

    fn is_wanted(&self, partition: usize) -> bool {
        self.own.groups.is_wanted(partition)
    }

    fn name_of(&self, partition: usize) -> String {
        self.own.groups.key_of(partition).to_string()
    }

    fn weight_of(&self, _partition: usize) -> i64 {
        WEIGHT
    }

    fn list(&self) -> Partitions {
        let groups = self.own.groups.present();
        let shards = groups
            .iter()
            .map(|group| (group.name().as_str(), group.partitions()));
        Partitions::shards(shards).expect("groups have valid names and sizes")
    }

    fn add(&mut self, newcomer: &Newcomer) -> usize {
        let place = self.add_member();
        let process = &mut self.processes[place];
        if let Some(name) = &newcomer.name {
            process.host.worker = WorkerId::new(CLUSTER, name).expect("callers check names");
        }
        if let Some(weight) = newcomer.weight {
            process.host.description.weight = weight;
        }
        self.share_hashes();
        place
    }

    fn ask_to_stop(&mut self, place: usize, _keep: Option<Duration>) {
        self.stop(place);
    }

    fn set_description(
        &mut self,
        place: usize,
        health: Health,
        weight: f64,
        _zone: Option<&str>,
    ) -> Result<(), Broken> {
        let healthy = health == Health::Healthy;
        self.describe(place, SelfDescription { healthy, weight })
    }

    fn set_partitions(&mut self, count: usize) -> Result<(), Broken> {
        self.set_size(GROUP, u32::try_from(count).unwrap_or(u32::MAX));
        self.share_hashes();
        Ok(())
    }

    fn set_weight(&mut self, _partition: usize, _weight: i64) -> Result<(), Broken> {
        Ok(())
    }

    fn wish(&mut self, control: &Control) {
        self.set_wishes(Wishes {
            control: control.clone(),
            is_garbled: false,
        });
    }

    fn cluster(&self) -> Option<&'static str> {
        Some(CLUSTER)
    }

    fn set_store(&mut self, state: StoreState) {
        self.hinder_while(None, state == StoreState::Down);
        let settings = &self.profile.settings;
        self.reach.set(state);
        self.profile.latency = match state {
            StoreState::Slow => (settings.lease_ttl / 100, settings.lease_ttl / 30),
            StoreState::Up | StoreState::Down => crate::profile::LATENCY,
        };
    }

    fn forget_all(&mut self, announced: bool) -> Result<(), Broken> {
        if !announced {
            return self.empty(self.profile.settings.heartbeat_interval);
        }
        self.store.restart_behind(usize::MAX);
        self.hinder_restart(Duration::ZERO);
        self.restarted(Duration::ZERO)
    }

    fn held_back(&self, place: usize, partition: usize) -> Option<&'static str> {
        let machine = self.processes[place].machine.as_deref()?;
        let explained = machine.explain(&self.own.groups.key_of(partition))?;
        Some(explained.why?.as_str())
    }

    fn outlook(&self, places: &[usize]) -> Option<Outlook> {
        let members = places.iter().map(|&place| {
            let process = &self.processes[place];
            let info = WorkerInfo {
                weight: process.host.description.weight,
                healthy: process.host.description.healthy,
                groups: self.served_by(place),
                ..WorkerInfo::default()
            };
            Member {
                name: process.host.worker.name.to_string(),
                info: info.to_json().ok(),
            }
        });
        let members: Vec<Member> = members.collect();
        let cluster = LeaseName::new("cluster", CLUSTER).expect("a valid name");
        let wishes = self.store.table.wishes(&cluster);
        let weight = self.profile.settings.default_weight;
        let groups = self.own.groups.present();
        let outlook = Outlook::shared(
            &cluster,
            &members,
            wishes.as_deref(),
            weight,
            groups,
            &self.own.hashes,
        );
        Some(outlook)
    }

    fn handed_on_within(&self) -> Duration {
        self.profile.handed_on_within()
    }

    fn pace(&self) -> (Duration, Duration) {
        let settings = &self.profile.settings;
        (settings.move_cooldown, settings.start_window)
    }
}
