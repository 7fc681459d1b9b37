//! `--print-config`: what is in force, and where it comes from.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A store with a secret that nothing prints.
const STORE: &str = "redis://ada:canary@127.0.0.1:1";

fn run(directory: &Path, words: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
        .args(words.split_whitespace())
        .arg("--print-config")
        .env_remove("DIVVY_STORE")
        .env_remove("DIVVY_WEBHOOK")
        .envs(variables.iter().copied())
        .current_dir(directory)
        .output()
        .unwrap()
}

/// What is printed, whole.
fn printed_in(directory: &Path, words: &str, variables: &[(&str, &str)]) -> String {
    let output = run(directory, words, variables);
    let text = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{words}: {told}");
    assert!(!text.contains("canary"), "{text}");
    text
}

fn printed(directory: &Path, words: &str) -> String {
    printed_in(directory, words, &[("DIVVY_STORE", STORE)])
}

/// The one line that says why nothing is printed.
fn refused(directory: &Path, words: &str) -> String {
    let output = run(directory, words, &[]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && told.lines().count() == 1,
        "{told}"
    );
    assert!(!told.contains("canary"), "{told}");
    told
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

/// Everything but where it comes from.
fn values(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.rsplit_once("  # ").unwrap().0);
    lines.map(|line| line.trim().to_owned()).collect()
}

