//! Mistakes: one line that names the field, the value and the bound; the exit
//! code says whose mistake it was.

use crate::scratch::{Scratch, divvy};

/// Exit code, what the one line says after `error: `, and the words typed.
const MISTAKES: [(i32, &str, &str); 59] = [
    (
        2,
        "--workers is missing: give a count, ids such as a,b=2, or @FILE, or --previous, whose \
         workers are taken; --partitions is missing: give a count, groups",
        "assign",
    ),
    (
        2,
        "worker weight '-1': must be 0 or in",
        "assign --workers a=-1",
    ),
    (2, "worker id 'a': is given twice", "assign --workers a,a"),
    (
        1,
        "--partitions @missing.csv: No such file or directory\n",
        "assign --partitions @missing.csv",
    ),
    (
        2,
        "--partitions is missing: give a count, groups",
        "assign --workers 3",
    ),
    (
        2,
        "--workers is missing: give a count, ids",
        "explain default:1",
    ),
    (
        1,
        "no workers: at least 1 is needed, 0 were given",
        "assign --workers 0 --partitions 5",
    ),
    (
        1,
        "no workers: at least 1 is needed, 0 were given",
        "assign --workers 0 --partitions 0",
    ),
    (
        1,
        "no workers: none of 2 can take partitions",
        "assign --workers a=0,b=0 --partitions 5",
    ),
    (
        1,
        "--partitions @missing.csv: No such file or directory\n",
        "assign --workers 3 --partitions @missing.csv",
    ),
    (
        1,
        "--previous @missing.json: No such file or directory\n",
        "assign --workers 3 --partitions 3 --previous @missing.json",
    ),
    (
        1,
        "plot '/nowhere/load.svg': No such file or directory\n",
        "assign --workers 3 --partitions 5 --plot /nowhere/load.svg",
    ),
    (
        2,
        "plot 'load.png': the name must end in .svg",
        "assign --workers 3 --partitions 5 --plot load.png",
    ),
    (
        2,
        "worker weight '-1': must be 0 or in 0.000001..=1000000",
        "assign --workers a=-1 --partitions 5",
    ),
    (
        2,
        "worker weight 'NaN': must be 0 or in",
        "assign --workers a=nan --partitions 5",
    ),
    (
        2,
        "worker weight 'inf': must be 0 or in",
        "assign --workers a=1e999 --partitions 5",
    ),
    (
        2,
        "worker weight 'x': must be a number",
        "assign --workers a=x --partitions 5",
    ),
    (
        2,
        "worker weight '': must be a number",
        "assign --workers a= --partitions 5",
    ),
    (
        2,
        "worker id 'a': is given twice",
        "assign --workers a,a --partitions 5",
    ),
    (
        2,
        "worker id '': must not be empty",
        "assign --workers a,,b --partitions 5",
    ),
    (
        2,
        "worker id '': must not be empty",
        "assign --workers =2 --partitions 5",
    ),
    (
        2,
        "workers '1,000': must be a count without separators, ids such as a,b=2, or @FILE\n",
        "assign --workers 1,000 --partitions 5",
    ),
    (
        2,
        "workers '1_000': must be a count without separators",
        "assign --workers 1_000 --partitions 5",
    ),
    (
        2,
        "workers '1.000': must be a count without separators",
        "assign --workers 1.000 --partitions 5",
    ),
    (
        2,
        "workers '1'000': must be a count without separators",
        "assign --workers 1'000 --partitions 5",
    ),
    (
        2,
        "workers '1,000': must be a count without separators",
        "plan --workers 3 --to 1,000 --partitions 5",
    ),
    (
        2,
        "worker 'a=1=2': must be ID or ID=WEIGHT",
        "assign --workers a=1=2 --partitions 5",
    ),
    (
        2,
        "worker count '-3': must be a whole number in 0..=100000",
        "assign --workers -3 --partitions 5",
    ),
    (
        2,
        "worker count '3.5': must be a whole number in 0..=100000",
        "assign --workers 3.5 --partitions 5",
    ),
    (
        2,
        "worker count '100001': must be a whole number in 0..=100000",
        "assign --workers 100001 --partitions 5",
    ),
    (
        2,
        "worker count '99999999999': must be a whole number in 0..=100000",
        "assign --workers 99999999999 --partitions 5",
    ),
    (
        2,
        "workers '@w.txt': the name of a file must end in .csv, .tsv, .json, .yaml or .yml",
        "assign --workers @w.txt --partitions 5",
    ),
    (
        2,
        "workers '@': the name of a file must end in",
        "assign --workers @ --partitions 5",
    ),
    (
        2,
        "partition count '99999999999999999999': must be a whole number in 0..=16777216",
        "assign --workers 3 --partitions 99999999999999999999",
    ),
    (
        2,
        "partition count '-5': must be a whole number in 0..=16777216",
        "assign --workers 3 --partitions -5",
    ),
    (
        2,
        "partition count '99999999999': must be a whole number in 0..=16777216",
        "assign --workers 3 --partitions g:99999999999",
    ),
    (
        2,
        "partition count '16777217': at most 16777216 are allowed",
        "assign --workers 3 --partitions a:1,b:16777216",
    ),
    (
        2,
        "partitions 'orders': must be a count, groups such as",
        "assign --workers 3 --partitions orders",
    ),
    (
        2,
        "partitions '': must be a count, groups such as",
        "assign --workers 3 --partitions a:1,",
    ),
    (
        2,
        "partition segment '': must not be empty",
        "assign --workers 3 --partitions :5",
    ),
    (
        2,
        "partition 'a:0': is given twice",
        "assign --workers 3 --partitions a:1,a:1",
    ),
    (
        2,
        "strategy 'nope': must be one of rendezvous,",
        "assign --strategy nope --workers 3 --partitions 5",
    ),
    (
        2,
        "scheme 'nope': must be one of native, cruster, rendezgo",
        "assign --scheme nope --workers 3 --partitions 5",
    ),
    (
        2,
        "option '--virtual-nodes': is not one of strategy rendezvous",
        "assign --virtual-nodes 5 --workers 3 --partitions 5",
    ),
    (
        2,
        "option '--cluster': is not one of",
        "assign --cluster c --workers 3 --partitions 5",
    ),
    (
        2,
        "virtual nodes '-1': must be a whole number in 1..=10000",
        "assign --virtual-nodes -1 --workers 3 --partitions 5",
    ),
    (
        2,
        "seed '18446744073709551616': must be a whole number in 0..=18446744073709551615",
        "assign --seed 18446744073709551616 --workers 3 --partitions 5",
    ),
    (
        2,
        "worker weight '1.5': must be whole",
        "assign --scheme cruster --workers a=1.5 --partitions 5",
    ),
    (
        2,
        "previous 'before.json': must be @FILE",
        "assign --workers 3 --partitions 5 --previous before.json",
    ),
    (
        2,
        "previous 'before.json': must be @FILE, a file with what assign --json or plan --json \
         printed, or with who owns what; did you mean @before.json?\n",
        "assign --workers 3 --partitions 5 --previous before.json",
    ),
    (
        2,
        "worker 'nodes.csv': did you mean @nodes.csv?\n",
        "assign --workers nodes.csv --partitions 5",
    ),
    (
        2,
        "partitions 'shards.yaml': did you mean @shards.yaml?\n",
        "plan --workers 3 --add 1 --partitions shards.yaml",
    ),
    (
        2,
        "partition 'default:9': is not among the 5 partitions",
        "explain default:9 --workers 3 --partitions 5",
    ),
    (
        2,
        "partition segment '': must not be empty",
        "explain a::b --workers 3",
    ),
    (
        2,
        "strategy 'round-robin': places a partition by all of them, give --partitions or --previous",
        "explain default:1 --workers 3 --strategy round-robin",
    ),
    (
        2,
        "top '0': must be a whole number of at least 1",
        "explain default:1 --workers 3 --top 0",
    ),
    (
        2,
        "key scheme 'md5': must be one of xxh3, djb2-js, djb2-32, djb2-64",
        "key a --scheme md5",
    ),
    (
        2,
        "partition count '0': must be in 1..=16777216",
        "key a --partitions 0",
    ),
    (
        2,
        "partition segment 'a:b': must not contain ':'",
        "key a --group a:b",
    ),
];

