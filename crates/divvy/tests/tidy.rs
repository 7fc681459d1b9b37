//! Style that matters, as a test over the whole tree.

use std::fs;
use std::path::{Path, PathBuf};

/// A file that is one coherent thing may be long; beyond this it is several.
const RUST_LINES_MAX: usize = 800;
const VAGUE_NAMES: [&str; 4] = ["util", "helper", "common", "misc"];
const GUIDES: [&str; 5] = [
    "ARCHITECTURE.md",
    "protocol.md",
    "operating.md",
    "migrating.md",
    "playground.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file that belongs to the project, as a path from its root.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            match path.is_dir() {
                true if matches!(name, "target" | ".git") => {}
                true => open.push(path),
                false => found.push(path.strip_prefix(root()).unwrap().to_owned()),
            }
        }
    }
    assert!(found.len() > 30, "only {} files were found", found.len());
    found
}

fn with_ending(ending: &str) -> Vec<(PathBuf, String)> {
    let wanted = |path: &PathBuf| path.extension().is_some_and(|found| found == ending);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    };
    files().into_iter().filter(wanted).map(read).collect()
}

/// Lines of `files` that hold something forbidden, named by place.
fn lines_with(files: &[(PathBuf, String)], forbidden: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        for (number, line) in text.lines().enumerate() {
            if forbidden(line) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    found
}

#[test]
fn no_source_file_has_outgrown_one_noun() {
    for (path, text) in with_ending("rs") {
        let lines = text.lines().count();
        assert!(
            lines <= RUST_LINES_MAX,
            "{} has {lines} lines",
            path.display()
        );
    }
}

#[test]
fn no_file_has_a_vague_name() {
    for path in files() {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_lowercase();
        let vague = VAGUE_NAMES.iter().find(|name| stem.starts_with(**name));
        assert!(vague.is_none(), "{} is named after nothing", path.display());
    }
}

#[test]
fn no_test_sleeps() {
    // Spelled apart, so that this line is not found.
    let sleep = ["sleep", "("].concat();
    let tests: Vec<_> = with_ending("rs")
        .into_iter()
        .filter(|(path, text)| {
            path.components().any(|part| part.as_os_str() == "tests") || text.contains("mod tests")
        })
        .collect();
    let found = lines_with(&tests, |line| line.contains(&sleep));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn nothing_speaks_of_plans_or_decorates() {
    let mut all = with_ending("rs");
    all.extend(with_ending("md"));
    let is_emoji = |c: char| matches!(c, '\u{2705}' | '\u{274C}' | '\u{1F300}'..='\u{1FAFF}');
    let is_plan = |line: &str| {
        let phase = line.find("Phase ").map(|at| &line[at + 6..]);
        phase.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    // A crab in a test's name stands for any character beyond the basic plane.
    let plain = |line: &str| line.replace(['\u{1F980}', '\u{1F600}'], "");
    let found = lines_with(&all, |line| is_plan(line) || plain(line).contains(is_emoji));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_markdown_file_has_exactly_one_title() {
    for (path, text) in with_ending("md") {
        let mut in_code = false;
        let titles = text.lines().filter(|line| {
            in_code ^= line.starts_with("```");
            !in_code && line.starts_with("# ")
        });
        assert_eq!(titles.count(), 1, "titles in {}", path.display());
    }
}

#[test]
fn the_docs_folder_holds_only_the_guides_and_their_images() {
    for path in files() {
        if let Ok(inside) = path.strip_prefix("docs") {
            let guide = GUIDES.iter().any(|guide| inside == Path::new(guide));
            assert!(guide || inside.starts_with("images"), "{}", path.display());
        }
    }
}

#[test]
fn the_readme_names_the_dependencies_that_the_examples_are_built_with() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (readme, manifest) = (read("README.md"), read("Cargo.toml"));
    let (_, shown) = readme.split_once("```toml\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let version = |text: &str, name: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name} = ")));
        let mut parts = line.unwrap().split('"').skip(1).step_by(2);
        let is_version = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
        parts.find(is_version).unwrap().to_owned()
    };
    for name in ["async-trait", "tokio"] {
        let (told, used) = (version(shown, name), version(&manifest, name));
        assert!(used.starts_with(&told), "{name} {told}, and {used} is used");
    }
    let minimum = format!("Rust {} or later", version(&manifest, "rust-version"));
    assert!(readme.contains(&minimum), "{minimum}");
    assert!(root().join("crates/divvy/Cargo.toml").exists());
}

#[test]
fn the_readme_shows_the_quickstart_as_it_is() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let example = read("crates/divvy/examples/quickstart.rs");
    let lines = example.lines().filter(|line| !line.starts_with("//!"));
    let code = lines.collect::<Vec<_>>().join("\n");
    assert!(read("README.md").contains(code.trim()));
}
