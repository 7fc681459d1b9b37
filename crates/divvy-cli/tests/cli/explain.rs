//! `divvy explain`.

use serde_json::json;

use crate::scratch::{Scratch, divvy};

const STRATEGIES: [&str; 10] = [
    "balanced",
    "weighted-consistent-hash",
    "weighted-consistent-hash --no-fast-path",
    "zoned",
    "rendezvous",
    "rendezvous --scheme cruster",
    "rendezvous --scheme rendezgo",
    "rendezvous-parallel",
    "consistent-hash",
    "round-robin",
];

#[test]
fn the_owner_is_the_one_that_assign_gives() {
    let scratch = Scratch::new();
    let workers = scratch.file(
        "w.csv",
        "id,weight,healthy\na,1,true\nb,2,true\nc,1,false\nd,0,true\ne,1,true\n",
    );
    for strategy in STRATEGIES {
        let common = format!("--workers {workers} --partitions g:12 --json --strategy {strategy}");
        let common: Vec<&str> = common.split_whitespace().collect();
        let assigned = scratch.run([&["assign"], &common[..]].concat()).json();
        for number in 0..12 {
            let partition = format!("g:{number}");
            let explained = scratch
                .run([&["explain", &partition], &common[..]].concat())
                .json();
            let owner = explained["owner"].as_str().expect("an owner");
            let owned = assigned["assignments"][owner].as_array().expect("a list");
            assert!(
                owned.contains(&json!(partition)),
                "{strategy} {partition} {owner}"
            );
            let ranking = explained["ranking"].as_array().expect("a list");
            assert_eq!(ranking.len(), 5, "{strategy}");
        }
    }
}

#[test]
fn a_partition_alone_is_placed_as_among_all() {
    let by_itself = |name: &&str| name.starts_with("rendezvous") || *name == "consistent-hash";
    for strategy in STRATEGIES.into_iter().filter(by_itself) {
        let line = format!("explain default:17 --workers 3 --json --strategy {strategy}");
        let alone = divvy(&line).json();
        assert_eq!(
            alone,
            divvy(&format!("{line} --partitions 64")).json(),
            "{strategy}"
        );
    }
}

#[test]
fn json_has_the_documented_shape() {
    let explained = divvy("explain default:17 --workers 3 --json").json();
    assert_eq!(explained["partition"], "default:17");
    assert_eq!(explained["owner"], explained["ranking"][0]["worker"]);
    for (index, ranked) in explained["ranking"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        assert_eq!(ranked["rank"], index + 1);
        assert_eq!(ranked["weight"], 1.0);
        assert!(
            ranked["worker"].is_string()
                && ranked["hash"].is_string()
                && ranked["score"].is_number()
        );
    }
}

