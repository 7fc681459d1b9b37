//! The stages of a world of lease mode: a start where nothing goes wrong,
//! faults, healing, quiet, and a last probe.

use super::{LeaseProfile, LeaseWorld};
use crate::fact::Phase;
use crate::invariants::Broken;
use crate::world::{Course, Stage};

impl LeaseWorld {
    /// A world that runs its course while somebody watches: event for event
    /// the one that [`LeaseWorld::run`] runs.
    pub fn watched(profile: LeaseProfile) -> Self {
        Self::new(profile, true).watch()
    }

    pub(super) fn first_stage(&self) -> Course {
        let (stage, until) = match self.profile.faults.is_empty() {
            true => (Stage::Start, self.now + self.profile.started_within()),
            false => (Stage::Faults, self.profile.faults_until),
        };
        Course { stage, until }
    }

    pub(super) fn stage_after(&mut self, ended: Stage) -> Result<Option<Course>, Broken> {
        let next = match ended {
            Stage::Start => {
                self.survey_start()?;
                Some((Stage::Faults, self.profile.faults_until.max(self.now)))
            }
            Stage::Faults => {
                self.heal()?;
                let latest = self.now + self.profile.healing();
                // Nothing from before can come any more then.
                let until = self.now + self.profile.aftermath();
                Some((Stage::Healing(latest), until))
            }
            Stage::Healing(latest) if self.now < latest && !self.is_settled() => {
                let next = self.now + self.profile.reconcile_at_most();
                Some((ended, next.min(latest)))
            }
            Stage::Healing(_) => {
                self.survey()?;
                self.enter(Phase::Quiet)?;
                Some((Stage::Quiet, self.now + self.profile.quiet()))
            }
            Stage::Quiet => {
                self.survey()?;
                self.begin_probe()?.map(|until| (Stage::Probe, until))
            }
            Stage::Probe | Stage::Limp => None,
        };
        Ok(next.map(|(stage, until)| Course { stage, until }))
    }
}
