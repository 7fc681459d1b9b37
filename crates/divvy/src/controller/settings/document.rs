//! The form of a controller's settings in JSON and YAML: all optional, over a
//! preset.

use std::collections::BTreeMap;

use divvy_core::Invalid;
use divvy_core::lease::{Group, LeaseSettings};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ControllerSettings;
use crate::manager::settings::field::{OverdueName, set};
use crate::manager::settings::span::Span;

/// What the other fields are changes to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Preset {
    Fast,
    #[default]
    Default,
    Rendezgo,
}

/// A group: its number of partitions, or that and a limit.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
enum GroupForm {
    Partitions(u32),
    Limited(LimitedGroup),
}

#[derive(Debug, Clone, Copy, Serialize)]
struct LimitedGroup {
    units: u32,
    max_per_worker: u32,
}

const GROUP_RULE: &str = "must be a number of units, or {units: N, max_per_worker: N}";

impl<'de> Deserialize<'de> for GroupForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl GroupForm {
    fn read(value: &Value) -> Result<Self, String> {
        let number = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
        let Some(fields) = value.as_object() else {
            let units = number(value).ok_or(GROUP_RULE)?;
            return Ok(Self::Partitions(units));
        };
        let unknown = |name: &&String| !matches!(name.as_str(), "units" | "max_per_worker");
        if let Some(name) = fields.keys().find(unknown) {
            return Err(format!("there is no field '{name}' in it: it {GROUP_RULE}"));
        }
        let field = |name: &str| {
            let value = fields.get(name);
            let rule = || format!("its '{name}' is no number of units: it {GROUP_RULE}");
            value
                .map(|value| number(value).ok_or_else(rule))
                .transpose()
        };
        Ok(Self::Limited(LimitedGroup {
            units: field("units")?.ok_or(GROUP_RULE)?,
            max_per_worker: field("max_per_worker")?.unwrap_or_default(),
        }))
    }
}

/// Settings as a file holds them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    #[serde(skip_serializing)]
    preset: Preset,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    weight: Option<f64>,
    workloads: BTreeMap<String, GroupForm>,
    dynamic: Option<bool>,
    heartbeat_ttl: Option<Span>,
    heartbeat_interval: Option<Span>,
    lease_ttl: Option<Span>,
    renew_interval: Option<Span>,
    reconcile_interval: Option<Span>,
    reconcile_jitter: Option<f64>,
    config_refresh_interval: Option<Span>,
    shedding: Option<bool>,
    gentle_handoff: Option<bool>,
    releases_per_reconcile: Option<u32>,
    min_runtime: Option<Span>,
    move_cooldown: Option<Span>,
    backoff: Option<Span>,
    backoff_max: Option<Span>,
    max_partitions: Option<u32>,
    max_per_group: Option<u32>,
    min_partitions: Option<u32>,
    acquires_per_reconcile: Option<u32>,
    release_on_shutdown: Option<bool>,
    default_weight: Option<f64>,
    operation_timeout: Option<Span>,
    start_deadline: Option<Span>,
    stop_deadline: Option<Span>,
    overdue: Option<OverdueName>,
    shutdown_timeout: Option<Span>,
    start_window: Option<Span>,
    hook_concurrency: Option<usize>,
    startup_timeout: Option<Span>,
}

/// Every field of lease settings that a document has under the same name.
macro_rules! same_fields {
    ($with:ident) => {
        $with! {
            heartbeat_ttl, heartbeat_interval, lease_ttl, renew_interval, reconcile_interval,
            reconcile_jitter, config_refresh_interval, shedding, gentle_handoff,
            releases_per_reconcile, min_runtime, move_cooldown, backoff, backoff_max,
            max_partitions, max_per_group, min_partitions, acquires_per_reconcile,
            release_on_shutdown, default_weight, operation_timeout, start_deadline, stop_deadline,
            shutdown_timeout, start_window
        }
    };
}

impl Document {
    fn lease(&self) -> LeaseSettings {
        let mut lease = match self.preset {
            Preset::Fast => LeaseSettings::fast(),
            Preset::Default => LeaseSettings::default(),
            Preset::Rendezgo => LeaseSettings::rendezgo(),
        };
        if let Some(Span(ttl)) = self.lease_ttl {
            // What has to fit a lease follows it, unless it is set besides.
            lease.renew_interval = ttl * 3 / 10;
            lease.heartbeat_ttl = ttl;
            lease.heartbeat_interval = ttl * 3 / 10;
        }
        if let Some(Span(ttl)) = self.heartbeat_ttl {
            lease.heartbeat_interval = lease.heartbeat_interval.min(ttl * 3 / 10);
        }
        macro_rules! set_all {
            ($($field:ident),*) => { $(set(&mut lease.$field, self.$field);)* };
        }
        same_fields!(set_all);
        set(&mut lease.overdue, self.overdue);
        lease
    }
}

impl TryFrom<Document> for ControllerSettings {
    type Error = Invalid;

    fn try_from(document: Document) -> Result<Self, Invalid> {
        let mut settings = Self::with(document.lease());
        settings.worker = document.worker;
        set(&mut settings.weight, document.weight);
        set(&mut settings.dynamic, document.dynamic);
        set(&mut settings.hook_concurrency, document.hook_concurrency);
        set(&mut settings.startup_timeout, document.startup_timeout);
        for (name, form) in document.workloads {
            let form = match form {
                GroupForm::Partitions(units) => LimitedGroup {
                    units,
                    max_per_worker: 0,
                },
                GroupForm::Limited(form) => form,
            };
            let group = Group::new(&name, form.units).map_err(|error| {
                let value = format!("{name}: {}", form.units);
                Invalid::new(
                    "workloads",
                    value,
                    format!("{} {}", error.field(), error.rule()),
                )
            })?;
            let group = group.with_max_per_worker(form.max_per_worker);
            settings.groups.push(group);
        }
        Ok(settings)
    }
}

impl From<ControllerSettings> for Document {
    fn from(settings: ControllerSettings) -> Self {
        let lease = settings.lease;
        let groups = settings.groups.iter().map(|group| {
            let form = match group.max_per_worker() {
                None => GroupForm::Partitions(group.partitions()),
                Some(max_per_worker) => GroupForm::Limited(LimitedGroup {
                    units: group.partitions(),
                    max_per_worker,
                }),
            };
            (group.name().to_string(), form)
        });
        let mut document = Self {
            worker: settings.worker,
            weight: Some(settings.weight),
            workloads: groups.collect(),
            dynamic: Some(settings.dynamic),
            overdue: Some(lease.overdue.into()),
            hook_concurrency: Some(settings.hook_concurrency),
            startup_timeout: Some(settings.startup_timeout.into()),
            ..Self::default()
        };
        macro_rules! show_all {
            ($($field:ident),*) => { $(document.$field = Some(lease.$field.into());)* };
        }
        same_fields!(show_all);
        document
    }
}
