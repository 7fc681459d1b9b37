//! A built-in strategy chosen by name, with its options, from settings or the
//! command line.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::options::CLUSTER_DEFAULT;
use super::weighted_consistent_hash::Thresholds;
use super::{
    Balanced, ConsistentHash, FilteredRendezvous, Rendezvous, RoundRobin, Scheme, Strategy,
    WeightedConsistentHash, Zoned,
};
use crate::error::{Error, Invalid};
use crate::worker::WORKER_NAME_BYTES_MAX;

/// The name of a built-in strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StrategyName {
    /// [`Balanced`].
    Balanced,
    /// [`RoundRobin`].
    RoundRobin,
    /// [`ConsistentHash`].
    ConsistentHash,
    /// [`Rendezvous`].
    #[default]
    Rendezvous,
    /// [`FilteredRendezvous`].
    RendezvousFiltered,
    /// [`Rendezvous`] on all cores; needs the feature `parallel`.
    RendezvousParallel,
    /// [`WeightedConsistentHash`].
    WeightedConsistentHash,
    /// [`Zoned`].
    Zoned,
}

impl StrategyName {
    /// All names, the default one first.
    pub const ALL: [Self; 8] = [
        Self::Rendezvous,
        Self::RendezvousParallel,
        Self::RendezvousFiltered,
        Self::Balanced,
        Self::WeightedConsistentHash,
        Self::Zoned,
        Self::ConsistentHash,
        Self::RoundRobin,
    ];

    /// The name as settings and the command line have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::RoundRobin => "round-robin",
            Self::ConsistentHash => "consistent-hash",
            Self::Rendezvous => "rendezvous",
            Self::RendezvousFiltered => "rendezvous-filtered",
            Self::RendezvousParallel => "rendezvous-parallel",
            Self::WeightedConsistentHash => "weighted-consistent-hash",
            Self::Zoned => "zoned",
        }
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StrategyName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Invalid::new("strategy", name, format!("must be one of {known}")).into()
        })
    }
}

/// The name of a rendezvous [`Scheme`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SchemeName {
    /// [`Scheme::Native`].
    #[default]
    Native,
    /// [`Scheme::Cruster`].
    Cruster,
    /// [`Scheme::Rendezgo`].
    Rendezgo,
}

impl SchemeName {
    /// All names, the default one first.
    pub const ALL: [Self; 3] = [Self::Native, Self::Cruster, Self::Rendezgo];

    /// The name as settings and the command line have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Cruster => "cruster",
            Self::Rendezgo => "rendezgo",
        }
    }
}

impl FromStr for SchemeName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == name);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Invalid::new("scheme", name, format!("must be one of {known}")).into()
        })
    }
}

/// Which built-in strategy to take, and its options.
///
/// In a settings file it is a name, or a map of the name and options. An
/// option that the chosen strategy does not have is an error.
///
/// ```
/// use divvy_core::{Strategy, StrategySettings};
///
/// let settings: StrategySettings = serde_json::from_str(r#""rendezvous""#)?;
/// assert_eq!(settings.build()?.name(), "rendezvous");
///
/// let settings: StrategySettings =
///     serde_json::from_str(r#"{"name": "consistent-hash", "virtual_nodes": 200, "seed": 7}"#)?;
/// assert_eq!(settings.build()?.name(), "consistent-hash");
///
/// let settings: StrategySettings =
///     serde_json::from_str(r#"{"name": "round-robin", "virtual_nodes": 200}"#)?;
/// assert_eq!(
///     settings.build().unwrap_err().to_string(),
///     "option 'virtual_nodes': is not one of strategy round-robin"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StrategySettings {
    /// The strategy.
    pub name: StrategyName,
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

impl StrategySettings {
    /// The strategy with its defaults.
    pub fn new(name: StrategyName) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Whether [`StrategySettings::build`] gives a strategy. Options that it
    /// corrects are not told here.
    pub fn check(&self) -> Result<(), Error> {
        self.refuse_foreign_options()?;
        match self.name {
            #[cfg(not(feature = "parallel"))]
            StrategyName::RendezvousParallel => {
                let rule = "needs a build with the feature parallel";
                Err(Invalid::new("strategy", self.name, rule).into())
            }
            _ if self.is_rendezvous() => self.scheme().map(|_scheme| ()),
            _ => Ok(()),
        }
    }

    /// The strategy that the settings describe. An option that is outside of
    /// its bounds is corrected, and one warning is logged.
    pub fn build(&self) -> Result<Box<dyn Strategy>, Error> {
        self.check()?;
        Ok(match self.name {
            StrategyName::Balanced => Box::new(Balanced::new().with_seed(self.seed.unwrap_or(0))),
            StrategyName::RoundRobin => Box::new(RoundRobin),
            StrategyName::WeightedConsistentHash => Box::new(self.weighted_consistent_hash()),
            StrategyName::Zoned => Box::new(self.zoned()),
            StrategyName::ConsistentHash => {
                let mut ring = ConsistentHash::new().with_seed(self.seed.unwrap_or(0));
                if let Some(virtual_nodes) = self.virtual_nodes {
                    ring = ring.with_virtual_nodes(virtual_nodes);
                }
                Box::new(ring)
            }
            StrategyName::RendezvousFiltered => {
                Box::new(FilteredRendezvous::new().with_seed(self.seed.unwrap_or(0)))
            }
            StrategyName::Rendezvous => Box::new(Rendezvous::new().with_scheme(self.scheme()?)),
            #[cfg(feature = "parallel")]
            StrategyName::RendezvousParallel => {
                Box::new(Rendezvous::parallel().with_scheme(self.scheme()?))
            }
            #[cfg(not(feature = "parallel"))]
            StrategyName::RendezvousParallel => unreachable!("it was checked"),
        })
    }

