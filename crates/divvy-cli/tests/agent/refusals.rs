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
        "--store memory --workloads demo:0 --exec true",
        2,
        "workloads 'demo:0': workload 'demo' is refused",
    ),
    ("--store memory --workloads demo --exec true", 2, "NAME:N"),
    (
        "--store memory --workloads a:1,a:2 --exec true",
        2,
        "named once",
    ),
    (
        "--store memory --exec true",
        2,
        "--workloads is missing: such as --workloads orders:8, or dynamic",
    ),
    ("--store memory --workloads demo:1", 2, "--exec is missing"),
    (
        "--workloads demo:1 --exec true",
        2,
        "--store is missing: give redis://HOST:PORT, file:PATH or memory, or set DIVVY_STORE",
    ),
    (
        "--run-for 1s",
        2,
        "--workloads is missing: such as --workloads orders:8, or dynamic for those of the store; \
         --exec is missing: give the command to run for each partition, such as --exec 'consume \
         {workload} {unit} {token}', or --webhook; --store is missing: give redis://HOST:PORT",
    ),
    (
        "--store memory --workloads d:1 --exec /nowhere/at-all",
        2,
        "exec '/nowhere/at-all': is no program that can be run",
    ),
    (
        "--store memory --workloads d:1 --exec no-such-program",
        2,
        "exec 'no-such-program': is no program that can be run",
    ),
    ("--store foo:1 --workloads demo:1 --exec true", 2, "foo:1"),
    (
        "--store nats://127.0.0.1:1 --workloads d:1 --exec true",
        2,
        "leases",
    ),
    (
        "--store memory --workloads d:1 --exec true --weight -1",
        2,
        "weight '-1'",
    ),
    (
        "--store memory --workloads d:1 --exec 'x",
        2,
        "never closed",
    ),
    (
        "--store memory --workloads d:1 --exec true --node a:b",
        2,
        "must not contain ':'",
    ),
    ("--store memory --exec true --config /dev/zero", 1, "bytes"),
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
        (
            "workloads: {demo: none}\n",
            1,
            "field 'workloads.demo': must be a number of units, or {units: N, max_per_worker: N}",
        ),
        (
            "workloads: {demo: {units: 3, max: 1}}\n",
            1,
            "field 'workloads.demo': there is no field 'max' in it",
        ),
        (
            "weight: heavy\n",
            1,
            "field 'weight': must be a number, and not 'heavy'",
        ),
        (
            "max_partitions: -1\n",
            1,
            "field 'max_partitions': must be a whole number from 0 on, and not '-1'",
        ),
        (
            "preset: fsat\n",
            1,
            "field 'preset': must be one of fast, default, rendezgo, and not 'fsat'",
        ),
        (
            "lease_ttl: 1ms\nworkloads: {a: 1}\n",
            2,
            "lease_ttl '1ms': must be at least 300ms",
        ),
        ("[1s, 2s]\n", 1, "not a list"),
        ("preset: fast\na: [\n", 1, "line "),
    ] {
        std::fs::write(&config, text).unwrap();
        let path = config.to_str().unwrap();
        let (ended, told) = refused(&["--store", "memory", "--exec", "true", "--config", path]);
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
    let (code, told) = workload("set demo x --store file:new.db");
    assert_eq!(code, 2, "{told}");
    assert!(
        told.contains("units 'x': must be a whole number in 1..=1000000"),
        "{told}"
    );
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

#[test]
fn a_password_that_everybody_can_read_is_warned_of() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("password");
    std::fs::write(&path, "secret").unwrap();
    for (mode, is_warned) in [(0o644, true), (0o640, false)] {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&path, permissions).unwrap();
        let output = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
            .args(["status", "--store", "redis://127.0.0.1:1", "--user", "x"])
            .arg("--password-file")
            .arg(&path)
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let words = "everybody on this machine may read or change it";
        assert_eq!(told.contains(words), is_warned, "{mode:o}: {told}");
    }
}
