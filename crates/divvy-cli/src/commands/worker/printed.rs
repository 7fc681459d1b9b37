//! The settings of a worker, with where they come from.

use std::io::Write;

use divvy::manager::Settings;

use super::{cluster_from, preset, read_config, settings, store_shown};
use crate::args::{Preset, WorkerArgs};
use crate::effective::Origins;
use crate::failure::Failure;

/// Prints what is in force; nothing is begun.
pub(super) fn print(args: &WorkerArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let settings = settings(args)?;
    let typed = args.preset.map(|preset| preset.name());
    let mut origins = Origins::read(args.config.as_deref(), typed)?;
    origins.flag("instance", "--instance", args.instance.is_some());
    origins.flag("strategy", "--strategy", args.strategy.is_some());
    let unraised = match &args.config {
        Some(path) => read_config(path)?,
        None => preset(args.preset),
    };
    let (before, now) = (&unraised.leader, &settings.leader);
    origins.raised(
        [before.stop_deadline, before.shutdown_timeout],
        [now.stop_deadline, now.shutdown_timeout],
    );
    let by_preset = preset(match origins.preset() {
        Some("fast") => Some(Preset::Fast),
        Some("calm") => Some(Preset::Calm),
        _ => None,
    });
    let (store, from) = store_shown(args.store.as_ref())?;
    let mut above = vec![("store", store, from)];
    let cluster = &args.reach.cluster;
    above.push(("cluster", cluster.clone(), cluster_from(cluster)));
    if let Some(partitions) = &args.partitions {
        above.push(("partitions", partitions.clone(), "--partitions"));
    }
    let default = Settings::default();
    origins.print(out, &above, [&settings, &by_preset, &default])
}
