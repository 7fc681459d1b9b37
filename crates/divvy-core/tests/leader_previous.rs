//! Leader mode: a cluster that takes over from another system moves nothing.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::Cluster;
use divvy_core::leader::LeaderSettings;
use divvy_core::store::Key;
use divvy_core::{
    Assignment, AssignmentDocument, Balanced, ConsistentHash, MoveEntry, Rendezvous, Strategy,
    WeightedConsistentHash,
};

/// Four of twelve partitions each, as no strategy would place them.
const EVEN: &str = r#"{
    "host-0": ["p:0", "p:1", "p:2", "p:3"],
    "host-1": ["p:4", "p:5", "p:6", "p:7"],
    "host-2": ["p:8", "p:9", "p:10", "p:11"]
}"#;

fn imported(json: &str) -> Assignment {
    let document = AssignmentDocument::from_json(json).unwrap();
    document.assignment().unwrap()
}

/// Three members, all of which know what was before.
fn taken_over(strategy: Arc<dyn Strategy>, previous: &Assignment) -> Cluster {
    // As many ids as members, so that it is known which there will be.
    let settings = LeaderSettings {
        worker_id_max: 2,
        ..LeaderSettings::fast()
    };
    let mut cluster = Cluster::new(settings, 12);
    cluster.strategy = strategy;
    let previous = Arc::new(previous.clone());
    for index in 0..3 {
        let mut setup = cluster.setup(&format!("host-{index}"));
        setup.previous = Some(Arc::clone(&previous));
        cluster.join_with(setup);
    }
    cluster.settle();
    cluster
}

/// Owners by instance.
fn owners(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for (index, node) in cluster.nodes.iter().enumerate() {
        for (partition, _) in node.member.running() {
            owners.insert(partition.as_str().to_owned(), format!("host-{index}"));
        }
    }
    owners
}

fn owners_of(assignment: &Assignment) -> BTreeMap<String, String> {
    let named = assignment.partitions().iter();
    let owner = |name: &str| assignment.owner_of(name).unwrap().id().to_owned();
    named
        .map(|p| (p.as_str().to_owned(), owner(p.as_str())))
        .collect()
}

fn moves(cluster: &Cluster) -> Vec<MoveEntry> {
    let log = cluster.table.get(&Key::new(["moves"]).unwrap()).unwrap();
    MoveEntry::decode_log(&log.value).unwrap()
}

#[test]
fn a_cluster_that_takes_over_moves_nothing_whatever_its_strategy() {
    let strategies: [Arc<dyn Strategy>; 4] = [
        Arc::new(Balanced::new()),
        Arc::new(WeightedConsistentHash::new()),
        Arc::new(Rendezvous::new()),
        Arc::new(ConsistentHash::new()),
    ];
    let previous = imported(EVEN);
    for strategy in strategies {
        let name = strategy.name().to_owned();
        let mut cluster = taken_over(strategy, &previous);
        assert_eq!(owners(&cluster), owners_of(&previous), "{name}");
        cluster.run(Duration::from_secs(60));
        assert_eq!(
            owners(&cluster),
            owners_of(&previous),
            "{name}, a minute later"
        );
        let causes: Vec<String> = moves(&cluster).into_iter().map(|m| m.cause).collect();
        let kept = "its worker had it before this cluster began";
        assert_eq!(causes, [kept; 12], "{name}");
    }
}

#[test]
fn what_nobody_had_and_what_was_with_somebody_who_is_not_there_is_placed_by_the_strategy() {
    let previous =
        imported(r#"{"host-0": ["p:0", "p:1"], "gone": ["p:2"], "host-2": ["elsewhere:7"]}"#);
    let cluster = taken_over(Arc::new(Balanced::new()), &previous);
    let owners = owners(&cluster);
    assert_eq!(owners.len(), 12);
    assert_eq!((&*owners["p:0"], &*owners["p:1"]), ("host-0", "host-0"));
    let mut counts = BTreeMap::new();
    owners
        .values()
        .for_each(|owner| *counts.entry(owner).or_insert(0) += 1);
    assert!(counts.values().all(|count| *count == 4), "{counts:?}");
}

#[test]
fn workers_are_known_by_their_stable_ids_too() {
    let previous = imported(&EVEN.replace("host-", "worker-"));
    let cluster = taken_over(Arc::new(Balanced::new()), &previous);
    let by_id: BTreeMap<String, String> = cluster
        .nodes
        .iter()
        .flat_map(|node| {
            let id = node.member.worker_id().unwrap();
            node.member
                .running()
                .map(move |(p, _)| (p.as_str().to_owned(), id.to_owned()))
        })
        .collect();
    assert_eq!(by_id, owners_of(&previous));
}

#[test]
fn a_cluster_that_has_placed_something_itself_takes_over_nothing() {
    let mut cluster = Cluster::settled(LeaderSettings::fast(), 3, 12);
    let before = owners(&cluster);
    let mut setup = cluster.setup("host-3");
    let all = r#"{"host-3": ["p:0", "p:1", "p:2", "p:3", "p:4"]}"#;
    setup.previous = Some(Arc::new(imported(all)));
    cluster.join_with(setup);
    cluster.settle();
    let stayed = owners(&cluster)
        .iter()
        .filter(|(p, owner)| before[*p] == **owner)
        .count();
    assert_eq!(stayed, 9, "the newcomer has its share of three and no more");
}

#[test]
fn an_uneven_past_is_mended_by_moves_and_not_at_the_start() {
    let all: Vec<String> = (0..12).map(|n| format!("\"p:{n}\"")).collect();
    let previous = imported(&format!(r#"{{"host-1": [{}]}}"#, all.join(",")));
    let mut cluster = taken_over(Arc::new(Balanced::new()), &previous);
    cluster.run(Duration::from_secs(60));
    let causes: Vec<String> = moves(&cluster).into_iter().map(|m| m.cause).collect();
    let kept = "its worker had it before this cluster began";
    assert_eq!(causes.iter().filter(|cause| *cause == kept).count(), 12);
    let mut counts = BTreeMap::new();
    owners(&cluster)
        .into_values()
        .for_each(|owner| *counts.entry(owner).or_insert(0) += 1);
    assert_eq!(counts.values().copied().collect::<Vec<_>>(), [4, 4, 4]);
}
