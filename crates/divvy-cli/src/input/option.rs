//! The strategy and its options: those that were typed, or else those of the
//! assignment in force.

use divvy::{
    EXTREME_THRESHOLD_DEFAULT, EXTREME_THRESHOLD_MAX, EXTREME_THRESHOLD_MIN,
    OVERLOAD_THRESHOLD_DEFAULT, OVERLOAD_THRESHOLD_MAX, OVERLOAD_THRESHOLD_MIN, Strategy,
    StrategyName, StrategyOptions, StrategySettings, VIRTUAL_NODES_DEFAULT,
};

use super::previous::Made;
use crate::args::{BAND_MIN, OptionArgs, PlacementArgs};
use crate::failure::Failure;

/// The strategy that was chosen, ready and as settings.
pub(crate) struct Chosen {
    pub(crate) strategy: Box<dyn Strategy>,
    pub(crate) settings: StrategySettings,
}

impl Chosen {
    /// The strategy that was typed, or else the one that made the assignment
    /// in force, whose options are taken too unless others were typed.
    pub(super) fn read(args: &PlacementArgs, made: Option<&Made>) -> Result<Self, Failure> {
        let mut settings = StrategySettings {
            name: args.strategy.unwrap_or_default(),
            options: typed(&args.options),
        };
        let made = made.and_then(Made::settings);
        if let Some(made) = made {
            let name = args.strategy.unwrap_or(made.name);
            if places_as(name, made.name) {
                settings.name = name;
                warn_of_others(&settings.options, &made.options);
                settings.options = merged(settings.options, made.options);
            }
        }
        let strategy = settings.build().map_err(|error| match error {
            divvy::Error::Invalid(invalid) if invalid.field() == "option" => {
                Failure::usage("option", flag(invalid.value()), invalid.rule())
            }
            error => error.into(),
        })?;
        warn_of_corrections(&args.options);
        Ok(Self { strategy, settings })
    }

    pub(crate) fn name(&self) -> StrategyName {
        self.settings.name
    }

    /// The same strategy with another band.
    pub(crate) fn with_band(&self, band: f64) -> Result<Self, Failure> {
        let mut settings = self.settings.clone();
        settings.options.overload_threshold = Some(threshold(band));
        let strategy = settings.build()?;
        Ok(Self { strategy, settings })
    }

    /// How far from a worker's share its load may be, where the strategy keeps
    /// a band.
    pub(crate) fn band(&self) -> Option<f64> {
        let banded = matches!(
            self.name(),
            StrategyName::WeightedConsistentHash | StrategyName::Zoned
        );
        let threshold = self.settings.options.overload_threshold;
        banded.then(|| threshold.unwrap_or(OVERLOAD_THRESHOLD_DEFAULT) - 1.0)
    }
}

/// Whether two strategies are ways to the same placement.
pub(crate) fn places_as(one: StrategyName, other: StrategyName) -> bool {
    let placement = |name| match name {
        StrategyName::RendezvousParallel => StrategyName::Rendezvous,
        name => name,
    };
    placement(one) == placement(other)
}

fn typed(args: &OptionArgs) -> StrategyOptions {
    StrategyOptions {
        virtual_nodes: args.virtual_nodes,
        seed: args.seed,
        scheme: args.scheme,
        cluster: args.cluster.clone(),
        overload_threshold: args.band.map(threshold),
        extreme_threshold: args.extreme.map(extreme),
        default_weight: args.default_weight,
        fast_path: args.no_fast_path.then_some(false),
    }
}

