//! The settings of an agent: what was typed, over what a file says.

use std::path::Path;

use divvy::controller::ControllerSettings;
use divvy::lease::{Group, LEASE_TIMING_MAX};
use divvy::store::StoreUrl;

use crate::args::{AgentArgs, AgentPreset};
use crate::config::{Layered, Layers};
use crate::failure::Failure;

impl Layers for AgentArgs {
    type Settings = ControllerSettings;

    const COMMAND: &'static str = "agent";
    // The library's is that of a member, and the flag's that of its store.
    const RENAMED: &'static [(&'static str, &'static str)] =
        &[("operation_timeout", "store_operation_timeout")];
    const ALIASES: &'static [(&'static str, &'static str)] = &[("worker", "node")];
    const LIBRARY: &'static [&'static str] = &["preset", "weight", "workloads"];
    const TEXTS: &'static [&'static str] = &[];
    const EITHER: &'static [(&'static str, &'static str)] = &[];

    fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    fn addresses(&mut self) -> (&mut Option<StoreUrl>, &mut Option<String>) {
        (&mut self.store, &mut self.webhook.webhook)
    }

    fn library(text: &str, is_json: bool) -> Result<ControllerSettings, divvy::Error> {
        match is_json {
            true => ControllerSettings::from_json(text),
            false => ControllerSettings::from_yaml(text),
        }
    }
}

pub(super) fn preset(named: Option<AgentPreset>) -> ControllerSettings {
    match named {
        Some(AgentPreset::Fast) => ControllerSettings::fast(),
        Some(AgentPreset::Rendezgo) => ControllerSettings::rendezgo(),
        Some(AgentPreset::Default) | None => ControllerSettings::default(),
    }
}

/// Those of the file, or of a preset.
pub(super) fn unflagged(layered: &Layered<AgentArgs>) -> Result<ControllerSettings, Failure> {
    match &layered.config {
        Some(config) => config.settings::<AgentArgs>(),
        None => Ok(preset(layered.args.preset)),
    }
}

/// Those in force.
pub(super) fn settings(layered: &Layered<AgentArgs>) -> Result<ControllerSettings, Failure> {
    let (mut settings, args) = (unflagged(layered)?, &layered.args);
    settings.worker.clone_from(&args.node);
    if let Some(weight) = args.weight {
        settings.weight = weight;
    }
    match args.workloads.as_deref() {
        None => {}
        Some("dynamic") => settings.dynamic = true,
        Some(text) => settings.groups = workloads(text)?,
    }
    if settings.groups.is_empty() && !settings.dynamic {
        let text = "--workloads is missing: such as --workloads orders:8, or dynamic for those of \
                    the store";
        return Err(Failure::Usage(text.to_owned()));
    }
    if args.webhook.webhook.is_none() {
        // A command that ends within --grace is neither reported as overdue nor cut short.
        let least = args.run.grace * 2;
        settings.lease.stop_deadline = settings.lease.stop_deadline.max(least);
        settings.lease.shutdown_timeout = settings.lease.shutdown_timeout.max(least);
    } else {
        // A service may be gone for good, unlike a command or a handler.
        let timeout = args.webhook_stop_timeout;
        let timeout = timeout.unwrap_or(settings.lease.stop_deadline * 2);
        let timeout = timeout.min(LEASE_TIMING_MAX);
        settings.lease.stop_confirm_timeout = Some(timeout);
    }
    settings
        .check()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(settings)
}

/// Groups as they are typed: `demo:8,mail:3`.
fn workloads(text: &str) -> Result<Vec<Group>, Failure> {
    let usage = |error: divvy::Invalid| Failure::Usage(error.to_string());
    let wrong = |part: &str| {
        let rule = "must be NAME:N, with N partitions from 1 on, such as orders:8";
        Failure::usage("workloads", part, rule)
    };
    let mut groups = Vec::new();
    for part in text.split(',') {
        let (name, count) = part.rsplit_once(':').ok_or_else(|| wrong(part))?;
        let count: u32 = count.parse().map_err(|_error| wrong(part))?;
        let group = Group::new(name, count).map_err(|error| {
            let rule = format!("workload '{name}' is refused: {error}");
            Failure::usage("workloads", part, rule)
        });
        groups.push(group?);
    }
    Group::check_all(&groups).map_err(usage)?;
    Ok(groups)
}
