//! Settings of a manager, as a file holds them.

mod document;
pub(crate) mod field;
pub(crate) mod form;
mod shutdown;
pub(crate) mod span;

use divvy_core::leader::{LeaderSettings, SelfDescription, Shutdown, TIMING_MAX};
use divvy_core::{
    Error, Health, Invalid, PARTITIONS_MAX, Spelled, StrategyName, StrategySettings,
    WORKER_NAME_BYTES_MAX, WORKER_WEIGHT_MAX, WORKER_WEIGHT_MIN, Worker,
};
use serde::{Deserialize, Serialize};

use self::document::Document;
use self::form::Form;
pub use self::span::parse_span;
use super::retry::Retry;
use super::source::StaticSource;

/// Most hooks that may run at once.
const HOOK_CONCURRENCY_MAX: usize = 1024;
/// How they are written in files.
const FORM: Form = Form {
    nested: &["assignment", "retry", "strategy"],
    whole: &["strategy"],
};

/// Settings of a manager. In JSON and YAML every field is optional, times are
/// texts such as `30s` or `1m30s`, and an unknown field is an error:
///
/// ```
/// use divvy::manager::Settings;
///
/// let settings = Settings::from_yaml(r#"
/// preset: fast
/// instance: pod-7
/// worker_id_prefix: billing
/// strategy: {name: weighted-consistent-hash, virtual_nodes: 200}
/// groups: [orders, users]
/// shards_per_group: 64
/// shutdown: {return: 20s}
/// assignment:
///   rebalance_cooldown: 2s
/// "#)?;
/// assert_eq!(&*settings.leader.worker_id_prefix, "billing");
/// assert_eq!(settings.source()?.unwrap().partitions().len(), 128);
///
/// let wrong = Settings::from_yaml("heartbeat_ttl: 200ms").unwrap_err();
/// assert_eq!(wrong.to_string(), "heartbeat_ttl '200ms': must be at least 300ms");
/// # Ok::<(), divvy::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Settings {
    /// Timings and limits, which all members of a cluster share. In files its
    /// fields stand beside the others.
    pub leader: LeaderSettings,
    /// Who asks for a stable id: an instance that comes back gets its id, and
    /// with it its partitions, again. By default the host's name. Several
    /// workers on one host each need their own.
    pub instance: Option<String>,
    /// This worker's capacity in relation to the others', 0 or 1e-6 to 1e6.
    pub weight: f64,
    /// This worker's zone, for strategies that spread over zones.
    pub zone: Option<String>,
    /// Who places partitions; by default `weighted-consistent-hash`.
    pub strategy: StrategySettings,
    /// The groups of partitions, where there is no other source.
    pub groups: Vec<String>,
    /// How many partitions each group has.
    pub shards_per_group: Option<u32>,
    /// How what failed is repeated.
    pub retry: Retry,
    /// How many partitions start at once, and how many stop, 1 to 1024.
    pub hook_concurrency: usize,
    /// How to stop when nobody says so: when the manager is dropped.
    pub shutdown: Shutdown,
}

impl Default for Settings {
    fn default() -> Self {
        Self::with(LeaderSettings::default())
    }
}

impl Settings {
    /// For hand-over within a second: see [`LeaderSettings::fast`].
    pub fn fast() -> Self {
        Self::with(LeaderSettings::fast())
    }

    /// For stores far away or under load: see [`LeaderSettings::calm`].
    pub fn calm() -> Self {
        Self::with(LeaderSettings::calm())
    }

    fn with(leader: LeaderSettings) -> Self {
        Self {
            leader,
            instance: None,
            weight: 1.0,
            zone: None,
            strategy: StrategySettings::new(StrategyName::WeightedConsistentHash),
            groups: Vec::new(),
            shards_per_group: None,
            retry: Retry::default(),
            hook_concurrency: 256,
            shutdown: Shutdown::Leave,
        }
    }