/// What was typed, and where nothing was, what the assignment was made with.
fn merged(typed: StrategyOptions, made: StrategyOptions) -> StrategyOptions {
    // The options of one scheme are not those of another.
    let scheme = made.scheme.unwrap_or_default();
    let same = typed.scheme.is_none_or(|typed| typed == scheme);
    StrategyOptions {
        virtual_nodes: typed.virtual_nodes.or(made.virtual_nodes),
        seed: typed.seed.or_else(|| made.seed.filter(|_| same)),
        scheme: typed.scheme.or(made.scheme),
        cluster: typed.cluster.or_else(|| made.cluster.filter(|_| same)),
        overload_threshold: typed.overload_threshold.or(made.overload_threshold),
        extreme_threshold: typed.extreme_threshold.or(made.extreme_threshold),
        default_weight: typed.default_weight.or(made.default_weight),
        fast_path: typed.fast_path.or(made.fast_path),
    }
}

/// Says which options were typed that are others than those that the
/// assignment in force was made with.
fn warn_of_others(typed: &StrategyOptions, made: &StrategyOptions) {
    let shown = |options: &StrategyOptions| {
        let scheme = options.scheme.map(|scheme| scheme.as_str().to_owned());
        [
            (
                "--virtual-nodes",
                options.virtual_nodes.map(|n| n.to_string()),
                VIRTUAL_NODES_DEFAULT.to_string(),
            ),
            ("--seed", options.seed.map(|n| n.to_string()), 0.to_string()),
            ("--scheme", scheme, "native".to_owned()),
            ("--cluster", options.cluster.clone(), "default".to_owned()),
            (
                "--band",
                options.overload_threshold.map(band_of),
                band_of(OVERLOAD_THRESHOLD_DEFAULT),
            ),
            (
                "--extreme",
                options.extreme_threshold.map(|n| n.to_string()),
                EXTREME_THRESHOLD_DEFAULT.to_string(),
            ),
            (
                "--default-weight",
                options.default_weight.map(|n| n.to_string()),
                1.to_string(),
            ),
            (
                "the fast path",
                options.fast_path.map(|fast| fast.to_string()),
                true.to_string(),
            ),
        ]
    };
    for ((flag, typed, _), (_, made, usual)) in shown(typed).into_iter().zip(shown(made)) {
        let Some(typed) = typed else { continue };
        let made = made.unwrap_or(usual);
        if typed != made {
            tracing::warn!(
                "--previous was made with {flag} {made}, this is with {typed}: what moves may be \
                 due to that"
            );
        }
    }
}

/// The band that an overload threshold stands for, as people write it.
fn band_of(threshold: f64) -> String {
    // In binary, 1.3 less 1 is not 0.3.
    const DECIMALS: f64 = 1e9;
    (((threshold - 1.0) * DECIMALS).round() / DECIMALS).to_string()
}

/// The overload threshold that a band stands for, within its bounds.
fn threshold(band: f64) -> f64 {
    (1.0 + band).clamp(OVERLOAD_THRESHOLD_MIN, OVERLOAD_THRESHOLD_MAX)
}

/// The extreme threshold within its bounds.
fn extreme(given: f64) -> f64 {
    given.clamp(EXTREME_THRESHOLD_MIN, EXTREME_THRESHOLD_MAX)
}

/// Says what is used in place of what was given, by the names of the flags:
/// the library knows them by others.
fn warn_of_corrections(options: &OptionArgs) {
    let band_max = OVERLOAD_THRESHOLD_MAX - 1.0;
    let bounds = [
        ("--band", options.band, BAND_MIN, band_max),
        (
            "--extreme",
            options.extreme,
            EXTREME_THRESHOLD_MIN,
            EXTREME_THRESHOLD_MAX,
        ),
    ];
    for (flag, given, min, max) in bounds {
        let Some(given) = given else {
            continue;
        };
        if given < min {
            tracing::warn!("{flag} {given} is below {min}, using {min}");
        } else if given > max {
            tracing::warn!("{flag} {given} is above {max}, using {max}");
        }
    }
}

/// Settings know an option by its field, the command line by its flag.
fn flag(field: &str) -> String {
    match field {
        "overload_threshold" => "--band".to_owned(),
        "extreme_threshold" => "--extreme".to_owned(),
        "fast_path" => "--no-fast-path".to_owned(),
        field => format!("--{}", field.replace('_', "-")),
    }
}
