//! `divvy completions`: what a shell makes of its script.

use std::path::Path;
use std::process::Command;

use crate::scratch::{Scratch, divvy};
use crate::shell::{Typist, shell};

/// Calls the script's function as bash does for a line, and prints what it found.
const ASK: &str = r#"
source ./divvy.bash
ask() {
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _divvy
    printf '%s\n' "${COMPREPLY[*]}"
}
"#;

/// A home with the script for a shell, at this place.
fn home_with(shell: &str, place: &str) -> Scratch {
    let home = Scratch::new();
    let place = Path::new(place);
    let directory = home.path("").join(place.parent().expect("a directory"));
    std::fs::create_dir_all(directory).expect("a directory for the script");
    let script = divvy(&format!("completions {shell}")).done();
    home.file(place.to_str().expect("text"), script);
    home
}

fn bash(home: &Scratch) -> Command {
    let mut command = shell("bash", home);
    command
        .args(["--noprofile", "--norc"])
        .env("INPUTRC", "/dev/null");
    command
}

/// The words of a line as bash parts them: also at : = and @.
fn parted(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for token in line.split(' ') {
        let mut word = String::new();
        for c in token.chars() {
            let is_break = |c| matches!(c, ':' | '=' | '@');
            if word
                .chars()
                .last()
                .is_some_and(|last| is_break(last) != is_break(c))
            {
                words.push(std::mem::take(&mut word));
            }
            word.push(c);
        }
        words.push(word);
    }
    words
}

fn asked(line: &str) -> String {
    let home = home_with("bash", "divvy.bash");
    let script = home.path("ask.bash");
    let words: Vec<String> = parted(line)
        .iter()
        .map(|word| format!("'{word}'"))
        .collect();
    let text = format!("{ASK}\nask '{line}' {}\n", words.join(" "));
    std::fs::write(&script, text).expect("a file for the test");
    let output = bash(&home).arg(&script).output().expect("bash is there");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    let found = String::from_utf8(output.stdout).expect("text");
    found.trim_end().to_owned()
}

#[test]
fn bash_takes_the_script_and_finds_commands_flags_and_values() {
    let home = home_with("bash", "divvy.bash");
    let read = bash(&home).args(["-n", "divvy.bash"]).status();
    assert!(read.expect("bash is there").success());
    for (line, expected) in [
        ("divvy pl", "plan playground"),
        ("divvy workload s", "set"),
        ("divvy key --sch", "--scheme"),
        ("divvy key --scheme djb2-j", "djb2-js"),
        ("divvy key --scheme ", "xxh3 djb2-js djb2-32 djb2-64"),
        ("divvy plan --strategy ro", "round-robin"),
        ("divvy worker --preset=c", "calm"),
        ("divvy top --store rediss", "rediss://"),
        ("divvy top --store rediss:", "//"),
        ("divvy assign --workers @w", ""),
        ("divvy run", ""),
    ] {
        assert_eq!(asked(line), expected, "{line}");
    }
}

#[test]
fn whoever_types_in_bash_gets_the_rest() {
    let home = home_with("bash", "divvy.bash");
    home.file("settings.yaml", "");
    let mut command = bash(&home);
    command.arg("-i");
    let mut typist = Typist::at(command);
    let prepare = "bind 'set show-all-if-ambiguous on'; source ./divvy.bash; echo rea''dy\n";
    typist.types(prepare, &["ready\r\n"]);
    typist.types("divvy pl\t", &["plan ", "playground"]);
    typist.types_anew("divvy key --gro\tx", &["--group x"]);
    typist.types_anew(
        "divvy worker --config sett\t--pres\tca\t",
        &["settings.yaml ", "--preset calm "],
    );
    typist.leaves();
}

