//! A built-in strategy chosen by name, with its options, from settings or the
//! command line.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::options::{CLUSTER_DEFAULT, StrategyOptions};
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
    /// Its options.
    #[serde(flatten)]
    pub options: StrategyOptions,
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
            StrategyName::Balanced => {
                Box::new(Balanced::new().with_seed(self.options.seed.unwrap_or(0)))
            }
            StrategyName::RoundRobin => Box::new(RoundRobin),
            StrategyName::WeightedConsistentHash => Box::new(self.weighted_consistent_hash()),
            StrategyName::Zoned => Box::new(self.zoned()),
            StrategyName::ConsistentHash => {
                let mut ring = ConsistentHash::new().with_seed(self.options.seed.unwrap_or(0));
                if let Some(virtual_nodes) = self.options.virtual_nodes {
                    ring = ring.with_virtual_nodes(virtual_nodes);
                }
                Box::new(ring)
            }
            StrategyName::RendezvousFiltered => {
                Box::new(FilteredRendezvous::new().with_seed(self.options.seed.unwrap_or(0)))
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
            .options
            .scheme
            .is_none_or(|scheme| scheme == SchemeName::Native);
        let rendezgo = self.options.scheme == Some(SchemeName::Rendezgo);
        let options = [
            ("virtual_nodes", self.options.virtual_nodes.is_some(), ring),
            ("scheme", self.options.scheme.is_some(), rendezvous),
            (
                "seed",
                self.options.seed.is_some(),
                seeded || rendezvous && native,
            ),
            (
                "cluster",
                self.options.cluster.is_some(),
                rendezvous && rendezgo,
            ),
            (
                "overload_threshold",
                self.options.overload_threshold.is_some(),
                banded,
            ),
            (
                "extreme_threshold",
                self.options.extreme_threshold.is_some(),
                banded,
            ),
            (
                "default_weight",
                self.options.default_weight.is_some(),
                banded,
            ),
            ("fast_path", self.options.fast_path.is_some(), weighted),
        ];
        for (option, given, fits) in options {
            if !given || fits {
                continue;
            }
            let of = match self.options.scheme {
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
            .with_seed(self.options.seed.unwrap_or(0))
            .with_fast_path(self.options.fast_path.unwrap_or(true));
        match self.options.virtual_nodes {
            Some(virtual_nodes) => strategy.with_virtual_nodes(virtual_nodes),
            None => strategy,
        }
    }

    fn zoned(&self) -> Zoned {
        Zoned::new()
            .with_thresholds(self.thresholds())
            .with_seed(self.options.seed.unwrap_or(0))
    }

    fn thresholds(&self) -> Thresholds {
        let mut thresholds = Thresholds::default();
        if let Some(threshold) = self.options.overload_threshold {
            thresholds.set_overload(threshold);
        }
        if let Some(threshold) = self.options.extreme_threshold {
            thresholds.set_extreme(threshold);
        }
        if let Some(weight) = self.options.default_weight {
            thresholds.set_default_weight(weight);
        }
        thresholds
    }

    fn scheme(&self) -> Result<Scheme, Error> {
        Ok(match self.options.scheme.unwrap_or_default() {
            SchemeName::Native => Scheme::Native {
                seed: self.options.seed.unwrap_or(0),
            },
            SchemeName::Cruster => Scheme::Cruster,
            SchemeName::Rendezgo => {
                let cluster = self.options.cluster.as_deref().unwrap_or(CLUSTER_DEFAULT);
                crate::name::check("cluster", cluster, WORKER_NAME_BYTES_MAX)?;
                Scheme::Rendezgo {
                    cluster: cluster.to_owned(),
                }
            }
        })
    }
}

impl<'de> Deserialize<'de> for StrategySettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrMap)
    }
}

/// What reads both forms.
struct NameOrMap;

impl<'de> Visitor<'de> for NameOrMap {
    type Value = StrategySettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a strategy, or a map of its name and options")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        name.parse().map(StrategySettings::new).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut name, mut options) = (None, serde_json::Map::new());
        while let Some(field) = map.next_key::<String>()? {
            if field == "name" && name.is_some() || options.contains_key(&field) {
                return Err(A::Error::custom(format_args!("duplicate field `{field}`")));
            }
            match field.as_str() {
                "name" => name = Some(map.next_value()?),
                _ => drop(options.insert(field, map.next_value()?)),
            }
        }
        Ok(StrategySettings {
            name: name.ok_or_else(|| A::Error::missing_field("name"))?,
            options: StrategyOptions::deserialize(options).map_err(A::Error::custom)?,
        })
    }
}
