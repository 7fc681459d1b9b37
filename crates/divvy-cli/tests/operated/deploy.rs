//! What stands in `deploy/` fits the command that it deploys.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::client::ask;
use crate::member::Member;

const PORT: u64 = 9470;

fn file(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    std::fs::read_to_string(root.join(name)).unwrap()
}

fn divvy(arguments: &[&str]) -> String {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
        .args(arguments)
        .env_remove("DIVVY_STORE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The flags among words.
fn flags<'a>(words: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let flags = words.into_iter().filter(|word| word.starts_with("--"));
    flags
        .map(|flag| flag.split(['=', ' ']).next().unwrap())
        .collect()
}

fn known_flags(of: &BTreeSet<&str>) {
    let help = divvy(&["agent", "--help"]);
    let known = flags(help.split_whitespace());
    assert!(of.len() >= 4 && of.is_subset(&known), "{of:?}");
}

/// The documents of the manifest.
fn manifest() -> Vec<Value> {
    let text = file("kubernetes.yaml");
    let documents = text.split("\n---\n");
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect()
}

/// How long an agent may take to stop, by default, in seconds.
fn shutdown_timeout() -> u64 {
    let printed = divvy(&["agent", "--workloads", "a:1", "--print-config"]);
    let settings: Value = serde_saphyr::from_str(&printed).unwrap();
    let text = settings["shutdown_timeout"].as_str().unwrap();
    divvy::manager::parse_span("shutdown_timeout", text)
        .unwrap()
        .as_secs()
}

#[test]
fn the_unit_of_systemd_is_whole() {
    let text = file("divvy-agent.service");
    let value = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let mut found = lines.filter(|(found, _)| *found == name);
        found
            .next()
            .unwrap_or_else(|| panic!("{name}"))
            .1
            .to_owned()
    };
    let command = value("ExecStart");
    known_flags(&flags(command.split(' ')));
    assert!(command.contains(&format!("127.0.0.1:{PORT} ")));
    assert!(value("TimeoutStopSec").parse::<u64>().unwrap() > shutdown_timeout());
    assert_eq!(value("KillMode"), "mixed");
    assert!(value("ExecReload").contains("-HUP"));
    let directory = TempDir::new().unwrap();
    let unit = directory.path().join("divvy-agent.service");
    let binary = assert_cmd::cargo::cargo_bin!("divvy").display().to_string();
    std::fs::write(&unit, text.replace("/usr/local/bin/divvy", &binary)).unwrap();
    // Only where there is systemd can it be asked.
    let asked = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&unit)
        .output();
    if let Ok(output) = asked {
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && !told.contains("divvy-agent"),
            "{told}"
        );
    }
}

#[test]
fn the_manifest_of_kubernetes_is_whole() {
    let documents = manifest();
    let pod = &documents[1]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let words: Vec<&str> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    assert_eq!(words[0], "agent");
    known_flags(&flags(words.iter().copied()));
    assert!(words.contains(&format!("--listen=0.0.0.0:{PORT}").as_str()));
    assert_eq!(container["ports"][0]["containerPort"], PORT);
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["port"], container["ports"][0]["name"], "{probe}");
        assert!(["/healthz", "/readyz"].contains(&asked["path"].as_str().unwrap()));
    }
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > shutdown_timeout());
    let names: Vec<&Value> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["POD_UID", "DIVVY_STORE"]);
    assert!(container["env"][1]["valueFrom"]["secretKeyRef"].is_object());
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let mode = pod["volumes"][1]["secret"]["defaultMode"].as_u64().unwrap();
    assert_eq!(mode & 0o007, 0, "everybody could read the token");
    // Its settings are settings.
    let settings = documents[0]["data"]["agent.yaml"].as_str().unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("agent.yaml");
    std::fs::write(&path, settings).unwrap();
    let printed = divvy(&[
        "agent",
        "--config",
        path.to_str().unwrap(),
        "--print-config",
    ]);
    assert!(printed.contains("workloads: {orders: 64}"), "{printed}");
}

