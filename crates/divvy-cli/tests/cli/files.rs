//! Files of workers and partitions: CSV, JSON and YAML.

use std::fs::File;

use serde_json::{Value, json};

use crate::scratch::Scratch;

/// What `assign` makes of a file of workers.
pub(crate) fn workers(name: &str, content: impl AsRef<[u8]>) -> Value {
    let scratch = Scratch::new();
    let file = scratch.file(name, content);
    let document = scratch
        .run(["assign", "--workers", &file, "--partitions", "20", "--json"])
        .json();
    let entries = document["workers"].as_array().expect("a list").iter();
    entries
        .map(|worker| {
            json!([
                worker["id"],
                worker["weight"],
                worker["zone"],
                worker["health"]
            ])
        })
        .collect()
}

/// What `assign` says of a file of workers that it refuses.
pub(crate) fn refused(name: &str, content: impl AsRef<[u8]>) -> String {
    let scratch = Scratch::new();
    let file = scratch.file(name, content);
    let run = scratch.run(["assign", "--workers", &file, "--partitions", "20"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let told = run
        .stderr
        .strip_prefix(&format!("error: --workers @{name}: "));
    told.unwrap_or_else(|| panic!("{}", run.stderr))
        .trim_end()
        .to_owned()
}

#[test]
fn all_forms_say_the_same() {
    let expected = json!([
        ["007", 1.0, "eu-1", null],
        ["b", 2.5, null, "unhealthy"],
        ["c", 1.0, null, null]
    ]);
    let forms = [
        (
            "w.csv",
            "id,weight,zone,healthy\n007,,eu-1,true\nb,2.5,,false\nc\n",
        ),
        (
            "w.csv",
            "healthy,zone,weight,id\nyes,eu-1,1,007\nno,,2.5,b\n,,,c\n",
        ),
        (
            "W.CSV",
            "\u{feff}ID;Weight;Zone;Healthy\r\n 007 ; 1 ; eu-1 ; 1 \r\n\r\nb;2.5;;0\r\n;;;\r\nc;;;\r\n",
        ),
        (
            "w.csv",
            "\"id\",\"weight\",\"zone\",\"healthy\",\n\"007\",1,\"eu-1\",TRUE,\n\"b\",2.5,,FALSE,\n\"c\",,,,\n",
        ),
        (
            "w.json",
            r#"[{"id": "007", "zone": "eu-1"}, {"id": "b", "weight": 2.5, "healthy": false, "zone": null}, "c"]"#,
        ),
        (
            "w.json",
            "\u{feff}[{\"id\": \"007\", \"zone\": \"eu-1\", \"weight\": \"1\"}, {\"weight\": 25e-1, \"healthy\": \"no\", \"id\": \"b\"}, {\"id\": \"c\"}]",
        ),
        (
            "w.yaml",
            "- id: 007\n  zone: eu-1\n- id: b\n  weight: 2.5\n  healthy: false\n- c\n",
        ),
        (
            "w.yml",
            "# workers\n- {id: \"007\", zone: eu-1, weight: }\n- {healthy: no, weight: 2.5, id: b}\n- \"c\"\n",
        ),
    ];
    for (name, content) in forms {
        assert_eq!(workers(name, content), expected, "{content}");
    }
}

#[test]
fn partitions_have_keys_and_weights() {
    let forms = [
        (
            "p.csv",
            "key,weight\ntool001:chamber1,150\ntool001:chamber2,1\n",
        ),
        (
            "p.csv",
            "weight;key\n150;tool001:chamber1\n1;tool001:chamber2\n",
        ),
        (
            "p.json",
            r#"[{"key": "tool001:chamber1", "weight": 150}, {"key": "tool001:chamber2", "weight": 1.0}]"#,
        ),
        (
            "p.yaml",
            "- key: tool001:chamber1\n  weight: 150\n- {key: 'tool001:chamber2', weight: 1}\n",
        ),
    ];
    for (name, content) in forms {
        let scratch = Scratch::new();
        let file = scratch.file(name, content);
        let args = ["assign", "--workers", "only", "--partitions", &file];
        let document = scratch.run(args.into_iter().chain(["--json"])).json();
        assert_eq!(
            document["assignments"],
            json!({"only": ["tool001:chamber1", "tool001:chamber2"]})
        );
        assert_eq!(document["workers"][0]["load"], 151, "{content}");
        let text = scratch.run(args).done();
        let heading: Vec<&str> = text
            .lines()
            .next()
            .expect("a heading")
            .split_whitespace()
            .collect();
        assert_eq!(
            heading[..4],
            ["worker", "partitions", "load", "share"],
            "{text}"
        );
    }
}

#[test]
fn zones_and_health_show_in_the_table() {
    let scratch = Scratch::new();
    let file = scratch.file("w.csv", "id,zone,healthy\na,eu-1,true\nb,,false\n");
    let text = scratch
        .run(["assign", "--workers", &file, "--partitions", "20"])
        .done();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..4], ["worker", "zone", "partitions", "share"]);
    assert_eq!(rows[1][..4], ["a", "eu-1", "20", "100.0%"]);
    assert_eq!(rows[2], ["b", "0", "0.0%", "unhealthy"]);
}

