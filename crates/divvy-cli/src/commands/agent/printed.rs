//! The settings of an agent, with where they come from.

use std::io::Write;

use divvy::controller::ControllerSettings;

use super::{preset, read_config, settings};
use crate::args::{AgentArgs, AgentPreset};
use crate::commands::worker::{cluster_from, store_shown};
use crate::effective::Origins;
use crate::failure::Failure;

/// Prints what is in force; nothing is begun.
pub(super) fn print(args: &AgentArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let settings = settings(args)?;
    let typed = args.preset.map(|preset| preset.name());
    let mut origins = Origins::read(args.config.as_deref(), typed)?;
    origins.flag("worker", "--node", args.node.is_some());
    origins.flag("weight", "--weight", args.weight.is_some());
    let is_dynamic = args.workloads.as_deref() == Some("dynamic");
    origins.flag("dynamic", "--workloads", is_dynamic);
    let is_listed = args.workloads.is_some() && !is_dynamic;
    origins.flag("workloads", "--workloads", is_listed);
    let unraised = match &args.config {
        Some(path) => read_config(path)?,
        None => preset(args.preset),
    };
    let (before, now) = (&unraised.lease, &settings.lease);
    origins.raised(
        [before.stop_deadline, before.shutdown_timeout],
        [now.stop_deadline, now.shutdown_timeout],
    );
    let by_preset = preset(match origins.preset() {
        Some("fast") => Some(AgentPreset::Fast),
        Some("rendezgo") => Some(AgentPreset::Rendezgo),
        _ => None,
    });
    let (store, from) = store_shown(args.store.as_ref())?;
    let cluster = &args.reach.cluster;
    let named = cluster_from(cluster);
    let above = [("store", store, from), ("cluster", cluster.clone(), named)];
    let default = ControllerSettings::default();
    origins.print(out, &above, [&settings, &by_preset, &default])
}
