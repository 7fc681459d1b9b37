//! Mistakes in commands on live clusters: told as those of all other commands.

use crate::scratch::{Scratch, divvy};

/// Exit code, what the one line says after `error: `, and the words typed.
const MISTAKES: [(i32, &str, &str); 24] = [
    (
        2,
        "store 'bogus': must be memory, file:PATH, nats://HOST",
        "worker --store bogus --partitions 3",
    ),
    (
        2,
        "--store is missing: give memory",
        "worker --partitions 3",
    ),
    (2, "--store is missing: give memory", "status"),
    (
        2,
        "--partitions is missing: give a count",
        "worker --store memory",
    ),
    (
        1,
        "--config missing.yaml: No such file or directory\n",
        "worker --store memory --config missing.yaml",
    ),
    (
        1,
        "--partitions: missing.csv: No such file or directory\n",
        "worker --store memory --partitions @missing.csv",
    ),
    (
        1,
        "credentials token 'missing': No such file or directory\n",
        "worker --store nats://127.0.0.1:1 --partitions 3 --token-file missing",
    ),
    (
        2,
        "strategy 'nope': must be one of rendezvous,",
        "worker --store memory --strategy nope",
    ),
    (
        2,
        "preset 'slow': must be one of fast, default, rendezgo\n",
        "agent --preset slow",
    ),
    (
        2,
        "on stop 'x': must be one of leave, return\n",
        "worker --on-stop x",
    ),
    (
        2,
        "run for '5': must be a time such as 500ms, 30s or 1m30s\n",
        "agent --run-for 5",
    ),
    (2, "wait '2h': must be at most 1h\n", "drain w --wait 2h"),
    (
        2,
        "weight 'heavy': must be a number\n",
        "agent --weight heavy",
    ),
    (
        2,
        "replicas '2': must be 1, 3 or 5\n",
        "doctor --replicas 2",
    ),
    (2, "mode 'x': must be leader or lease\n", "status --mode x"),
    (
        2,
        "listen 'x': must be an address and a port",
        "agent --listen x",
    ),
    (
        2,
        "--exec is missing",
        "agent --store memory --workloads a:2",
    ),
    (
        2,
        "workloads 'a': must be NAME:N",
        "agent --store memory --workloads a --exec x",
    ),
    (
        2,
        "units '0': must be a whole number in 1..=1000000\n",
        "workload set a 0",
    ),
    (1, "store 'file:", "workload list --store file:./missing.db"),
    (
        2,
        "kills '0': must be a whole number in 1..=10000\n",
        "bench failover --kills 0",
    ),
    (
        2,
        "clients 'x': must be a whole number in 1..=1000\n",
        "bench stores --clients x",
    ),
    (
        2,
        "without 'x': must be a whole number in 0..=",
        "simulate --seed 1 --without x",
    ),
    (
        2,
        "seed 'x': must be a whole number in 0..=9007199254740991\n",
        "playground --seed x",
    ),
];

#[test]
fn each_names_field_value_and_bound_in_one_line() {
    for (code, message, line) in MISTAKES {
        divvy(line).refused(code, message);
    }
}

#[test]
fn what_does_not_go_together_is_told_with_a_hint() {
    let run = Scratch::new().run(["agent", "--exec", "x", "--webhook", "http://127.0.0.1:1"]);
    let told = "error: --exec <COMMAND> does not go with --webhook <URL>\n\
                hint: divvy agent --help shows what there is\n";
    assert_eq!((run.code, run.stderr.as_str()), (2, told));
}
