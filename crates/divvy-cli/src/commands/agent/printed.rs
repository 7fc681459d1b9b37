//! The settings of an agent, with where they come from.

use std::io::Write;

use divvy::controller::{ControllerSettings, default_worker_name};

use super::config::{preset, settings, unflagged};
use crate::args::{AgentArgs, AgentPreset};
use crate::commands::worker::check_store;
use crate::config::Layered;
use crate::effective::Origins;
use crate::failure::Failure;

/// Prints what is in force; nothing is begun.
pub(super) fn print(mut layered: Layered<AgentArgs>, out: &mut dyn Write) -> Result<(), Failure> {
    let settings = settings(&layered)?;
    check_store(layered.args.store.as_ref())?;
    layered.args.reach.settings()?;
    let typed = layered.args.preset.map(|preset| preset.name());
    let mut origins = Origins::new(layered.config.as_ref(), typed);
    origins.flag("weight", "--weight", layered.is_typed("weight"));
    let is_typed = layered.is_typed("workloads");
    let is_dynamic = layered.args.workloads.as_deref() == Some("dynamic");
    origins.flag("dynamic", "--workloads", is_typed && is_dynamic);
    origins.flag("workloads", "--workloads", is_typed && !is_dynamic);
    let unraised = unflagged(&layered)?;
    let (before, now) = (&unraised.lease, &settings.lease);
    origins.raised(
        layered.is_typed("grace"),
        [before.stop_deadline, before.shutdown_timeout],
        [now.stop_deadline, now.shutdown_timeout],
    );
    let by_preset = preset(match origins.preset() {
        Some("fast") => Some(AgentPreset::Fast),
        Some("rendezgo") => Some(AgentPreset::Rendezgo),
        _ => None,
    });
    for own in layered.own.iter_mut().filter(|own| own.name() == "node") {
        own.tell(&default_worker_name());
    }
    let default = ControllerSettings::default();
    let library = [&settings, &by_preset, &default];
    // The node is told by its flag.
    origins.print(out, &layered.own, library, &["worker"])
}
