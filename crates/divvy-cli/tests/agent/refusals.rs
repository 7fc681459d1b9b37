//! What an agent does not take: one clear line, and an exit code that says so.

use assert_cmd::Command;

fn refused(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
        .arg("agent")
        .args(arguments)
        .env_remove("DIVVY_STORE")
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), told)
}

/// Arguments, the exit code, and words of the one line that tells why.
const REFUSED: &[(&str, i32, &str)] = &[
    (
        "--store memory --workloads demo:0 --exec x",
        2,
        "workloads 'demo:0': workload 'demo' is refused",
    ),
    ("--store memory --workloads demo --exec x", 2, "NAME:N"),
    (
        "--store memory --workloads a:1,a:2 --exec x",
        2,
        "named once",
    ),
    ("--store memory --exec x", 2, "workloads"),
    ("--store memory --workloads demo:1", 2, "--exec is missing"),
    ("--workloads demo:1 --exec x", 2, "--store is missing"),
    ("--store foo:1 --workloads demo:1 --exec x", 2, "foo:1"),
    (
        "--store nats://127.0.0.1:1 --workloads d:1 --exec x",
        2,
        "leases",
    ),
    (
        "--store memory --workloads d:1 --exec x --weight -1",
        2,
        "weight '-1'",
    ),
    (
        "--store memory --workloads d:1 --exec 'x",
        2,
        "never closed",
    ),
    (
        "--store memory --workloads d:1 --exec x --node a:b",
        2,
        "must not contain ':'",
    ),
    ("--store memory --exec x --config /dev/zero", 1, "bytes"),
    (
        "--store memory --workloads d:1 --exec run-{nosuch}",
        2,
        "{nosuch} is filled in with nothing: there are {partition}, {workload}, {unit}, {token}",
    ),
];

#[test]
fn bad_input_is_one_line_that_names_field_value_and_bound() {
    for (arguments, code, words) in REFUSED {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let (ended, told) = refused(&arguments);
        assert!(told.contains(words), "{arguments:?}: {told}");
        assert_eq!(
            (ended, told.lines().count()),
            (*code, 1),
            "{arguments:?}: {told}"
        );
    }
}

#[test]
fn a_bad_field_of_a_file_is_named() {
    let directory = tempfile::TempDir::new().unwrap();
    let config = directory.path().join("agent.yaml");
    for (text, code, words) in [
        (
            "lease_ttl: 1s\nrenew_interval: 1s\nworkloads: {a: 1}\n",
            2,
            "renew_interval '1s'",
        ),
        ("lease_tll: 1s\n", 1, "lease_tll"),
        ("lease_ttl: soon\n", 1, "field 'lease_ttl'"),
        ("workloads: {demo: none}\n", 1, "field 'workloads.demo'"),
        ("[1s, 2s]\n", 1, "not a list"),
        ("preset: fast\na: [\n", 1, "line "),
    ] {
        std::fs::write(&config, text).unwrap();
        let path = config.to_str().unwrap();
        let (ended, told) = refused(&["--store", "memory", "--exec", "x", "--config", path]);
        assert!(told.contains(words), "{text}: {told}");
        assert_eq!(ended, code, "{text}: {told}");
    }
}

#[test]
fn workloads_of_no_store_are_refused_and_looking_makes_none() {
    let directory = tempfile::TempDir::new().unwrap();
    let workload = |arguments: &str| {
        let output = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
            .arg("workload")
            .args(arguments.split(' '))
            .current_dir(directory.path())
            .env_remove("DIVVY_STORE")
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), told)
    };
    let (code, told) = workload("set demo 4 --store memory");
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("ends with one process"), "{told}");
    for line in ["list", "remove demo"] {
        let (code, told) = workload(&format!("{line} --store file:new.db"));
        assert_eq!(code, 1, "{told}");
        assert!(told.contains("is not there"), "{told}");
    }
    let made = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(made, 0, "nothing is made by looking");
}

#[test]
fn a_store_that_is_not_reached_is_tried_again_and_says_so() {
    let (code, told) = refused(&[
        "--store",
        "redis://127.0.0.1:1",
        "--workloads",
        "demo:1",
        "--exec",
        "sleep 1",
        "--run-for",
        "8s",
    ]);
    assert!(told.contains("trying again in"), "{told}");
    assert!(told.contains("until startup_timeout ("), "{told}");
    assert!(!told.contains("connection to the store lost"), "{told}");
    let tries = told.lines().filter(|line| line.contains("trying again"));
    assert!(tries.count() <= 4, "once every few seconds at most: {told}");
    assert_eq!(code, 1, "{told}");
}
