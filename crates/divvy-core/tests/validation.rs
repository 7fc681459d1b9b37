//! Bad input: every error names the field, the value and the bound.

mod logs;

use divvy_core::{
    CRUSTER_WEIGHT_MAX, ConsistentHash, Error, Partition, Partitions, Rendezvous, Scheme, Strategy,
    StrategyName, StrategySettings, WORKER_WEIGHT_MAX, Worker, Workers,
};
use logs::warnings_of;

fn message<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn bad_partition_keys_are_refused() {
    let long = "x".repeat(129);
    let many = vec!["a"; 17];
    for (segments, part) in [
        (&[][..], "partition key '': needs at least 1 segment"),
        (&[""], "partition segment '': must not be empty"),
        (&["a", ""], "partition segment '': must not be empty"),
        (&["a:b"], "partition segment 'a:b': must not contain ':'"),
        (&["a\0b"], "must not contain NUL"),
        (&["a\nb"], "must not contain control characters, has U+000A"),
        (&[" a"], "must not start or end with white space"),
        (&[&long], "is 129 bytes long, at most 128 are allowed"),
        (&many[..], "has more than 16 segments"),
    ] {
        let text = message(Partition::new(segments));
        assert!(text.contains(part), "{text}");
    }
    assert!(message("".parse::<Partition>()).contains("must not be empty"));
    assert!(message("a::b".parse::<Partition>()).contains("must not be empty"));
}

#[test]
fn bad_partition_weights_are_refused() {
    let heavy = |name: &str| name.parse::<Partition>().unwrap().with_weight(i64::MAX);
    assert_eq!(
        message(Partition::new(["a"]).unwrap().with_weight(-1)),
        "partition weight '-1': must be in 0..=9223372036854775807"
    );
    assert!(Partitions::new([heavy("a").unwrap()]).is_ok());
    let text = message(Partitions::new([heavy("a").unwrap(), heavy("b").unwrap()]));
    assert!(
        text.contains("all together must not exceed 9223372036854775807"),
        "{text}"
    );
    let light = Partition::new(["b"]).unwrap();
    assert!(
        Partitions::new([heavy("a").unwrap(), light]).is_err(),
        "one over the bound"
    );
}

#[test]
fn bad_workers_are_refused() {
    let weight = |weight: f64| Worker::new("w").unwrap().with_weight(weight);
    for bad in [
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e-7,
        1e7,
        f64::MAX,
        -1e-300,
    ] {
        let text = message(weight(bad));
        assert!(text.starts_with("worker weight '"), "{text}");
        assert!(
            text.contains("must be 0 or in 0.000001..=1000000 (worker 'w')"),
            "{text}"
        );
    }
    assert_eq!(weight(-0.0).unwrap().weight().to_bits(), 0);
    assert!(message(Worker::new("")).contains("worker id '': must not be empty"));
    assert!(message(Worker::new("a\0")).contains("must not contain NUL"));
    assert!(message(Worker::new("x".repeat(257))).contains("at most 256 are allowed"));
    assert!(message(Worker::new("w").unwrap().with_zone("")).contains("worker zone ''"));
}

#[test]
fn duplicates_are_refused() {
    assert_eq!(
        message(Workers::of(["a", "b", "a"])),
        "worker id 'a': is given twice"
    );
    let twice = ["a:1", "b:1", "a:1"].map(|name| name.parse::<Partition>().unwrap());
    assert_eq!(
        message(Partitions::new(twice)),
        "partition 'a:1': is given twice"
    );
    assert!(message(Partitions::shards([("a", 2), ("a", 1)])).contains("'a:0': is given twice"));
    for group in ["", "a:b", " a"] {
        assert!(Partitions::shards([(group, 0)]).is_err(), "{group:?}");
    }
}

#[test]
fn sets_beyond_their_limits_are_refused_before_they_allocate() {
    let text = message(Partitions::shards([("a", u32::MAX), ("b", u32::MAX)]));
    assert_eq!(
        text,
        "partition count '4294967295': at most 16777216 are allowed"
    );
    let text = message(Workers::numbered("w", usize::MAX));
    assert!(text.ends_with("at most 100000 are allowed"), "{text}");
    let endless = std::iter::repeat_with(|| Worker::new("w").unwrap());
    assert!(message(Workers::new(endless)).contains("at most 100000"));
}

#[test]
fn a_ring_beyond_its_limit_is_refused_before_it_allocates() {
    let heavy = Worker::new("w")
        .unwrap()
        .with_weight(WORKER_WEIGHT_MAX)
        .unwrap();
    let workers = Workers::new([heavy]).unwrap();
    let partitions = Partitions::shards([("a", 1)]).unwrap();
    let text = message(ConsistentHash::new().assign(&workers, &partitions, None));
    assert!(
        text.starts_with("points of the ring '150000000': at most 33554432"),
        "{text}"
    );
}

#[test]
fn virtual_nodes_are_corrected_with_one_warning() {
    for (given, used) in [(0, 1), (20_000, 10_000)] {
        let mut ring = None;
        let warnings = warnings_of(|| {
            ring = Some(ConsistentHash::new().with_virtual_nodes(given));
        });
        assert_eq!(ring, Some(ConsistentHash::new().with_virtual_nodes(used)));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(&format!("virtual nodes {given} are outside of 1..=10000")));
    }
}

