//! What a machine asks for, done.

use divvy_core::Moment;
use divvy_core::leader::{Action, Committed, Holding, HookEnd, HookId, Member, Operation, Report};
use divvy_core::lease::Ending;
use divvy_core::store::Token;

use super::World;
use super::process::Running;
use super::source::number_of;
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::world::{Arrival, Happening, Hook, Observed, Over, Start};

impl World {
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
                if matches!(&operation, Operation::CompareAndSet { key, .. } if key.as_str() == "root")
                {
                    self.observed(Observed::RootSent(member));
                }
                let connection = self.processes[member].connection;
                let may_send = machine.may_send(connection, &operation);
                self.send(member, id, operation, timeout, may_send)
            }
            Action::Watch(watched) => {
                self.processes[member].host.watched = watched;
                Ok(())
            }
            Action::ListPartitions => self.list_partitions(member),
            Action::StartPartition {
                id,
                partition,
                token,
            } => self.start_partition(member, id, partition.as_str(), token),
            Action::CancelStart(id) => {
                self.cancel_start(member, id);
                Ok(())
            }
            Action::WithdrawStart(id) => {
                self.withdraw_start(member, id);
                Ok(())
            }
            Action::StopPartition { id, partition, .. } => {
                self.stop_partition(member, id, number_of(partition.as_str()))
            }
            Action::Deadline(deadline) => self.set_deadline(member, machine, deadline),
            Action::RequestLeadership => {
                self.request_leadership(member);
                Ok(())
            }
            Action::ReleaseLeadership => {
                self.release_leadership(member);
                Ok(())
            }
            Action::Abort(_) => {
                self.processes[member].over = Some(Over::Aborted);
                Ok(())
            }
            Action::Ended => {
                self.processes[member].over = Some(Over::Ended(Ending::InOrder));
                Ok(())
            }
            Action::Report(Report::Adopted { version, .. }) => self.tell(&Fact::Adopted {
                member,
                session: machine.session(),
                version,
            }),
            Action::Report(report) => {
                self.reported(member, &report);
                Ok(())
            }
        }
    }

    fn set_deadline(
        &mut self,
        member: usize,
        machine: &Member,
        deadline: Option<Moment>,
    ) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        process.host.deadline = deadline;
        if deadline.is_none() {
            process
                .running
                .values_mut()
                .for_each(|running| running.void = true);
        }
        let until = deadline.map(|moment| process.clock.time_of(moment));
        self.tell(&Fact::Deadline {
            member,
            identity: machine.worker_id().zip(machine.session()),
            until,
            until_local: deadline,
        })?;
        if deadline.is_none() {
            self.fence(member)?;
        }
        Ok(())
    }

    fn start_partition(
        &mut self,
        member: usize,
        id: HookId,
        name: &str,
        token: Token,
    ) -> Result<(), Broken> {
        let partition = number_of(name);
        self.observed(Observed::Started { member, partition });
        let process = &mut self.processes[member];
        let running = Running { token, void: false };
        process.running.insert(partition, running);
        let lameness = self.own.lame.get(&member);
        let is_lame = lameness.is_some_and(|lameness| lameness.prevents(partition));
        if is_lame {
            self.count(Mishap::StartFailed);
        }
        let start = Start {
            name: name.into(),
            token,
            is_able: !is_lame,
        };
        self.ask(member, Hook::start(id, partition, start))
    }

    fn stop_partition(
        &mut self,
        member: usize,
        id: HookId,
        partition: usize,
    ) -> Result<(), Broken> {
        self.ask(member, Hook::stop(id, partition))
    }

    /// Ends a start hook, unless it blocks.
    fn cancel_start(&mut self, member: usize, id: HookId) {
        if !self.processes[member].calls.contains_key(&id) || self.dice.chance(0.3) {
            return;
        }
        self.count(Mishap::StartCancelled);
        let generation = self.processes[member].generation;
        let arrival = Arrival::Hook(id, HookEnd::Cancelled);
        let after = self.way();
        self.after(after, Happening::Arrive(member, generation, arrival));
    }

    /// Without a grant, a start that waits is not called.
    fn withdraw_start(&mut self, member: usize, id: HookId) {
        let process = &mut self.processes[member];
        let waiting = process.waiting.iter().find(|hook| hook.id == id);
        let running = waiting.and_then(|hook| process.running.get_mut(&hook.partition));
        if let Some(running) = running {
            running.void = true;
        }
    }

    /// Counts what a root changes.
    pub(super) fn count_moves(&mut self, root: &Committed) {
        let (mut granted, mut revoked) = (0, 0);
        let before = self.ledger.root.as_ref().map(|known| &known.value);
        for (index, partition) in root.partitions.iter().enumerate() {
            let was = before.and_then(|before| {
                let index = before.partitions.index_of(partition.as_str())?;
                Some(before.root.holdings[index])
            });
            match (was, root.root.holdings[index]) {
                (Some(Holding::Held { token: old, .. }), Holding::Held { token, .. })
                    if old == token => {}
                (_, Holding::Held { .. }) => granted += 1,
                (Some(Holding::Held { .. }), _) => revoked += 1,
                _ => {}
            }
        }
        self.tally.grants += u64::from(granted);
        self.tally.moves += u64::from(revoked);
        self.observed(Observed::Committed { granted, revoked });
    }
}