#[test]
fn whoever_types_in_zsh_gets_the_rest() {
    let home = home_with("zsh", ".zfunc/_divvy");
    let setup = "fpath+=~/.zfunc\nautoload -Uz compinit\ncompinit -u -D\nPS1='> '\n";
    home.file(".zshrc", setup);
    files_to_find(&home);
    let mut command = shell("zsh", &home);
    command.args(["-o", "no_global_rcs", "-i"]);
    let mut typist = Typist::at(command);
    typist.types("echo rea''dy\n", &["ready\r\n"]);
    typist.types("divvy pl\t\t", &["plan ", "-- Open a cluster to break"]);
    typist.types_anew(
        "divvy key --scheme \t",
        &["xxh3     djb2-js  djb2-32  djb2-64\r\n"],
    );
    for (typed, shown) in [
        ("divvy key --gro\tx", "divvy key --group x"),
        ("divvy key 'a b' --sch\tx", "'a b' --scheme x"),
        ("divvy worker --preset=ca\tx", "--preset=calm x"),
        ("divvy top --store rediss\tx", "--store rediss://x"),
        ("divvy top --store file:./sett\tx", "file:./settings.yaml x"),
        ("divvy worker --config=a@b/\tx", "--config=a@b/inner.yaml x"),
        ("divvy assign --workers \t", "--workers @"),
        ("divvy assign --workers @no\tx", "@nodes\\ of\\ a.csv x"),
        ("divvy assign --workers \"@no\tx", "\"@nodes of a.csv\" x"),
        ("divvy man --dir=a\tx", "--dir=a@b/x"),
        ("~/bin/divvy worklo\tx", "divvy workload x"),
    ] {
        typist.types_anew(typed, &[shown]);
    }
    typist.leaves();
}

#[test]
fn fish_finds_commands_flags_values_and_files() {
    let home = home_with("fish", ".config/fish/completions/divvy.fish");
    files_to_find(&home);
    for (typed, expected) in [
        ("divvy pl", "plan playground"),
        ("divvy workload s", "set"),
        ("divvy key 'a b' --sch", "--scheme"),
        ("divvy key --scheme ", "xxh3 djb2-js djb2-32 djb2-64"),
        ("divvy worker --preset=c", "--preset=calm"),
        ("divvy top --store rediss", "rediss://"),
        ("divvy top --store file:./sett", "file:./settings.yaml"),
        ("divvy worker --config=a@b/", "--config=a@b/inner.yaml"),
        ("divvy worker --config sett", "settings.yaml"),
        ("divvy assign --workers ", "@"),
        ("divvy assign --workers @no", "@nodes of a.csv"),
        ("divvy assign --workers \"@no", "@nodes of a.csv"),
        ("divvy man --dir=a", "--dir=a@b/"),
        ("~/bin/divvy worklo", "workload"),
        ("divvy run", ""),
    ] {
        let mut command = shell("fish", &home);
        command.args(["-c", "complete --do-complete \"$argv\"", typed]);
        let output = command.output().expect("fish is there");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{typed}");
        let found = String::from_utf8(output.stdout).expect("text");
        let words = found.lines().map(|line| line.split('\t').next());
        let words: Vec<&str> = words.flatten().collect();
        assert_eq!(words.join(" "), expected, "{typed}");
    }
}

/// Files whose names are hard to complete, and the binary behind a `~`.
fn files_to_find(home: &Scratch) {
    home.file("settings.yaml", "");
    home.file("nodes of a.csv", "");
    for directory in ["a@b", "bin"] {
        std::fs::create_dir(home.path(directory)).expect("a directory for the test");
    }
    home.file("a@b/inner.yaml", "");
    let binary = assert_cmd::cargo::cargo_bin!("divvy");
    let linked = std::os::unix::fs::symlink(binary, home.path("bin/divvy"));
    linked.expect("a link for the test");
}

#[test]
fn a_shell_without_a_script_is_refused() {
    divvy("completions tcsh").refused(2, "shell 'tcsh': must be one of bash, fish, zsh\n");
}
