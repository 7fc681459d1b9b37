//! The strategy and its options.

use divvy::{
    OVERLOAD_THRESHOLD_DEFAULT, OVERLOAD_THRESHOLD_MAX, OVERLOAD_THRESHOLD_MIN, Strategy,
    StrategySettings,
};

use crate::args::PlacementArgs;
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
        overload_threshold: options.band.map(|band| 1.0 + band),
        extreme_threshold: options.extreme,
        default_weight: options.default_weight,
        fast_path: options.no_fast_path.then_some(false),
    };
    settings.build().map_err(|error| match error {
        divvy::Error::Invalid(invalid) if invalid.field() == "option" => {
            Failure::usage("option", flag(invalid.value()), invalid.rule())
        }
        error => error.into(),
    })
}

/// How far from a worker's share its load may be, where the strategy keeps a
/// band at all: what was given, corrected as the library corrects it.
pub(crate) fn band_width(args: &PlacementArgs) -> f64 {
    let band = args.options.band;
    let threshold = band.map_or(OVERLOAD_THRESHOLD_DEFAULT, |band| 1.0 + band);
    threshold.clamp(OVERLOAD_THRESHOLD_MIN, OVERLOAD_THRESHOLD_MAX) - 1.0
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
