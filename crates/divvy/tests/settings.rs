//! Settings as files hold them.

use std::time::Duration;

use divvy::controller::ControllerSettings;
use divvy::manager::{LeaderSettings, Overdue, Settings, Shutdown, StoreOutage};
use divvy::{StrategyName, WORKER_NAME_BYTES_MAX};

const DEVELOPMENT: &str = include_str!("settings/development.yaml");
const PRODUCTION: &str = include_str!("settings/production.yaml");
const HIGH_CHURN: &str = include_str!("settings/high_churn.yaml");
/// What stands above the tables of settings.
const WORKER_TABLE: &str = "### All settings\n";
const AGENT_TABLE: &str = "### Every setting of an agent\n";

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
    assert_eq!(read.strategy.options.seed, Some(7));
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

/// Settings that are wrong, and what is said of them.
const WRONG: [(&str, &str); 21] = [
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
        "weight '-1': must be 0 or in 0.000001..=1000000",
    ),
    (
        "weight: .nan",
        "weight 'NaN': must be 0 or in 0.000001..=1000000",
    ),
    (
        "zone: ''",
        "zone '': must have 1..=256 bytes and no control characters",
    ),
    (
        "expected_workers: 0",
        "expected_workers '0': must be in 1..=100, as many as there are ids",
    ),
    (
        "{worker_id_min: 8, worker_id_max: 9, expected_workers: 3}",
        "expected_workers '3': must be in 1..=2, as many as there are ids",
    ),
    (
        "assignment: {min_rebalance_threshold: -1}",
        "assignment.min_rebalance_threshold '-1': must be in 0..=1000000",
    ),
    (
        "assignment: {rebalance_cooldown: 25h}",
        "assignment.rebalance_cooldown '25h': must be at most 24h",
    ),
    (
        "stop_deadline: 0s",
        "stop_deadline '0s': must be at least 1ms",
    ),
    (
        "shutdown: return",
        "settings: field 'shutdown': 'return' needs how long partitions are kept: {return: 30s}",
    ),
    (
        "shutdown: stay",
        "settings: field 'shutdown': 'stay': must be leave or {return: 30s}",
    ),
    (
        "shutdown: {return: 1m, leave: 1m}",
        "settings: field 'shutdown.leave': must be leave or {return: 30s}",
    ),
    (
        "heartbeat_ttl: 6s\nheartbeat_ttl: 7s",
        "settings: line 2 column 1: duplicate mapping key: heartbeat_ttl",
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
        "shutdown.return '25h': must be at most 24h",
    ),
    (
        "retry: {backoff: 0.5}",
        "retry.backoff '0.5': must be in 1..=10",
    ),
    (
        "strategy: {name: round-robin, seed: 1}",
        "option 'seed': is not one of strategy round-robin",
    ),
];

#[test]
fn a_wrong_value_is_named_with_its_field_and_bound() {
    for (yaml, expected) in WRONG {
        assert_eq!(wrong(yaml), expected, "{yaml}");
    }
    let long = "x".repeat(WORKER_NAME_BYTES_MAX + 1);
    assert!(wrong(&format!("instance: {long}")).starts_with("instance 'xxx"));
    assert!(wrong("heartbeat_ttl: 6").contains("must be a time such as 500ms, 30s or 1m30s"));
    assert!(wrong("overdue: maybe").starts_with("settings: field 'overdue': "));
}

