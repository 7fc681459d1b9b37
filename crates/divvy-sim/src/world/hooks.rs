//! Hooks: those that wait for their turn, and those that run.
//!
//! Starts and stops have a limit each. A start whose grant has ended before its
//! turn came is not called, and a stop whose grant has ended waits for nothing.

use std::time::Duration;

use divvy_core::leader::{HookEnd, HookId};
use divvy_core::store::Token;

use super::coordination::Coordination;
use super::driver::DriverDefect;
use super::machine::Occasion;
use super::process::Arrival;
use super::{Happening, WorldOf};
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;

/// A hook that a machine asked for.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) id: HookId,
    pub(crate) partition: usize,
    /// What is started; nothing for a stop.
    pub(crate) start: Option<Start>,
    has_waited: bool,
}

impl Hook {
    pub(crate) const fn start(id: HookId, partition: usize, start: Start) -> Self {
        Self {
            id,
            partition,
            start: Some(start),
            has_waited: false,
        }
    }

    pub(crate) const fn stop(id: HookId, partition: usize) -> Self {
        Self {
            id,
            partition,
            start: None,
            has_waited: false,
        }
    }
}

/// A start that a machine asked for.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// What the partition is called.
    pub(crate) name: Box<str>,
    pub(crate) token: Token,
    /// Whether the worker is able to start it.
    pub(crate) is_able: bool,
}

/// A hook that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) partition: usize,
    pub(crate) starts: bool,
    pub(crate) stuck: bool,
    /// Nothing was called: its grant had ended.
    is_refused: bool,
    /// It takes a place that others wait for.
    takes_place: bool,
}

/// What a hook that waits may do.
enum Turn {
    Wait,
    Refused,
    Called { takes_place: bool },
}

impl<C: Coordination> WorldOf<C> {
    /// A machine asks for a hook.
    pub(crate) fn ask(&mut self, member: usize, hook: Hook) -> Result<(), Broken> {
        let partition = hook.partition;
        let now = self.processes[member].clock.at(self.now);
        self.tell(&match hook.start {
            Some(_) => Fact::StartAsked {
                member,
                partition,
                now,
            },
            None => Fact::EndAsked { member, partition },
        })?;
        if self.frame().driver.hook_concurrency.is_none() {
            return self.call(member, &hook, false);
        }
        self.processes[member].waiting.push_back(hook);
        self.tell_busy(member)
    }

    /// Calls all hooks whose turn has come.
    pub(super) fn call_waiting(&mut self, member: usize) -> Result<(), Broken> {
        let mut at = 0;
        while at < self.processes[member].waiting.len() {
            let turn = self.turn(member, at);
            if matches!(turn, Turn::Wait) {
                let hook = &mut self.processes[member].waiting[at];
                if !std::mem::replace(&mut hook.has_waited, true) {
                    self.count(Mishap::HookWaited);
                }
                at += 1;
                continue;
            }
            let hook = self.processes[member].waiting.remove(at);
            let hook = hook.expect("its turn was just looked at");
            let generation = self.processes[member].generation;
            let arrival = match turn {
                Turn::Called { takes_place } => {
                    self.call(member, &hook, takes_place)?;
                    Arrival::Begun(hook.id)
                }
                Turn::Wait | Turn::Refused => {
                    self.refuse_start(member, &hook);
                    Arrival::Hook(hook.id, HookEnd::Failed)
                }
            };
            let arrive = Happening::Arrive(member, generation, arrival);
            self.after(Duration::ZERO, arrive);
        }
        Ok(())
    }

    fn turn(&self, member: usize, at: usize) -> Turn {
        let driver = self.frame().driver;
        let process = &self.processes[member];
        let hook = &process.waiting[at];
        let starts = hook.start.is_some();
        let now = process.clock.at(self.now);
        let until = C::grant_until(process, hook.partition);
        let is_current = until.is_some_and(|until| now < until);
        let are_mixed = driver.has(DriverDefect::StopBehindStarts);
        match (is_current, starts) {
            (false, true) if !driver.has(DriverDefect::StartWithoutGrant) => return Turn::Refused,
            (false, false) if !are_mixed => return Turn::Called { takes_place: false },
            _ => {}
        }
        let is_rival = |call: &&Call| call.takes_place && (are_mixed || call.starts == starts);
        let taken = process.calls.values().filter(is_rival).count();
        if driver.hook_concurrency.is_some_and(|most| taken >= most) {
            return Turn::Wait;
        }
        Turn::Called { takes_place: true }
    }

