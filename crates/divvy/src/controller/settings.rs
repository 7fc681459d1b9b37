//! Settings of a controller.

mod document;

use std::time::Duration;

use divvy_core::lease::{Group, LeaseSettings, SelfDescription};
use divvy_core::store::LeaseName;
use divvy_core::{Error, Invalid};
use serde::{Deserialize, Serialize};

use self::document::Document;
use crate::manager::settings::form::Form;

/// How they are written in files.
const FORM: Form = Form {
    nested: &["workloads"],
    whole: &[],
};
/// Consumers that start or stop at once, at most.
const HOOK_CONCURRENCY_MAX: usize = 10_000;

/// Settings of a controller, in JSON or YAML: fields in snake case, times as
/// `500ms`, `30s` or `1m30s`, everything optional over a `preset` (`default`,
/// `fast` or `rendezgo`).
///
/// ```
/// use divvy::controller::ControllerSettings;
/// use std::time::Duration;
///
/// let settings: ControllerSettings = serde_json::from_str(
///     r#"{"preset": "fast", "workloads": {"orders": 8}, "lease_ttl": "2s"}"#,
/// )?;
/// assert_eq!(settings.lease.lease_ttl, Duration::from_secs(2));
/// assert_eq!(settings.groups[0].partitions(), 8);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct ControllerSettings {
    /// The worker's name in its cluster; without one, see
    /// [`default_worker_name`](super::default_worker_name).
    pub worker: Option<String>,
    /// Its capacity in relation to the others.
    pub weight: f64,
    /// The groups that it serves.
    pub groups: Vec<Group>,
    /// Whether it serves the groups of the store, too.
    pub dynamic: bool,
    /// Timings and limits of leases.
    pub lease: LeaseSettings,
    /// How many consumers start at once, and how many stop.
    pub hook_concurrency: usize,
    /// How long a start may take: opening the store, and taking the name.
    pub startup_timeout: Duration,
}

impl ControllerSettings {
    fn with(lease: LeaseSettings) -> Self {
        Self {
            worker: None,
            weight: 1.0,
            groups: Vec::new(),
            dynamic: false,
            lease,
            hook_concurrency: 256,
            startup_timeout: Duration::from_secs(30),
        }
    }

    /// For hand-over within a second: a lease of 1 s. For a store nearby and
    /// an idle network.
    pub fn fast() -> Self {
        Self::with(LeaseSettings::fast())
    }

    /// The timings of the system whose layout of keys is shared.
    pub fn rendezgo() -> Self {
        Self::with(LeaseSettings::rendezgo())
    }

    /// Reads settings, and checks their fields.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let read: Document = FORM.read_json(text)?;
        Ok(Self::try_from(read)?)
    }

    /// Reads settings, and checks their fields.
    pub fn from_yaml(text: &str) -> Result<Self, Error> {
        let read: Document = FORM.read_yaml(text)?;
        Ok(Self::try_from(read)?)
    }

    /// Whether all values are inside their bounds and fit together.
    pub fn check(&self) -> Result<(), Invalid> {
        self.lease.check()?;
        if let Some(worker) = &self.worker {
            LeaseName::new("worker", worker)?;
        }
        let description = SelfDescription {
            healthy: true,
            weight: self.weight,
        };
        description.check()?;
        if self.groups.is_empty() && !self.dynamic {
            let rule = "must name at least one, unless those of the store are served (dynamic)";
            return Err(Invalid::new("workloads", "none", rule));
        }
        Group::check_all(&self.groups)?;
        if !(1..=HOOK_CONCURRENCY_MAX).contains(&self.hook_concurrency) {
            let rule = format!("must be in 1..={HOOK_CONCURRENCY_MAX}");
            return Err(Invalid::new(
                "hook_concurrency",
                self.hook_concurrency,
                rule,
            ));
        }
        let shortest = Duration::from_millis(100);
        if self.startup_timeout < shortest {
            let value = format!("{:?}", self.startup_timeout);
            let rule = format!("must be at least {shortest:?}");
            return Err(Invalid::new("startup_timeout", value, rule));
        }
        Ok(())
    }
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self::with(LeaseSettings::default())
    }
}
