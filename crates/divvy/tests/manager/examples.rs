//! The examples that the documentation names, as users run them: each ends by
//! itself, and says what it has to say.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer,
};

use crate::bed::SOON;
use crate::programs::example;

/// Runs an example until it ends: how, and what it printed and complained of.
/// One that does not end is ended, and fails.
fn run(name: &str, arguments: &[&str]) -> (ExitStatus, String, String) {
    let ended = Command::new("timeout")
        .arg(SOON.as_secs().to_string())
        .arg(example(name))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ended.status, text(ended.stdout), text(ended.stderr))
}

/// The same for one that has to end well; gives what it printed.
fn shown(name: &str, arguments: &[&str]) -> String {
    let (status, printed, complained) = run(name, arguments);
    assert!(status.success(), "{name}: {status}\n{printed}{complained}");
    printed
}

/// Lines that end with these words.
fn ending(printed: &str, words: &str) -> usize {
    printed.lines().filter(|line| line.ends_with(words)).count()
}

#[test]
fn the_quickstart_hands_everything_on_and_ends() {
    let printed = shown("quickstart", &[]);
    assert!(printed.contains("alpha leaves"), "{printed}");
    let count = |words: &str| printed.matches(words).count();
    assert_eq!(count(" starts "), count(" has stopped "), "{printed}");
}

#[test]
fn the_own_strategy_keeps_its_promises_and_tenants_together() {
    let printed = shown("custom_strategy", &[]);
    assert_eq!(printed.matches("  kept: ").count(), 6, "{printed}");
    // Alone, in the cluster, and when one has left: who owns a tenant, owns all of it.
    assert_eq!(printed.matches("acme 6").count(), 3, "{printed}");
    assert_eq!(printed.matches("echo 5").count(), 3, "{printed}");
}

#[test]
fn the_own_source_brings_and_takes_partitions() {
    let printed = shown("custom_source", &[]);
    for name in ["ada", "bob", "eve", "fay", "gus"] {
        let starts = ending(&printed, &format!("starts mailbox:{name}"));
        let stops = ending(&printed, &format!("stops  mailbox:{name}"));
        assert!(starts > 0 && starts == stops, "{name}: {printed}");
    }
    let (_before, after) = printed.split_once("bob's is deleted").unwrap();
    assert_eq!(ending(after, "starts mailbox:bob"), 0, "{printed}");
    // A source that fails stops nothing.
    let (_before, after) = printed.split_once("the directory is gone").unwrap();
    let (gone, _after) = after.split_once("the workers leave").unwrap();
    assert!(gone.contains("No such file"), "{printed}");
    let (stops, starts) = (gone.matches(" stops  "), gone.matches(" starts "));
    assert_eq!(stops.count(), starts.count(), "{printed}");
}

#[test]
fn the_own_store_passes_the_suite_and_carries_a_cluster() {
    let printed = shown("custom_store", &[]);
    assert_eq!(printed.matches("  passed in ").count(), 28, "{printed}");
    assert!(printed.contains("a table in memory: 28 cases"), "{printed}");
    let (_before, after) = printed.split_once("alpha leaves:").unwrap();
    assert_eq!(after.matches(" orders:").count(), 12, "{printed}");
}

#[test]
fn the_own_store_without_its_comparison_is_caught() {
    let (status, printed, complained) = run("custom_store", &["broken"]);
    assert!(!status.success(), "{printed}");
    let found = "Error: a_creation_needs_absence (seed ";
    assert!(complained.starts_with(found), "{complained}");
    // Its content is not what a failure shows of a store.
    assert!(complained.contains("-> a table in memory"), "{complained}");
    assert!(!complained.contains("Mutex"), "{complained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_on_nats_end_by_themselves() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let url = server.url();
    let printed = shown("leader_nats", &[&url]);
    let count = |words: &str| printed.matches(words).count();
    assert_eq!(count(" starts "), count(" has stopped "), "{printed}");
    let printed = shown("manual_nats", &[&url]);
    assert!(printed.ends_with("32 readings were read, each once\n"));
    let printed = shown("orders", &[&url]);
    let books = "600 orders were published, 600 are in the books\n";
    assert!(printed.ends_with(books), "{printed}");
    let printed = shown("fence_nats", &[&url]);
    assert_eq!(ending(&printed, "the old owner writes: false"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_on_redis_end_by_themselves() {
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let url = server.url();
    let printed = shown("manual_redis", &[&url]);
    // One that was done but not acknowledged when its owner left is done again.
    assert!(ending(&printed, ": text before") >= 8, "{printed}");
    assert!(ending(&printed, ": text after") >= 8, "{printed}");
    let printed = shown("fence_redis", &[&url]);
    assert_eq!(ending(&printed, "the old owner writes: false"), 1);
}

/// Every example is listed by the script that runs them, with one line that
/// says what it is, and by the table beside them.
#[test]
fn every_example_has_one_command() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = here.join("../../scripts/example");
    let listed = Command::new(&script).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let runs = std::fs::read_to_string(&script).unwrap();
    let table = std::fs::read_to_string(here.join("examples/README.md")).unwrap();
    let mut names = vec!["python_consumer".to_owned()];
    for entry in here.join("examples").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let command = format!("`scripts/example {name}`");
        assert!(table.contains(&command), "{name} is not in the table");
        let mut lines = listed.lines().map(|line| line.split_whitespace());
        let line = lines.find(|line| line.clone().next() == Some(&name));
        let said = line.map_or(0, Iterator::count);
        assert!(said > 4, "{name} is not listed with what it is: {listed}");
        assert!(runs.contains(&name), "{name} cannot be run");
    }
}