    fn refuse_start(&mut self, member: usize, hook: &Hook) {
        self.count(Mishap::StartRefused);
        let call = Call {
            partition: hook.partition,
            starts: true,
            stuck: false,
            is_refused: true,
            takes_place: false,
        };
        self.processes[member].calls.insert(hook.id, call);
    }

    /// Calls a hook, which ends as the weather has it.
    fn call(&mut self, member: usize, hook: &Hook, takes_place: bool) -> Result<(), Broken> {
        self.tell_called(member, hook)?;
        let frame = self.frame();
        let (starts, partition) = (hook.start.is_some(), hook.partition);
        let deadline = if starts {
            frame.start_deadline
        } else {
            frame.stop_deadline
        };
        let weather = self.hook_weather.and(self.processes[member].hooks);
        let (least, most) = frame.hook;
        let mut lasts = self.dice.span(least, most);
        let stuck = self.dice.chance(weather.stuck);
        if stuck {
            self.count(Mishap::HookStuck);
        } else if self.dice.chance(weather.overdue) {
            self.count(Mishap::HookOverdue);
            lasts = deadline + self.dice.span(Duration::ZERO, deadline);
        } else if self.dice.chance(weather.slow) {
            self.count(Mishap::HookSlow);
            lasts = self.dice.span(Duration::ZERO, deadline / 2);
        }
        let fails = self.dice.chance(weather.failing);
        if fails {
            self.count(Mishap::HookFailed);
        }
        let call = Call {
            partition,
            starts,
            stuck,
            is_refused: false,
            takes_place,
        };
        let process = &mut self.processes[member];
        process.calls.insert(hook.id, call);
        let generation = process.generation;
        if takes_place && (stuck || lasts > deadline) {
            let arrival = Arrival::Overdue(hook.id);
            self.after(deadline, Happening::Arrive(member, generation, arrival));
        }
        if !stuck {
            let is_able = hook.start.as_ref().is_none_or(|start| start.is_able);
            let end = if fails || !is_able {
                HookEnd::Failed
            } else {
                HookEnd::Done
            };
            let arrival = Arrival::Hook(hook.id, end);
            self.after(lasts, Happening::Arrive(member, generation, arrival));
        }
        self.tell_busy(member)
    }

    fn tell_called(&mut self, member: usize, hook: &Hook) -> Result<(), Broken> {
        let partition = hook.partition;
        let Some(start) = &hook.start else {
            return self.tell(&Fact::StopCalled { member, partition });
        };
        let now = self.processes[member].clock.at(self.now);
        self.tell(&Fact::StartBegins {
            member,
            partition,
            now,
        })?;
        self.tell(&Fact::StartCalled {
            member,
            partition,
            name: &start.name,
            token: start.token,
        })?;
        C::start_called(self, member, partition)?;
        self.begin_work(member, partition)
    }

    pub(super) fn tell_busy(&mut self, member: usize) -> Result<(), Broken> {
        let process = &self.processes[member];
        let busy = Fact::Busy {
            member,
            operations: process.flights.len(),
            hooks: process.calls.len() + process.waiting.len(),
        };
        self.tell(&busy)
    }

    /// A hook that takes too long gives its place to others.
    pub(super) fn hook_is_overdue(&mut self, member: usize, id: HookId) -> Result<(), Broken> {
        if let Some(call) = self.processes[member].calls.get_mut(&id) {
            call.takes_place = false;
        }
        self.call_waiting(member)
    }

    pub(super) fn hook_ends(
        &mut self,
        member: usize,
        id: HookId,
        end: HookEnd,
    ) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(call) = process.calls.remove(&id) else {
            return Ok(());
        };
        let partition = call.partition;
        let failed = end == HookEnd::Failed;
        if !call.starts || failed {
            C::stopped(process, partition);
        }
        if !call.starts {
            self.tell(&Fact::StopEnded { member, partition })?;
        } else if !call.is_refused {
            self.tell(&Fact::StartEnded {
                member,
                partition,
                failed,
            })?;
        }
        let is_left = !call.starts && self.frame().driver.has(DriverDefect::GroupLeftBehind);
        if (!call.starts || failed) && !is_left {
            self.end_work(member, partition)?;
        }
        self.hand_of(member, Occasion::HookEnded(id, end))
    }
}
