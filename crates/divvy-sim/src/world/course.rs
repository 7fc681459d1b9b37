//! The course of a world, stage by stage.

use super::WorldOf;
use super::coordination::Coordination;
use crate::fact::Phase;
use crate::hands::{Chronicle, Trace};
use crate::invariants::Broken;
use crate::time::TrueTime;

/// The stages that worlds go through; not all go through each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Start,
    Faults,
    /// Until all is where it should be, at the latest then.
    Healing(TrueTime),
    Quiet,
    Probe,
    Limp,
}

/// How far a world has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub(crate) stage: Stage,
    /// When the next stage begins.
    pub(crate) until: TrueTime,
}

impl<C: Coordination> WorldOf<C> {
    /// Lets the world run its course.
    pub fn run(&mut self) -> Result<(), Broken> {
        self.course = Some(C::first_stage(self));
        while let Some(course) = self.course {
            self.run_until(course.until)?;
            self.next_stage()?;
        }
        Ok(())
    }

    /// The same world for somebody who watches it run its course: event for
    /// event the one that [`Self::run`] runs.
    pub(crate) fn watch(mut self) -> Self {
        self.trace = Some(Trace::new(true));
        self.chronicle = Some(Chronicle::default());
        self.course = Some(C::first_stage(&self));
        self
    }

    /// When the next stage begins, if one does by `until`.
    pub(crate) fn next_stage_at(&self, until: TrueTime) -> Option<TrueTime> {
        let at = self.course.map(|course| course.until);
        at.filter(|at| *at <= until)
    }

    /// The next stage begins.
    pub(crate) fn next_stage(&mut self) -> Result<(), Broken> {
        let Some(course) = self.course.take() else {
            return Ok(());
        };
        self.course = C::next_stage(self, course.stage)?;
        match self.course {
            Some(_) => Ok(()),
            None => self.enter(Phase::Over),
        }
    }
}
