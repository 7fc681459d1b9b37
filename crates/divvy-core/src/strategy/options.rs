//! The options of a strategy apart from its name, as documents keep them.

use serde::{Deserialize, Serialize};

use super::{
    EXTREME_THRESHOLD_DEFAULT, OVERLOAD_THRESHOLD_DEFAULT, SchemeName, StrategyName,
    StrategySettings, VIRTUAL_NODES_DEFAULT,
};
use crate::partition::PARTITION_WEIGHT_DEFAULT;

/// The cluster of [`SchemeName::Rendezgo`] unless another is chosen.
pub(super) const CLUSTER_DEFAULT: &str = "default";

/// The options that an assignment was made with, as far as they are not the
/// default ones: whoever goes on from it needs the same.
///
/// ```
/// use divvy_core::{StrategyName, StrategyOptions, StrategySettings};
///
/// let mut settings = StrategySettings::new(StrategyName::Zoned);
/// settings.seed = Some(7);
/// settings.extreme_threshold = Some(2.0);
/// let options = StrategyOptions::of(&settings);
/// assert_eq!(options.seed, Some(7));
/// assert_eq!(options.extreme_threshold, None, "2 is the default");
/// assert_eq!(options.settings(StrategyName::Zoned).seed, Some(7));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StrategyOptions {
    /// [`StrategySettings::virtual_nodes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_nodes: Option<u32>,
    /// [`StrategySettings::seed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// [`StrategySettings::scheme`](field@StrategySettings::scheme).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<SchemeName>,
    /// [`StrategySettings::cluster`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// [`StrategySettings::overload_threshold`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overload_threshold: Option<f64>,
    /// [`StrategySettings::extreme_threshold`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extreme_threshold: Option<f64>,
    /// [`StrategySettings::default_weight`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_weight: Option<i64>,
    /// [`StrategySettings::fast_path`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<bool>,
}

impl StrategyOptions {
    /// Those of `settings` that are not the default ones.
    pub fn of(settings: &StrategySettings) -> Self {
        let unit = PARTITION_WEIGHT_DEFAULT as i64;
        Self {
            virtual_nodes: unusual(settings.virtual_nodes, &VIRTUAL_NODES_DEFAULT),
            seed: unusual(settings.seed, &0),
            scheme: unusual(settings.scheme, &SchemeName::default()),
            cluster: unusual(settings.cluster.clone(), &CLUSTER_DEFAULT.to_owned()),
            overload_threshold: unusual(settings.overload_threshold, &OVERLOAD_THRESHOLD_DEFAULT),
            extreme_threshold: unusual(settings.extreme_threshold, &EXTREME_THRESHOLD_DEFAULT),
            default_weight: unusual(settings.default_weight, &unit),
            fast_path: unusual(settings.fast_path, &true),
        }
    }

    /// The strategy of this name with these options.
    pub fn settings(&self, name: StrategyName) -> StrategySettings {
        StrategySettings {
            name,
            virtual_nodes: self.virtual_nodes,
            seed: self.seed,
            scheme: self.scheme,
            cluster: self.cluster.clone(),
            overload_threshold: self.overload_threshold,
            extreme_threshold: self.extreme_threshold,
            default_weight: self.default_weight,
            fast_path: self.fast_path,
        }
    }

    /// Whether all options are the default ones.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

fn unusual<T: PartialEq>(given: Option<T>, usual: &T) -> Option<T> {
    given.filter(|value| value != usual)
}
