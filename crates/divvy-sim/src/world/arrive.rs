//! What reaches a process.

use std::time::Duration;

use divvy_core::leader::OperationId;

use super::coordination::{Coordination, EventOf};
use super::machine::{Machine, Occasion};
use super::network::failure;
use super::process::Arrival;
use super::{Happening, WorldOf};
use crate::fact::{Fact, Phase};
use crate::invariants::Broken;
use crate::time::TrueTime;

/// Drivers look at everything at least this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

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
            Arrival::Stop(event) => {
                self.tell(&Fact::StopAsked { member })?;
                self.hand(member, event)
            }
            Arrival::News(connection, forgotten, news) => {
                let is_gone = process.connected.is_none() || process.connection != connection;
                let is_lost = forgotten != self.reach.forgotten;
                if is_gone && !C::KNOWS_CONNECTIONS || is_lost && !is_gone {
                    return Ok(());
                }
                self.hear(member, connection, Occasion::News(news))
            }
            Arrival::Answer(id, reply, connection) => match self.land(member, id) {
                Some(_) => self.hear(member, connection, Occasion::Reply(id, reply)),
                None => Ok(()),
            },
            Arrival::Life(connection) => {
                if process.connected.is_none() || process.connection != connection {
                    return Ok(());
                }
                self.tell_life(member)
            }
            Arrival::Expire(id) => match self.land(member, id) {
                Some(is_write) => {
                    let reply = C::Machine::failed(failure(is_write), "no answer");
                    self.hand_of(member, Occasion::Reply(id, reply))
                }
                None => Ok(()),
            },
            Arrival::Begun(id) => self.hand_of(member, Occasion::HookBegun(id)),
            Arrival::Overdue(id) => self.hook_is_overdue(member, id),
            Arrival::Hook(id, end) => self.hook_ends(member, id, end),
            Arrival::Connect => self.connect(member),
            Arrival::Errand(run) => run(self, member),
        }
    }

    /// A driver that has an answer may stand still before it looks at it.
    pub(super) fn stall_before(
        &mut self,
        member: usize,
        arrival: &Arrival<C>,
    ) -> Result<(), Broken> {
        let Arrival::Answer(_, reply, _) = arrival else {
            return Ok(());
        };
        if self.phase != Phase::Faults {
            return Ok(());
        }
        let is_grant = C::Machine::is_grant(reply);
        match self.frame().driver.stall(&mut self.dice, is_grant) {
            Some(lasts) => self.stand_still(member, lasts, false),
            None => Ok(()),
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

    /// A member has reached the store. Reads go out on the connection at once;
    /// in which life the store is, is asked for beside them.
    pub(super) fn connected(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        process.connected = Some(self.reach.life);
        process.connection += 1;
        let (generation, connection) = (process.generation, process.connection);
        if !C::KNOWS_CONNECTIONS {
            return self.tell_life(member);
        }
        let most = self.frame().driver.life;
        let asked = self.way() + self.way() + self.dice.span(Duration::ZERO, most);
        let arrival = Arrival::Life(connection);
        self.after(asked, Happening::Arrive(member, generation, arrival));
        Ok(())
    }

    fn tell_life(&mut self, member: usize) -> Result<(), Broken> {
        let incarnation = self.reach.incarnation();
        let connection = self.processes[member].connection;
        self.hear(member, connection, Occasion::Connected(incarnation))
    }

    /// A timer of the machine is due, if it still is.
    fn wake(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        if process.wake_at != Some(self.now) {
            return Ok(());
        }
        process.wake_at = None;
        process.wake_due = None;
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

    /// Hands a machine what came from the store, on this connection.
    fn hear(
        &mut self,
        member: usize,
        connection: u64,
        occasion: Occasion<C::Machine>,
    ) -> Result<(), Broken> {
        let event = C::Machine::event(occasion);
        self.note(|| format!("m{member} <- {}", C::Machine::describe_event(&event)));
        let process = &mut self.processes[member];
        let clock = process.clock.both_at(self.now);
        if let Some(machine) = &mut process.machine {
            machine.hear(clock, connection, event);
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
        C::stepped(self, &machine);
        let next = machine.next_wake();
        let lateness = self.lateness();
        let process = &mut self.processes[member];
        process.machine = Some(machine);
        outcome?;
        let now = process.clock.at(self.now);
        if let Some(moment) = next {
            // What is due already is due a moment later, so that time goes on.
            let soonest = TrueTime::from_nanos(self.now.nanos() + 1000);
            let at = process.clock.time_of(moment).max(soonest);
            if process.wake_due != Some(at) {
                process.wake_due = Some(at);
                let at = at + lateness;
                process.wake_at = Some(at);
                let wake = Happening::Arrive(member, process.generation, Arrival::Wake);
                self.queue.push(at, wake);
            }
        } else {
            process.wake_at = None;
            process.wake_due = None;
        }
        // Also where it has ended: stops wait for nothing then.
        self.call_waiting(member)?;
        if self.processes[member].over.is_none() {
            self.tell(&Fact::Stepped { member, now })?;
        }
        self.leave_if_over(member)
    }

    /// How late a driver wakes that has something to do.
    fn lateness(&mut self) -> Duration {
        match self.phase {
            Phase::Faults => self.frame().driver.lateness(&mut self.dice),
            _ => Duration::ZERO,
        }
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
            self.fence_is_due(member)?;
            self.tell(&Fact::Asleep {
                member,
                asleep: false,
            })?;
            C::suspended(self, member)?;
        }
        // Timers and messages are ready at once: either may come first. Timers
        // of a machine that slept may not have counted that.
        let late = self.frame().driver.late;
        let late = late.min(LOOK_INTERVAL) * u32::from(still.suspended);
        if late.is_zero() && self.dice.chance(0.5) {
            self.processes[member].wake_at = Some(self.now);
            self.wake(member)?;
        }
        while let Some(arrival) = waiting.pop_front() {
            if self.processes[member].generation != generation {
                break;
            }
            match arrival {
                Arrival::Wake if !late.is_zero() => self.wake_within(member, late),
                Arrival::Wake => {
                    self.processes[member].wake_at = Some(self.now);
                    self.wake(member)?;
                }
                arrival => self.arrive(member, arrival)?,
            }
        }
        Ok(())
    }

    fn wake_within(&mut self, member: usize, late: Duration) {
        let at = self.now + self.dice.span(Duration::ZERO, late);
        let process = &mut self.processes[member];
        process.wake_at = Some(at);
        let wake = Happening::Arrive(member, process.generation, Arrival::Wake);
        self.queue.push(at, wake);
    }
}
