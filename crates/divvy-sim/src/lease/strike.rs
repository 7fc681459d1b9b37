//! Faults of lease mode that begin and end.

use std::time::Duration;

use divvy_core::lease::{Event, SelfDescription};
use divvy_core::store::LeaseNotice;

use super::fault::LeaseFaultKind;
use super::wishes::Wishes;
use super::{LeaseWorld, WorkerLimits};
use crate::coverage::Mishap;
use crate::fact::{Disturbed, Fact};
use crate::fault::{HookWeather, Weather};
use crate::invariants::Broken;
use crate::world::{Arrival, Happening};

impl LeaseWorld {
    /// A fault begins.
    pub(super) fn strike(&mut self, index: usize) -> Result<(), Broken> {
        let fault = self.profile.faults[index].clone();
        self.note(|| format!("fault {index}: {fault}"));
        let lasts = fault.lasts;
        let place = |world: &Self, number: usize| number % world.processes.len();
        let group = |world: &Self, number: usize| number % world.own.groups.count();
        match fault.kind {
            LeaseFaultKind::Crash(number) => self.crash(place(self, number), lasts)?,
            LeaseFaultKind::MassRestart(part) => self.crash_many(part, lasts)?,
            LeaseFaultKind::Pause(number) => self.stand_still(place(self, number), lasts, false)?,
            LeaseFaultKind::Suspend(number) => {
                self.stand_still(place(self, number), lasts, true)?;
            }
            LeaseFaultKind::Leave(number) => {
                self.count(Mishap::Leave);
                self.ask_to_stop(place(self, number), Event::Stop, lasts);
            }
            LeaseFaultKind::Return(number) => {
                self.count(Mishap::Return);
                self.ask_to_stop(place(self, number), Event::Stop, lasts);
            }
            LeaseFaultKind::LeaveAsking(number) => {
                let place = place(self, number);
                self.processes[place].host.leaves_asking = Some(lasts);
            }
            LeaseFaultKind::Join => {
                self.add_member();
            }
            LeaseFaultKind::RollingRestart => self.roll_all(),
            LeaseFaultKind::Namesake(number) => self.namesake(place(self, number)),
            LeaseFaultKind::Resize(number, by) => self.resize(group(self, number), by),
            LeaseFaultKind::Limit(number, most) => self.limit(group(self, number), most),
            LeaseFaultKind::Refresh(number) => {
                self.count(Mishap::Refresh);
                self.refresh(place(self, number))?;
            }
            LeaseFaultKind::WallStep(number, by_ms) => {
                self.count(Mishap::WallStep);
                let place = place(self, number);
                self.processes[place].clock.step_wall(by_ms);
            }
            LeaseFaultKind::Weather(_)
            | LeaseFaultKind::Hooks(_)
            | LeaseFaultKind::Gap(_)
            | LeaseFaultKind::Garble(_)
            | LeaseFaultKind::RemoveGroup(_)
            | LeaseFaultKind::Isolate(..)
            | LeaseFaultKind::Unhealthy(_)
            | LeaseFaultKind::Weight(..)
            | LeaseFaultKind::Reload(..)
            | LeaseFaultKind::Cordon(_)
            | LeaseFaultKind::Drain(_)
            | LeaseFaultKind::Pin(..)
            | LeaseFaultKind::GarbleWishes => self.last(index, lasts)?,
            kind => self.strike_store(index, kind, lasts)?,
        }
        Ok(())
    }

    /// A fault of the store, or of a stranger there.
    fn strike_store(
        &mut self,
        index: usize,
        kind: LeaseFaultKind,
        lasts: Duration,
    ) -> Result<(), Broken> {
        match kind {
            LeaseFaultKind::Stall => self.stall(lasts)?,
            LeaseFaultKind::Refuse => self.refuse(lasts)?,
            LeaseFaultKind::Restart => {
                self.count(Mishap::StoreRestarted);
                self.store.restart();
                self.hinder_restart(lasts);
                self.restarted(lasts)?;
            }
            LeaseFaultKind::RestartBehind(_) => {
                self.count(Mishap::RestartForgot);
                self.store.restart_behind(index);
                self.hinder_restart(lasts);
                self.restarted(lasts)?;
            }
            LeaseFaultKind::Empty => self.empty(lasts)?,
            LeaseFaultKind::ClockStep(ms) => self.step_clock(ms)?,
            LeaseFaultKind::StoreWallStep(ms) => {
                self.count(Mishap::StoreWallStep);
                self.store.step_wall(ms);
            }
            LeaseFaultKind::ScriptFlush => {
                self.count(Mishap::ScriptFlush);
                for process in &mut self.processes {
                    process.host.lacks_scripts = true;
                }
            }
            LeaseFaultKind::Evict(count) => self.evict(count)?,
            LeaseFaultKind::ForeignTake(which) => self.foreign_take(which),
            LeaseFaultKind::ForeignDelete(which) => self.foreign_delete(which)?,
            LeaseFaultKind::ForeignOverwrite(which) => self.foreign_overwrite(which)?,
            LeaseFaultKind::ForeignMember(which) => self.foreign_member(which),
            LeaseFaultKind::Spoil(number, what) => {
                self.spoil(index, number, what)?;
                self.last(index, lasts)?;
            }
            LeaseFaultKind::SpoilForGood(number, what) => self.spoil(index, number, what)?,
            other => unreachable!("{other:?} is no fault of a store"),
        }
        Ok(())
    }

