//! Settings as files hold them.

use std::time::Duration;

use divvy::manager::{LeaderSettings, Overdue, Settings, Shutdown, StoreOutage};
use divvy::{StrategyName, WORKER_NAME_BYTES_MAX};

const DEVELOPMENT: &str = include_str!("settings/development.yaml");
const PRODUCTION: &str = include_str!("settings/production.yaml");
const HIGH_CHURN: &str = include_str!("settings/high_churn.yaml");

fn wrong(yaml: &str) -> String {
    Settings::from_yaml(yaml).expect_err(yaml).to_string()
}

#[test]
fn the_example_files_of_the_specification_parse() {
    let read = Settings::from_yaml(DEVELOPMENT).unwrap();
    assert_eq!(&*read.leader.worker_id_prefix, "dev-worker");
    assert_eq!(read.leader.heartbeat_ttl, Duration::from_secs(3));
    assert_eq!(read.leader.min_rebalance_threshold, 0.1);
    let read = Settings::from_yaml(HIGH_CHURN).unwrap();
    assert_eq!(read.leader.worker_id_max, 499);
    assert_eq!(read.leader.rebalance_cooldown, Duration::from_secs(5));
    assert_eq!(read.leader.restart_detection_ratio, 0.3);
    // Its production settings are its defaults, but for the ids.
    let mut read = Settings::from_yaml(PRODUCTION).unwrap();
    assert_eq!(std::mem::replace(&mut read.leader.worker_id_max, 99), 199);
    assert_eq!(read, Settings::default());
}

#[test]
fn nothing_is_the_default_and_presets_are_what_they_are() {
    assert_eq!(Settings::from_json("{}").unwrap(), Settings::default());
    let of = |preset: &str| Settings::from_yaml(&format!("preset: {preset}")).unwrap();
    assert_eq!(of("fast"), Settings::fast());
    assert_eq!(of("default"), Settings::default());
    assert_eq!(of("calm"), Settings::calm());
    assert_eq!(of("fast").leader, LeaderSettings::fast());
    let strategy = Settings::default().strategy;
    assert_eq!(strategy.name, StrategyName::WeightedConsistentHash);
}

#[test]
fn every_field_is_read_from_json() {
    let read = Settings::from_json(
        r#"{
            "preset": "calm", "instance": "pod-3", "expected_workers": 5, "leader_lease": "4s",
            "grace": "1s", "start_deadline": "3s", "stop_deadline": "1m30s", "overdue": "report",
            "store_outage": "overlap",
            "partition_poll_interval": "1m", "root_poll_interval": "2s", "weight": 2.5,
            "zone": "a", "strategy": {"name": "balanced", "seed": 7}, "groups": ["x", "y"],
            "shards_per_group": 3, "hook_concurrency": 9, "shutdown": {"return": "20s"},
            "retry": {"max_retries": 1, "initial_delay": "10ms", "max_delay": "1s", "backoff": 3},
            "assignment": {"min_rebalance_threshold": 0.2}
        }"#,
    );
    let read = read.unwrap();
    let leader = &read.leader;
    assert_eq!(leader.heartbeat_ttl, Duration::from_secs(15));
    assert_eq!(leader.leader_lease, Duration::from_secs(4));
    assert_eq!(
        (leader.expected_workers, leader.overdue, leader.store_outage),
        (Some(5), Overdue::Report, StoreOutage::Overlap)
    );
    assert_eq!(leader.stop_deadline, Duration::from_secs(90));
    assert_eq!(
        leader.partition_poll_interval,
        Some(Duration::from_secs(60))
    );
    assert_eq!(read.strategy.seed, Some(7));
    assert_eq!((read.weight, read.zone.as_deref()), (2.5, Some("a")));
    let within = Duration::from_secs(20);
    assert_eq!(read.shutdown, Shutdown::Return { within });
    assert_eq!((read.retry.max_retries, read.retry.backoff), (1, 3.0));
    let source = read.source().unwrap().unwrap();
    let last = source.partitions().iter().last().unwrap().to_string();
    assert_eq!((source.partitions().len(), last.as_str()), (6, "y:2"));
}

#[test]
fn what_is_written_is_read_back_the_same() {
    for settings in [
        Settings::fast(),
        Settings::calm(),
        Settings::from_yaml(HIGH_CHURN).unwrap(),
        Settings {
            instance: Some("pod-1".to_owned()),
            zone: Some("b".to_owned()),
            groups: vec!["orders".to_owned()],
            shards_per_group: Some(12),
            ..Settings::default()
        },
    ] {
        let json = serde_json::to_string(&settings).unwrap();
        assert_eq!(Settings::from_json(&json).unwrap(), settings, "{json}");
        // JSON is YAML.
        assert_eq!(Settings::from_yaml(&json).unwrap(), settings, "{json}");
    }
}

#[test]
fn unknown_fields_are_errors() {
    for yaml in [
        "heartbeat: 2s",
        "assignment: {threshold: 1}",
        "retry: {tries: 1}",
        "strategy: {name: balanced, colour: red}",
    ] {
        let told = wrong(yaml);
        assert!(
            told.contains("unknown") || told.contains("is not"),
            "{yaml}: {told}"
        );
    }
}

#[test]
fn a_wrong_value_is_named_with_its_field_and_bound() {
    for (yaml, expected) in [
        (
            "heartbeat_ttl: 299ms",
            "heartbeat_ttl '299ms': must be at least 300ms",
        ),
        (
            "heartbeat_interval: 3s",
            "heartbeat_interval '3s': must be in 1ms..=2s",
        ),
        (
            "worker_id_min: 100",
            "worker_id_max '99': must be in 100..=100099",
        ),
        (
            "hook_concurrency: 0",
            "hook_concurrency '0': must be in 1..=1024",
        ),
        (
            "weight: -1",
            "worker weight '-1': must be 0 or in 0.000001..=1000000 (worker 'worker')",
        ),
        (
            "groups: [a]",
            "groups 'a': needs shards_per_group beside it",
        ),
        (
            "shards_per_group: 4",
            "shards_per_group '4': needs groups beside it",
        ),
        (
            "shutdown: {return: 25h}",
            "shutdown '90000s': must be at most 86400s",
        ),
        ("retry: {backoff: 0.5}", "backoff '0.5': must be in 1..=10"),
        (
            "strategy: {name: round-robin, seed: 1}",
            "option 'seed': is not one of strategy round-robin",
        ),
    ] {
        assert_eq!(wrong(yaml), expected, "{yaml}");
    }
    let long = "x".repeat(WORKER_NAME_BYTES_MAX + 1);
    assert!(wrong(&format!("instance: {long}")).starts_with("instance 'xxx"));
    assert!(wrong("heartbeat_ttl: 6").contains("must be a time such as 500ms, 30s or 1m30s"));
    assert!(wrong("overdue: maybe").starts_with("settings: "));
}
