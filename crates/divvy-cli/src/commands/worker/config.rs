//! The settings of a worker: what was typed, over what a file says.

use std::path::Path;

use divvy::StrategySettings;
use divvy::manager::Settings;
use divvy::store::StoreUrl;

use super::ending::how;
use crate::args::{Preset, WorkerArgs};
use crate::config::{Layered, Layers};
use crate::failure::Failure;

impl Layers for WorkerArgs {
    type Settings = Settings;

    const COMMAND: &'static str = "worker";
    // The library's are the grace of a lease, and the timeout of a member.
    const RENAMED: &'static [(&'static str, &'static str)] = &[
        ("grace", "exec_grace"),
        ("operation_timeout", "store_operation_timeout"),
    ];
    const ALIASES: &'static [(&'static str, &'static str)] = &[];
    const LIBRARY: &'static [&'static str] = &["preset", "strategy", "weight", "zone"];
    const TEXTS: &'static [&'static str] = &["groups", "worker_id_prefix", "zone"];
    const EITHER: &'static [(&'static str, &'static str)] = &[("on_stop", "shutdown")];

    fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    fn addresses(&mut self) -> (&mut Option<StoreUrl>, &mut Option<String>) {
        (&mut self.store, &mut self.webhook.webhook)
    }

    fn library(text: &str, is_json: bool) -> Result<Settings, divvy::Error> {
        match is_json {
            true => Settings::from_json(text),
            false => Settings::from_yaml(text),
        }
    }
}

pub(super) fn preset(named: Option<Preset>) -> Settings {
    match named {
        Some(Preset::Fast) => Settings::fast(),
        Some(Preset::Calm) => Settings::calm(),
        Some(Preset::Default) | None => Settings::default(),
    }
}

/// Those of the file, or of a preset.
pub(super) fn unflagged(layered: &Layered<WorkerArgs>) -> Result<Settings, Failure> {
    match &layered.config {
        Some(config) => config.settings::<WorkerArgs>(),
        None => Ok(preset(layered.args.preset)),
    }
}

/// Those in force.
pub(super) fn settings(layered: &Layered<WorkerArgs>) -> Result<Settings, Failure> {
    let (mut settings, args) = (unflagged(layered)?, &layered.args);
    settings.instance.clone_from(&args.instance);
    if let Some(weight) = args.weight {
        settings.weight = weight;
    }
    if let Some(zone) = &args.zone {
        settings.zone = Some(zone.clone());
    }
    if let Some(name) = args.strategy {
        settings.strategy = StrategySettings::new(name);
    }
    settings.shutdown = how(args, &settings)?;
    if args.run.exec.is_some() {
        // A command that ends within --grace is neither reported as overdue nor cut short.
        let leader = &mut settings.leader;
        leader.stop_deadline = leader.stop_deadline.max(args.run.grace * 2);
        leader.shutdown_timeout = leader.shutdown_timeout.max(leader.stop_deadline);
    }
    settings.check()?;
    Ok(settings)
}
