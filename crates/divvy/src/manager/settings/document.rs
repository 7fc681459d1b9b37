//! The form of settings in JSON and YAML: all optional, over a preset.

use divvy_core::leader::{LeaderSettings, Shutdown, StoreOutage};
use divvy_core::{Invalid, StrategySettings};
use serde::{Deserialize, Serialize};

use super::Settings;
use super::field::{OverdueName, set};
use super::shutdown::ShutdownForm;
use super::span::Span;
use crate::manager::retry::Retry;

/// What the other fields are changes to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Preset {
    Fast,
    #[default]
    Default,
    Calm,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoreOutageName {
    Exclusive,
    Overlap,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AssignmentDocument {
    min_rebalance_threshold: Option<f64>,
    rebalance_cooldown: Option<Span>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetryDocument {
    max_retries: Option<u32>,
    initial_delay: Option<Span>,
    max_delay: Option<Span>,
    backoff: Option<f64>,
}

/// Settings as a file holds them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    #[serde(skip_serializing)]
    preset: Preset,
    instance: Option<String>,
    worker_id_prefix: Option<String>,
    worker_id_min: Option<u32>,
    worker_id_max: Option<u32>,
    worker_id_ttl: Option<Span>,
    heartbeat_interval: Option<Span>,
    heartbeat_ttl: Option<Span>,
    leader_lease: Option<Span>,
    cold_start_window: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_workers: Option<u32>,
    planned_scale_window: Option<Span>,
    restart_detection_ratio: Option<f64>,
    operation_timeout: Option<Span>,
    election_timeout: Option<Span>,
    startup_timeout: Option<Span>,
    shutdown_timeout: Option<Span>,
    assignment: AssignmentDocument,
    grace: Option<Span>,
    start_deadline: Option<Span>,
    start_attempts: Option<u32>,
    start_backoff_max: Option<Span>,
    stop_deadline: Option<Span>,
    overdue: Option<OverdueName>,
    store_outage: Option<StoreOutageName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_poll_interval: Option<Span>,
    root_poll_interval: Option<Span>,
    weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    strategy: Option<StrategySettings>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards_per_group: Option<u32>,
    retry: RetryDocument,
    hook_concurrency: Option<usize>,
    shutdown: Option<ShutdownForm>,
}

impl Document {
    fn leader(&self) -> LeaderSettings {
        let mut leader = match self.preset {
            Preset::Fast => LeaderSettings::fast(),
            Preset::Default => LeaderSettings::default(),
            Preset::Calm => LeaderSettings::calm(),
        };
        if let Some(Span(lease)) = self.heartbeat_ttl {
            // What has to fit a lease follows it, unless it is set besides.
            leader.heartbeat_ttl = lease;
            leader.leader_lease = lease / 2;
            leader.root_poll_interval = leader.root_poll_interval.min(lease);
            leader.heartbeat_interval = leader.heartbeat_interval.min(lease / 3);
        }
        match (self.shutdown_timeout, self.stop_deadline) {
            (Some(Span(limit)), None) => leader.stop_deadline = leader.stop_deadline.min(limit),
            (None, Some(Span(stop))) => {
                leader.shutdown_timeout = leader.shutdown_timeout.max(stop);
            }
            _ => {}
        }
        set(
            &mut leader.worker_id_prefix,
            self.worker_id_prefix.as_deref(),
        );
        set(&mut leader.worker_id_min, self.worker_id_min);
        set(&mut leader.worker_id_max, self.worker_id_max);
        set(&mut leader.worker_id_ttl, self.worker_id_ttl);
        set(&mut leader.heartbeat_interval, self.heartbeat_interval);
        set(&mut leader.leader_lease, self.leader_lease);
        set(&mut leader.cold_start_window, self.cold_start_window);
        leader.expected_workers = self.expected_workers;
        set(&mut leader.planned_scale_window, self.planned_scale_window);
        set(
            &mut leader.restart_detection_ratio,
            self.restart_detection_ratio,
        );
        set(&mut leader.operation_timeout, self.operation_timeout);
        set(&mut leader.election_timeout, self.election_timeout);
        set(&mut leader.startup_timeout, self.startup_timeout);
        set(&mut leader.shutdown_timeout, self.shutdown_timeout);
        let assignment = &self.assignment;
        set(
            &mut leader.min_rebalance_threshold,
            assignment.min_rebalance_threshold,
        );
        set(
            &mut leader.rebalance_cooldown,
            assignment.rebalance_cooldown,
        );
        set(&mut leader.grace, self.grace);
        set(&mut leader.start_deadline, self.start_deadline);
        set(&mut leader.start_attempts, self.start_attempts);
        set(&mut leader.start_backoff_max, self.start_backoff_max);
        set(&mut leader.stop_deadline, self.stop_deadline);
        set(&mut leader.overdue, self.overdue);
        if let Some(outage) = self.store_outage {
            leader.store_outage = match outage {
                StoreOutageName::Exclusive => StoreOutage::Exclusive,
                StoreOutageName::Overlap => StoreOutage::Overlap,
            };
        }
        leader.partition_poll_interval = self.partition_poll_interval.map(Into::into);
        set(&mut leader.root_poll_interval, self.root_poll_interval);
        leader
    }
}

impl TryFrom<Document> for Settings {
    type Error = Invalid;

    fn try_from(document: Document) -> Result<Self, Invalid> {
        let leader = document.leader();
        let mut settings = Self::with(leader);
        settings.instance = document.instance;
        set(&mut settings.weight, document.weight);
        settings.zone = document.zone;
        set(&mut settings.strategy, document.strategy);
        settings.groups = document.groups;
        settings.shards_per_group = document.shards_per_group;
        let retry = document.retry;
        set(&mut settings.retry.max_retries, retry.max_retries);
        set(&mut settings.retry.initial_delay, retry.initial_delay);
        set(&mut settings.retry.max_delay, retry.max_delay);
        set(&mut settings.retry.backoff, retry.backoff);
        set(&mut settings.hook_concurrency, document.hook_concurrency);
        if let Some(shutdown) = document.shutdown {
            settings.shutdown = match shutdown {
                ShutdownForm::Leave => Shutdown::Leave,
                ShutdownForm::Return(Span(within)) => Shutdown::Return { within },
            };
        }
        match settings.check() {
            Ok(()) => Ok(settings),
            Err(divvy_core::Error::Invalid(invalid)) => Err(invalid),
            Err(other) => Err(Invalid::new("settings", "", other.to_string())),
        }
    }
}

impl From<Settings> for Document {
    fn from(settings: Settings) -> Self {
        let span = |duration| Some(Span(duration));
        let leader = settings.leader;
        let Retry {
            max_retries,
            initial_delay,
            max_delay,
            backoff,
        } = settings.retry;
        Self {
            preset: Preset::Default,
            instance: settings.instance,
            worker_id_prefix: Some(leader.worker_id_prefix.into()),
            worker_id_min: Some(leader.worker_id_min),
            worker_id_max: Some(leader.worker_id_max),
            worker_id_ttl: span(leader.worker_id_ttl),
            heartbeat_interval: span(leader.heartbeat_interval),
            heartbeat_ttl: span(leader.heartbeat_ttl),
            leader_lease: span(leader.leader_lease),
            cold_start_window: span(leader.cold_start_window),
            expected_workers: leader.expected_workers,
            planned_scale_window: span(leader.planned_scale_window),
            restart_detection_ratio: Some(leader.restart_detection_ratio),
            operation_timeout: span(leader.operation_timeout),
            election_timeout: span(leader.election_timeout),
            startup_timeout: span(leader.startup_timeout),
            shutdown_timeout: span(leader.shutdown_timeout),
            assignment: AssignmentDocument {
                min_rebalance_threshold: Some(leader.min_rebalance_threshold),
                rebalance_cooldown: span(leader.rebalance_cooldown),
            },
            grace: span(leader.grace),
            start_deadline: span(leader.start_deadline),
            start_attempts: Some(leader.start_attempts),
            start_backoff_max: span(leader.start_backoff_max),
            stop_deadline: span(leader.stop_deadline),
            overdue: Some(leader.overdue.into()),
            store_outage: Some(match leader.store_outage {
                StoreOutage::Exclusive => StoreOutageName::Exclusive,
                StoreOutage::Overlap => StoreOutageName::Overlap,
            }),
            partition_poll_interval: leader.partition_poll_interval.map(Span),
            root_poll_interval: span(leader.root_poll_interval),
            weight: Some(settings.weight),
            zone: settings.zone,
            strategy: Some(settings.strategy),
            groups: settings.groups,
            shards_per_group: settings.shards_per_group,
            retry: RetryDocument {
                max_retries: Some(max_retries),
                initial_delay: span(initial_delay),
                max_delay: span(max_delay),
                backoff: Some(backoff),
            },
            hook_concurrency: Some(settings.hook_concurrency),
            shutdown: Some(match settings.shutdown {
                Shutdown::Leave => ShutdownForm::Leave,
                Shutdown::Return { within } => ShutdownForm::Return(Span(within)),
            }),
        }
    }
}