#[test]
fn a_wrong_row_names_line_field_and_value() {
    let cases = [
        (
            "id,weight\na,1\n\nb,heavy\n",
            "line 4: weight 'heavy': must be a number such as 1.5",
        ),
        (
            "\u{feff}\r\n \r\nid,weight\r\n\r\na,1\r\n\r\n\r\nb,heavy",
            "line 8: weight 'heavy': must be a number such as 1.5",
        ),
        (
            "id;weight\na;1,5\n",
            "line 2: weight '1,5': must be a number such as 1.5",
        ),
        (
            "id,weight\na,-1\n",
            "line 2: worker weight '-1': must be 0 or in 0.000001..=1000000 (worker 'a')",
        ),
        (
            "id,healthy\na,maybe\n",
            "line 2: healthy 'maybe': must be true or false",
        ),
        (
            "id,max_partitions\na,0\n",
            "line 2: max_partitions '0': must be a whole number in 1..=4294967295",
        ),
        ("id,weight\na,1\n,2\n", "line 3: id '': must not be empty"),
        (
            "id,weight\na,1,extra\n",
            "line 2: cell 3 'extra': the header has no column for it",
        ),
        (
            "a\nb\n",
            "line 1: the header has no column 'id': does the file have a header? the first line must be id,weight,zone,healthy,max_partitions",
        ),
        (
            "weight\n1\n",
            "line 1: the header has no column 'id': does the file have a header? the first line must be id,weight,zone,healthy,max_partitions",
        ),
        (
            "id;weight\na;1.000\n",
            "line 2: weight '1.000': could be 1 or 1000: write it as one of them",
        ),
        ("id,weight\n\"a,1\nb,2\n", "line 2: a quote is never closed"),
        (
            "id,ID\na,b\n",
            "line 1: column 'ID' stands twice in the header",
        ),
        (
            "id\na\nb\na\n",
            "line 4: worker id 'a': is given twice, first in line 2",
        ),
        (
            "\n",
            "is empty, a header with id, weight, zone, healthy, max_partitions is needed",
        ),
    ];
    for (content, expected) in cases {
        assert_eq!(refused("w.csv", content), expected, "{content}");
    }
}

#[test]
fn a_wrong_entry_names_its_number_field_and_value() {
    let cases = [
        (
            "w.json",
            r#"["a", {"id": "b", "weight": "x"}]"#,
            "entry 2: weight 'x': must be a number such as 1.5",
        ),
        (
            "w.json",
            r#"[{"id": "b", "wieght": 1}]"#,
            "entry 1: field 'wieght': is unknown, known are id, weight, zone, healthy, max_partitions",
        ),
        (
            "w.json",
            r#"[{"id": "b", "weight": [1]}]"#,
            "entry 1: field 'weight' must be one value, not several",
        ),
        (
            "w.json",
            r#"[{"id": "b", "id": "c"}]"#,
            "entry 1: field 'id' stands twice",
        ),
        (
            "w.json",
            r#"[{"weight": 1}]"#,
            "entry 1: id '': must not be empty",
        ),
        (
            "w.json",
            "[7]",
            "entry 1: entry '7': is a number or a truth value; put quotes around a name",
        ),
        (
            "w.yaml",
            "- a\n- no\n",
            "entry 2: entry 'false': is a number or a truth value; put quotes around a name",
        ),
        (
            "w.yaml",
            "- id: a\n  weight: x\n",
            "entry 1: weight 'x': must be a number such as 1.5",
        ),
        (
            "w.yaml",
            "- id: a\n  wieght: 1\n",
            "entry 1: field 'wieght': is unknown, known are id, weight, zone, healthy, max_partitions",
        ),
    ];
    for (name, content, expected) in cases {
        assert_eq!(refused(name, content), expected, "{content}");
    }
}

