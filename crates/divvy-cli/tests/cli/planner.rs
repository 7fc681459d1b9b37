//! What whoever plans capacity asks of `plan`, `assign` and `explain`.

use serde_json::Value;

use crate::scratch::{Run, Scratch, divvy};

/// A directory with nodes of several sizes in two zones, and partitions.
fn fleet() -> Scratch {
    let scratch = Scratch::new();
    scratch.file(
        "nodes.csv",
        "id,weight,zone\nnode00,8000,a\nnode01,8000,b\nnode02,4000,a\nnode03,16000,b\n",
    );
    let rows: String = (0..40)
        .map(|number| format!("p:{number},{}\n", 10 + number % 7))
        .collect();
    scratch.file("parts.csv", format!("key,weight\n{rows}"));
    scratch
}

fn plan(scratch: &Scratch, change: &str) -> Run {
    let line = "plan --strategy zoned --workers @nodes.csv --partitions @parts.csv";
    scratch.run(format!("{line} {change}").split_whitespace())
}

fn weights(document: &Value) -> Vec<(String, f64)> {
    let workers = document["after"]["workers"].as_array().expect("a list");
    let entry = |worker: &Value| {
        let id = worker["id"].as_str().expect("an id").to_owned();
        (id, worker["weight"].as_f64().expect("a weight"))
    };
    workers.iter().map(entry).collect()
}

#[test]
fn an_added_worker_has_the_weight_that_is_usual_or_the_one_that_is_typed() {
    let scratch = fleet();
    let added =
        |change: &str| weights(&plan(&scratch, &format!("{change} --json")).json())[4..].to_vec();
    let named = |id: &str, weight| (id.to_owned(), weight);
    assert_eq!(
        added("--add 2"),
        [named("node04", 8000.0), named("node05", 8000.0)]
    );
    assert_eq!(added("--add 1=500"), [named("node04", 500.0)]);
    scratch.file("nodes.csv", "id,weight\nn1,4000\nn2,4000\nn6,4000\nn5,0\n");
    assert_eq!(added("--add 1"), [named("n7", 4000.0)]);

    let scratch = fleet();
    let told = |change: &str| plan(&scratch, change).done();
    assert!(
        told("--add 2").contains(
            "\nadded node04 in zone a, node05 in zone b: each of weight 8000, the median of the \
             others (--add N=WEIGHT sets another)\n"
        ),
        "{}",
        told("--add 2")
    );
    assert!(told("--add 1=500").contains("\nadded node04 in zone a: of weight 500\n"));
    assert!(told("--add 9").contains("\nadded 9 workers, node04 to node12: each of weight 8000"));
    plan(&scratch, "--add 1=heavy").refused(2, "worker weight 'heavy': must be a number");
    plan(&scratch, "--add 1=-2").refused(2, "worker weight '-2': must be 0 or in");
}

#[test]
fn a_zone_or_several_may_be_removed() {
    let scratch = fleet();
    let left = |change: &str| {
        let document = plan(&scratch, &format!("{change} --json")).json();
        let ids = weights(&document).into_iter().map(|(id, _)| id);
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left("--remove zone:b"), "node00 node02");
    assert_eq!(left("--remove node00 --remove node01"), "node02 node03");
    assert_eq!(left("--remove zone:b,node00 --add 1"), "node02 node04");
    assert_eq!(left("--remove zone:b --remove node01"), "node00 node02");
    plan(&scratch, "--remove nod03").refused(
        2,
        "worker to remove 'nod03': is not among the 4 workers; did you mean node03?\n",
    );
    plan(&scratch, "--remove zone:B").refused(
        2,
        "zone to remove 'B': has none of the 4 workers; did you mean zone:b?\n",
    );
    plan(&scratch, "--remove zone:europe")
        .refused(2, "zone to remove 'europe': has none of the 4 workers\n");
}