#[test]
fn what_a_compatibility_scheme_cannot_place_is_refused() {
    let place = |scheme: Scheme, weight: f64, partition: &str| {
        let worker = Worker::new("w").unwrap().with_weight(weight).unwrap();
        let partitions = Partitions::new([partition.parse().unwrap()]).unwrap();
        let workers = Workers::new([worker]).unwrap();
        Rendezvous::new()
            .with_scheme(scheme)
            .assign(&workers, &partitions, None)
    };
    let text = message(place(Scheme::Cruster, 1.5, "a:1"));
    assert!(
        text.contains("must be whole and at most 1000 under the scheme cruster"),
        "{text}"
    );
    assert!(place(Scheme::Cruster, CRUSTER_WEIGHT_MAX, "a:1").is_ok());
    assert!(place(Scheme::Cruster, CRUSTER_WEIGHT_MAX + 1.0, "a:1").is_err());
    let rendezgo = || Scheme::Rendezgo {
        cluster: "c".to_owned(),
    };
    assert!(place(rendezgo(), 1.5, "a:1").is_ok());
    for bad in ["a", "a:b", "a:1:2", "a:01", "a:-1", "a:+1"] {
        let text = message(place(rendezgo(), 1.0, bad));
        assert!(
            text.contains("must be workload:unit with a decimal unit"),
            "{text}"
        );
    }
}

#[test]
fn subjects_with_wildcards_or_spaces_are_refused() {
    for segment in ["a.b", "*", "a>", "a b"] {
        let partition = Partition::new(["ok", segment]).unwrap();
        assert!(
            message(partition.subject("p")).contains("has no subject"),
            "{segment}"
        );
    }
    let partition = Partition::new(["a", "b"]).unwrap();
    for prefix in ["", "p.", ".p", "p..q", "p.*", "p q", "p\0"] {
        assert!(partition.subject(prefix).is_err(), "{prefix:?}");
    }
    assert_eq!(partition.subject("p.q").unwrap(), "p.q.a.b.completed");
    assert!(message(partition.subject_from("{prefix}.x", "p")).contains("must hold {keys}"));
    let braces = Partition::new(["{prefix}"]).unwrap();
    assert_eq!(
        braces.subject("{keys}").unwrap(),
        "{keys}.{prefix}.completed"
    );
}

#[test]
fn every_strategy_can_be_built_by_name() {
    for name in StrategyName::ALL {
        let json = format!("{:?}", name.as_str());
        let settings: StrategySettings = serde_json::from_str(&json).unwrap();
        let built = settings.build();
        if name == StrategyName::RendezvousParallel && cfg!(not(feature = "parallel")) {
            assert!(message(built).contains("needs a build with the feature parallel"));
        } else {
            assert_eq!(built.unwrap().name(), name.as_str());
        }
        assert_eq!(name.as_str().parse::<StrategyName>().unwrap(), name);
    }
    let text = message("ring".parse::<StrategyName>());
    assert!(
        text.contains("strategy 'ring': must be one of rendezvous,"),
        "{text}"
    );
}

#[test]
fn strategy_settings_refuse_what_does_not_fit() {
    for (json, part) in [
        (
            r#"{"name": "round-robin", "seed": 1}"#,
            "'seed': is not one of strategy round-robin",
        ),
        (
            r#"{"name": "consistent-hash", "scheme": "cruster"}"#,
            "'scheme': is not one of",
        ),
        (
            r#"{"name": "rendezvous", "virtual_nodes": 3}"#,
            "'virtual_nodes': is not one of",
        ),
        (
            r#"{"name": "rendezvous", "cluster": "c"}"#,
            "'cluster': is not one of",
        ),
        (
            r#"{"name": "rendezvous", "scheme": "cruster", "seed": 1}"#,
            "'seed': is not one of scheme cruster",
        ),
        (
            r#"{"name": "rendezvous", "scheme": "rendezgo", "cluster": ""}"#,
            "cluster '': must not be empty",
        ),
    ] {
        let settings: StrategySettings = serde_json::from_str(json).unwrap();
        let text = message(settings.build());
        assert!(text.contains(part), "{json}: {text}");
    }
    for json in [
        r#""ring""#,
        r#"{"name": "rendezvous", "sed": 1}"#,
        r#"{"name": "rendezvous", "name": "zoned"}"#,
        r#"{"name": "rendezvous", "seed": 1, "seed": 2}"#,
        "7",
        r#"{"seed": 1}"#,
    ] {
        assert!(
            serde_json::from_str::<StrategySettings>(json).is_err(),
            "{json}"
        );
    }
}

#[test]
fn strategy_settings_survive_a_round_trip() {
    let settings: StrategySettings =
        serde_json::from_str(r#"{"name": "rendezvous", "scheme": "rendezgo", "cluster": "c"}"#)
            .unwrap();
    let json = serde_json::to_string(&settings).unwrap();
    assert_eq!(
        serde_json::from_str::<StrategySettings>(&json).unwrap(),
        settings
    );
}
