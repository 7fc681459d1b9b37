//! Assignments: difference, affinity, balance and the JSON form.

use divvy_core::{
    Assignment, AssignmentDocument, Health, Partition, Partitions, PlanDocument, Rendezvous,
    RoundRobin, Strategy, StrategyName, StrategySettings, Worker, Workers,
};
use proptest::prelude::*;

fn partitions(names: &[&str]) -> Partitions {
    Partitions::new(names.iter().map(|name| name.parse::<Partition>().unwrap())).unwrap()
}

fn owned_by<'a>(workers: &[&'a str], owners: &[(&str, &'a str)]) -> Assignment {
    let names: Vec<&str> = owners.iter().map(|(partition, _)| *partition).collect();
    let workers = Workers::of(workers.iter().copied()).unwrap();
    let partitions = partitions(&names);
    let owners = partitions
        .iter()
        .map(|p| {
            owners
                .iter()
                .find(|(name, _)| *name == p.as_str())
                .unwrap()
                .1
        })
        .map(|id| workers.index_of(id).unwrap() as u32);
    Assignment::new(&workers, &partitions, owners.collect()).unwrap()
}

#[test]
fn moves_are_found_by_name_when_both_sets_change() {
    let before = owned_by(
        &["a", "b", "c"],
        &[("p:1", "a"), ("p:2", "b"), ("p:3", "c"), ("p:4", "c")],
    );
    let after = owned_by(
        &["b", "c", "d"],
        &[("p:0", "d"), ("p:1", "b"), ("p:2", "b"), ("p:3", "d")],
    );
    let moves = after.moves_from(&before);
    let found: Vec<_> = moves
        .iter()
        .map(|m| (m.partition.as_str(), m.from.as_deref(), m.to.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            ("p:0", None, Some("d")),
            ("p:1", Some("a"), Some("b")),
            ("p:3", Some("c"), Some("d")),
            ("p:4", Some("c"), None),
        ]
    );
    assert_eq!(moves.moved(), 2);
    assert_eq!(after.affinity(&before), 1.0 / 3.0);
    assert_eq!(before.affinity(&before), 1.0);
    assert_eq!(
        owned_by(&["a"], &[("q", "a")]).affinity(&before),
        1.0,
        "nothing in common"
    );
}

#[test]
fn an_assignment_that_is_not_total_cannot_be_made() {
    let workers = Workers::of(["a"]).unwrap();
    let two = partitions(&["p", "q"]);
    let error = Assignment::new(&workers, &two, vec![0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "number of owners '1': must be 2, one for each partition"
    );
    let error = Assignment::new(&workers, &two, vec![0, 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "owner index '1': must be below 1, the number of workers"
    );
    let error = Assignment::by_id(&workers, &two, |_| "z").unwrap_err();
    assert_eq!(
        error.to_string(),
        "owner 'z': of p is not among the workers"
    );
}

#[test]
fn balance_counts_load_by_worker_weight() {
    let weight = |id: &str, weight: f64| Worker::new(id).unwrap().with_weight(weight).unwrap();
    let sick = weight("sick", 5.0).with_health(Health::Unhealthy);
    let workers = Workers::new([weight("big", 3.0), weight("small", 1.0), sick]).unwrap();
    let load = |name: &str, weight: i64| {
        name.parse::<Partition>()
            .unwrap()
            .with_weight(weight)
            .unwrap()
    };
    let partitions = Partitions::new([load("p", 30), load("q", 5), load("r", 5)]).unwrap();
    // In the order of ids: big, sick, small.
    let even = Assignment::new(&workers, &partitions, vec![0, 2, 2]).unwrap();
    assert_eq!(even.loads(), [30, 0, 10]);
    assert_eq!(even.balance().max_over_mean, 1.0);
    assert_eq!(even.balance().min_over_mean, 1.0);
    assert_eq!(even.balance().stddev_over_mean, 0.0);
    let uneven = Assignment::new(&workers, &partitions, vec![2, 0, 0]).unwrap();
    assert_eq!(uneven.balance().max_over_mean, 3.0);
    assert!((uneven.balance().min_over_mean - 1.0 / 3.0).abs() < 1e-12);
    let nothing = Assignment::new(&workers, &Partitions::new([]).unwrap(), vec![]).unwrap();
    assert_eq!(nothing.balance().max_over_mean, 1.0);
}

#[test]
fn documents_have_the_published_shape() {
    let workers = Workers::of(["a", "b"]).unwrap();
    let assignment = RoundRobin
        .assign(&workers, &partitions(&["p:1", "p:2", "p:3"]), None)
        .unwrap();
    let json = AssignmentDocument::new("round-robin", &assignment).to_json();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!({
        "format": 1,
        "strategy": "round-robin",
        "workers": [
            {"id": "a", "weight": 1.0, "partitions": 2, "load": 2},
            {"id": "b", "weight": 1.0, "partitions": 1, "load": 1},
        ],
        "balance": {
            "max_over_mean": 4.0 / 3.0,
            "min_over_mean": 2.0 / 3.0,
            "stddev_over_mean": value["balance"]["stddev_over_mean"],
        },
        "assignments": {"a": ["p:1", "p:3"], "b": ["p:2"]},
    });
    assert_eq!(value, expected);
    let stddev = value["balance"]["stddev_over_mean"].as_f64().unwrap();
    assert!((stddev - 1.0 / 3.0).abs() < 1e-12, "{stddev}");
}

#[test]
fn documents_keep_the_options_that_are_not_default_and_plans_do_too() {
    let workers = Workers::of(["a", "b"]).unwrap();
    let mut settings = StrategySettings::new(StrategyName::Zoned);
    settings.options.seed = Some(7);
    settings.options.overload_threshold = Some(1.3);
    let strategy = settings.build().unwrap();
    let set = partitions(&["p:1", "p:2", "p:3"]);
    let proposal = strategy.propose(&workers, &set, None).unwrap();
    let assignment = &proposal.assignment;
    let document =
        AssignmentDocument::new(strategy.name(), assignment).with_options(&settings.options);
    let plan =
        PlanDocument::new(strategy.name(), assignment, &proposal).with_options(&settings.options);
    for json in [document.to_json(), plan.to_json()] {
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["options"], serde_json::json!({"seed": 7}));
        let read = AssignmentDocument::from_json(&json).unwrap();
        let options = read.options();
        assert_eq!(options.seed, Some(7));
        assert_eq!(options.overload_threshold, None, "1.3 is the default");
        assert_eq!(&read.assignment().unwrap(), assignment);
    }
    // Nothing is written where nothing was chosen: others can read that too.
    let plain = StrategySettings::new(StrategyName::Zoned);
    let document =
        AssignmentDocument::new(strategy.name(), assignment).with_options(&plain.options);
    assert!(!document.to_json().contains("options"));
    let without = AssignmentDocument::from_json(r#"{"format": 1, "assignments": {}}"#).unwrap();
    assert!(without.options().is_empty());
}

#[test]
fn hostile_documents_are_refused_with_a_reason() {
    for (json, part) in [
        ("", "EOF while parsing"),
        ("[]", "assignment JSON: invalid length 0"),
        (r#"{"assignments": {}}"#, "{worker: [partition, ...]}"),
        (
            r#"{"format": 2, "assignments": {}}"#,
            "format '2': this release reads format 1",
        ),
        (
            r#"{"format": 2, "anything": {}}"#,
            "format '2': this release reads format 1",
        ),
        (r#"{"format": 1}"#, "missing field `assignments`"),
        (
            r#"{"format": 1, "assignments": {"a": ["p"], "a": ["q"]}}"#,
            "'a' stands twice",
        ),
        (
            r#"{"format": 1, "assignments": {"a": ["p"], "b": ["p"]}}"#,
            "'p': is given twice, to 'a' and to 'b'",
        ),
        (
            r#"{"format": 1, "assignments": {"a": ["p", "p"]}}"#,
            "'p': is given twice to 'a'",
        ),
        (
            r#"{"format": 1, "options": {"bend": 1}, "assignments": {}}"#,
            "unknown field `bend`",
        ),
        (
            r#"{"format": 1, "assignments": {"": []}}"#,
            "worker id '': must not be empty",
        ),
        (
            r#"{"format": 1, "assignments": {"a": ["p::q"]}}"#,
            "segment '': must not be empty",
        ),
        (
            r#"{"format": 1, "owners": {}, "assignments": {}}"#,
            "unknown field `owners`",
        ),
        (
            r#"{"format": 1, "workers": [{"id": "a", "weight": -1}], "assignments": {}}"#,
            "'-1'",
        ),
        (
            r#"{"format": 1, "partition_weights": {"p": 3}, "assignments": {"a": ["q"]}}"#,
            "'p': has a weight but no owner",
        ),
    ] {
        let error = AssignmentDocument::from_json(json)
            .and_then(|document| document.assignment())
            .expect_err(json);
        assert!(error.to_string().contains(part), "{json}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_assignment_survives_the_json_round_trip(
        ids in prop::collection::btree_map("[a-z\u{e9}\u{1F980}\"\\\\]{1,6}", (0u32..3, any::<bool>(), any::<bool>()), 1..8),
        keys in prop::collection::btree_map("[a-z\"\\\\\u{e9}]{1,4}(:[0-9]{1,3})?", 0i64..1000, 0..40),
        seed: u64,
    ) {
        let workers = ids.into_iter().map(|(id, (weight, zoned, healthy))| {
            let worker = Worker::new(id).unwrap().with_weight(f64::from(weight) / 3.0).unwrap();
            let worker = if zoned { worker.with_zone("z1").unwrap() } else { worker };
            let worker = worker.with_max_partitions(std::num::NonZeroU32::new(weight));
            worker.with_health(if healthy { Health::Healthy } else { Health::Unhealthy })
        });
        let fit = Worker::new("fit-1").unwrap();
        let workers = Workers::new(workers.chain([fit])).unwrap();
        let partitions = Partitions::new(keys.into_iter().map(|(key, weight)| {
            key.parse::<Partition>().unwrap().with_weight(weight).unwrap()
        })).unwrap().with_default_weight(1 + seed % 3).unwrap();
        let strategy = Rendezvous::new().with_scheme(divvy_core::Scheme::Native { seed });
        let assignment = strategy.assign(&workers, &partitions, None).unwrap();
        let json = AssignmentDocument::new(strategy.name(), &assignment).to_json();
        let back = AssignmentDocument::from_json(&json).unwrap();
        prop_assert_eq!(back.strategy(), Some("rendezvous"));
        let compared = AssignmentDocument::new("x", &assignment)
            .with_moves(&assignment.moves_from(&assignment));
        let compared = AssignmentDocument::from_json(&compared.to_json()).unwrap();
        prop_assert_eq!(&compared.assignment().unwrap(), &assignment);
        prop_assert_eq!(back.assignment().unwrap(), assignment);
    }
}
