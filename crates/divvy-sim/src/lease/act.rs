//! What a machine asks for, done.

use divvy_core::Moment;
use divvy_core::leader::HookId;
use divvy_core::lease::{Action, StopReason, TenureId};
use divvy_core::store::{LeaseKey, Token};

use super::LeaseWorld;
use super::process::Running;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::world::{Observed, Over};

impl LeaseWorld {
    pub(super) fn act(&mut self, member: usize, action: Action) -> Result<(), Broken> {
        match action {
            Action::Store {
                id,
                operation,
                timeout,
            } => {
                self.tell_sent(member, &operation)?;
                self.send(member, id, operation, timeout)
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
            } => self.stop_partition(member, id, &key, reason),
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
        let fact = Fact::TenureDeadline {
            member,
            partition,
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
            stopping: false,
        };
        process.running.insert(partition, running);
        process.host.tenures.insert(tenure, partition);
        self.tell(&Fact::StartCalled {
            member,
            partition,
            name: &key.to_string(),
            token,
        })?;
        self.set_deadline(member, tenure, Some(until))?;
        self.tell_limits(member, partition)?;
        self.call(member, id, partition, true, true)
    }

    /// Tells how much a member that started something has.
    fn tell_limits(&mut self, member: usize, partition: usize) -> Result<(), Broken> {
        let plan = self.profile.plan_of(member);
        let (most, most_of_group) = (plan.max_partitions as usize, plan.max_per_group as usize);
        let group = self.own.groups.group_of(partition);
        let owned = self.processes[member].owned().count();
        let same = |other: &usize| self.own.groups.group_of(*other) == group;
        let of_group = self.processes[member].owned().filter(same).count();
        for (owned, most) in [(owned, most), (of_group, most_of_group)] {
            if most > 0 {
                self.tell(&Fact::Took {
                    member,
                    owned,
                    most,
                })?;
            }
        }
        Ok(())
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
        self.stop_reason(reason);
        self.tell(&Fact::StopCalled { member, partition })?;
        if reason == StopReason::Shed {
            let left = self.processes[member].owned().count();
            let least = self.profile.plan_of(member).min_partitions as usize;
            self.tell(&Fact::Shed {
                member,
                left,
                least,
            })?;
        }
        self.call(member, id, partition, false, true)
    }
}
