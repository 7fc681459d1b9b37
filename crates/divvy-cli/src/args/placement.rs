//! What `assign`, `explain` and `plan` share: who takes part, what is placed,
//! and by which strategy.

use divvy::{
    EXTREME_THRESHOLD_MIN, Invalid, OVERLOAD_THRESHOLD_MAX, SchemeName, StrategyName,
    VIRTUAL_NODES_MAX,
};

use super::named;
use super::whole::whole;

/// The narrowest band that the library keeps: its smallest overload threshold
/// less 1, which in binary is not the number that people write.
pub(crate) const BAND_MIN: f64 = 0.15;
/// Under which the help lists the options of strategies.
const HEADING: &str = "Options of strategies";

/// What the commands that place share.
#[derive(Debug, clap::Args)]
pub(crate) struct PlacementArgs {
    /// Who takes part: a count, ids with weights, or a file
    #[arg(
        long,
        value_name = "N|ID[=WEIGHT],...|@FILE",
        allow_negative_numbers = true,
        display_order = 1
    )]
    pub(crate) workers: Option<String>,
    /// What there is to place: a count, groups with counts, or a file
    #[arg(
        long,
        value_name = "N|GROUP:N,...|@FILE",
        allow_negative_numbers = true,
        display_order = 2
    )]
    pub(crate) partitions: Option<String>,
    /// The assignment in force: what `assign --json` or `plan --json` printed, or who owns what in
    /// another system
    #[arg(long, value_name = "@FILE", display_order = 3)]
    pub(crate) previous: Option<String>,
    /// How partitions are placed [default: what made --previous, or else rendezvous]
    #[arg(long, value_name = "NAME", value_parser = named::strategy(), display_order = 4)]
    pub(crate) strategy: Option<StrategyName>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

/// The options of strategies. Whether one belongs to the chosen strategy is
/// the library's to say.
#[derive(Debug, clap::Args)]
pub(crate) struct OptionArgs {
    /// How far from its share a load may be: 0.3 allows 0.7 to 1.3 times the share; 0.15 to 99, or
    /// else the nearest of these, with a warning; of weighted-consistent-hash and zoned [default: 0.3]
    #[arg(long, value_name = "F", value_parser = band, allow_hyphen_values = true, help_heading = HEADING)]
    pub(crate) band: Option<f64>,
    /// From how many times the mean weight on a partition is placed first and spread; of
    /// weighted-consistent-hash and zoned; less than 1.5 is taken for 1.5, with a warning [default: 2]
    #[arg(long, value_name = "F", value_parser = extreme, allow_hyphen_values = true, help_heading = HEADING)]
    pub(crate) extreme: Option<f64>,
    /// What a partition of weight 0 or none counts for; of weighted-consistent-hash and zoned
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = default_weight, allow_negative_numbers = true, help_heading = HEADING)]
    pub(crate) default_weight: Option<i64>,
    /// Keep the band for equal weights too, which go by the ring alone otherwise; of
    /// weighted-consistent-hash
    #[arg(long, help_heading = HEADING)]
    pub(crate) no_fast_path: bool,
    /// Points on the ring per unit of weight, 1 to 10000, or else the nearest of these, with a
    /// warning; of consistent-hash and weighted-consistent-hash [default: 150]
    #[arg(long, value_name = "N", value_parser = virtual_nodes, allow_negative_numbers = true, help_heading = HEADING)]
    pub(crate) virtual_nodes: Option<u32>,
    /// Seed of the placement: another gives an independent one; of all but round-robin [default: 0]
    #[arg(long, value_name = "N", value_parser = whole("seed", 0..=u64::MAX), allow_negative_numbers = true, help_heading = HEADING)]
    pub(crate) seed: Option<u64>,
    /// How scores come about; of rendezvous [default: native]
    #[arg(long, value_name = "SCHEME", value_parser = named::scheme(), help_heading = HEADING)]
    pub(crate) scheme: Option<SchemeName>,
    /// The cluster that the workers belong to; of the scheme rendezgo
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub(crate) cluster: Option<String>,
}

/// What is a number and not below 0; what is out of bounds all the same is
/// corrected later, with a warning.
fn band(text: &str) -> Result<f64, Invalid> {
    let rule = || {
        let max = OVERLOAD_THRESHOLD_MAX - 1.0;
        format!("must be a number in {BAND_MIN}..={max}")
    };
    positive(text).ok_or_else(|| Invalid::new("band", text, rule()))
}

fn extreme(text: &str) -> Result<f64, Invalid> {
    let rule = || format!("must be a number of at least {EXTREME_THRESHOLD_MIN}");
    positive(text).ok_or_else(|| Invalid::new("extreme threshold", text, rule()))
}

fn positive(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && number.is_sign_positive()).then_some(number)
}

fn default_weight(text: &str) -> Result<i64, Invalid> {
    let rule = || format!("must be a whole number in 1..={}", i64::MAX);
    let number = text.parse().ok().filter(|&number: &i64| number >= 0);
    number.ok_or_else(|| Invalid::new("default weight", text, rule()))
}

/// What fits the type; the library corrects what is out of bounds and warns.
fn virtual_nodes(text: &str) -> Result<u32, Invalid> {
    let rule = || format!("must be a whole number in 1..={VIRTUAL_NODES_MAX}");
    let number = text.parse().ok();
    number.ok_or_else(|| Invalid::new("virtual nodes", text, rule()))
}