    /// Reads settings, and checks them.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let read: Document = FORM.read_json(text)?;
        Ok(Self::try_from(read)?)
    }

    /// Reads settings, and checks them.
    pub fn from_yaml(text: &str) -> Result<Self, Error> {
        let read: Document = FORM.read_yaml(text)?;
        Ok(Self::try_from(read)?)
    }

    /// Whether all values are inside their bounds and fit together.
    pub fn check(&self) -> Result<(), Error> {
        self.leader.check().map_err(as_in_files)?;
        self.retry.check()?;
        self.strategy.check()?;
        self.description()?;
        if let Some(instance) = &self.instance {
            check_name("instance", instance)?;
        }
        if !(1..=HOOK_CONCURRENCY_MAX).contains(&self.hook_concurrency) {
            let rule = format!("must be in 1..={HOOK_CONCURRENCY_MAX}");
            return Err(Invalid::new("hook_concurrency", self.hook_concurrency, rule).into());
        }
        if let Shutdown::Return { within } = self.shutdown
            && within > TIMING_MAX
        {
            let rule = format!("must be at most {}", Spelled(TIMING_MAX));
            return Err(Invalid::new("shutdown.return", Spelled(within), rule).into());
        }
        self.source().map(|_source| ())
    }

    /// The partitions of `groups`, where there are any.
    pub fn source(&self) -> Result<Option<StaticSource>, Error> {
        match (self.groups.is_empty(), self.shards_per_group) {
            (true, None) => Ok(None),
            (_, Some(0)) => {
                let rule = format!("must be in 1..={PARTITIONS_MAX}");
                Err(Invalid::new("shards_per_group", 0, rule).into())
            }
            (false, Some(shards)) => {
                let groups = self.groups.iter().map(String::as_str);
                StaticSource::shards(groups, shards).map(Some)
            }
            (false, None) => {
                let rule = "needs shards_per_group beside it";
                Err(Invalid::new("groups", self.groups.join(", "), rule).into())
            }
            (true, Some(shards)) => {
                let rule = "needs groups beside it";
                Err(Invalid::new("shards_per_group", shards, rule).into())
            }
        }
    }

    /// What this worker says of itself at first.
    pub(super) fn description(&self) -> Result<SelfDescription, Error> {
        let weighed = Worker::new("worker")?.with_weight(self.weight);
        let mut worker = weighed.map_err(|_error| wrong_weight(self.weight))?;
        if let Some(zone) = &self.zone {
            check_name("zone", zone)?;
            worker = worker.with_zone(zone.as_str())?;
        }
        Ok(SelfDescription {
            health: Health::Healthy,
            weight: worker.weight(),
            zone: worker.zone().map(Into::into),
        })
    }

    /// The instance that was set, or else this host's name.
    pub fn resolved_instance(&self) -> Result<Box<str>, Error> {
        if let Some(instance) = &self.instance {
            return Ok(instance.as_str().into());
        }
        let host = rustix::system::uname();
        let name = host.nodename().to_string_lossy().into_owned();
        check_name("instance", &name)?;
        Ok(name.into())
    }
}

/// What a weight must be; the worker that has it has no name yet.
pub(super) fn wrong_weight(weight: f64) -> Invalid {
    let rule = format!("must be 0 or in {WORKER_WEIGHT_MIN}..={WORKER_WEIGHT_MAX}");
    Invalid::new("weight", weight, rule)
}

/// The same with the field's name in files, where some stand inside of others.
fn as_in_files(invalid: Invalid) -> Invalid {
    let field = match invalid.field() {
        "min_rebalance_threshold" => "assignment.min_rebalance_threshold",
        "rebalance_cooldown" => "assignment.rebalance_cooldown",
        _ => return invalid,
    };
    Invalid::new(field, invalid.value(), invalid.rule())
}

pub(super) fn check_name(field: &'static str, name: &str) -> Result<(), Error> {
    let is_short = (1..=WORKER_NAME_BYTES_MAX).contains(&name.len());
    if !is_short || name.contains(char::is_control) {
        let rule = format!("must have 1..={WORKER_NAME_BYTES_MAX} bytes and no control characters");
        return Err(Invalid::new(field, name, rule).into());
    }
    Ok(())
}
