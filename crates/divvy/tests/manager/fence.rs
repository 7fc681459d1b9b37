//! The fence in Postgres that the example shows.

#[path = "../../examples/fence_postgres.rs"]
#[allow(dead_code, unreachable_pub)]
mod example;

use divvy_testbed::PostgresServer;
use example::{TABLE, UPDATE, WRITE};

/// How many rows each statement has written, by what `psql` says of it.
fn written(printed: &str) -> Vec<u32> {
    let tags = printed.lines().filter_map(|line| {
        let rest = line
            .strip_prefix("INSERT 0 ")
            .or_else(|| line.strip_prefix("UPDATE "))?;
        rest.parse().ok()
    });
    tags.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_in_postgres_refuses_every_token_below_the_highest() {
    let server = PostgresServer::start().await;
    let high = (1_i64 << 60) + 1;
    let mut script = format!(
        "{TABLE}\nPREPARE write (bigint, text, bigint) AS {WRITE}\n\
         PREPARE change (bigint, text, bigint) AS {UPDATE}\n"
    );
    let mut expected = Vec::new();
    for (statement, token, rows) in [
        // There is no row to change yet.
        ("change", 9, 0),
        ("write", 9, 1),
        ("change", 10, 1),
        ("write", 9, 0),
        ("change", 9, 0),
        ("write", high, 1),
        ("change", high - 1, 0),
        ("write", high - 1, 0),
        ("change", high, 1),
        ("write", i64::MAX, 1),
        ("change", high, 0),
    ] {
        script += &format!("EXECUTE {statement} ({token}, 'a', {token});\n");
        expected.push(rows);
    }
    script += "SELECT amount, token FROM balance;\n";
    let printed = server.run(&script).unwrap();
    assert_eq!(written(&printed), expected, "{printed}");
    let last = format!("{0}|{0}", i64::MAX);
    assert_eq!(printed.lines().last(), Some(&*last), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_example_prints_is_what_postgres_executes() {
    let server = PostgresServer::start().await;
    let program = crate::programs::example("fence_postgres");
    let printed = std::process::Command::new(program).output().unwrap();
    let script = String::from_utf8(printed.stdout).unwrap();
    let done = server.run(&script).unwrap();
    assert_eq!(written(&done), [1, 1, 0, 0], "{done}");
    assert_eq!(done.lines().last(), Some("a|20|1152921504606846977"));
}