#[test]
fn each_has_one_line_and_the_right_exit_code() {
    for (code, message, line) in MISTAKES {
        divvy(line).refused(code, message);
    }
}

#[test]
fn what_no_shell_word_can_say_is_refused_the_same_way() {
    let long = "x".repeat(100_000);
    let cases: [&[&str]; 6] = [
        &["assign", "--workers", "", "--partitions", "5"],
        &["assign", "--workers", "a\nb", "--partitions", "5"],
        &["assign", "--workers", "\u{1b}[31mred", "--partitions", "5"],
        &["assign", "--workers", &long, "--partitions", "5"],
        &["explain", &long, "--workers", "3"],
        &["key", "a", "--partitions", "ten\npartitions"],
    ];
    for args in cases {
        let run = Scratch::new().run(args);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(
            run.stderr.starts_with("error: ") && run.stderr.len() < 400,
            "{}",
            run.stderr
        );
        assert!(!run.stderr.contains('\u{1b}'), "{:?}", run.stderr);
    }
}

#[test]
fn an_unknown_flag_or_a_missing_argument_is_wrong_usage() {
    for line in [
        "assign --wrokers 3",
        "key",
        "explain",
        "nonsense",
        "--nonsense",
    ] {
        let run = divvy(line);
        assert_eq!(run.code, 2, "{line}");
        let told: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(told.len(), 2, "{line}: {}", run.stderr);
        assert!(told[0].starts_with("error: "), "{line}: {}", run.stderr);
        assert!(told[1].starts_with("hint: "), "{line}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{line}");
    }
}

