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
    assert!(noted("--previous @before.json", "  has enough without it"));
    assert!(!noted("--previous @before.json", "  not moved"));
    assert!(noted("--workers 3 --partitions 30", "  full"));
}

/// Partitions and nodes of a spreadsheet.
fn spreadsheet() -> Scratch {
    let scratch = Scratch::new();
    scratch.file(
        "nodes.csv",
        "id,weight,zone\nn1,1,a\nn2,1,a\nn3,1,b\nn4,1,b\n",
    );
    let rows: String = PARTITIONS
        .iter()
        .map(|(key, weight)| format!("{key},{weight}\n"))
        .collect();
    scratch.file("parts.csv", format!("key,weight\n{rows}"));
    scratch
}

const PARTITIONS: [(&str, u64); 12] = [
    ("orders:0", 120),
    ("orders:1", 80),
    ("orders:2", 95),
    ("orders:3", 60),
    ("orders:4", 150),
    ("orders:5", 70),
    ("users:0", 40),
    ("users:1", 55),
    ("users:2", 35),
    ("users:3", 90),
    ("mail:0", 25),
    ("mail:1", 30),
];

/// The rows of a ranking: rank, worker, weight, zone, load, score, and the note.
fn rows(text: &str) -> Vec<(Vec<&str>, String)> {
    let table = text.lines().skip_while(|line| !line.starts_with("rank "));
    let rows = table.skip(1).take_while(|line| !line.is_empty());
    rows.map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        (cells[..6].to_vec(), cells[6..].join(" "))
    })
    .collect()
}

#[test]
fn loads_beside_a_note_are_those_that_it_was_decided_by() {
    let scratch = spreadsheet();
    let mut lighter = 0;
    for strategy in [
        "zoned",
        "zoned --band 0.15",
        "weighted-consistent-hash",
        "weighted-consistent-hash --band 0.15",
    ] {
        for (partition, _) in PARTITIONS {
            let line = format!(
                "explain {partition} --strategy {strategy} --workers @nodes.csv --partitions \
                 @parts.csv"
            );
            let text = scratch.run(line.split(' ')).stdout;
            let rows = rows(&text);
            let load = |cells: &[&str]| cells[4].parse::<u64>().expect("a load");
            let owner = rows.iter().find(|(_, note)| note == "owner");
            let (owner, _) = owner.expect("an owner");
            for (cells, note) in &rows {
                if note == "a lighter one was taken" {
                    lighter += 1;
                    assert!(load(cells) > load(owner), "{line}\n{text}");
                }
            }
        }
    }
    assert!(lighter > 0, "{lighter} were passed over for a lighter one");
}

#[test]
fn an_explanation_says_when_a_partition_was_placed_and_what_its_loads_are() {
    let scratch = spreadsheet();
    let line = "explain mail:0 --strategy zoned --workers @nodes.csv --partitions @parts.csv";
    let text = scratch.run(line.split(' ')).done();
    assert_eq!(
        text,
        "\
mail:0 belongs to n2, number 3 of 4, after n4 (would have too much), n3 (a
lighter zone was taken)
It was placed as number 12 of 12, the heaviest first. n4 ranks first, but would
have had 255, and is filled up to 249: the lightest of the lightest zone was n2.
Loads are those just before that, and not the final ones.

rank  worker  weight  zone  load then     score  note
   1  n4           1  b           230  2.281890  would have too much
   2  n3           1  b           215  1.240470  a lighter zone was taken
   3  n2           1  a           140  1.090920  owner
   4  n1           1  a           240  0.875086

-v shows what was hashed, and how scores come about
"
    );
    let document = scratch.run(line.split(' ').chain(["--json"])).json();
    assert_eq!(document["ranking"][0]["load"], 230);
    assert_eq!(document["ranking"][0]["veto"], "over_band");
    assert_eq!(
        document["loads"],
        json!({"by_count": false, "after": false})
    );
    let why = document["why"].as_str().expect("sentences");
    assert!(why.starts_with("It was placed as number 12 of 12"), "{why}");
    assert!(
        document["method"]
            .as_str()
            .is_some_and(|method| method.starts_with("Ranked by ")),
        "{document}"
    );
}

#[test]
fn a_partition_that_stays_says_why_it_does_not_move() {
    let scratch = spreadsheet();
    let line = "assign --strategy zoned --workers @nodes.csv --partitions @parts.csv --csv";
    let today = scratch.run(line.split(' ')).done();
    scratch.file("today.csv", today);
    let explained = |partition: &str| {
        let line = format!(
            "explain {partition} --strategy zoned --workers @nodes.csv --previous @today.csv"
        );
        scratch.run(line.split(' ')).done()
    };
    let text = explained("mail:0");
    assert_eq!(
        text,
        "\
mail:0 belongs to n2, number 3 of 4, after n4 (has enough without it), n3 (has
enough without it)
It stays on n2, which had 165, inside its band of 149 to 276: nothing has to
leave it. That n4 ranks first is no reason to move it: this would cost a move,
and balance does not need it.
Loads are those after the plan.

rank  worker  weight  zone  load after     score  note
   1  n4           1  b            230  2.281890  has enough without it
   2  n3           1  b            215  1.240470  has enough without it
   3  n2           1  a            165  1.090920  owner
   4  n1           1  a            240  0.875086

-v shows what was hashed, and how scores come about
"
    );
    for (partition, _) in PARTITIONS {
        let text = explained(partition);
        assert!(text.contains("\nIt stays on n"), "{text}");
        assert!(!text.contains("not moved"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}

#[test]
fn loads_of_workers_of_several_weights_are_shown_per_weight() {
    let scratch = spreadsheet();
    scratch.file(
        "nodes.csv",
        "id,weight,zone\nn1,1,a\nn2,2,a\nn3,1,b\nn4,4,b\n",
    );
    let line = "explain mail:0 --strategy zoned --workers @nodes.csv --partitions @parts.csv";
    let text = scratch.run(line.split(' ')).done();
    assert!(text.contains("  load then  per weight  "), "{text}");
    let document = scratch.run(line.split(' ').chain(["--json"])).json();
    let first = &document["ranking"][0];
    let level = first["load"].as_f64().expect("a load") / first["weight"].as_f64().expect("one");
    assert!(text.contains(&format!("  {level:.6}  ")), "{text}");
}
