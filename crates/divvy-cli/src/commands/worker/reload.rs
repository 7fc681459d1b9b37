//! Reading the settings again: what counts at once, and what takes a restart.

use divvy::manager::{Settings, View};

use super::config::settings;
use super::partitions::Origin;
use crate::args::WorkerArgs;
use crate::config::Layered;
use crate::effective::{differing, told};
use crate::failure::Failure;

/// Settings in force, and how they change.
pub(super) struct Reloading {
    layered: Layered<WorkerArgs>,
    current: Settings,
    origin: Origin,
    /// What `partitions` says, as far as it was taken.
    partitions: Option<String>,
}

impl Reloading {
    pub(super) fn new(layered: Layered<WorkerArgs>, current: Settings, origin: Origin) -> Self {
        let partitions = layered.args.partitions.clone();
        Self {
            layered,
            current,
            origin,
            partitions,
        }
    }

    /// Takes what can be taken, and says what was and what was not. What
    /// cannot be used changes nothing.
    pub(super) async fn reload(&mut self, view: &View) -> Result<String, String> {
        if self.layered.config.is_some() {
            return self.read_again(view).await;
        }
        if let Origin::Configured(_) = &self.origin {
            return Err("there is neither --config nor a file of partitions".to_owned());
        }
        refresh(view).await?;
        Ok("partitions".to_owned())
    }

    async fn read_again(&mut self, view: &View) -> Result<String, String> {
        let why = |failure: Failure| failure.to_string();
        let layered: Layered<WorkerArgs> = Layered::read().map_err(why)?;
        let read = settings(&layered).map_err(why)?;
        let mut next = self.current.clone();
        next.groups.clone_from(&read.groups);
        next.shards_per_group = read.shards_per_group;
        next.weight = read.weight;
        let listed = self.origin.set(&layered.args, &read).map_err(why)?;
        let weighed = view.report_weight(read.weight);
        weighed.map_err(|error| error.to_string())?;
        let mut taken = differing(&self.current, &next);
        let mut left = differing(&next, &read);
        // The instance is told by its flag.
        left.retain(|name| name != "instance");
        let own = self.layered.differing(&layered).into_iter();
        left.extend(own.filter(|name| name != "partitions"));
        if self.partitions != layered.args.partitions {
            let names = if listed { &mut taken } else { &mut left };
            names.push("partitions".to_owned());
        }
        if listed {
            self.partitions = layered.args.partitions;
        }
        self.current = next;
        refresh(view).await?;
        Ok(told(&taken, &left))
    }
}

/// Has the leader ask for the partitions again.
async fn refresh(view: &View) -> Result<(), String> {
    let wished = view.refresh_partitions().await;
    wished.map_err(|error| error.to_string())
}