#[test]
fn what_only_nats_has_is_refused_where_leases_are_needed() {
    for flag in [
        "--bucket b",
        "--replicas 3",
        "--token-file t",
        "--nkey-file n",
        "--creds-file c",
    ] {
        for line in ["agent --store memory", "workload list --store file:./a.db"] {
            let run = divvy(&format!("{line} {flag}"));
            let name = flag.split(' ').next().unwrap_or_default();
            let rule = "is for NATS, which has no leases; agents use memory, file and redis stores";
            let told = format!("error: argument '{name}': {rule}\nhint: divvy ");
            assert_eq!(run.code, 2, "{line} {flag}");
            assert!(run.stderr.starts_with(&told), "{}", run.stderr);
        }
    }
    for command in ["agent", "workload list", "workload set", "workload remove"] {
        let help = divvy(&format!("{command} --help")).done();
        assert!(!help.contains("NATS"), "{command}: {help}");
    }
    let scratch = Scratch::new();
    scratch.file("agent.yaml", "bucket: b\n");
    let run = scratch.run(["agent", "--config", "agent.yaml"]);
    run.refused(
        1,
        "--config agent.yaml: field 'bucket': there is no such field",
    );
}

#[test]
fn flags_of_a_store_need_one() {
    for flag in [
        "--cluster c",
        "--interval 1s",
        "--user ada",
        "--bucket b",
        "--require-tls",
    ] {
        let name = flag.split(' ').next().unwrap_or_default();
        let told = format!("{name} goes with --store, or with --observe\n");
        divvy(&format!("playground {flag}")).refused(2, &told);
        divvy(&format!("playground --list {flag}")).refused(2, &told);
    }
}

#[test]
fn ids_that_only_look_like_counts_are_ids() {
    for ids in [
        "10.0.0.1,10.0.0.2",
        "192.168.100.200",
        "1=2,2=3",
        "a,1",
        "n_100",
    ] {
        divvy(&format!("assign --workers {ids} --partitions 5")).done();
    }
    let scratch = Scratch::new();
    let file = scratch.file("w.csv", "id\na=1\n000\n1\n");
    let args = ["assign", "--workers", &file, "--partitions", "5", "--list"];
    assert!(scratch.run(args).done().contains("a=1 ("));
}

#[test]
fn no_message_is_longer_than_a_log_can_bear() {
    let scratch = Scratch::new();
    let long = "x".repeat(120_000);
    scratch.file("cell.csv", format!("id\na,{long}\n"));
    scratch.file("column.csv", format!("{long}\na\n"));
    scratch.file("text.json", format!("\"{long}\""));
    scratch.file("field.json", format!("[{{\"{long}\": 1}}]"));
    scratch.file("field.yaml", format!("- ? {long}\n  : 1\n"));
    scratch.file("before.json", format!("\"{long}\""));
    let file = format!("@{long}.csv");
    let svg = format!("{long}.svg");
    let flag = format!("--{long}");
    let assign = |workers: &'static str| vec!["assign", "--partitions", "5", "--workers", workers];
    let cases = [
        (assign("@cell.csv"), "the header has no column for it\n"),
        (assign("@column.csv"), "the first line must be id,weight"),
        (assign("@text.json"), "expected a list at line 1"),
        (assign("@field.json"), "known are id, weight"),
        (assign("@field.yaml"), "known are id, weight"),
        (vec!["assign", "--previous", "@before.json"], "--previous"),
        (vec!["assign", "--workers", &file], "File name too long\n"),
        (
            vec![
                "assign",
                "--workers",
                "3",
                "--partitions",
                "5",
                "--plot",
                &svg,
            ],
            "File name too long\n",
        ),
        (vec!["-v", "key", &flag], "hint: divvy key --help"),
        (vec![long.as_str()], "hint: divvy --help"),
    ];
    for (args, expected) in cases {
        let run = scratch.run(&args);
        let start = &args[..2.min(args.len())];
        assert!(run.code == 1 || run.code == 2, "{start:.100?}");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        assert!(run.stderr.len() < 2200, "{}", run.stderr.len());
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn a_directory_is_not_a_file() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("w.csv")).expect("a directory for the test");
    let run = scratch.run(["assign", "--workers", "@w.csv", "--partitions", "5"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (1, "error: --workers @w.csv: is a directory\n")
    );
}

#[test]
fn a_picture_that_cannot_be_drawn_leaves_no_half_result() {
    let run = divvy("assign --workers 3 --partitions 5 --json --plot /nowhere/load.svg");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
}