#[test]
fn what_cannot_be_read_is_named_by_its_field_in_both_languages() {
    for (json, expected) in [
        (
            r#"{"preset": "fast", "heartbeat_ttl": 6}"#,
            "settings: field 'heartbeat_ttl': time '6': must be a time such as 500ms, 30s or 1m30s",
        ),
        (
            r#"{"retry": {"max_retries": 1, "max_delay": "soon"}}"#,
            "settings: field 'retry.max_delay': time 'soon': must be a time such as 500ms, 30s or \
             1m30s",
        ),
        (
            r#"{"worker_id_max": "many"}"#,
            "settings: field 'worker_id_max': must be a whole number from 0 on, and not 'many'",
        ),
        (
            r#"["fast", "pod-1"]"#,
            "settings: must be named fields, and not a list",
        ),
        (
            r#"{"retry": [3, "1s"]}"#,
            "settings: field 'retry': must be named fields, and not a list",
        ),
    ] {
        assert_eq!(wrong(json), expected, "{json}");
        let told = Settings::from_json(json).expect_err(json).to_string();
        assert_eq!(told, expected, "{json}");
    }
    // The list of all that there are would be cut.
    assert_eq!(
        wrong("hartbeat_ttl: 6s"),
        "settings: field 'hartbeat_ttl': unknown field `hartbeat_ttl`"
    );
    assert_eq!(
        wrong("retri: {max_retries: 1}"),
        "settings: field 'retri': unknown field `retri`"
    );
    let told = wrong("{groups: [a], shards_per_group: 0}");
    assert!(
        told.starts_with("shards_per_group '0': must be in 1..="),
        "{told}"
    );
}

#[test]
fn what_has_to_fit_a_lease_or_a_deadline_follows_it_unless_it_is_set() {
    let read = Settings::from_yaml("heartbeat_ttl: 3s").unwrap().leader;
    assert_eq!(read.heartbeat_interval, Duration::from_secs(1));
    let read = Settings::from_yaml("stop_deadline: 40s").unwrap().leader;
    assert_eq!(read.shutdown_timeout, Duration::from_secs(40));
    let read = Settings::from_yaml("shutdown_timeout: 5s").unwrap().leader;
    assert_eq!(read.stop_deadline, Duration::from_secs(5));
    assert_eq!(
        wrong("{heartbeat_ttl: 3s, heartbeat_interval: 2s}"),
        "heartbeat_interval '2s': must be in 1ms..=1s"
    );
    assert_eq!(
        wrong("{stop_deadline: 9s, shutdown_timeout: 5s}"),
        "shutdown_timeout '5s': must be at least stop_deadline, 9s"
    );
}

/// The table below a heading: name, default, least, most. A bound that is another
/// setting, or none, is nothing here.
fn documented(heading: &str) -> Vec<(String, String, Option<String>, Option<String>)> {
    let page = include_str!("../../../docs/operating.md");
    let (_, table) = page.split_once(heading).expect("it has a table");
    let rows = table.lines().skip_while(|line| !line.starts_with("| `"));
    let plain = |cell: &str| cell.trim_matches('`').to_owned();
    let bound = |cell: &str| cell.starts_with('`').then(|| plain(cell));
    rows.take_while(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (
                plain(cells[1]),
                plain(cells[2]),
                bound(cells[3]),
                bound(cells[4]),
            )
        })
        .collect()
}

