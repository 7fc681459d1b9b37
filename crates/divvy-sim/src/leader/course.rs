//! The course of a world, stage by stage, for somebody who watches.

use super::World;
use crate::fact::Phase;
use crate::hands::{Chronicle, Trace};
use crate::invariants::Broken;
use crate::profile::Profile;
use crate::time::TrueTime;

/// The stages that [`World::run`] goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Faults,
    Healing,
    Quiet,
    Probe,
    Limp,
}

/// How far a world has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    stage: Stage,
    /// When the next stage begins.
    until: TrueTime,
}

impl World {
    /// A world that runs its course while somebody watches: event for event
    /// the one that [`World::run`] runs.
    pub fn watched(profile: Profile) -> Self {
        let until = profile.faults_until;
        let stage = Stage::Faults;
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
            Stage::Faults => {
                self.heal()?;
                Some((Stage::Healing, self.now + self.profile.healing))
            }
            Stage::Healing => {
                self.survey()?;
                self.enter(Phase::Quiet)?;
                Some((Stage::Quiet, self.now + self.profile.quiet))
            }
            Stage::Quiet => {
                self.survey()?;
                self.begin_probe()?.map(|until| (Stage::Probe, until))
            }
            Stage::Probe => Some((Stage::Limp, self.begin_limp()?)),
            Stage::Limp => None,
        };
        self.course = next.map(|(stage, until)| Course { stage, until });
        match self.course {
            Some(_) => Ok(()),
            None => self.enter(Phase::Over),
        }
    }
}
