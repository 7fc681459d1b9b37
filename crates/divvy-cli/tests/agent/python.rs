//! The example whose consumers are in Python: two agents, of which one is killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::agents::SOON;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/python_consumer")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn python_consumers_are_taken_over_and_fenced() {
    let ended = Command::new(example().join("run"))
        .env("DIVVY", assert_cmd::cargo::cargo_bin!("divvy"))
        .env("WITHIN", SOON.as_secs().to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, complained) = (text(&ended.stdout), text(&ended.stderr));
    assert!(ended.status.success(), "{printed}{complained}");
    let count = |words: &str| printed.matches(words).count();
    assert_eq!(count(": a was refused: token "), 1, "{printed}");
    assert_eq!(count(": b ended in peace after step "), 6, "{printed}");
    let audit = "to 6 partitions: each one step on, none under an older token";
    assert!(printed.trim_end().ends_with(audit), "{printed}");
}

/// Runs Python code beside the ledger of the example.
fn python(code: &str, ledger: &str) -> Output {
    let mut command = Command::new("python3");
    // Nothing is to be left in the tree.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.current_dir(example()).args(["-c", code, ledger]);
    command.output().unwrap()
}

#[test]
fn the_audit_of_the_python_example_catches_a_write_under_an_older_token() {
    const FENCED: &str = "
import sys, ledger
open = ledger.connect(sys.argv[1])
ledger.advance(open, 'orders:0', 7, 'a')
ledger.advance(open, 'orders:0', 8, 'b')
try:
    ledger.advance(open, 'orders:0', 7, 'a')
    sys.exit('it was let through')
except ledger.Refused:
    ledger.audit(open)
";
    const UNFENCED: &str = "
import sys, ledger
open = ledger.connect(sys.argv[1])
open.execute(\"INSERT INTO writes (partition, token, worker, position)\"
             \" VALUES ('orders:0', 7, 'a', 3)\")
ledger.audit(open)
";
    let directory = TempDir::new().unwrap();
    let ledger = directory.path().join("ledger.db").display().to_string();
    let fenced = python(FENCED, &ledger);
    assert!(fenced.status.success(), "{}", text(&fenced.stderr));
    let unfenced = python(UNFENCED, &ledger);
    let complaint = "write 3: a wrote orders:0 under 7, after 8\n";
    assert_eq!(text(&unfenced.stderr), complaint);
    assert!(!unfenced.status.success());
}
