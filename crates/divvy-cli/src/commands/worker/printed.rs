//! The settings of a worker, with where they come from.

use std::io::Write;

use divvy::manager::Settings;

use super::check_store;
use super::config::{preset, settings, unflagged};
use crate::args::{Preset, WorkerArgs};
use crate::config::Layered;
use crate::effective::Origins;
use crate::failure::Failure;

/// Prints what is in force; nothing is begun.
pub(super) fn print(mut layered: Layered<WorkerArgs>, out: &mut dyn Write) -> Result<(), Failure> {
    let settings = settings(&layered)?;
    check_store(layered.args.store.as_ref())?;
    layered.args.reach.settings()?;
    let typed = layered.args.preset.map(|preset| preset.name());
    let mut origins = Origins::new(layered.config.as_ref(), typed);
    for (name, flag) in [
        ("strategy", "--strategy"),
        ("weight", "--weight"),
        ("zone", "--zone"),
    ] {
        origins.flag(name, flag, layered.is_typed(name));
    }
    origins.flag("shutdown", "--on-stop", layered.is_typed("on_stop"));
    let unraised = unflagged(&layered)?;
    let (before, now) = (&unraised.leader, &settings.leader);
    origins.raised(
        layered.is_typed("grace"),
        [before.stop_deadline, before.shutdown_timeout],
        [now.stop_deadline, now.shutdown_timeout],
    );
    let by_preset = preset(match origins.preset() {
        Some("fast") => Some(Preset::Fast),
        Some("calm") => Some(Preset::Calm),
        _ => None,
    });
    // How it stops is told by what the library has of it.
    let is_told = |name: &str| !["on_stop", "return_within"].contains(&name);
    layered.own.retain(|own| is_told(own.name()));
    for own in layered
        .own
        .iter_mut()
        .filter(|own| own.name() == "instance")
    {
        own.tell(&settings.resolved_instance()?);
    }
    let library = [&settings, &by_preset, &Settings::default()];
    // The instance is told by its flag.
    origins.print(out, &layered.own, library, &["instance"])
}