#[test]
fn the_table_is_a_ranking_that_a_person_can_follow() {
    let run = divvy("explain -v default:17 --workers 3");
    assert!(run.stderr.is_empty(), "{}", run.stderr);
    let text = run.stdout;
    let explained = divvy("explain default:17 --workers 3 --json").json();
    let owner = explained["owner"].as_str().expect("an owner");
    let lines: Vec<&str> = text.lines().collect();
    let sentence = format!("default:17 belongs to {owner}, which ranks first of 3 workers");
    assert_eq!(lines[0], sentence);
    assert_eq!(
        lines[2].split_whitespace().collect::<Vec<_>>(),
        ["rank", "worker", "weight", "hash", "score", "note"]
    );
    let first: Vec<&str> = lines[3].split_whitespace().collect();
    assert_eq!(
        (first[0], first[1], first[2], first[5]),
        ("1", owner, "1", "owner")
    );
    assert_eq!(first[3], explained["ranking"][0]["hash"]);
    let method = explained["method"].as_str().expect("a sentence");
    assert_eq!(lines[7..].join(" "), method);
    assert!(lines.iter().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn those_that_are_passed_over_say_why() {
    let scratch = Scratch::new();
    let workers = scratch.file(
        "w.csv",
        "id,weight,healthy\na,1,false\nb,0,true\nc,1,true\n",
    );
    let text = scratch
        .run(["explain", "default:17", "--workers", &workers])
        .done();
    assert!(text.starts_with("default:17 belongs to c, "), "{text}");
    let noted = |id: &str, note: &str| {
        let found = text
            .lines()
            .any(|line| line.contains(&format!("  {id} ")) && line.ends_with(note));
        assert!(found, "{id} {note}: {text}");
    };
    noted("a", "unhealthy");
    noted("b", "weight 0");
    noted("c", "owner");
}

#[test]
fn a_long_ranking_is_cut_and_says_so() {
    let rows = |text: &str| {
        text.lines()
            .filter(|line| line.contains("  worker-"))
            .count()
    };
    let text = divvy("explain default:17 --workers 100").done();
    assert_eq!(rows(&text), 10);
    assert!(
        text.contains("90 of 100 workers left out: --top 100 or --json shows all"),
        "{text}"
    );
    assert_eq!(
        rows(&divvy("explain default:17 --workers 100 --top 3").done()),
        3
    );
    let all = divvy("explain default:17 --workers 100 --top 100").done();
    assert_eq!(rows(&all), 100);
    assert!(!all.contains("left out"));
    let ranked = |line: &str| {
        divvy(line).json()["ranking"]
            .as_array()
            .expect("a list")
            .len()
    };
    assert_eq!(ranked("explain default:17 --workers 100 --json"), 100);
    assert_eq!(ranked("explain default:17 --workers 100 --json --top 3"), 3);
}

#[test]
fn the_owner_is_shown_however_many_are_passed_over_before_it() {
    let scratch = Scratch::new();
    let sick: String = (0..50)
        .map(|number| format!("sick-{number},false\n"))
        .collect();
    let workers = scratch.file("w.csv", format!("id,healthy\n{sick}well,true\n"));
    for number in 0..5 {
        let partition = format!("default:{number}");
        let text = scratch
            .run(["explain", &partition, "--workers", &workers, "--top", "1"])
            .done();
        let owner = text
            .lines()
            .any(|line| line.contains("  well ") && line.ends_with("owner"));
        assert!(owner, "{text}");
    }
}

#[test]
fn a_strategy_that_places_by_all_partitions_needs_them() {
    let scratch = Scratch::new();
    let before = divvy("assign --strategy balanced --workers 3 --partitions 12 --json").done();
    scratch.file("before.json", before);
    for strategy in [
        "balanced",
        "weighted-consistent-hash",
        "zoned",
        "round-robin",
    ] {
        let line = format!("explain default:1 --workers 3 --strategy {strategy}");
        let message = format!(
            "strategy '{strategy}': places a partition by all of them, give --partitions or \
             --previous\n"
        );
        divvy(&line).refused(2, &message);
        divvy(&format!("{line} --partitions 12")).done();
        let line = format!("explain default:1 --strategy {strategy} --previous @before.json");
        let text = scratch.run(line.split(' ')).done();
        assert!(text.starts_with("default:1"), "{text}");
    }
    let line = "explain default:99 --strategy balanced --previous @before.json";
    let run = scratch.run(line.split(' '));
    run.refused(2, "partition 'default:99': is not among the 12 partitions");
}

#[test]
fn the_note_says_why_a_preferred_worker_was_passed_over() {
    let scratch = Scratch::new();
    let all: Vec<String> = (0..30)
        .map(|number| format!("\"default:{number}\""))
        .collect();
    let (half, rest) = all.split_at(15);
    let before = format!(
        r#"{{"format": 1, "assignments": {{"a": [{}], "b": [{}]}}}}"#,
        half.join(","),
        rest.join(",")
    );
    scratch.file("before.json", before);
    let noted = |line: &str, note: &str| {
        (0..30).any(|number| {
            let line = format!("explain default:{number} --strategy balanced {line}");
            let text = scratch.run(line.split(' ')).done();
            text.lines().any(|line| line.ends_with(note))
        })
    };
    assert!(noted("--previous @before.json", "  not moved"));
    assert!(noted("--workers 3 --partitions 30", "  full"));
}
