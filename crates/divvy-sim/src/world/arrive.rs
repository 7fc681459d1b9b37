//! What reaches a process.

use divvy_core::leader::{HookEnd, HookId, OperationId};

use super::coordination::{Coordination, EventOf};
use super::machine::{Machine, Occasion};
use super::network::failure;
use super::process::Arrival;
use super::{Happening, WorldOf};
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::time::TrueTime;

impl<C: Coordination> WorldOf<C> {
    /// Something reaches a process, or waits while it stands still.
    pub(crate) fn arrive(&mut self, member: usize, arrival: Arrival<C>) -> Result<(), Broken> {
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
            Arrival::News(life, forgotten, news) => {
                if process.connected != Some(life) || forgotten != self.reach.forgotten {
                    return Ok(());
                }
                self.hand_of(member, Occasion::News(news))
            }
            Arrival::Answer(id, reply) => match self.land(member, id) {
                Some(_) => self.hand_of(member, Occasion::Reply(id, reply)),
                None => Ok(()),
            },
            Arrival::Expire(id) => match self.land(member, id) {
                Some(is_write) => {
                    let reply = C::Machine::failed(failure(is_write), "no answer");
                    self.hand_of(member, Occasion::Reply(id, reply))
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
        self.connected(member)
    }

    /// A member has reached the store.
    pub(super) fn connected(&mut self, member: usize) -> Result<(), Broken> {
        self.processes[member].connected = Some(self.reach.life);
        let incarnation = self.reach.incarnation();
        self.hand_of(member, Occasion::Connected(incarnation))
    }

    fn hook_ends(&mut self, member: usize, id: HookId, end: HookEnd) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(call) = process.calls.remove(&id) else {
            return Ok(());
        };
        let partition = call.partition;
        let failed = end == HookEnd::Failed;
        if !call.starts || failed {
            C::stopped(process, partition);
        }
        match call.starts {
            true => self.tell(&Fact::StartEnded {
                member,
                partition,
                failed,
            })?,
            false => self.tell(&Fact::StopEnded { member, partition })?,
        }
        self.hand_of(member, Occasion::HookEnded(id, end))
    }

    /// A timer of the machine is due, if it still is.
    fn wake(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        if process.wake_at != Some(self.now) {
            return Ok(());
        }
        process.wake_at = None;
        let clock = process.clock.both_at(self.now);
        if let Some(machine) = &mut process.machine {
            machine.wake(clock);
        }
        self.drain(member)
    }

    /// Hands an event to a machine and does what it says.
    pub(crate) fn hand(&mut self, member: usize, event: EventOf<C>) -> Result<(), Broken> {
        self.note(|| format!("m{member} <- {}", C::Machine::describe_event(&event)));
        let process = &mut self.processes[member];
        let clock = process.clock.both_at(self.now);
        if let Some(machine) = &mut process.machine {
            machine.handle(clock, event);
        }
        self.drain(member)
    }

    /// Hands a machine what those of both modes are told.
    pub(super) fn hand_of(
        &mut self,
        member: usize,
        occasion: Occasion<C::Machine>,
    ) -> Result<(), Broken> {
        self.hand(member, C::Machine::event(occasion))
    }

    /// Does all that a machine asks for.
    fn drain(&mut self, member: usize) -> Result<(), Broken> {
        let Some(mut machine) = self.processes[member].machine.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        while let Some(action) = machine.next_action() {
            self.note(|| format!("m{member} -> {}", C::Machine::describe_action(&action)));
            outcome = C::act(self, member, &machine, action);
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
    pub(crate) fn resume(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(still) = process.stillness.filter(|still| still.until <= self.now) else {
            return Ok(());
        };
        process.stillness = None;
        let generation = process.generation;
        let mut waiting = std::mem::take(&mut process.backlog);
        self.note(|| format!("m{member} goes on"));
        if still.suspended {
            C::suspended(self, member)?;
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
