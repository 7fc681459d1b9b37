//! Faults that begin and end.

use std::time::Duration;

use divvy_core::Health;
use divvy_core::leader::{Event, Shutdown};

use super::World;
use super::process::Lameness;
use crate::coverage::Mishap;
use crate::fact::{Fact, Phase};
use crate::fault::{FaultKind, HookWeather, Isolation, Weather};
use crate::invariants::Broken;
use crate::ledger::Ledger;
use crate::resource::Verdict;
use crate::world::{Arrival, Happening, Stillness};

impl World {
    /// A fault begins.
    pub(super) fn strike(&mut self, index: usize) -> Result<(), Broken> {
        if self.phase != Phase::Faults {
            return Ok(());
        }
        let fault = self.profile.faults[index].clone();
        self.note(|| format!("fault {index}: {fault}"));
        let place = |world: &Self, number: usize| number % world.processes.len();
        match fault.kind {
            FaultKind::Crash(number) => self.crash(place(self, number), fault.lasts)?,
            FaultKind::CrashLeader => {
                if let Some(leader) = self.leader() {
                    self.crash(leader, fault.lasts)?;
                }
            }
            FaultKind::Pause(number) => self.stand_still(place(self, number), fault.lasts, false),
            FaultKind::PauseLeader => {
                if let Some(leader) = self.leader() {
                    self.stand_still(leader, fault.lasts, false);
                }
            }
            FaultKind::Suspend(number) => self.stand_still(place(self, number), fault.lasts, true),
            FaultKind::MassRestart(part) => self.crash_many(part, fault.lasts)?,
            FaultKind::Leave(number) => {
                self.count(Mishap::Leave);
                self.ask_to_stop(place(self, number), Shutdown::Leave, fault.lasts);
            }
            FaultKind::Return(number) => {
                self.count(Mishap::Return);
                let within = self.profile.keep_for();
                self.ask_to_stop(
                    place(self, number),
                    Shutdown::Return { within },
                    fault.lasts,
                );
            }
            FaultKind::Join => self.join(),
            FaultKind::RollingRestart => {
                self.count(Mishap::RollingRestart);
                self.roll(0);
            }
            FaultKind::Stall => {
                self.count(Mishap::StoreStall);
                self.reach.stall(self.now + fault.lasts);
            }
            FaultKind::Refuse => {
                self.count(Mishap::StoreUnavailable);
                self.reach.refuse(self.now + fault.lasts);
            }
            FaultKind::Amnesia { back, announced } => self.forget(index, back, announced)?,
            FaultKind::Partitions(by) => {
                self.count(Mishap::PartitionsChanged);
                self.own.source.change(by, self.profile.partitions_max());
            }
            FaultKind::Refresh(number) => {
                self.count(Mishap::Refresh);
                let arrival = Arrival::Event(Event::RefreshRequested);
                self.arrive(place(self, number), arrival)?;
            }
            FaultKind::Scribble(what) => self.scribble(what),
            FaultKind::Weather(_)
            | FaultKind::Hooks(_)
            | FaultKind::Lame(_)
            | FaultKind::Source(_)
            | FaultKind::Isolate(..)
            | FaultKind::Unhealthy(_)
            | FaultKind::Weight(..)
            | FaultKind::FalseElection => self.last(index, fault.lasts)?,
        }
        Ok(())
    }

    /// A fault that lasts begins.
    fn last(&mut self, index: usize, lasts: Duration) -> Result<(), Broken> {
        self.active.push(index);
        self.after(lasts, Happening::Relent(index));
        self.settle_faults()
    }

    /// A fault ends.
    pub(super) fn relent(&mut self, index: usize) -> Result<(), Broken> {
        self.active.retain(|&active| active != index);
        self.settle_faults()
    }

    /// Everything is as the faults that last have it.
    pub(super) fn settle_faults(&mut self) -> Result<(), Broken> {
        self.weather = Weather::default();
        self.hook_weather = HookWeather::default();
        self.own.source.fault = None;
        self.own.lame.clear();
        let count = self.processes.len();
        let mut cut = vec![None; count];
        let mut described = vec![(Health::Healthy, 1.0); count];
        for &index in &self.active {
            match self.profile.faults[index].kind {
                FaultKind::Weather(weather) => self.weather = self.weather.and(weather),
                FaultKind::Hooks(weather) => self.hook_weather = self.hook_weather.and(weather),
                FaultKind::Lame(number) => {
                    self.own.lame.insert(number % count, Lameness::EveryOther);
                }
                FaultKind::Source(fault) => self.own.source.fault = Some(fault),
                FaultKind::Isolate(number, way) => cut[number % count] = Some(way),
                FaultKind::Unhealthy(number) => described[number % count].0 = Health::Unhealthy,
                FaultKind::Weight(number, weight) => described[number % count].1 = weight,
                _ => {}
            }
        }
        for member in 0..count {
            self.isolate(member, cut[member]);
            let (health, weight) = described[member];
            self.describe(member, health, weight)?;
        }
        Ok(())
    }

    pub(super) fn isolate(&mut self, member: usize, way: Option<Isolation>) {
        if self.processes[member].isolation == way {
            return;
        }
        self.processes[member].isolation = way;
        let Some(way) = way else {
            // Whatever was watched may have been missed.
            self.processes[member].connected = None;
            let after = self.way();
            self.reconnect(member, after);
            return;
        };
        self.count(match way {
            Isolation::Full => Mishap::IsolationFull,
            Isolation::Outward => Mishap::IsolationOutward,
            Isolation::Inward => Mishap::IsolationInward,
            Isolation::Store => Mishap::IsolationStore,
        });
    }

