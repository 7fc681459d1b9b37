//! What a machine asks for, done.

use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::HookId;
use divvy_core::lease::{Action, Event, Member, Operation, StopReason, TenureId};
use divvy_core::store::{LeaseKey, Token};

use super::process::Running;
use super::{LeaseFault, LeaseFaultKind, LeaseMode, LeaseWorld, PlacePlan, WorkerLimits};
use crate::coverage::Mishap;
use crate::fact::{Fact, Phase};
use crate::invariants::Broken;
use crate::world::{Arrival, Coordination, Happening, Hook, Observed, Over, Start};

impl LeaseWorld {
    /// Somebody asks a member why a partition is where it is: after each of its
    /// steps for one partition, in one world of a hundred often for all. Asking
    /// draws no dice and changes nothing, so that worlds stay what they are.
    pub(super) fn explain_after_step(&self, machine: &Member) {
        if self.profile.room.is_some() {
            return;
        }
        let partitions = self.own.groups.partitions_max();
        let one = (self.now.nanos() / 1000) as usize % partitions;
        let is_for_all = self.profile.seed.is_multiple_of(100) && one.is_multiple_of(8);
        let asked = if is_for_all {
            0..partitions
        } else {
            one..one + 1
        };
        for partition in asked {
            machine.explain(&self.own.groups.key_of(partition));
        }
    }

    pub(super) fn act(
        &mut self,
        member: usize,
        machine: &Member,
        action: Action,
    ) -> Result<(), Broken> {
        match action {
            Action::Store {
                id,
                operation,
                timeout,
            } => {
                self.tell_sent(member, &operation)?;
                self.leave_asking(member, &operation);
                self.send(member, id, operation, timeout, true)
            }
            Action::StartPartition {
                id,
                tenure,
                key,
                token,
                until,
            } => self.start_partition(member, id, (tenure, &key, token), until),
            Action::StopPartition {
                id, key, reason, ..
            } => {
                self.judge_stop(member, machine, &key, reason)?;
                self.stop_partition(member, id, &key, reason)
            }
            Action::Deadline { tenures, until } => {
                for tenure in tenures {
                    self.set_deadline(member, tenure, until)?;
                }
                Ok(())
            }
            Action::Abort(_) => {
                self.processes[member].over = Some(Over::Aborted);
                Ok(())
            }
            Action::Ended(ending) => {
                self.processes[member].over = Some(Over::Ended(ending));
                Ok(())
            }
            Action::Report(report) => {
                self.reported(member, &report);
                Ok(())
            }
        }
    }

    /// A member that asks for leases may be asked to stop at that moment.
    fn leave_asking(&mut self, member: usize, operation: &Operation) {
        let process = &self.processes[member];
        let asks = matches!(operation, Operation::Acquire { .. });
        if asks && process.host.leaves_asking.is_some() {
            let leave = Arrival::Errand(Self::leave_now);
            let leave = Happening::Arrive(member, process.generation, leave);
            self.after(Duration::ZERO, leave);
        }
    }

    fn leave_now(&mut self, member: usize) -> Result<(), Broken> {
        let away = self.processes[member].host.leaves_asking.take();
        if let Some(away) = away.filter(|_| self.phase == Phase::Faults) {
            self.count(Mishap::LeaveAsking);
            self.ask_to_stop(member, Event::Stop, away);
        }
        Ok(())
    }

