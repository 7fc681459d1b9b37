//! The stages of a world of leader mode: faults, healing, quiet, and two last
//! probes.

use super::World;
use crate::fact::Phase;
use crate::invariants::Broken;
use crate::profile::Profile;
use crate::world::{Course, Stage};

impl World {
    /// A world that runs its course while somebody watches: event for event
    /// the one that [`World::run`] runs.
    pub fn watched(profile: Profile) -> Self {
        Self::new(profile, true).watch()
    }

    pub(super) const fn first_stage(&self) -> Course {
        Course {
            stage: Stage::Faults,
            until: self.profile.faults_until,
        }
    }

    pub(super) fn stage_after(&mut self, ended: Stage) -> Result<Option<Course>, Broken> {
        let next = match ended {
            Stage::Start | Stage::Faults => {
                self.heal()?;
                let until = self.now + self.profile.healing;
                Some((Stage::Healing(until), until))
            }
            Stage::Healing(_) => {
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
        Ok(next.map(|(stage, until)| Course { stage, until }))
    }
}
