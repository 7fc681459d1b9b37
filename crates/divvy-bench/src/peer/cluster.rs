//! The assigner of cruster.

use std::collections::HashMap;

use cruster::runner::Runner;
use cruster::shard_assigner::{ShardAssigner, ShardAssignmentStrategy};
use cruster::types::{RunnerAddress, ShardId};

use crate::scene::Node;

/// The runners of a cluster, and how many shards of the group `default` there are.
pub(crate) struct Cluster {
    runners: Vec<Runner>,
    groups: Vec<String>,
    shards: i32,
}

impl Cluster {
    /// Runners with the nodes' names, which are `host:port`.
    pub(crate) fn new(nodes: &[Node<'_>], shards: usize) -> Self {
        let runner = |node: &Node<'_>| {
            let (host, port) = node.name.split_once(':').expect("names are host:port");
            let port = port.parse().expect("the port is a number");
            Runner::new(RunnerAddress::new(host, port), node.weight as i32)
        };
        Self {
            runners: nodes.iter().map(runner).collect(),
            groups: vec!["default".to_owned()],
            shards: i32::try_from(shards).expect("fewer shards than 2^31"),
        }
    }

    /// Who owns what, as cruster computes it.
    pub(crate) fn assign(&self) -> HashMap<ShardId, RunnerAddress> {
        let strategy = ShardAssignmentStrategy::Rendezvous;
        ShardAssigner::compute_assignments(&self.runners, &self.groups, self.shards, &strategy)
    }

    /// The names of the owners of `keys`, off the clock.
    pub(crate) fn names(&self, keys: &[String]) -> Vec<String> {
        let assigned = self.assign();
        let name = |key: &String| {
            let (group, id) = key.split_once(':')?;
            let owner = assigned.get(&ShardId::new(group, id.parse().ok()?))?;
            Some(format!("{}:{}", owner.host, owner.port))
        };
        let names: Option<Vec<String>> = keys.iter().map(name).collect();
        names.expect("every shard has an owner")
    }
}