    fn is_rendezvous(&self) -> bool {
        use StrategyName as Name;
        matches!(self.name, Name::Rendezvous | Name::RendezvousParallel)
    }

    fn refuse_foreign_options(&self) -> Result<(), Error> {
        use StrategyName as Name;
        let rendezvous = self.is_rendezvous();
        let weighted = self.name == Name::WeightedConsistentHash;
        let ring = weighted || self.name == Name::ConsistentHash;
        let banded = weighted || self.name == Name::Zoned;
        let seeded =
            ring || banded || matches!(self.name, Name::Balanced | Name::RendezvousFiltered);
        let native = self
            .scheme
            .is_none_or(|scheme| scheme == SchemeName::Native);
        let rendezgo = self.scheme == Some(SchemeName::Rendezgo);
        let options = [
            ("virtual_nodes", self.virtual_nodes.is_some(), ring),
            ("scheme", self.scheme.is_some(), rendezvous),
            ("seed", self.seed.is_some(), seeded || rendezvous && native),
            ("cluster", self.cluster.is_some(), rendezvous && rendezgo),
            (
                "overload_threshold",
                self.overload_threshold.is_some(),
                banded,
            ),
            (
                "extreme_threshold",
                self.extreme_threshold.is_some(),
                banded,
            ),
            ("default_weight", self.default_weight.is_some(), banded),
            ("fast_path", self.fast_path.is_some(), weighted),
        ];
        for (option, given, fits) in options {
            if !given || fits {
                continue;
            }
            let of = match self.scheme {
                Some(scheme) if rendezvous => format!("scheme {}", scheme.as_str()),
                _ => format!("strategy {}", self.name),
            };
            return Err(Invalid::new("option", option, format!("is not one of {of}")).into());
        }
        Ok(())
    }

    fn weighted_consistent_hash(&self) -> WeightedConsistentHash {
        let strategy = WeightedConsistentHash::new()
            .with_thresholds(self.thresholds())
            .with_seed(self.seed.unwrap_or(0))
            .with_fast_path(self.fast_path.unwrap_or(true));
        match self.virtual_nodes {
            Some(virtual_nodes) => strategy.with_virtual_nodes(virtual_nodes),
            None => strategy,
        }
    }

    fn zoned(&self) -> Zoned {
        Zoned::new()
            .with_thresholds(self.thresholds())
            .with_seed(self.seed.unwrap_or(0))
    }

    fn thresholds(&self) -> Thresholds {
        let mut thresholds = Thresholds::default();
        if let Some(threshold) = self.overload_threshold {
            thresholds.set_overload(threshold);
        }
        if let Some(threshold) = self.extreme_threshold {
            thresholds.set_extreme(threshold);
        }
        if let Some(weight) = self.default_weight {
            thresholds.set_default_weight(weight);
        }
        thresholds
    }

    fn scheme(&self) -> Result<Scheme, Error> {
        Ok(match self.scheme.unwrap_or_default() {
            SchemeName::Native => Scheme::Native {
                seed: self.seed.unwrap_or(0),
            },
            SchemeName::Cruster => Scheme::Cruster,
            SchemeName::Rendezgo => {
                let cluster = self.cluster.as_deref().unwrap_or(CLUSTER_DEFAULT);
                crate::name::check("cluster", cluster, WORKER_NAME_BYTES_MAX)?;
                Scheme::Rendezgo {
                    cluster: cluster.to_owned(),
                }
            }
        })
    }
}

/// The map form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    name: StrategyName,
    virtual_nodes: Option<u32>,
    seed: Option<u64>,
    scheme: Option<SchemeName>,
    cluster: Option<String>,
    overload_threshold: Option<f64>,
    extreme_threshold: Option<f64>,
    default_weight: Option<i64>,
    fast_path: Option<bool>,
}

impl<'de> Deserialize<'de> for StrategySettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMap;

        impl<'de> Visitor<'de> for NameOrMap {
            type Value = StrategySettings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a strategy, or a map of its name and options")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                name.parse().map(StrategySettings::new).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let fields = Fields::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(StrategySettings {
                    name: fields.name,
                    virtual_nodes: fields.virtual_nodes,
                    seed: fields.seed,
                    scheme: fields.scheme,
                    cluster: fields.cluster,
                    overload_threshold: fields.overload_threshold,
                    extreme_threshold: fields.extreme_threshold,
                    default_weight: fields.default_weight,
                    fast_path: fields.fast_path,
                })
            }
        }

        deserializer.deserialize_any(NameOrMap)
    }
}
