//! `divvy bench`: figures of stores.

use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer,
};
use serde_json::Value;

use crate::scratch::{Scratch, divvy};

/// As short as it goes: what is measured is not looked at.
const SHORT: [&str; 8] = [
    "--time",
    "30ms",
    "--leases",
    "300",
    "--interval",
    "10ms",
    "--clients",
    "4",
];

fn figures(scratch: &Scratch, more: &[&str]) -> Vec<Value> {
    let start = ["bench", "stores", "--json"];
    let run = scratch.run(start.iter().chain(&SHORT).chain(more));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stderr.contains("lost"), "{}", run.stderr);
    let figures: Value = serde_json::from_str(&run.stdout).unwrap();
    figures.as_array().unwrap().clone()
}

fn loads_of(figures: &[Value], store: &str) -> Vec<String> {
    let of_store = |figure: &&Value| figure["store"].as_str().unwrap().starts_with(store);
    let load = |figure: &Value| figure["load"].as_str().unwrap().to_owned();
    figures.iter().filter(of_store).map(load).collect()
}

const KEY_VALUE_LOADS: [&str; 4] = [
    "compare-and-set, 1 client",
    "compare-and-set, 4 clients",
    "one counter, 4 clients",
    "write until a watch sees it",
];
const LEASE_LOADS: [&str; 6] = [
    "acquire 300 leases",
    "renew 300 leases, back to back",
    "renew 300 leases every 10ms",
    "release 300 leases",
    "a worker takes 300 partitions",
    "a worker keeps 300, renewed every 10ms",
];

#[test]
fn without_a_store_memory_and_a_new_file_are_measured() {
    let scratch = Scratch::new();
    let figures = figures(&scratch, &[]);
    let both: Vec<_> = KEY_VALUE_LOADS.into_iter().chain(LEASE_LOADS).collect();
    for store in ["memory", "file"] {
        assert_eq!(loads_of(&figures, store), both, "{store}");
    }
    for figure in &figures {
        assert!(figure["per_second"].as_f64().unwrap() > 0.0, "{figure}");
        assert!(
            figure["p50_ms"].as_f64() <= figure["max_ms"].as_f64(),
            "{figure}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn real_servers_are_measured_and_twice_in_a_row() {
    let nats = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let redis = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let scratch = Scratch::new();
    for _ in 0..2 {
        let (nats, redis) = (nats.url(), redis.url());
        let figures = figures(&scratch, &["--store", &nats, "--store", &redis, "--peer"]);
        assert_eq!(loads_of(&figures, "NATS"), KEY_VALUE_LOADS);
        let both: Vec<_> = KEY_VALUE_LOADS.into_iter().chain(LEASE_LOADS).collect();
        let ours = loads_of(&figures, "redis");
        assert_eq!(ours[..10], both, "{ours:?}");
        assert_eq!(loads_of(&figures, "redis-benchmark").len(), 3);
    }
}

const PROCESS_LOADS: [&str; 3] = [
    "compare-and-set, 4 processes",
    "4 processes renew 75 leases each every 10ms",
    "4 processes renew 75 leases each every 10ms, 2 of them write without pause instead",
];

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_a_store_and_each_is_counted() {
    let nats = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let redis = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let (nats, redis) = (nats.url(), redis.url());
    let scratch = Scratch::new();
    let alone = figures(&scratch, &["--processes", "4"]);
    assert_eq!(loads_of(&alone, "file"), PROCESS_LOADS);
    let stores = [
        "--store",
        &nats,
        "--store",
        &redis,
        "--store",
        "file:./d.db",
    ];
    let mut all = vec!["--processes", "4"];
    all.extend(stores);
    let figures = figures(&scratch, &all);
    assert_eq!(loads_of(&figures, "NATS"), PROCESS_LOADS[..1]);
    assert_eq!(loads_of(&figures, "redis"), PROCESS_LOADS);
    assert_eq!(loads_of(&figures, "file"), PROCESS_LOADS);
    for figure in &figures {
        let each = figure["per_process"].as_array().unwrap();
        assert!(each[0].as_u64() > Some(0), "{figure}");
        assert!(each[0].as_u64() <= each[1].as_u64(), "{figure}");
    }
    // Nothing is left, so that another run finds what this one found.
    assert_eq!(
        loads_of(&self::figures(&scratch, &all), "redis"),
        PROCESS_LOADS
    );
}

#[test]
fn processes_that_cannot_open_the_store_are_one_error() {
    let run = divvy("bench stores --store redis://127.0.0.1:9 --time 30ms --processes 3");
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.starts_with("error: redis://127.0.0.1:9"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn a_table_lines_up_for_people() {
    let line = format!("bench stores --store memory {}", SHORT.join(" "));
    let table = divvy(&line).done();
    let mut lines = table.lines();
    let heading = lines.next().unwrap();
    let end = heading.rfind("core").unwrap() + "core".len();
    assert!(
        lines.all(|line| line.ends_with('%') && line.chars().count() == end),
        "{table}"
    );
}

#[test]
fn a_store_that_is_not_there_is_an_error_within_the_timeout() {
    // Nobody listens on the discard port of a machine without one.
    let run = divvy("bench stores --store redis://127.0.0.1:9 --time 30ms");
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.starts_with("error: redis://127.0.0.1:9"),
        "{}",
        run.stderr
    );
}

#[test]
fn wrong_usage_names_the_field_and_the_bound() {
    let mistakes = [
        ("--store http://h", "store 'http://h'"),
        ("--store nats://", "needs a host"),
        ("--store file:", "needs a path"),
        ("--time 3", "500ms, 30s or 1m30s"),
        ("--time 99999999999999m", "at most 1h"),
        ("--interval 0ms", "at least 1ms"),
        ("--processes 0", "1..=64"),
        ("--processes 2 --store memory", "processes '2'"),
        ("--processes 9 --leases 8", "leases '8'"),
        ("--part 0:0", "--processes"),
        ("--clients 0", "1..=1000"),
        ("--leases 100001", "1..=100000"),
        ("--replicas 2", "must be 1, 3 or 5"),
        ("--operation-timeout 2m", "operation_timeout"),
        ("--cluster a:b", "cluster 'a:b'"),
        ("--tls-cert c.pem", "--tls-key"),
    ];
    for (flags, expected) in mistakes {
        let run = divvy(&format!("bench stores {flags}"));
        assert_eq!(run.code, 2, "{flags}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{flags}: {}", run.stderr);
    }
}