#[test]
fn the_first_line_says_how_much_moves_and_who_will_bear_most() {
    let scratch = fleet();
    let text = plan(&scratch, "--remove zone:b").done();
    let document = plan(&scratch, "--remove zone:b --json").json();
    let moves = document["moves"].as_u64().expect("a count");
    let first = text.lines().next().expect("a line");
    assert!(
        first.starts_with(&format!("{moves} of 40 partitions move (")),
        "{first}"
    );
    let workers = document["after"]["workers"].as_array().expect("a list");
    let fullest = workers.iter().any(|worker| {
        let told = format!(
            "the fullest worker is then {} with a load of {}, {:.2} times its share",
            worker["id"].as_str().expect("an id"),
            worker["load"],
            document["after"]["max_over_mean"]
                .as_f64()
                .expect("a number")
        );
        first.ends_with(&told)
    });
    assert!(fullest, "{first}");
}

#[test]
fn as_few_workers_are_added_as_keep_every_load_at_or_below_a_limit() {
    let scratch = fleet();
    let loads = |change: &str| {
        let document = plan(&scratch, &format!("{change} --json")).json();
        let workers = document["after"]["workers"].as_array().expect("a list");
        let load = |worker: &Value| worker["load"].as_u64().expect("a load");
        workers.iter().map(load).collect::<Vec<u64>>()
    };
    let fitting = loads("--fit 100");
    assert!(fitting.iter().all(|&load| load <= 100), "{fitting:?}");
    let fewer = loads(&format!("--add {}", fitting.len() - 5));
    assert!(fewer.iter().any(|&load| load > 100), "{fewer:?}");
    assert_eq!(loads("--fit 100000").len(), 4, "nobody is added in vain");
    plan(&scratch, "--fit 15").refused(2, "load '15': is too little: p:");
    plan(&scratch, "--fit 0").refused(2, "load '0': must be a whole number of at least 1\n");
}

/// The partitions and nodes of the README.
fn spreadsheet() -> Scratch {
    let scratch = Scratch::new();
    scratch.file(
        "nodes.csv",
        "id,weight,zone\nn1,1,a\nn2,1,a\nn3,1,b\nn4,1,b\n",
    );
    scratch.file(
        "parts.csv",
        "key,weight\norders:0,120\norders:1,80\norders:2,95\norders:3,60\norders:4,150\n\
         orders:5,70\nusers:0,40\nusers:1,55\nusers:2,35\nusers:3,90\nmail:0,25\nmail:1,30\n",
    );
    scratch
}

/// What a plan says before its tables, in one line, and how many workers there
/// are then.
fn fitted(scratch: &Scratch, change: &str) -> (String, usize) {
    let text = plan(scratch, change).done();
    let said = text.split("\n\n").next().expect("a paragraph");
    assert!(
        said.lines().skip(3).all(|line| line.chars().count() <= 80),
        "{said}"
    );
    let workers = weights(&plan(scratch, &format!("{change} --json")).json());
    (said.replace('\n', " "), workers.len())
}

#[test]
fn a_fit_says_what_the_band_costs_and_which_costs_less() {
    let scratch = spreadsheet();
    let (said, workers) = fitted(&scratch, "--fit 160");
    assert_eq!(workers, 7);
    assert!(
        said.ends_with(
            "The band needs 1 of these 3: it leaves a worker alone that has up to 1.30 times its \
             share. With --band 0.15, 2 would be enough, for 5 moves in place of 4."
        ),
        "{said}"
    );
    // That is what a plan with the other band finds.
    assert_eq!(fitted(&scratch, "--fit 160 --band 0.15").1, 6);
    let moves = |change: &str| plan(&scratch, change).json()["moves"].clone();
    assert_eq!(moves("--fit 160 --band 0.15 --json"), 5);
    assert_eq!(moves("--fit 160 --json"), 4);

    let (said, workers) = fitted(&scratch, "--fit 240 --band 0.5");
    assert_eq!(workers, 5);
    assert!(said.contains("Only the band needs this one: "), "{said}");
    assert!(
        said.contains("With --band 0.3, none would be enough"),
        "{said}"
    );
    assert_eq!(fitted(&scratch, "--fit 240 --band 0.3").1, 4);
}