    fn set_deadline(
        &mut self,
        member: usize,
        tenure: TenureId,
        until: Option<Moment>,
    ) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(&partition) = process.host.tenures.get(&tenure) else {
            return Ok(());
        };
        if let Some(running) = process.running.get_mut(&partition) {
            running.until = until;
        }
        self.tell_deadline(member, partition)?;
        if until.is_none() {
            self.end_work(member, partition)?;
        }
        Ok(())
    }

    /// Tells until when the grant of a partition is current.
    pub(super) fn tell_deadline(&mut self, member: usize, partition: usize) -> Result<(), Broken> {
        let process = &self.processes[member];
        let until = LeaseMode::grant_until(process, partition);
        let running = process.running.get(&partition);
        let fact = Fact::TenureDeadline {
            member,
            partition,
            nonce: running.and_then(|running| running.nonce),
            until: until.map(|moment| process.clock.time_of(moment)),
            until_local: until,
        };
        self.tell(&fact)
    }

    fn start_partition(
        &mut self,
        member: usize,
        id: HookId,
        (tenure, key, token): (TenureId, &LeaseKey, Token),
        until: Moment,
    ) -> Result<(), Broken> {
        let partition = self.partition_of(key);
        self.own.moved = self.now;
        self.own.started.insert(partition);
        self.observed(Observed::Started { member, partition });
        let process = &mut self.processes[member];
        let running = Running {
            token,
            tenure,
            nonce: self.own.nonces.get(&(partition, token)).copied(),
            until: Some(until),
            since: process.clock.at(self.now),
            stopping: false,
        };
        process.running.insert(partition, running);
        process.host.tenures.insert(tenure, partition);
        self.tell_deadline(member, partition)?;
        self.tell_limits(member, partition)?;
        let start = Start {
            name: key.to_string().into(),
            token,
            is_able: true,
        };
        self.ask(member, Hook::start(id, partition, start))
    }

    /// How many partitions a member has, of how many that its settings let it
    /// have, where they have limits: of all, and of the group of one.
    fn limited(&self, member: usize, partition: usize) -> impl Iterator<Item = (usize, usize)> {
        let process = &self.processes[member];
        let limits = process.host.limits_read;
        let group = self.own.groups.group_of(partition);
        let same = |other: &usize| self.own.groups.group_of(*other) == group;
        let loads = [
            (process.owned().count(), limits.max_partitions),
            (process.owned().filter(same).count(), limits.max_per_group),
        ];
        let limited = loads.into_iter().filter(|(_, most)| *most > 0);
        limited.map(|(owned, most)| (owned, most as usize))
    }

    /// Tells how much a member that started something has.
    fn tell_limits(&mut self, member: usize, partition: usize) -> Result<(), Broken> {
        for (owned, most) in self.limited(member, partition).collect::<Vec<_>>() {
            self.tell(&Fact::Took {
                member,
                owned,
                most,
            })?;
        }
        Ok(())
    }

    /// Whether a member has more than it may have, by its settings or by any
    /// limit that the group of a partition has had.
    fn is_beyond_limits(&self, member: usize, partition: usize) -> bool {
        let group = self.own.groups.group_of(partition);
        let same = |other: &usize| self.own.groups.group_of(*other) == group;
        let of_group = self.processes[member].owned().filter(same).count();
        let strictest = self.own.groups.strictest_of(group);
        let mut limited = self.limited(member, partition);
        strictest.is_some_and(|most| of_group > most) || limited.any(|(owned, most)| owned > most)
    }

    /// Tells whether a machine has a reason to stop a partition.
    fn judge_stop(
        &mut self,
        member: usize,
        machine: &Member,
        key: &LeaseKey,
        reason: StopReason,
    ) -> Result<(), Broken> {
        match reason {
            StopReason::Shed => {
                let limits = self.processes[member].host.limits_read;
                let least = self.profile.plan_of(member).least(limits) as usize;
                let desired = machine.explain(key).and_then(|explained| explained.desired);
                let own = self.processes[member].host.worker.name.as_str();
                let has_reason = match desired {
                    Some(desired) => &*desired != own && self.may_want(machine, key, &desired),
                    None => self.is_beyond_limits(member, self.partition_of(key)),
                };
                // One of those it has is the one that it gives up.
                let left = self.processes[member].owned().count() - 1;
                let running = self.processes[member].running.get(&self.partition_of(key));
                let now = self.processes[member].clock.at(self.now);
                let least_run = self.profile.settings_of(member, limits).min_runtime;
                let has_run = running.is_none_or(|running| now.since(running.since) >= least_run);
                self.tell(&Fact::Shed {
                    member,
                    left,
                    least,
                    has_run,
                    has_reason,
                })
            }
            StopReason::Lost => {
                let partition = self.partition_of(key);
                let running = self.processes[member].running.get(&partition);
                self.tell(&Fact::LeaseLost {
                    member,
                    partition,
                    until: running.and_then(|running| running.until),
                })
            }
            // That of a partition which was still starting was decided before.
            StopReason::Unrenewed if self.is_about_to_end(member, key) => {
                let process = &self.processes[member];
                let long = self.profile.reach_for(member);
                let booted = process.host.booted;
                let reached = self
                    .hindrances
                    .reached_until(member, booted, self.now, long);
                let Some(reached) = reached else {
                    return Ok(());
                };
                let fact = Fact::Unrenewed {
                    member,
                    partition: self.partition_of(key),
                    hindered: self.now.since(reached),
                    bears: self.profile.bears(member),
                };
                self.tell(&fact)
            }
            _ => Ok(()),
        }
    }

    /// Whether a worker of this name can be the one that should have a partition:
    /// it serves it, and no more should be with it than it may have. Strangers
    /// can.
    fn may_want(&self, machine: &Member, key: &LeaseKey, name: &str) -> bool {
        let group = self.own.groups.group_of(self.partition_of(key));
        let places = 0..self.processes.len();
        let named = places.filter(|&place| self.processes[place].host.worker.name.as_str() == name);
        let plans: Vec<_> = named.map(|place| self.profile.plan_of(place)).collect();
        if plans.is_empty() {
            return true;
        }
        let serves = |plan: &&PlacePlan| plan.serves.get(group).copied().unwrap_or(false);
        if !self.own.groups.is_stored(group) && !plans.iter().any(serves) {
            return false;
        }
        // Others know of a limit that has changed when they are told.
        let changes = |fault: &LeaseFault| matches!(fault.kind, LeaseFaultKind::Reload(..));
        let most = plans.iter().map(|plan| plan.limits.max_partitions);
        let most = most
            .map(|most| if most == 0 { u32::MAX } else { most })
            .max();
        if most == Some(u32::MAX) || self.profile.faults.iter().any(changes) {
            return true;
        }
        let wanted = (0..self.own.groups.partitions_max()).filter(|&partition| {
            let key = self.own.groups.key_of(partition);
            let explained = machine.explain(&key);
            explained.is_some_and(|explained| explained.desired.as_deref() == Some(name))
        });
        most.is_none_or(|most| wanted.count() <= most as usize)
    }

    /// Whether the grant of a partition has not ended, and is about to.
    fn is_about_to_end(&self, member: usize, key: &LeaseKey) -> bool {
        let process = &self.processes[member];
        let until = LeaseMode::grant_until(process, self.partition_of(key));
        let settings = self.profile.settings_of(member, WorkerLimits::default());
        let ahead = settings.drain_ahead();
        let soon = process.clock.at(self.now) + ahead;
        until.is_some_and(|until| until <= soon)
    }

    fn stop_partition(
        &mut self,
        member: usize,
        id: HookId,
        key: &LeaseKey,
        reason: StopReason,
    ) -> Result<(), Broken> {
        let partition = self.partition_of(key);
        self.own.moved = self.now;
        self.tally.moves += 1;
        if let Some(running) = self.processes[member].running.get_mut(&partition) {
            running.stopping = true;
        }
        self.stop_reason(member, partition, reason);
        self.ask(member, Hook::stop(id, partition))
    }
}
