//! What members do with partitions: hooks that are called, and effects.

use std::time::Duration;

use divvy_core::leader::{HookEnd, HookId};
use divvy_core::store::Token;

use super::coordination::Coordination;
use super::process::{Arrival, Call};
use super::{Happening, WorldOf};
use crate::coverage::Mishap;
use crate::fact::{Fact, Phase};
use crate::invariants::Broken;
use crate::resource::Verdict;

impl<C: Coordination> WorldOf<C> {
    /// Calls the hook that starts a partition, or the one that stops it, which
    /// ends as the weather has it; whoever is not able to fails.
    pub(crate) fn call(
        &mut self,
        member: usize,
        id: HookId,
        partition: usize,
        starts: bool,
        is_able: bool,
    ) -> Result<(), Broken> {
        let frame = self.frame();
        let deadline = match starts {
            true => frame.start_deadline,
            false => frame.stop_deadline,
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
        let process = &mut self.processes[member];
        let call = Call {
            partition,
            starts,
            stuck,
        };
        process.calls.insert(id, call);
        let busy = Fact::Busy {
            member,
            operations: process.flights.len(),
            hooks: process.calls.len(),
        };
        let generation = process.generation;
        if !stuck {
            let end = match fails || !is_able {
                true => HookEnd::Failed,
                false => HookEnd::Done,
            };
            let arrival = Arrival::Hook(id, end);
            self.after(lasts, Happening::Arrive(member, generation, arrival));
        }
        self.tell(&busy)
    }

    /// All running partitions do something.
    pub(super) fn effects(&mut self) -> Result<(), Broken> {
        let frame = self.frame();
        for member in 0..self.processes.len() {
            let process = &self.processes[member];
            if process.stillness.is_some()
                || process.running.is_empty()
                || !process.reaches_resources()
            {
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

    pub(super) fn late_effect(&mut self, partition: usize, token: Token) {
        if self.resource.effect(partition, token) != Verdict::Done {
            self.count(Mishap::StaleEffect);
        }
    }
}
