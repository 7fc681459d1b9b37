//! What reaches a process, and its coming and going.

use std::time::Duration;

use divvy_core::leader::{Event, HookEnd, HookId, Member, MemberSetup, OperationId, Reply};
use divvy_core::lease::Ending;

use super::World;
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::world::{Arrival, Happening, Over, failure};

/// How long a process whose member ended by policy stays away.
const RESTART_AFTER: Duration = Duration::from_millis(200);

impl World {
    /// A process is started, unless there is one.
    pub(super) fn boot(&mut self, member: usize) -> Result<(), Broken> {
        if self.processes[member].is_alive() {
            return Ok(());
        }
        self.note(|| format!("m{member} starts"));
        let process = &mut self.processes[member];
        process.clear();
        let clock = process.clock.both_at(self.now);
        let setup = MemberSetup {
            settings: self.profile.settings_of(member),
            instance: process.host.instance.as_str().into(),
            strategy: std::sync::Arc::clone(&self.own.strategy),
            previous: None,
            description: process.host.description.clone(),
            seed: self.dice.number(),
            external_election: self.own.agent.is_used(),
            hooks_wait: false,
            retries: divvy_core::leader::Retries::default(),
            value_bytes_max: self.profile.value_bytes_max,
        };
        let machine = match self.profile.defect {
            Some(defect) => Member::planted(setup, clock, defect),
            None => Member::new(setup, clock),
        };
        self.processes[member].machine = Some(Box::new(machine));
        let connects = self.way();
        self.reconnect(member, connects);
        self.hand(member, Event::Start)
    }

    /// A process ends, whatever it was doing.
    pub(super) fn end(&mut self, member: usize, in_order: bool) -> Result<(), Broken> {
        if !self.processes[member].is_alive() {
            return Ok(());
        }
        self.note(|| format!("m{member} ends{}", if in_order { " in order" } else { "" }));
        self.processes[member].clear();
        self.own.agent.forget(member);
        self.tell(&Fact::Gone { member, in_order })
    }

    /// Something reaches a process, or waits while it stands still.
    pub(super) fn arrive(
        &mut self,
        member: usize,
        arrival: Arrival<super::LeaderMode>,
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
            Arrival::News(_, forgotten, change) => {
                let connected = self.processes[member].connected.is_some();
                if forgotten != self.reach.forgotten || !connected {
                    return Ok(());
                }
                self.hand(member, Event::Seen((*change).clone()))
            }
            Arrival::Answer(id, reply) => match self.land(member, id) {
                Some(_) => self.hand(member, Event::Reply(id, reply)),
                None => Ok(()),
            },
            Arrival::Expire(id) => match self.land(member, id) {
                Some(is_write) => {
                    let reply = Reply::Failed(failure(is_write));
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
        if !call.starts || failed {
            process.running.remove(&partition);
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
    pub(super) fn hand(&mut self, member: usize, event: Event) -> Result<(), Broken> {
        self.note(|| format!("m{member} <- {}", super::act::describe_event(&event)));
        let process = &mut self.processes[member];
        let clock = process.clock.both_at(self.now);
        if let Some(machine) = &mut process.machine {
            machine.handle(clock, event);
        }
        self.drain(member)
    }

    /// Does all that a machine asks for.
    fn drain(&mut self, member: usize) -> Result<(), Broken> {
        let Some(mut machine) = self.processes[member].machine.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        while let Some(action) = machine.next_action() {
            outcome = self.act(member, &machine, action);
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
            let soonest = crate::time::TrueTime::from_nanos(self.now.nanos() + 1000);
            let at = process.clock.time_of(moment).max(soonest);
            if process.wake_at.is_none_or(|wake| wake != at) {
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

    fn leave_if_over(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(over) = process.over.take() else {
            return Ok(());
        };
        let back = process.comes_back.take();
        let in_order = over == Over::Ended(Ending::InOrder);
        let back = match in_order {
            true => back,
            false => Some(RESTART_AFTER),
        };
        if !in_order {
            self.count(Mishap::Abort);
        }
        self.end(member, in_order)?;
        if let Some(back) = back {
            self.after(back, Happening::Boot(member));
        }
        Ok(())
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
            self.hand(member, Event::Suspended)?;
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
