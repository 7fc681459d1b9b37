//! The strategy and its options.

use divvy::{
    EXTREME_THRESHOLD_MAX, EXTREME_THRESHOLD_MIN, OVERLOAD_THRESHOLD_DEFAULT,
    OVERLOAD_THRESHOLD_MAX, OVERLOAD_THRESHOLD_MIN, Strategy, StrategySettings,
};

use crate::args::{BAND_MIN, OptionArgs, PlacementArgs};
use crate::failure::Failure;

/// The strategy with the options that were given.
pub(crate) fn strategy(args: &PlacementArgs) -> Result<Box<dyn Strategy>, Failure> {
    let options = &args.options;
    let settings = StrategySettings {
        name: args.strategy,
        virtual_nodes: options.virtual_nodes,
        seed: options.seed,
        scheme: options.scheme,
        cluster: options.cluster.clone(),
        overload_threshold: options.band.map(threshold),
        extreme_threshold: options.extreme.map(extreme),
        default_weight: options.default_weight,
        fast_path: options.no_fast_path.then_some(false),
    };
    let strategy = settings.build().map_err(|error| match error {
        divvy::Error::Invalid(invalid) if invalid.field() == "option" => {
            Failure::usage("option", flag(invalid.value()), invalid.rule())
        }
        error => error.into(),
    })?;
    warn_of_corrections(options);
    Ok(strategy)
}

/// How far from a worker's share its load may be, where the strategy keeps a
/// band at all: what was given, corrected where it is out of bounds.
pub(crate) fn band_width(args: &PlacementArgs) -> f64 {
    let band = args.options.band;
    band.map_or(OVERLOAD_THRESHOLD_DEFAULT, threshold) - 1.0
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