    /// Nobody reaches a store that is restarted before it is up and its
    /// connections are.
    pub(super) fn hinder_restart(&mut self, lasts: Duration) {
        let connected = self.profile.settings.heartbeat_interval + self.profile.latency.1 * 4;
        self.hinder(None, lasts + connected);
    }

    /// Everything is as the faults that last have it.
    pub(super) fn settle(&mut self) -> Result<(), Broken> {
        self.weather = Weather::default();
        self.hook_weather = HookWeather::default();
        let (count, groups) = (self.processes.len(), self.own.groups.count());
        let mut cut = vec![None; count];
        let mut deaf = vec![false; count];
        let described = (0..count).map(|member| SelfDescription {
            healthy: true,
            weight: self.profile.plan_of(member).weight,
        });
        let mut described: Vec<_> = described.collect();
        let limits = (0..count).map(|member| self.profile.plan_of(member).limits);
        let mut limits: Vec<WorkerLimits> = limits.collect();
        let mut removed = vec![false; groups];
        let mut garbled = vec![None; groups];
        let mut wishes = Wishes::default();
        for &index in &self.active {
            match self.profile.faults[index].kind {
                LeaseFaultKind::Weather(weather) => self.weather = self.weather.and(weather),
                LeaseFaultKind::Hooks(hooks) => self.hook_weather = self.hook_weather.and(hooks),
                LeaseFaultKind::Isolate(number, way) => cut[number % count] = Some(way),
                LeaseFaultKind::Gap(number) => deaf[number % count] = true,
                LeaseFaultKind::Unhealthy(number) => described[number % count].healthy = false,
                LeaseFaultKind::Weight(number, weight) => described[number % count].weight = weight,
                LeaseFaultKind::Reload(number, changed) => limits[number % count] = changed,
                LeaseFaultKind::RemoveGroup(number) => removed[number % groups] = true,
                LeaseFaultKind::Garble(number) => garbled[number % groups] = Some(index),
                LeaseFaultKind::Cordon(number) => {
                    let worker = self.processes[number % count].host.worker.name.to_string();
                    wishes.control.cordoned.insert(worker);
                }
                LeaseFaultKind::Drain(number) => {
                    let worker = self.processes[number % count].host.worker.name.to_string();
                    wishes.control.drained.insert(worker);
                }
                LeaseFaultKind::Pin(partition, number) => {
                    let partition = partition % self.own.groups.partitions_max();
                    let worker = self.processes[number % count].host.worker.name.to_string();
                    let key = self.own.groups.key_of(partition).to_string();
                    wishes.control.pinned.insert(key, worker);
                }
                LeaseFaultKind::GarbleWishes => wishes.is_garbled = true,
                _ => {}
            }
        }
        self.hinder_while(None, self.weather != Weather::default());
        self.repair()?;
        self.set_groups(&removed, &garbled);
        self.set_wishes(wishes);
        for member in 0..count {
            self.isolate(member, cut[member]);
            self.deafen(member, deaf[member])?;
            self.describe(member, described[member])?;
            self.reload(member, limits[member])?;
        }
        Ok(())
    }

    /// A member gets no notices, or gets them again and knows that it did not.
    fn deafen(&mut self, member: usize, deaf: bool) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        if std::mem::replace(&mut process.is_deaf, deaf) && !deaf {
            let resync = Event::Noticed(LeaseNotice::Resync);
            return self.arrive(member, Arrival::Event(resync));
        }
        Ok(())
    }

    /// A member reads its settings again, if they have changed.
    fn reload(&mut self, member: usize, limits: WorkerLimits) -> Result<(), Broken> {
        let host = &mut self.processes[member].host;
        if std::mem::replace(&mut host.limits, limits) == limits {
            return Ok(());
        }
        self.count(Mishap::Reloaded);
        self.arrive(member, Arrival::Errand(Self::read_settings))
    }

    fn read_settings(&mut self, member: usize) -> Result<(), Broken> {
        let host = &mut self.processes[member].host;
        host.limits_read = host.limits;
        let settings = self.profile.settings_of(member, host.limits);
        self.hand(member, Event::Tuned(Box::new(settings)))
    }

    pub(super) fn describe(
        &mut self,
        member: usize,
        described: SelfDescription,
    ) -> Result<(), Broken> {
        let before = self.processes[member].host.description;
        if before == described {
            return Ok(());
        }
        self.count(match before.healthy == described.healthy {
            true => Mishap::WeightChanged,
            false => Mishap::Unhealthy,
        });
        self.processes[member].host.description = described;
        self.arrive(member, Arrival::Event(Event::Described(described)))
    }

    /// A second process starts with the name of a member.
    fn namesake(&mut self, of: usize) {
        self.count(Mishap::Namesake);
        let member = self.add_place();
        self.processes[member].host.worker = self.processes[of].host.worker.clone();
        self.processes[member].is_namesake = true;
        self.after(Duration::ZERO, Happening::Boot(member));
    }

    /// All leases, or names, are not what their holders think until a lease
    /// has run out.
    pub(super) fn disturb_all(&mut self) -> Result<(), Broken> {
        let until = self.now + self.profile.longest_lease();
        self.tell(&Fact::Disturbed {
            whose: Disturbed::Leases,
            until,
        })?;
        self.disturb_names()
    }

    pub(super) fn disturb_names(&mut self) -> Result<(), Broken> {
        let until = self.now + self.profile.lease_at_most();
        self.tell(&Fact::Disturbed {
            whose: Disturbed::Sessions,
            until,
        })
    }
}
