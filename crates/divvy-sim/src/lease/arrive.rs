//! What reaches a process.

use divvy_core::leader::{HookEnd, HookId, OperationId};
use divvy_core::lease::{Event, Reply};

use super::LeaseWorld;
use super::trace::describe_event;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::time::TrueTime;
use crate::world::{Arrival, Happening, failure};

impl LeaseWorld {
    /// Something reaches a process, or waits while it stands still.
    pub(super) fn arrive(
        &mut self,
        member: usize,
        arrival: Arrival<super::LeaseMode>,
    ) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        if !process.is_alive() {
            return Ok(());
        }
        if process.stillness.is_some() {
            process.backlog.push_back(arrival);
            return Ok(());
        }
        match arrival {
            Arrival::Wake => self.wake(member),
            Arrival::Event(event) => self.hand(member, event),
            Arrival::News(life, _, notice) => match process.connected == Some(life) {
                true => self.hand(member, Event::Noticed(notice)),
                false => Ok(()),
            },
            Arrival::Answer(id, reply) => match self.land(member, id) {
                Some(_) => self.hand(member, Event::Reply(id, reply)),
                None => Ok(()),
            },
            Arrival::Expire(id) => match self.land(member, id) {
                Some(is_write) => {
                    let reply = Reply::Failed(failure(is_write), "no answer".into());
                    self.hand(member, Event::Reply(id, reply))
                }
                None => Ok(()),
            },
            Arrival::Hook(id, end) => self.hook_ends(member, id, end),
            Arrival::Connect => self.connect(member),
            Arrival::Errand(run) => run(self, member),
        }
    }

    /// An operation comes to an end, once: gives whether it was a write.
    fn land(&mut self, member: usize, id: OperationId) -> Option<bool> {
        let flights = &mut self.processes[member].flights;
        let index = flights.iter().position(|flight| flight.id == id)?;
        Some(flights.swap_remove(index).is_write)
    }

    fn connect(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        // Cut off, it tries again when it is not any more.
        if process.isolation.is_some() || process.connected == Some(self.reach.life) {
            return Ok(());
        }
        if self.reach.down_until > self.now {
            let after = self.reach.down_until.since(self.now) + self.way();
            self.reconnect(member, after);
            return Ok(());
        }
        let process = &mut self.processes[member];
        process.connected = Some(self.reach.life);
        let incarnation = self.reach.incarnation();
        self.hand(member, Event::Connected(incarnation))
    }

    fn hook_ends(&mut self, member: usize, id: HookId, end: HookEnd) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(call) = process.calls.remove(&id) else {
            return Ok(());
        };
        let partition = call.partition;
        let failed = end == HookEnd::Failed;
        if (!call.starts || failed)
            && let Some(running) = process.running.remove(&partition)
        {
            process.host.tenures.remove(&running.tenure);
        }
        match call.starts {
            true => self.tell(&Fact::StartEnded {
                member,
                partition,
                failed,
            })?,
            false => self.tell(&Fact::StopEnded { member, partition })?,
        }
        self.hand(member, Event::HookEnded(id, end))
    }

    /// A timer of the machine is due, if it still is.
    fn wake(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        if process.wake_at != Some(self.now) {
            return Ok(());
        }
        process.wake_at = None;
        let now = process.clock.at(self.now);
        if let Some(machine) = &mut process.machine {
            machine.wake(now);
        }
        self.drain(member)
    }

    /// Hands an event to the machine.
    pub(super) fn hand(&mut self, member: usize, event: Event) -> Result<(), Broken> {
        self.note(|| format!("m{member} <- {}", describe_event(&event)));
        let process = &mut self.processes[member];
        let now = process.clock.at(self.now);
        if let Some(machine) = &mut process.machine {
            machine.handle(now, event);
        }
        self.drain(member)
    }

    /// Does what the machine asks for.
    fn drain(&mut self, member: usize) -> Result<(), Broken> {
        let Some(mut machine) = self.processes[member].machine.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        while let Some(action) = machine.next_action() {
            outcome = self.act(member, action);
            if outcome.is_err() {
                break;
            }
        }
        let next = machine.next_wake();
        let process = &mut self.processes[member];
        process.machine = Some(machine);
        outcome?;
        let now = process.clock.at(self.now);
        if let Some(moment) = next {
            // What is due already is due a moment later, so that time goes on.
            let soonest = TrueTime::from_nanos(self.now.nanos() + 1000);
            let at = process.clock.time_of(moment).max(soonest);
            if process.wake_at != Some(at) {
                process.wake_at = Some(at);
                let wake = Happening::Arrive(member, process.generation, Arrival::Wake);
                self.queue.push(at, wake);
            }
        } else {
            process.wake_at = None;
        }
        if self.processes[member].over.is_none() {
            self.tell(&Fact::Stepped { member, now })?;
        }
        self.leave_if_over(member)
    }

    /// A process that stood still goes on, with all that has come meanwhile.
    pub(super) fn resume(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(still) = process.stillness.filter(|still| still.until <= self.now) else {
            return Ok(());
        };
        process.stillness = None;
        let generation = process.generation;
        let mut waiting = std::mem::take(&mut process.backlog);
        self.note(|| format!("m{member} goes on"));
        if still.suspended {
            self.disconnect(member);
            let after = self.way();
            self.reconnect(member, after);
        }
        // Timers and messages are ready at once: either may come first.
        if self.dice.chance(0.5) {
            self.processes[member].wake_at = Some(self.now);
            self.wake(member)?;
        }
        while let Some(arrival) = waiting.pop_front() {
            if self.processes[member].generation != generation {
                break;
            }
            match arrival {
                Arrival::Wake => {
                    self.processes[member].wake_at = Some(self.now);
                    self.wake(member)?;
                }
                arrival => self.arrive(member, arrival)?,
            }
        }
        Ok(())
    }
}
