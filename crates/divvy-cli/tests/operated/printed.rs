//! `--print-config`: what is in force, and where it comes from.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// What is printed, whole.
fn printed(directory: &Path, words: &str) -> String {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
        .args(words.split_whitespace())
        .arg("--print-config")
        .env("DIVVY_STORE", "redis://ada:canary@127.0.0.1:1")
        .current_dir(directory)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{words}: {:?}", output.stderr);
    assert!(!text.contains("canary"), "{text}");
    text
}

/// The value of a field, and where it comes from.
fn line<'a>(text: &'a str, field: &str) -> (&'a str, &'a str) {
    let beginning = format!("{field}: ");
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(&beginning));
    let line = lines.next().unwrap_or_else(|| panic!("{field}: {text}"));
    let (value, origin) = line.rsplit_once("  # ").unwrap();
    (value.trim(), origin)
}

#[test]
fn every_setting_of_an_agent_has_its_source_and_is_read_back() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    std::fs::write(
        at.join("agent.yaml"),
        "preset: fast\nlease_ttl: 2s\nmin_partitions: 1\n",
    )
    .unwrap();
    let words = "agent --config agent.yaml --weight 2.5 --workloads demo:8,mail:2 --grace 60s";
    let text = printed(at, words);
    for (field, expected) in [
        ("# store", ("redis://127.0.0.1:1", "DIVVY_STORE")),
        ("# cluster", ("default", "default")),
        ("weight", ("2.5", "--weight")),
        ("workloads", ("{demo: 8, mail: 2}", "--workloads")),
        ("lease_ttl", ("2s", "agent.yaml")),
        ("min_partitions", ("1", "agent.yaml")),
        (
            "renew_interval",
            ("600ms", "follows from others in agent.yaml"),
        ),
        ("min_runtime", ("300ms", "preset fast")),
        ("hook_concurrency", ("256", "default")),
        ("stop_deadline", ("2m", "--grace")),
    ] {
        assert_eq!(line(&text, field), expected, "{field}");
    }
    std::fs::write(at.join("all.yaml"), &text).unwrap();
    let again = printed(at, "agent --config all.yaml");
    for (before, after) in text.lines().zip(again.lines()) {
        let value = |line: &str| line.rsplit_once("  # ").unwrap().0.trim().to_owned();
        assert_eq!(value(before), value(after));
    }
    assert_eq!(line(&again, "renew_interval").1, "all.yaml");
    let plain = printed(
        at,
        "agent --workloads demo:1 --preset fast --store memory --node a",
    );
    assert_eq!(line(&plain, "# store"), ("memory", "--store"));
    assert_eq!(line(&plain, "worker").1, "--node");
    assert_eq!(line(&plain, "lease_ttl"), ("1s", "preset fast"));
}

#[test]
fn every_setting_of_a_worker_has_its_source_and_is_read_back() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let file = "preset: calm\ngroups: [orders]\nshards_per_group: 4\nretry: {max_retries: 5}\n";
    std::fs::write(at.join("worker.yaml"), file).unwrap();
    let words = "worker --config worker.yaml --instance off --strategy balanced --cluster c";
    let text = printed(at, words);
    for (field, expected) in [
        ("# cluster", ("c", "--cluster")),
        ("instance", ("\"off\"", "--instance")),
        ("groups", ("[orders]", "worker.yaml")),
        ("weight", ("1.0", "default")),
    ] {
        assert_eq!(line(&text, field), expected, "{field}");
    }
    assert_eq!(line(&text, "strategy").1, "--strategy");
    assert_eq!(line(&text, "retry").1, "worker.yaml");
    assert_eq!(line(&text, "heartbeat_ttl").1, "preset calm");
    std::fs::write(at.join("all.yaml"), &text).unwrap();
    let again = printed(at, "worker --config all.yaml --cluster c");
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.rsplit_once("  # ").unwrap().0);
        lines.map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(values(&text), values(&again));
}
