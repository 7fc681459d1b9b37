//! What members do with partitions: effects, and commands that do them.
//!
//! A command works from the call of its start hook until its stop hook has
//! returned. Its agent may stand still: a fencer, which is a process of its own,
//! ends the command when its grant ends. Only where the whole machine sleeps do
//! both stand still, and the fencer is the first to act when it wakes.

use divvy_core::store::Token;

use super::coordination::Coordination;
use super::driver::DriverDefect;
use super::{Happening, WorldOf};
use crate::coverage::Mishap;
use crate::fact::{Fact, Phase};
use crate::invariants::Broken;
use crate::resource::Verdict;

impl<C: Coordination> WorldOf<C> {
    /// All running partitions do something.
    pub(super) fn effects(&mut self) -> Result<(), Broken> {
        let frame = self.frame();
        for member in 0..self.processes.len() {
            let process = &self.processes[member];
            let stands_still = process
                .stillness
                .is_some_and(|still| still.suspended || !frame.driver.commands);
            if stands_still || process.running.is_empty() || !process.reaches_resources() {
                continue;
            }
            let working: Vec<_> = C::working(process, self.now).collect();
            for (partition, token) in working {
                if self.phase == Phase::Faults && self.dice.chance(0.002) {
                    // Decided on now, done when the deadline may have passed.
                    let late = self.dice.span(frame.lease / 2, frame.lease * 2);
                    self.after(late, Happening::LateEffect(partition, token));
                    continue;
                }
                if let Verdict::Refused(seen) = self.resource.effect(partition, token) {
                    self.tell(&Fact::EffectRefused {
                        member,
                        partition,
                        token,
                        seen,
                    })?;
                }
            }
        }
        self.after(frame.beat, Happening::Effects);
        Ok(())
    }

    /// A command begins to work on a partition, where commands do the work.
    pub(super) fn begin_work(&mut self, member: usize, partition: usize) -> Result<(), Broken> {
        if !self.frame().driver.commands {
            return Ok(());
        }
        self.processes[member].commands.insert(partition);
        self.tell(&Fact::WorkBegins { member, partition })?;
        self.plan_fence(member);
        Ok(())
    }

    /// The command that works on a partition has ended, if there is one.
    pub(crate) fn end_work(&mut self, member: usize, partition: usize) -> Result<(), Broken> {
        if self.processes[member].commands.remove(&partition) {
            return self.tell(&Fact::WorkEnds { member, partition });
        }
        Ok(())
    }

    /// Whether a fencer looks after the commands of a member, and is awake.
    fn has_fencer(&self, member: usize) -> bool {
        let driver = self.frame().driver;
        let stillness = self.processes[member].stillness;
        let sleeps = stillness.is_some_and(|still| still.suspended);
        driver.commands && !driver.has(DriverDefect::NoFencer) && !sleeps
    }

    /// The fencer ends all commands whose grants have ended.
    pub(crate) fn fence(&mut self, member: usize) -> Result<(), Broken> {
        if !self.has_fencer(member) {
            return Ok(());
        }
        let process = &self.processes[member];
        let now = process.clock.at(self.now);
        let is_over = |partition: &usize| {
            let until = C::grant_until(process, *partition);
            until.is_none_or(|until| until <= now)
        };
        let over: Vec<usize> = process.commands.iter().copied().filter(is_over).collect();
        for partition in over {
            self.count(Mishap::Fenced);
            self.end_work(member, partition)?;
        }
        Ok(())
    }

    /// The fencer acts when the first grant of a command ends, unless it is
    /// renewed by then.
    fn plan_fence(&mut self, member: usize) {
        if !self.has_fencer(member) {
            return;
        }
        let process = &mut self.processes[member];
        let commands = process.commands.iter();
        let ends = commands.filter_map(|partition| C::grant_until(process, *partition));
        let Some(first) = ends.min().filter(|_| !process.is_fence_planned) else {
            return;
        };
        process.is_fence_planned = true;
        let at = process.clock.time_of(first).max(self.now);
        let fence = Happening::Fence(member, process.generation);
        self.queue.push(at, fence);
    }

    pub(super) fn fence_is_due(&mut self, member: usize) -> Result<(), Broken> {
        self.processes[member].is_fence_planned = false;
        self.fence(member)?;
        self.plan_fence(member);
        Ok(())
    }

    pub(super) fn late_effect(&mut self, partition: usize, token: Token) {
        if self.resource.effect(partition, token) != Verdict::Done {
            self.count(Mishap::StaleEffect);
        }
    }
}
