//! Faults of leader mode that begin and end.

use std::time::Duration;

use divvy_core::Health;
use divvy_core::leader::{Event, Shutdown};

use super::process::Lameness;
use super::{LeaderMode, World};
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::fault::{FaultKind, HookWeather, Weather};
use crate::invariants::Broken;
use crate::ledger::Ledger;
use crate::world::{Arrival, Coordination};

impl World {
    /// A fault begins.
    pub(super) fn strike(&mut self, index: usize) -> Result<(), Broken> {
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
            FaultKind::Pause(number) => {
                self.stand_still(place(self, number), fault.lasts, false)?;
            }
            FaultKind::PauseLeader => {
                if let Some(leader) = self.leader() {
                    self.stand_still(leader, fault.lasts, false)?;
                }
            }
            FaultKind::Suspend(number) => {
                self.stand_still(place(self, number), fault.lasts, true)?;
            }
            FaultKind::MassRestart(part) => self.crash_many(part, fault.lasts)?,
            FaultKind::Leave(number) => {
                self.count(Mishap::Leave);
                let stop = Event::Stop(Shutdown::Leave);
                self.ask_to_stop(place(self, number), stop, fault.lasts);
            }
            FaultKind::Return(number) => {
                self.count(Mishap::Return);
                let stop = LeaderMode::stop_to_return(&self.profile);
                self.ask_to_stop(place(self, number), stop, fault.lasts);
            }
            FaultKind::Join => {
                self.add_member();
            }
            FaultKind::RollingRestart => self.roll_all(),
            FaultKind::Stall => self.stall(fault.lasts)?,
            FaultKind::Refuse => self.refuse(fault.lasts)?,
            FaultKind::Amnesia { back, announced } => self.forget(index, back, announced)?,
            FaultKind::Partitions(by) => {
                self.count(Mishap::PartitionsChanged);
                self.own.source.change(by, self.profile.partitions_max());
            }
            FaultKind::Refresh(number) => {
                self.count(Mishap::Refresh);
                self.refresh(place(self, number))?;
            }
            FaultKind::Scribble(what) => self.scribble(what),
            FaultKind::Delete(what, is_shown) => self.delete_key(what, is_shown)?,
            FaultKind::Override(what) => self.override_placement(what),
            FaultKind::WallStep(number, by_ms) => {
                self.count(Mishap::WallStep);
                let place = place(self, number);
                self.processes[place].clock.step_wall(by_ms);
            }
            FaultKind::Isolate(number, _) => self.cut_off(index, number, fault.lasts)?,
            FaultKind::Weather(_)
            | FaultKind::Hooks(_)
            | FaultKind::Lame(_)
            | FaultKind::Source(_)
            | FaultKind::Unhealthy(_)
            | FaultKind::Weight(..)
            | FaultKind::Lag(_)
            | FaultKind::FalseElection => self.last(index, fault.lasts)?,
        }
        Ok(())
    }

    fn cut_off(&mut self, index: usize, number: usize, lasts: Duration) -> Result<(), Broken> {
        self.last(index, lasts)?;
        self.tell(&Fact::Unanswered {
            member: Some(number % self.processes.len()),
            until: self.now + lasts,
        })
    }

    /// Everything is as the faults that last have it.
    pub(super) fn settle(&mut self) -> Result<(), Broken> {
        self.weather = Weather::default();
        self.hook_weather = HookWeather::default();
        self.own.source.fault = None;
        self.own.lame.clear();
        self.own.lag = Duration::ZERO;
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
                FaultKind::Lag(lag) => self.own.lag = self.own.lag.max(lag),
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
}