#[test]
fn the_image_has_the_command_and_no_root() {
    let text = file("Dockerfile");
    let line = |word: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(word));
        lines
            .next_back()
            .unwrap_or_else(|| panic!("{word}"))
            .to_owned()
    };
    assert_eq!(text.matches("\nFROM ").count(), 2);
    assert_eq!(line("EXPOSE"), format!("EXPOSE {PORT}"));
    assert_eq!(
        line("ENTRYPOINT"),
        r#"ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/divvy"]"#
    );
    assert!(line("COPY --from=build").ends_with("/release/divvy /usr/local/bin/divvy"));
    let pod = &manifest()[1]["spec"]["template"]["spec"]["securityContext"];
    let user = format!("USER {}:{}", pod["runAsUser"], pod["runAsGroup"]);
    assert_eq!(line("USER"), user);
    // The compiler is the one that the workspace asks for.
    let root = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
    let root = root.unwrap();
    let (_, version) = root.split_once("rust-version = \"").unwrap();
    let version = version.split('"').next().unwrap();
    assert!(text.contains(&format!("FROM rust:{version}-")), "{version}");
}

/// What an agent and a worker render.
async fn metrics() -> String {
    let mut pages = String::new();
    for words in [
        "agent --store memory --preset fast --workloads a:1 --exec sleep --listen 127.0.0.1:0",
        "worker --store memory --preset fast --partitions 1 --listen 127.0.0.1:0",
    ] {
        let member = Member::start(words);
        let address = member.ready().await;
        pages += &ask(address, "GET", "/metrics").await.body;
    }
    pages
}

/// The names of metrics among words.
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("divvy_"))
}

#[tokio::test]
async fn the_guide_names_every_metric() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let guide = std::fs::read_to_string(root.join("operating.md")).unwrap();
    // What stands in the first column of a table, between backticks.
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let told: BTreeSet<&str> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let pages = metrics().await;
    let types = pages
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let mut count = 0;
    for metric in types.filter_map(|line| line.split(' ').next()) {
        let short = metric.strip_prefix("divvy_").expect("all are named so");
        let is_told = told.contains(metric) || told.contains(short);
        assert!(is_told, "{metric} is not in docs/operating.md");
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[tokio::test]
async fn alerts_name_metrics_that_there_are() {
    let rules: Value = serde_saphyr::from_str(&file("alerts.yaml")).unwrap();
    let pages = metrics().await;
    let is_there = |metric: &str| pages.contains(&format!("# TYPE {metric} "));
    let series = pages.lines().filter(|line| !line.starts_with('#'));
    for line in series {
        assert!(line.contains(",cluster=\"default\""), "{line}");
    }
    let mut count = 0;
    for group in rules["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            let words = rule["expr"].as_str().unwrap();
            // What is added up or compared is that of one cluster.
            for aggregate in ["sum", "max", "min"] {
                let of = format!("{aggregate}(");
                assert!(!words.contains(&of), "{words}");
                let by = format!("{aggregate} by (");
                let mut parts = words.split(&by).skip(1);
                let is_parted = parts.all(|part| part.starts_with("cluster"));
                assert!(is_parted, "{words}");
            }
            for metric in metrics_in(words) {
                assert!(is_there(metric), "{metric}");
                count += 1;
            }
            // People are told what it means, where to look and what to do.
            for name in ["summary", "description"] {
                let text = rule["annotations"][name].as_str();
                let text = text.unwrap_or_else(|| panic!("{name} of {rule}"));
                assert!(!text.is_empty(), "{name} of {rule}");
                assert!(metrics_in(text).all(is_there), "{text}");
            }
            let description = rule["annotations"]["description"].as_str().unwrap();
            assert!(description.contains("`divvy "), "{description}");
        }
    }
    assert!(count > 10, "{count}");
    // When nothing is scraped any more, all other rules of a group are silent.
    for group in rules["groups"].as_array().unwrap() {
        let rules = group["rules"].as_array().unwrap().iter();
        let words: Vec<&str> = rules.map(|rule| rule["expr"].as_str().unwrap()).collect();
        for needed in ["absent(divvy_", "up{job="] {
            let is_there = words.iter().any(|words| words.starts_with(needed));
            assert!(is_there, "{needed} in {}", group["name"]);
        }
    }
}
