//! Where partitions come from.

use std::time::Duration;

use divvy::listing::Form;
use divvy::manager::{CommandSource, FileSource, PartitionSource, StaticSource};
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(20);

fn names(partitions: &divvy::Partitions) -> Vec<String> {
    let named = partitions.iter();
    named
        .map(|partition| format!("{partition}={}", partition.weight()))
        .collect()
}

#[tokio::test]
async fn files_of_every_form_list_the_same() {
    let scratch = TempDir::new().unwrap();
    for (name, text) in [
        ("list.csv", "key,weight\ntool:1,5\ntool:2,\n"),
        ("list.json", r#"[{"key": "tool:1", "weight": 5}, "tool:2"]"#),
        ("list.yaml", "- {key: 'tool:1', weight: 5}\n- tool:2\n"),
    ] {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        let listed = FileSource::new(&path).unwrap().list_partitions().await;
        assert_eq!(names(&listed.unwrap()), ["tool:1=5", "tool:2=0"], "{name}");
    }
    let told = FileSource::new("list.txt").unwrap_err().to_string();
    let rule = "the name of a file must end in .csv, .json, .yaml or .yml";
    assert_eq!(told, format!("partitions 'list.txt': {rule}"));
}

#[test]
fn a_source_of_no_shards_is_refused() {
    let refused = StaticSource::shards(["orders"], 0).unwrap_err();
    let told = refused.to_string();
    assert_eq!(told, "shards per group '0': must be at least 1");
}

#[tokio::test]
async fn a_file_that_changes_is_noticed_and_a_broken_one_is_told_with_its_place() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("list.csv");
    let source = FileSource::new(&path).unwrap();
    let missing = source.list_partitions().await.unwrap_err().to_string();
    assert!(missing.contains("list.csv: No such file"), "{missing}");
    for text in ["key\na\n", "key\na\nb\nc\n"] {
        let changed = source.changed();
        let writing = async {
            tokio::task::yield_now().await;
            std::fs::write(&path, text).unwrap();
        };
        let both = async { tokio::join!(changed, writing) };
        tokio::time::timeout(SOON, both)
            .await
            .expect("it is noticed");
    }
    assert_eq!(source.list_partitions().await.unwrap().len(), 3);
    std::fs::write(&path, "key,weight\na,1\nb,heavy\n").unwrap();
    let told = source.list_partitions().await.unwrap_err().to_string();
    assert!(
        told.contains("line 3: weight 'heavy': must be a whole number"),
        "{told}"
    );
}

#[tokio::test]
async fn a_command_lists_what_it_prints() {
    let json = CommandSource::new("echo", [r#"["a:1", {"key": "a:2", "weight": 7}]"#]);
    let listed = json.list_partitions().await.unwrap();
    assert_eq!(names(&listed), ["a:1=0", "a:2=7"]);
    let csv = CommandSource::new("printf", ["key\\na:1\\n"]).with_form(Form::Csv);
    assert_eq!(csv.list_partitions().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_command_that_fails_is_told_with_what_it_said() {
    let told = |program: &str, script: &str| {
        let source = CommandSource::new(program, ["-c", script]);
        async move { source.list_partitions().await.unwrap_err().to_string() }
    };
    let failed = told("sh", "echo no database >&2; exit 3").await;
    assert_eq!(failed, "command 'sh': exit status: 3: no database");
    let garbled = told("sh", "echo '[1, 2'").await;
    assert!(garbled.starts_with("command 'sh': entry 1: "), "{garbled}");
    let missing = told("there-is-no-such-program", "").await;
    assert!(
        missing.starts_with("command 'there-is-no-such-program': "),
        "{missing}"
    );
}