#[test]
fn wrong_syntax_names_the_line() {
    let cases = [
        ("w.json", "[\"a\",\n\"b\"", "line 2"),
        ("w.json", "{\"id\": \"a\"}", "expected a list"),
        ("w.json", "[\"a\"]\n[\"b\"]", "line 2"),
        ("w.yaml", "- a\n- id: \"b\n", "line 3"),
        ("w.yaml", "id: a\n", "line 1"),
        ("w.csv", "", "is empty"),
    ];
    for (name, content, expected) in cases {
        let told = refused(name, content);
        assert!(told.contains(expected), "{told}");
    }
    let told = refused("w.csv", b"id\na\nb\xff\n");
    assert_eq!(told, "line 3: is not UTF-8, save it as UTF-8");
}

#[test]
fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let scratch = Scratch::new();
    // A hole: it takes no room on the disk, and reading it would fail on NUL.
    let file = File::create(scratch.path("w.csv")).expect("a file for the test");
    file.set_len((1 << 30) + 1).expect("a size for the file");
    let run = scratch.run(["assign", "--workers", "@w.csv", "--partitions", "5"]);
    assert_eq!(
        run.stderr,
        "error: --workers @w.csv: has 1073741825 bytes, at most 1073741824 are read\n"
    );
    assert_eq!(run.code, 1);
}

#[test]
fn a_number_is_not_taken_for_a_name() {
    let rule = "is a number or a truth value; put quotes around a name";
    let cases = [
        (r#"[{"id": 1e2}]"#, "id '100.0'"),
        (
            r#"[{"id": 12345678901234567890123}]"#,
            "id '1.2345678901234568e22'",
        ),
        (r#"[{"id": 7}]"#, "id '7'"),
        (r#"[{"id": -7}]"#, "id '-7'"),
        (r#"[{"id": true}]"#, "id 'true'"),
        (r#"[{"id": "a", "zone": 1.50}]"#, "zone '1.5'"),
        ("[1e2]", "entry '100'"),
    ];
    for (content, value) in cases {
        let expected = format!("entry 1: {value}: {rule}");
        assert_eq!(refused("w.json", content), expected, "{content}");
    }
    let scratch = Scratch::new();
    let file = scratch.file("p.json", r#"[{"key": 1e2}]"#);
    let run = scratch.run(["assign", "--workers", "3", "--partitions", &file]);
    run.refused(
        1,
        &format!("--partitions @p.json: entry 1: key '100.0': {rule}\n"),
    );
}

#[test]
fn weights_may_be_numbers_or_text_and_health_a_truth_value_or_text() {
    let forms = [
        r#"[{"id": "a", "weight": 2.5, "healthy": true}, {"id": "b", "healthy": false}]"#,
        r#"[{"id": "a", "weight": "2.5", "healthy": "yes"}, {"id": "b", "healthy": "no"}]"#,
        r#"[{"id": "a", "weight": 25e-1}, {"id": "b", "weight": 1, "healthy": "false"}]"#,
    ];
    for form in forms {
        let expected = json!([["a", 2.5, null, null], ["b", 1.0, null, "unhealthy"]]);
        assert_eq!(workers("w.json", form), expected, "{form}");
        assert_eq!(workers("w.yaml", form), expected, "{form}");
    }
}

#[test]
fn more_entries_than_there_may_be_are_refused_where_they_begin() {
    let rows = "a\n".repeat(100_001);
    assert_eq!(
        refused("w.csv", format!("id\n{rows}b,c,d")),
        "line 100002: worker count '100001': at most 100000 are allowed"
    );
    let wide = ",".repeat(20_000);
    assert_eq!(
        refused("w.csv", format!("id\na{wide}\n")),
        "line 2: has more than 16384 cells"
    );
}
