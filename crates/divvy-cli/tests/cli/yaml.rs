//! What is particular to YAML: text that is kept as written, and aliases.

use serde_json::{Value, json};

use crate::files::{refused, workers};
use crate::scratch::Scratch;

#[test]
fn no_list_has_other_names_as_json_than_as_yaml() {
    for value in [
        "1e2",
        "007",
        "7",
        "0x10",
        "1.50",
        "12345678901234567890123",
        "true",
        "null",
        "-0",
        r#""1e2""#,
        r#""007""#,
        r#""true""#,
        r#""null""#,
        r#""~""#,
        r#""a\/b""#,
        r#""\u00e4""#,
        r#""\ud83d\ude00""#,
        r#"" a ""#,
        r#""a: b""#,
        r#""&a""#,
        r#""<<""#,
    ] {
        for list in [format!("[{{\"id\": {value}}}]"), format!("[{value}]")] {
            let named = |name: &str| {
                let scratch = Scratch::new();
                let file = scratch.file(name, &list);
                let args = ["assign", "--workers", &file, "--partitions", "2", "--json"];
                let run = scratch.run(args);
                assert!(run.code < 2, "{list}: {}", run.stderr);
                (run.code == 0).then(|| run.json()["workers"][0]["id"].clone())
            };
            if let Some(name) = named("w.json") {
                assert_eq!(Some(name), named("w.yaml"), "{list}");
            }
        }
    }
}

#[test]
fn yaml_keeps_the_text_of_a_plain_name() {
    let names = [
        "007",
        "0x10",
        "1.50",
        "1_000",
        "12345678901234567890123",
        "1e2",
        "yes",
    ];
    let list: String = names.iter().map(|name| format!("- id: {name}\n")).collect();
    let kept = workers("w.yaml", list);
    let kept: Vec<&str> = kept
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|worker| worker[0].as_str())
        .collect();
    assert_eq!(
        kept,
        [
            "007",
            "0x10",
            "1.50",
            "12345678901234567890123",
            "1_000",
            "1e2",
            "yes"
        ]
    );
}

#[test]
fn an_anchor_may_be_shared_by_all() {
    for count in [120, 5000] {
        let shared = |number: usize| format!("- id: w{number}\n  zone: *z\n  weight: *w\n");
        let rest: String = (1..count).map(shared).collect();
        let yaml = format!("- id: w0\n  zone: &z eu-1\n  weight: &w 2\n{rest}");
        let read = workers("w.yaml", yaml);
        let read = read.as_array().expect("a list");
        assert_eq!(read.len(), count);
        assert!(
            read.iter().all(|w| w[1] == 2.0 && w[2] == "eu-1"),
            "{count}"
        );
    }
    let merged = "- &d {id: a, zone: eu-1, weight: 2}\n- {<<: *d, id: b}\n- {id: c, <<: *d}\n";
    let expected: Vec<Value> = ["a", "b", "c"]
        .map(|id| json!([id, 2.0, "eu-1", null]))
        .to_vec();
    assert_eq!(workers("w.yaml", merged), Value::from(expected));
}

#[test]
fn what_is_wrong_with_yaml_is_told_in_plain_words() {
    let merges: String = (1..70)
        .map(|number| format!("- &a{number} {{<<: *a{}, id: w{number}}}\n", number - 1))
        .collect();
    let anchored: String = (0..60_000).map(|n| format!("- &a{n} w{n}\n")).collect();
    let cases = [
        (
            "- a\n---\n- b\n",
            "line 3: has several documents, one with a list is read",
        ),
        ("- id: a\n  id: b\n", "line 2: field 'id' stands twice"),
        ("- a\n- *b\n", "line 2: an alias has no anchor"),
        (
            "- a\n- .inf\n",
            "line 2: is a number beyond bounds; put quotes around a name",
        ),
        ("id: a\n", "line 1: must be a list"),
        ("- id: !!int 5\n", "line 1: its tag says that it is no text"),
        (
            "- &a {id: b}\n- id: *a\n",
            "line 2: a field must be one value, not several",
        ),
        (
            "- <<: {id: a}\n",
            "line 1: a field must be one value, not several",
        ),
        (
            &format!("- &a0 {{id: w0}}\n{merges}"),
            "line 64: has merges (<<) of merges, at most 64 deep are read",
        ),
        (
            &anchored,
            "line 50001: has too much behind anchors, which is kept",
        ),
    ];
    for (content, expected) in cases {
        assert_eq!(refused("w.yaml", content), expected);
    }
}

#[test]
fn an_alias_bomb_is_refused_before_it_takes_memory() {
    let mut lists = "- &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let mut merges = "- &a0 {id: w0, zone: eu}\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        let inner = vec![format!("*a{before}"); 10].join(", ");
        lists.push_str(&format!("- &a{level} [{inner}]\n"));
        let entry = format!("- &a{level} {{<<: *a{before}, <<: *a{before}, id: w{level}}}\n");
        merges.push_str(&entry);
    }
    let all = format!("&all\n{}", "- a\n".repeat(99_999)) + &"- b\n".repeat(900_000);
    for bomb in [lists, merges, all] {
        let scratch = Scratch::new();
        scratch.file("w.yaml", bomb);
        // In units of 1024 bytes: what the program itself maps, and some.
        let line = "ulimit -v 200000; divvy assign --workers @w.yaml --partitions 20";
        scratch.shell(line).refused(1, "--workers @w.yaml: ");
    }
}