fn write(directory: &Path, name: &str, text: &str, mode: u32) {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn every_setting_of_an_agent_has_its_source_and_is_read_back() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let file = "preset: fast\nlease_ttl: 2s\nmin_partitions: 1\nnode: 007\nexec: sleep {unit}\n\
                health_cmd: test -e /tmp\nhealth_interval: 3s\noutput_dir: out\nuser: off\n\
                listen: localhost:9470\nrequire_tls: true\ncluster: of-file\n";
    write(at, "agent.yaml", file, 0o644);
    let words = "agent --config agent.yaml --weight 2.5 --workloads demo:8,mail:2 --grace 60s \
                 --cluster c --tls-ca ca.pem";
    let text = printed(at, words);
    for (field, expected) in [
        (
            "# store",
            ("redis://127.0.0.1:1", "DIVVY_STORE, not shown whole"),
        ),
        ("cluster", ("\"c\"", "--cluster")),
        ("node", ("\"007\"", "agent.yaml")),
        ("exec", ("\"sleep {unit}\"", "agent.yaml")),
        ("grace", ("60s", "--grace")),
        ("health_cmd", ("\"test -e /tmp\"", "agent.yaml")),
        ("health_interval", ("3s", "agent.yaml")),
        ("output_dir", ("out", "agent.yaml")),
        ("listen", ("\"localhost:9470\"", "agent.yaml")),
        ("user", ("\"off\"", "agent.yaml")),
        ("tls_ca", ("\"ca.pem\"", "--tls-ca")),
        ("require_tls", ("true", "agent.yaml")),
        ("store_operation_timeout", ("2s", "default")),
        ("# webhook", ("none", "default")),
        ("# listen_token_file", ("none", "default")),
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
    write(at, "all.yaml", &text, 0o644);
    let again = printed(at, "agent --config all.yaml");
    assert_eq!(values(&text), values(&again));
    assert_eq!(line(&again, "renew_interval").1, "all.yaml");
    assert_eq!(line(&again, "tls_ca").1, "all.yaml");
    let words = "agent --workloads demo:1 --preset fast --store memory --node a";
    let plain = printed(at, words);
    assert_eq!(line(&plain, "store"), ("memory", "--store"));
    assert_eq!(line(&plain, "node").1, "--node");
    assert_eq!(line(&plain, "lease_ttl"), ("1s", "preset fast"));
    // A name that nobody has given is told, and is not for other machines.
    let variables = [("POD_NAME", "pod-7")];
    let named = printed_in(at, "agent --workloads demo:1", &variables);
    assert_eq!(line(&named, "# node"), ("pod-7", "default"));
}

#[test]
fn every_setting_of_a_worker_has_its_source_and_is_read_back() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let file = "preset: calm\ngroups: [orders]\nshards_per_group: 4\nretry: {max_retries: 5}\n\
                store: memory\nexec_grace: 3s\ngrace: 1s\nlisten: 127.0.0.1:9470\ntick: 1s\n\
                replicas: 3\n";
    write(at, "worker.yaml", file, 0o644);
    let words = "worker --config worker.yaml --instance off --strategy balanced --cluster c \
                 --weight 2 --zone b --on-stop return --return-within 9s --webhook https://h/x \
                 --webhook-secret-file secret";
    let text = printed_in(at, words, &[]);
    for (field, expected) in [
        ("store", ("memory", "worker.yaml")),
        ("cluster", ("\"c\"", "--cluster")),
        ("instance", ("\"off\"", "--instance")),
        ("shutdown", ("{return: 9s}", "--on-stop")),
        ("exec_grace", ("3s", "worker.yaml")),
        ("grace", ("1s", "worker.yaml")),
        ("tick", ("1s", "worker.yaml")),
        ("replicas", ("3", "worker.yaml")),
        ("bucket", ("divvy", "default")),
        ("deadlines", ("false", "default")),
        ("listen", ("\"127.0.0.1:9470\"", "worker.yaml")),
        ("webhook", ("\"https://h/x\"", "--webhook")),
        ("webhook_secret_file", ("secret", "--webhook-secret-file")),
        ("# exec", ("none", "default")),
        ("groups", ("[orders]", "worker.yaml")),
        ("weight", ("2.0", "--weight")),
        ("zone", ("\"b\"", "--zone")),
    ] {
        assert_eq!(line(&text, field), expected, "{field}");
    }
    assert_eq!(line(&text, "strategy").1, "--strategy");
    assert_eq!(line(&text, "retry").1, "worker.yaml");
    assert_eq!(line(&text, "heartbeat_ttl").1, "preset calm");
    write(at, "all.yaml", &text, 0o644);
    let again = printed_in(at, "worker --config all.yaml", &[]);
    assert_eq!(values(&text), values(&again));
    let words = "worker --store memory --partitions 3";
    let plain = printed_in(at, words, &[]);
    assert_eq!(line(&plain, "partitions"), ("\"3\"", "--partitions"));
    let host = rustix::system::uname();
    let host = host.nodename().to_str().unwrap();
    assert_eq!(line(&plain, "# instance"), (host, "default"));
    assert_eq!(line(&plain, "shutdown"), ("leave", "default"));
    assert_eq!(line(&plain, "weight"), ("1.0", "default"));
    std::fs::write(
        at.join("count.json"),
        r#"{"partitions": 3, "on_stop": "return"}"#,
    )
    .unwrap();
    let counted = printed_in(at, "worker --config count.json", &[]);
    assert_eq!(line(&counted, "partitions"), ("\"3\"", "count.json"));
    assert_eq!(line(&counted, "shutdown").0, "{return: 30s}");
}