    fn describe(&mut self, member: usize, health: Health, weight: f64) -> Result<(), Broken> {
        let description = &mut self.processes[member].host.description;
        if description.health == health && description.weight == weight {
            return Ok(());
        }
        self.tally
            .coverage
            .count(match description.health == health {
                true => Mishap::WeightChanged,
                false => Mishap::Unhealthy,
            });
        description.health = health;
        description.weight = weight;
        let event = Event::Described(description.clone());
        self.arrive(member, Arrival::Event(event))
    }

    /// The member that believes to lead, if one does.
    pub(super) fn leader(&self) -> Option<usize> {
        let leads = |&member: &usize| {
            let machine = self.processes[member].machine.as_deref();
            machine.is_some_and(divvy_core::leader::Member::is_leader)
        };
        (0..self.processes.len()).find(leads)
    }

    pub(super) fn crash(&mut self, member: usize, back_after: Duration) -> Result<(), Broken> {
        if !self.processes[member].is_alive() {
            return Ok(());
        }
        self.count(Mishap::Crash);
        if self.leader() == Some(member) {
            self.count(Mishap::LeaderCrash);
        }
        self.end(member, false)?;
        self.after(back_after, Happening::Boot(member));
        Ok(())
    }

    fn crash_many(&mut self, part: f64, back_after: Duration) -> Result<(), Broken> {
        self.count(Mishap::MassRestart);
        let count = (self.processes.len() as f64 * part).ceil() as usize;
        for member in 0..count.min(self.processes.len()) {
            let spread = self.dice.span(Duration::ZERO, Duration::from_millis(100));
            self.crash(member, back_after + spread)?;
        }
        Ok(())
    }

    pub(super) fn stand_still(&mut self, member: usize, lasts: Duration, suspended: bool) {
        let process = &mut self.processes[member];
        if !process.is_alive() || process.stillness.is_some() {
            return;
        }
        process.stillness = Some(Stillness {
            until: self.now + lasts,
            suspended,
        });
        self.count(match suspended {
            true => Mishap::Suspend,
            false => Mishap::Pause,
        });
        self.after(lasts, Happening::Resume(member));
    }

    /// Asks a member to stop, and starts it again after it has.
    pub(super) fn ask_to_stop(&mut self, member: usize, how: Shutdown, back_after: Duration) {
        let process = &mut self.processes[member];
        if !process.is_alive() || process.stopping {
            return;
        }
        process.stopping = true;
        process.comes_back = Some(back_after);
        let generation = process.generation;
        let arrival = Arrival::Event(Event::Stop(how));
        self.after(
            Duration::ZERO,
            Happening::Arrive(member, generation, arrival),
        );
    }

    pub(super) fn join(&mut self) {
        self.count(Mishap::Join);
        let member = self.add_place();
        self.after(Duration::ZERO, Happening::Boot(member));
    }

    /// The next member of a rolling restart leaves to come back.
    pub(super) fn roll(&mut self, member: usize) {
        if member >= self.processes.len() || self.phase != Phase::Faults {
            return;
        }
        let within = self.profile.keep_for();
        let beat = self.profile.settings.heartbeat_interval;
        self.ask_to_stop(member, Shutdown::Return { within }, beat / 2);
        self.after(beat * 3, Happening::Roll(member + 1));
    }

    pub(super) fn forget(
        &mut self,
        index: usize,
        back: Option<Duration>,
        announced: bool,
    ) -> Result<(), Broken> {
        self.count(match back {
            Some(_) => Mishap::StoreRolledBack,
            None => Mishap::StoreEmptied,
        });
        self.reach.forgotten += 1;
        self.store.forget(index);
        self.ledger = Ledger::reread(&self.store.table, self.now);
        if announced {
            self.reach.life += 1;
            for member in 0..self.processes.len() {
                self.disconnect(member);
                let after = self.dice.span(
                    Duration::from_millis(1),
                    self.profile.settings.heartbeat_interval,
                );
                self.reconnect(member, after);
            }
        } else {
            self.count(Mishap::AmnesiaUnannounced);
        }
        self.tell(&Fact::Forgot { announced })
    }

    /// All running partitions do something.
    pub(super) fn effects(&mut self) -> Result<(), Broken> {
        for member in 0..self.processes.len() {
            let process = &self.processes[member];
            if process.stillness.is_some()
                || process.running.is_empty()
                || !process.reaches_resources()
                || !process.has_authority(self.now)
            {
                continue;
            }
            let running = process.running.iter().filter(|(_, running)| !running.void);
            let doing: Vec<_> = running
                .map(|(&number, running)| (number, running.token))
                .collect();
            for (partition, token) in doing {
                if self.phase == Phase::Faults && self.dice.chance(0.002) {
                    // Decided on now, done when the deadline may have passed.
                    let lease = self.profile.settings.heartbeat_ttl;
                    let late = self.dice.span(lease / 2, lease * 2);
                    self.after(late, Happening::LateEffect(partition, token));
                    continue;
                }
                if let Verdict::Refused(seen) = self.resource.effect(partition, token) {
                    self.tell(&Fact::EffectRefused {
                        member,
                        partition,
                        token,
                        seen,
                    })?;
                }
            }
        }
        let every = self.profile.settings.heartbeat_interval;
        self.after(every, Happening::Effects);
        Ok(())
    }

    pub(super) fn late_effect(&mut self, partition: usize, token: divvy_core::store::Token) {
        if self.resource.effect(partition, token) != Verdict::Done {
            self.count(Mishap::StaleEffect);
        }
    }
}
