//! The program that runs what documents tell people to run must find what does
//! not work.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

/// What it says of a document that stands alone in a directory.
fn checked(document: &str) -> (Option<i32>, String, Vec<String>) {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("guide.md"), document).unwrap();
    let Output { status, stdout, .. } = Command::new(env!("CARGO_BIN_EXE_docs-check"))
        .arg("guide.md")
        .current_dir(directory.path())
        .output()
        .unwrap();
    let left = fs::read_dir(directory.path()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let said = String::from_utf8(stdout).unwrap();
    (status.code(), said, left.collect())
}

#[test]
fn what_works_passes_and_what_it_leaves_is_removed() {
    let (code, said, left) = checked(
        "# Guide

<!-- check: file list.txt -->
```csv
one
two
```

```console
$ cat list.txt
one
…
$ wc -l < list.txt > counted
```

<!-- check: ends 3 -->
```sh
exit 3
```

<!-- check: with \"2\" for \"2000000\" -->
```sh
test 2000000 = 2
```

<!-- check: read by grep -q three FILE -->
```yaml
three: 3
```

<!-- check: goes on, says \"begun\" -->
```sh
trap 'exit 0' INT; echo begun; while :; do read -r -t 0.05 <> <(:) || :; done
```

## Next

```sh
true
```
",
    );
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("0 failed"), "{said}");
    assert!(said.contains("ended by Ctrl-C"), "{said}");
    assert_eq!(left, ["guide.md"], "{said}");
}

#[test]
fn what_does_not_work_is_found() {
    let broken = [
        ("```sh\nfalse\n```\n", "where the code 0 was expected"),
        (
            "```console\n$ echo one\ntwo\n```\n",
            "does not print what is shown",
        ),
        (
            "```yaml\na: 1\n```\n",
            "nothing says how this block is checked",
        ),
        (
            "<!-- check: read by false FILE -->\n```yaml\na: 1\n```\n",
            "where the code 0 was expected",
        ),
        (
            "<!-- check: goes on, says \"begun\" -->\n```sh\necho other\n```\n",
            "before it said 'begun'",
        ),
        (
            "<!-- check: goes on, says \"begun\" -->\n```sh\ntrap 'exit 7' INT; echo begun; while :; do read -r -t 0.05 <> <(:) || :; done\n```\n",
            "exit status: 7 after Ctrl-C",
        ),
        (
            "<!-- check: with \"a\" for \"b\" -->\n```sh\ntrue\n```\n",
            "'b' is not in it",
        ),
        (
            "<!-- check: test nowhere.rs -->\n```json\n{}\n```\n",
            "nowhere.rs does not read guide.md",
        ),
        ("```sh\ntrue\n", "the block does not end"),
        ("no blocks\n", "0 checked"),
    ];
    for (document, why) in broken {
        let (code, said, _) = checked(document);
        assert_eq!(code, Some(1), "{document}: {said}");
        assert!(said.contains(why), "{document}: {said}");
    }
}
