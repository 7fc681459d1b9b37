//! From what was typed to the library's sets.

mod count;
mod csv;
mod file;
mod list;
mod partitions;
mod previous;
mod row;
mod workers;

pub(crate) use partitions::partitions;
pub(crate) use previous::previous;
pub(crate) use workers::workers;

use divvy::{Partitions, Strategy, StrategySettings, Workers};

use crate::args::PlacementArgs;
use crate::failure::Failure;

/// Both sets. What was typed is read before something is said to be missing:
/// a wrong value is the more useful thing to hear of.
pub(crate) fn sets(
    workers: Option<&str>,
    partitions: impl FnOnce() -> Result<Option<Partitions>, Failure>,
) -> Result<(Workers, Partitions), Failure> {
    let workers = workers.map(self::workers).transpose()?;
    let partitions = partitions()?;
    let workers = workers.ok_or_else(|| Failure::missing("--workers", workers::FORMS))?;
    let partitions =
        partitions.ok_or_else(|| Failure::missing("--partitions", partitions::FORMS))?;
    Ok((workers, partitions))
}

/// The strategy with the options that were given.
pub(crate) fn strategy(args: &PlacementArgs) -> Result<Box<dyn Strategy>, Failure> {
    let settings = StrategySettings {
        name: args.strategy,
        virtual_nodes: args.virtual_nodes,
        seed: args.seed,
        scheme: args.scheme,
        cluster: args.cluster.clone(),
    };
    settings.build().map_err(|error| match error {
        // Settings know an option by its field, the command line by its flag.
        divvy::Error::Invalid(invalid) if invalid.field() == "option" => {
            let flag = format!("--{}", invalid.value().replace('_', "-"));
            Failure::usage("option", flag, invalid.rule())
        }
        error => error.into(),
    })
}