/// The names that an unknown one is held against.
fn known_fields<T: serde::de::DeserializeOwned + std::fmt::Debug>(json: &str) -> Vec<String> {
    let read: Result<T, _> = serde_json::from_str(json);
    let told = read.expect_err(json).to_string();
    let (_, names) = told.split_once(", expected ").expect("it names them");
    let names = names.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn the_table_of_settings_has_every_field_with_its_default() {
    let mut fields = known_fields::<Settings>(r#"{"x": 1}"#);
    for nested in ["assignment", "retry"] {
        fields.retain(|field| field != nested);
        let inner = known_fields::<Settings>(&format!(r#"{{"{nested}": {{"x": 1}}}}"#));
        fields.extend(inner.iter().map(|name| format!("{nested}.{name}")));
    }
    let table = documented(WORKER_TABLE);
    let mut names: Vec<String> = table.iter().map(|row| row.0.clone()).collect();
    fields.sort();
    names.sort();
    assert_eq!(names, fields);
    let defaults = serde_json::to_value(Settings::default()).unwrap();
    for (name, default, ..) in table {
        let value = name
            .split('.')
            .try_fold(&defaults, |value, part| value.get(part));
        let value = match value {
            Some(value) if name == "strategy" => &value["name"],
            Some(value) if !value.is_null() => value,
            _ => continue,
        };
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        assert_eq!(text, default, "{name}");
    }
}

/// The JSON of settings with one field alone.
fn alone(name: &str, value: &str) -> String {
    let value = match value.parse::<f64>() {
        Ok(_) => value.to_owned(),
        Err(_) => format!("\"{value}\""),
    };
    match name.split_once('.') {
        Some((outer, inner)) => format!(r#"{{"{outer}": {{"{inner}": {value}}}}}"#),
        None => format!(r#"{{"{name}": {value}}}"#),
    }
}

/// The value one step above this one, or below.
fn beside(value: &str, is_above: bool) -> String {
    if let Ok(number) = value.parse::<f64>() {
        let next = if is_above { number + 1.0 } else { number - 1.0 };
        return next.to_string();
    }
    let span = divvy::manager::parse_span("bound", value).unwrap();
    let ms = span.as_millis();
    format!("{}ms", if is_above { ms + 1 } else { ms - 1 })
}

#[test]
fn the_table_of_settings_has_the_bounds_that_are_checked() {
    let mut checked = 0;
    for (name, _, least, most) in documented(WORKER_TABLE) {
        let field = name.clone();
        for (bound, is_above) in [(least, false), (most, true)] {
            let Some(bound) = bound else { continue };
            let beyond = alone(&name, &beside(&bound, is_above));
            let told = Settings::from_json(&beyond).expect_err(&beyond).to_string();
            assert!(told.contains(&field), "{beyond}: {told}");
            let read = Settings::from_json(&alone(&name, &bound));
            if let Err(error) = read {
                // Then another setting has to be changed with it.
                let told = error.to_string();
                assert!(
                    !told.starts_with(&format!("{field} ")),
                    "{name} {bound}: {told}"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
}

#[test]
fn the_table_of_an_agents_settings_has_every_field_with_its_default() {
    let mut fields = known_fields::<ControllerSettings>(r#"{"x": 1}"#);
    let table = documented(AGENT_TABLE);
    let mut names: Vec<String> = table.iter().map(|row| row.0.clone()).collect();
    fields.sort();
    names.sort();
    assert_eq!(names, fields);
    let defaults = serde_json::to_value(ControllerSettings::default()).unwrap();
    let mut compared = 0;
    for (name, default, ..) in table {
        // What has none: the preset itself, a name, and what there is to own.
        let value = defaults.get(&name).filter(|value| !value.is_object());
        let Some(value) = value else { continue };
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        assert_eq!(text, default, "{name}");
        compared += 1;
    }
    assert!(compared > 25, "{compared}");
}

/// What is wrong with an agent's settings of which one field is set.
fn agents_fault(name: &str, value: &str) -> Option<String> {
    let mut json: serde_json::Value = serde_json::from_str(&alone(name, value)).unwrap();
    json["workloads"] = serde_json::json!({"a": 1});
    let read = ControllerSettings::from_json(&json.to_string());
    match read {
        Ok(settings) => settings.check().err().map(|invalid| invalid.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn the_table_of_an_agents_settings_has_the_bounds_that_are_checked() {
    let mut checked = 0;
    for (name, _, least, most) in documented(AGENT_TABLE) {
        for (bound, is_above) in [(least, false), (most, true)] {
            let Some(bound) = bound else { continue };
            let beyond = beside(&bound, is_above);
            let told = agents_fault(&name, &beyond);
            let told = told.unwrap_or_else(|| panic!("{name} may be {beyond}"));
            // With a lease goes what follows it, which is told first.
            let is_named = told.contains(&name) || name == "lease_ttl";
            assert!(is_named, "{name} {beyond}: {told}");
            if let Some(told) = agents_fault(&name, &bound) {
                // Then another setting has to be changed with it.
                assert!(
                    !told.starts_with(&format!("{name} ")),
                    "{name} {bound}: {told}"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 25, "{checked}");
}
