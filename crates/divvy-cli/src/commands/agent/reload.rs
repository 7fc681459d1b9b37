//! Reading the settings again: what counts at once, and what takes a restart.

use divvy::controller::{ControllerSettings, ControllerView};

use super::config::settings;
use crate::args::AgentArgs;
use crate::config::Layered;
use crate::effective::{differing, told};

/// Settings in force, and how they change.
pub(super) struct Reloading {
    layered: Layered<AgentArgs>,
    current: ControllerSettings,
}

impl Reloading {
    pub(super) fn new(layered: Layered<AgentArgs>, current: ControllerSettings) -> Self {
        Self { layered, current }
    }

    /// Takes what can be taken, and says what was and what was not.
    pub(super) async fn reload(&mut self, view: &ControllerView) -> Result<String, String> {
        if self.layered.config.is_none() {
            return Err("there is no --config to read again".to_owned());
        }
        let layered = Layered::read().map_err(|failure| failure.to_string())?;
        let read = settings(&layered).map_err(|failure| failure.to_string())?;
        let mut next = self.current.clone();
        next.groups.clone_from(&read.groups);
        next.weight = read.weight;
        next.lease = next.lease.tuned(&read.lease);
        let apply = async {
            next.lease.check()?;
            view.report_weight(next.weight)?;
            view.tune(next.lease.clone()).await?;
            view.regroup(next.groups.clone()).await
        };
        apply.await.map_err(|error| error.to_string())?;
        let taken = differing(&self.current, &next);
        let mut left = differing(&next, &read);
        // The node is told by its flag.
        left.retain(|name| name != "worker");
        left.extend(self.layered.differing(&layered));
        self.current = next;
        Ok(told(&taken, &left))
    }
}