#[test]
fn a_flag_counts_before_the_environment_and_that_before_the_file() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let file = "store: file:a.db\nworkloads: dynamic\nwebhook: http://file/x\n\
                webhook_secret_file: secret\n";
    write(at, "agent.yaml", file, 0o644);
    let words = "agent --config agent.yaml";
    let read = |words: &str, variables: &[(&str, &str)]| printed_in(at, words, variables);
    let by_file = read(words, &[]);
    assert_eq!(line(&by_file, "store"), ("\"file:a.db\"", "agent.yaml"));
    assert_eq!(
        line(&by_file, "webhook"),
        ("\"http://file/x\"", "agent.yaml")
    );
    assert_eq!(line(&by_file, "dynamic").0, "true");
    let variables = [
        ("DIVVY_STORE", "memory"),
        ("DIVVY_WEBHOOK", "http://variable/canary"),
    ];
    let by_variable = read(words, &variables);
    assert_eq!(line(&by_variable, "store"), ("memory", "DIVVY_STORE"));
    let shown = ("http://variable", "DIVVY_WEBHOOK, not shown whole");
    assert_eq!(line(&by_variable, "# webhook"), shown);
    let flags = format!("{words} --store file:b.db --exec run");
    let by_flag = read(&flags, &variables);
    assert_eq!(line(&by_flag, "store"), ("\"file:b.db\"", "--store"));
    assert_eq!(line(&by_flag, "exec"), ("run", "--exec"));
    assert_eq!(line(&by_flag, "# webhook"), ("none", "default"));
}

#[test]
fn a_secret_in_a_file_needs_one_that_not_everybody_can_read_and_is_not_printed() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let store = format!("store: {STORE}\npartitions: 1\n");
    let webhook = "webhook: https://ada:canary@h:7/canary?key=canary\npartitions: 1\n";
    for (text, field, shown) in [
        (store.as_str(), "store", "redis://127.0.0.1:1"),
        (webhook, "webhook", "https://h:7"),
    ] {
        write(at, "worker.yaml", text, 0o604);
        let told = refused(at, "worker --config worker.yaml");
        let expected = format!("worker.yaml: field '{field}': holds a secret");
        assert!(told.contains(&expected), "{told}");
        write(at, "worker.yaml", text, 0o600);
        let printed = printed_in(at, "worker --config worker.yaml", &[]);
        let expected = (shown, "worker.yaml, not shown whole");
        assert_eq!(line(&printed, &format!("# {field}")), expected);
    }
}

/// A command, a file, and words of the one line that refuses it.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "agent",
        "workloadz: {a: 1}",
        "field 'workloadz': there is no such field; did you mean 'workloads'?",
    ),
    (
        "agent",
        "exce: x",
        "field 'exce': there is no such field; did you mean 'exec'?",
    ),
    (
        "worker",
        "colour: red",
        "field 'colour': there is no such field; --print-config",
    ),
    (
        "agent",
        "grace: soon",
        "field 'grace': span 'soon': must be a time",
    ),
    ("agent", "exec: [a]", "field 'exec': must be text"),
    (
        "agent",
        "require_tls: maybe",
        "field 'require_tls': must be true or false",
    ),
    (
        "agent",
        "listen: here",
        "field 'listen': listen 'here': must be an address",
    ),
    (
        "agent",
        "store: ftp://ada:canary@h",
        "field 'store': store '",
    ),
    (
        "worker",
        "replicas: 2\ngroups: [a]",
        "replicas '2': must be 1, 3 or 5",
    ),
    ("agent", "node: a\nworker: b", "by another name: give one"),
    (
        "agent",
        "exec: x\nwebhook: http://h/",
        "field 'webhook': stands beside 'exec'",
    ),
    ("agent", "tls_cert: x", "--tls-key"),
    (
        "agent",
        "workloads: {demo: 0}",
        "workloads 'demo: 0': partitions of a group must be in 1..=",
    ),
    (
        "worker",
        "on_stop: return\nshutdown: leave",
        "field 'on_stop': stands beside 'shutdown'",
    ),
    ("worker", "on_stop: stay", "field 'on_stop'"),
    (
        "worker",
        "shards_per_group: 0\ngroups: [a]",
        "shards_per_group '0': must be in 1..=",
    ),
];

#[test]
fn what_is_wrong_in_a_file_is_one_line_that_names_the_field() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    for (command, text, words) in WRONG {
        write(at, "wrong.yaml", text, 0o600);
        let told = refused(at, &format!("{command} --config wrong.yaml"));
        assert!(told.contains(words), "{text}: {told}");
        assert!(!told.contains("…"), "{told}");
    }
}
