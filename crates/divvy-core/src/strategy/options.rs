//! The options of a strategy, apart from its name.

use serde::{Deserialize, Serialize};

use super::{
    EXTREME_THRESHOLD_DEFAULT, OVERLOAD_THRESHOLD_DEFAULT, SchemeName, VIRTUAL_NODES_DEFAULT,
};
use crate::partition::PARTITION_WEIGHT_DEFAULT;

/// The cluster of [`SchemeName::Rendezgo`] unless another is chosen.
pub(super) const CLUSTER_DEFAULT: &str = "default";

/// The options of a strategy; what is not given is the default.
///
/// ```
/// use divvy_core::StrategyOptions;
///
/// let given = StrategyOptions {
///     seed: Some(7),
///     extreme_threshold: Some(2.0),
///     ..StrategyOptions::default()
/// };
/// let unusual = given.unusual();
/// assert_eq!(unusual.seed, Some(7));
/// assert_eq!(unusual.extreme_threshold, None, "2 is the default");
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StrategyOptions {
    /// Points on the ring per unit of weight, 1 to 10,000, by default 150.
    /// More are more even and cost memory. Of `consistent-hash` and
    /// `weighted-consistent-hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_nodes: Option<u32>,
    /// Gives an independent placement, by default 0. All members of a cluster
    /// need the same. Of all but `round-robin` and the schemes of other
    /// systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How scores come about. Of `rendezvous`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<SchemeName>,
    /// The cluster that workers belong to, by default `default`. Of the
    /// scheme `rendezgo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// How far above its share a worker's load may be, 1.15 to 100, by default
    /// 1.3; it may be as far below. Lower is more even and moves more. Of
    /// `weighted-consistent-hash` and `zoned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overload_threshold: Option<f64>,
    /// From how many times the mean weight on a partition is extreme and
    /// placed first, at least 1.5, by default 2. Of `weighted-consistent-hash`
    /// and `zoned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extreme_threshold: Option<f64>,
    /// What a partition of weight 0 counts for, at least 1, by default 1. Of
    /// `weighted-consistent-hash` and `zoned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_weight: Option<i64>,
    /// Whether equal weights are placed by the ring alone, by default true:
    /// fast, but without the band. Of `weighted-consistent-hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<bool>,
}

impl StrategyOptions {
    /// Those that are not the default ones.
    pub fn unusual(&self) -> Self {
        let unit = PARTITION_WEIGHT_DEFAULT as i64;
        Self {
            virtual_nodes: unusual(self.virtual_nodes, &VIRTUAL_NODES_DEFAULT),
            seed: unusual(self.seed, &0),
            scheme: unusual(self.scheme, &SchemeName::default()),
            cluster: unusual(self.cluster.clone(), &CLUSTER_DEFAULT.to_owned()),
            overload_threshold: unusual(self.overload_threshold, &OVERLOAD_THRESHOLD_DEFAULT),
            extreme_threshold: unusual(self.extreme_threshold, &EXTREME_THRESHOLD_DEFAULT),
            default_weight: unusual(self.default_weight, &unit),
            fast_path: unusual(self.fast_path, &true),
        }
    }

    /// Whether no option is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn unusual<T: PartialEq>(given: Option<T>, usual: &T) -> Option<T> {
    given.filter(|value| value != usual)
}
