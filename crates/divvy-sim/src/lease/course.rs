//! The course of a world, stage by stage, for somebody who watches.

use super::{LeaseProfile, LeaseWorld};
use crate::fact::Phase;
use crate::hands::{Chronicle, Trace};
use crate::invariants::Broken;
use crate::time::TrueTime;

/// The stages that [`LeaseWorld::run`] goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Faults,
    /// Until all is where it should be, at the latest then.
    Settling(TrueTime),
    Quiet,
    Probe,
}

/// How far a world has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    stage: Stage,
    /// When the next stage begins.
    until: TrueTime,
}

impl LeaseWorld {
    /// A world that runs its course while somebody watches: event for event
    /// the one that [`LeaseWorld::run`] runs.
    pub fn watched(profile: LeaseProfile) -> Self {
        let (stage, until) = match profile.faults.is_empty() {
            true => (Stage::Start, TrueTime::ZERO + profile.started_within()),
            false => (Stage::Faults, profile.faults_until),
        };
        let mut world = Self::new(profile, true);
        world.trace = Some(Trace::new(true));
        world.chronicle = Some(Chronicle::default());
        world.course = Some(Course { stage, until });
        world
    }

    /// When the next stage begins, if one does by `until`.
    pub(super) fn next_stage_at(&self, until: TrueTime) -> Option<TrueTime> {
        let at = self.course.map(|course| course.until);
        at.filter(|at| *at <= until)
    }

    /// The next stage begins.
    pub(super) fn next_stage(&mut self) -> Result<(), Broken> {
        let Some(course) = self.course.take() else {
            return Ok(());
        };
        let next = match course.stage {
            Stage::Start => {
                self.survey_start()?;
                Some((Stage::Faults, self.profile.faults_until.max(self.now)))
            }
            Stage::Faults => {
                self.heal()?;
                let latest = self.now + self.profile.healing();
                let until = self.now + self.profile.aftermath();
                Some((Stage::Settling(latest), until))
            }
            Stage::Settling(latest) if self.now < latest && !self.is_settled() => {
                let next = self.now + self.profile.reconcile_at_most();
                Some((course.stage, next.min(latest)))
            }
            Stage::Settling(_) => {
                self.survey()?;
                self.enter(Phase::Quiet)?;
                Some((Stage::Quiet, self.now + self.profile.quiet()))
            }
            Stage::Quiet => {
                self.survey()?;
                self.begin_probe()?.map(|until| (Stage::Probe, until))
            }
            Stage::Probe => None,
        };
        self.course = next.map(|(stage, until)| Course { stage, until });
        match self.course {
            Some(_) => Ok(()),
            None => self.enter(Phase::Over),
        }
    }
}