#[test]
fn a_fit_says_where_the_band_is_not_what_costs() {
    let scratch = spreadsheet();
    let (said, _) = fitted(&scratch, "--fit 200");
    assert!(
        said.ends_with(
            "Fewer cannot be enough: all partitions together have 850, more than 4 times 200."
        ),
        "{said}"
    );
    let (said, _) = fitted(&scratch, "--fit 150");
    assert!(
        said.ends_with(
            "No narrower --band that was tried needs fewer. However even loads are, 2 more would \
             be the least: all partitions together have 850."
        ),
        "{said}"
    );
    let (said, _) = fitted(&scratch, "--fit 150 --band 0.15");
    assert!(said.contains("There is no narrower --band."), "{said}");
    let line = "plan --strategy balanced --workers @nodes.csv --partitions @parts.csv --fit 160";
    let text = scratch.run(line.split(' ')).done();
    assert!(text.contains("However even loads are, 2 more"), "{text}");
    assert!(!text.contains("band"), "{text}");
}

#[test]
fn a_fit_says_when_fewer_workers_than_there_are_would_be_enough() {
    let scratch = spreadsheet();
    let (said, workers) = fitted(&scratch, "--fit 300");
    assert_eq!(workers, 4, "--fit removes nobody");
    assert!(
        said.ends_with(
            "Fewer would be enough: 3 workers, of whom the fullest has 290, without n3: --remove \
             n3 shows that plan, too."
        ),
        "{said}"
    );
    let document = plan(&scratch, "--remove n3 --json").json();
    let workers = document["after"]["workers"].as_array().expect("a list");
    let loads = workers.iter().filter_map(|worker| worker["load"].as_u64());
    assert_eq!(loads.max(), Some(290));
    let (said, _) = fitted(&scratch, "--fit 240");
    assert!(!said.contains("Fewer"), "{said}");
    let (said, workers) = fitted(&scratch, "--fit 850 --remove zone:b");
    assert_eq!(workers, 2);
    assert!(
        said.contains("1 worker, of whom the fullest has 850"),
        "{said}"
    );
}

#[test]
fn a_bound_that_says_nothing_is_not_told() {
    let scratch = fleet();
    let line = "plan --workers @nodes.csv --partitions @parts.csv --add 1";
    let text = scratch.run(line.split(' ')).done();
    assert!(!text.contains("needed"), "{text}");
    let line = "plan --workers 3 --partitions 64 --strategy balanced --add 1";
    assert!(divvy(line).done().contains("at least 16 needed"));
}

#[test]
fn assign_says_what_the_band_cannot_hold_as_a_plan_does() {
    let scratch = Scratch::new();
    scratch.file("p.csv", "key,weight\na,9\nb,8\nc,1\n");
    let line = "assign --workers 4 --partitions @p.csv --strategy weighted-consistent-hash";
    let text = scratch.run(line.split(' ')).done();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("outside of the band") || text.contains("too heavy for the band"),
        "{text}"
    );
    let line = "assign --workers 4 --partitions @p.csv --strategy balanced";
    let text = scratch.run(line.split(' ')).done();
    assert!(!text.contains("band"), "{text}");
}

#[test]
fn a_ranking_shows_zone_and_load_where_they_matter_and_always_the_owner() {
    let scratch = fleet();
    let common = "--workers @nodes.csv --partitions @parts.csv";
    let heading = |line: &str| {
        let text = scratch.run(format!("{line} {common}").split(' ')).stdout;
        let heading = text.lines().find(|line| line.contains("rank "));
        heading
            .expect("a table")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        heading("explain p:1 --strategy zoned"),
        "rank worker weight zone load then per weight score note"
    );
    assert_eq!(
        heading("explain -v p:1"),
        "rank worker weight zone hash score note"
    );
    let mut later = 0;
    for number in 0..40 {
        let line = format!("explain p:{number} --strategy zoned --json --top 1 {common}");
        let document = scratch.run(line.split(' ')).json();
        let ranking = document["ranking"].as_array().expect("a list");
        let owner = ranking.iter().any(|r| r["worker"] == document["owner"]);
        assert!(owner, "{document}");
        later += usize::from(ranking.len() == 2);
    }
    assert!(later > 0, "some were passed over");
}

#[test]
fn the_formula_is_for_those_who_ask() {
    let brief = divvy("explain default:17 --workers 3").done();
    assert!(brief.contains("-v shows what was hashed"), "{brief}");
    assert!(!brief.contains("ln(u)"), "{brief}");
    let verbose = divvy("explain -v default:17 --workers 3").stdout;
    assert!(verbose.contains("score = weight / -ln(u)"), "{verbose}");
}
