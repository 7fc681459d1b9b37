//! `divvy key`.

use serde_json::json;

use crate::scratch::{Scratch, divvy};

#[test]
fn djb2_js_names_the_partitions_that_javascript_names() {
    let text = divvy("key --scheme djb2-js --partitions 100 hello 7e_Onxk").done();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["key", "partition", "name", "hash"]);
    assert_eq!(rows[1], ["hello", "37", "partition_37", "0f923099"]);
    // The hash whose absolute value has no i32.
    assert_eq!(rows[2], ["7e_Onxk", "48", "partition_48", "80000000"]);
}

#[test]
fn json_has_one_entry_per_key_in_the_order_given() {
    let entries = divvy("key --scheme djb2-js hello 7e_Onxk hello --json").json();
    let hello =
        json!({"key": "hello", "partition": 37, "name": "partition_37", "hash": "0f923099"});
    let min =
        json!({"key": "7e_Onxk", "partition": 48, "name": "partition_48", "hash": "80000000"});
    assert_eq!(entries, json!([hello, min, hello]));
}

#[test]
fn hashes_have_all_digits_of_their_scheme() {
    for (scheme, digits) in [
        ("xxh3", 16),
        ("djb2-64", 16),
        ("djb2-32", 8),
        ("djb2-js", 8),
    ] {
        let entries = divvy(&format!("key a --scheme {scheme} --json")).json();
        let hash = entries[0]["hash"].as_str().expect("a string");
        assert_eq!(hash.len(), digits, "{scheme} {hash}");
        assert!(u64::from_str_radix(hash, 16).is_ok(), "{scheme} {hash}");
    }
}

#[test]
fn a_group_names_the_shard_that_assign_places() {
    let entries = divvy("key customer-4711 --group orders --partitions 64 --json").json();
    let name = entries[0]["name"].as_str().expect("a string");
    assert_eq!(name, format!("orders:{}", entries[0]["partition"]));
    let explained = divvy(&format!(
        "explain {name} --workers 3 --partitions orders:64"
    ));
    assert!(explained.done().starts_with(&format!("{name} belongs to ")));
}

#[test]
fn a_count_out_of_bounds_is_corrected_with_a_warning_under_djb2_js_only() {
    for (count, used) in [
        ("-5", 10),
        ("0", 10),
        ("50000000", 1000),
        ("99999999999999999999", 1000),
    ] {
        let corrected = divvy(&format!("key a --scheme djb2-js --partitions {count}"));
        let told = corrected.stderr;
        assert_eq!((corrected.code, told.lines().count()), (0, 1), "{told}");
        assert!(told.starts_with("warning: partition count "), "{told}");
        assert!(told.ends_with(&format!("using {used}\n")), "{told}");
        assert_eq!(divvy(&format!("key a --partitions {count}")).code, 2);
    }
}

#[test]
fn a_count_that_djb2_leaves_mostly_empty_gets_a_warning() {
    let run = divvy("key a --scheme djb2-64 --partitions 66");
    assert_eq!(run.code, 0);
    assert!(
        run.stderr.starts_with("warning: 66 partitions"),
        "{}",
        run.stderr
    );
}

#[test]
fn any_text_is_a_key_and_none_reaches_the_terminal_raw() {
    let scratch = Scratch::new();
    let keys = ["", "-", "--help", "-5", "käse 𝄞", "a\tb\u{1b}[31m\n"];
    let entries = scratch
        .run(["key", "--json", "--"].iter().chain(&keys))
        .json();
    for (entry, key) in entries.as_array().expect("a list").iter().zip(keys) {
        assert_eq!(entry["key"], key);
    }
    let text = scratch.run(["key", "--"].iter().chain(&keys)).done();
    assert_eq!(text.lines().count(), 1 + keys.len());
    assert!(!text.contains('\u{1b}'));
}
