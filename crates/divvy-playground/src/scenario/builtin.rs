//! The scenarios that come with it.

use super::Scenario;

/// Their documents, in the order in which they are shown.
const DOCUMENTS: [&str; 28] = [
    include_str!("../../scenarios/cold-start.yaml"),
    include_str!("../../scenarios/scale-out.yaml"),
    include_str!("../../scenarios/scale-in.yaml"),
    include_str!("../../scenarios/half-the-fleet-dies.yaml"),
    include_str!("../../scenarios/leader-killed.yaml"),
    include_str!("../../scenarios/leader-paused.yaml"),
    include_str!("../../scenarios/rolling-restart.yaml"),
    include_str!("../../scenarios/mass-restart.yaml"),
    include_str!("../../scenarios/store-blip.yaml"),
    include_str!("../../scenarios/store-down.yaml"),
    include_str!("../../scenarios/store-slow.yaml"),
    include_str!("../../scenarios/store-amnesia.yaml"),
    include_str!("../../scenarios/weight-skew.yaml"),
    include_str!("../../scenarios/extreme-partitions.yaml"),
    include_str!("../../scenarios/flapping.yaml"),
    include_str!("../../scenarios/zone-lost.yaml"),
    include_str!("../../scenarios/slow-hook.yaml"),
    include_str!("../../scenarios/bad-configuration.yaml"),
    include_str!("../../scenarios/cut-off.yaml"),
    include_str!("../../scenarios/overlap.yaml"),
    include_str!("../../scenarios/drain.yaml"),
    include_str!("../../scenarios/more-partitions.yaml"),
    include_str!("../../scenarios/two-clusters.yaml"),
    include_str!("../../scenarios/lease-cold-start.yaml"),
    include_str!("../../scenarios/lease-half-the-fleet-dies.yaml"),
    include_str!("../../scenarios/lease-rolling-restart.yaml"),
    include_str!("../../scenarios/lease-store-restart.yaml"),
    include_str!("../../scenarios/lease-cut-off.yaml"),
];

/// All of them.
pub fn builtins() -> Vec<Scenario> {
    let read = |text: &&str| Scenario::from_yaml(text);
    let scenarios = DOCUMENTS.iter().map(read);
    let scenarios: Result<Vec<Scenario>, _> = scenarios.collect();
    scenarios.expect("a test reads them all")
}

/// The one of this name.
pub fn builtin(name: &str) -> Option<Scenario> {
    builtins()
        .into_iter()
        .find(|scenario| scenario.name() == name)
}
