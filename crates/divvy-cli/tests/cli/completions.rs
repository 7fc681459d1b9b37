//! `divvy completions`: what a shell makes of its script.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::pty;
use crate::scratch::{Scratch, divvy};

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

/// A scratch directory with the script for bash, where `divvy` is the binary.
fn with_script() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("divvy.bash", divvy("completions bash").done());
    scratch
}

fn bash(scratch: &Scratch) -> Command {
    let binary = Path::new(assert_cmd::cargo::cargo_bin!("divvy"));
    let beside = binary.parent().expect("a directory of the binary");
    let path = std::env::var("PATH").expect("a path");
    // However it goes, it ends: nobody waits for a shell that waits for us.
    let mut command = Command::new("timeout");
    command
        .args([
            "--foreground",
            "--signal=KILL",
            "120",
            "bash",
            "--noprofile",
            "--norc",
        ])
        .env("PATH", format!("{}:{path}", beside.display()))
        .current_dir(scratch.path(""));
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
    let scratch = with_script();
    let script = scratch.path("ask.bash");
    let words: Vec<String> = parted(line)
        .iter()
        .map(|word| format!("'{word}'"))
        .collect();
    let text = format!("{ASK}\nask '{line}' {}\n", words.join(" "));
    std::fs::write(&script, text).expect("a file for the test");
    let output = bash(&scratch).arg(&script).output().expect("bash is there");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    let found = String::from_utf8(output.stdout).expect("text");
    found.trim_end().to_owned()
}

#[test]
fn bash_takes_the_script_and_finds_commands_flags_and_values() {
    let scratch = with_script();
    let read = bash(&scratch).args(["-n", "divvy.bash"]).status();
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
    let scratch = with_script();
    std::fs::write(scratch.path("settings.yaml"), "").expect("a file for the test");
    let (mut ours, theirs) = pty::open(100);
    let mut command = bash(&scratch);
    command
        .arg("-i")
        .env("TERM", "dumb")
        .env("INPUTRC", "/dev/null")
        .stdin(Stdio::from(theirs.try_clone().expect("a second handle")))
        .stdout(Stdio::from(theirs.try_clone().expect("a third handle")))
        .stderr(Stdio::from(theirs));
    let mut child = command.spawn().expect("bash is there");
    drop(command);
    let mut shown = String::new();
    let mut type_until = |typed: &str, wanted: &[&str]| {
        shown.clear();
        ours.write_all(typed.as_bytes())
            .expect("the terminal takes it");
        while !wanted.iter().all(|wanted| shown.contains(wanted)) {
            let mut bytes = [0; 4096];
            let count = ours.read(&mut bytes).unwrap_or(0);
            assert!(count > 0, "{typed:?} shows {shown:?} and not {wanted:?}");
            shown += &String::from_utf8_lossy(&bytes[..count]);
        }
    };
    let prepare = "bind 'set show-all-if-ambiguous on'; source ./divvy.bash; echo rea''dy\n";
    type_until(prepare, &["ready\r\n"]);
    type_until("divvy pl\t", &["plan ", "playground"]);
    type_until("\u{15}divvy key --gro\tx", &["--group x"]);
    type_until(
        "\u{15}divvy worker --config sett\t--pres\tca\t",
        &["settings.yaml ", "--preset calm "],
    );
    type_until("\u{15}exit\n", &["exit"]);
    child.wait().expect("it ends");
}

#[test]
fn other_shells_ask_the_program_too() {
    for shell in ["zsh", "fish"] {
        let script = divvy(&format!("completions {shell}")).done();
        assert!(script.contains("complete-words -- "), "{script}");
    }
    divvy("completions tcsh").refused(2, "shell 'tcsh': must be one of bash, fish, zsh\n");
}
