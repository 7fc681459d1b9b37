//! A shell whose home is a scratch directory and in which `divvy` is the binary,
//! and somebody who types in it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::pty;
use crate::scratch::Scratch;

/// How long a shell may take. However it goes, it ends: nobody waits for a shell
/// that waits for us.
const SECONDS_MAX: &str = "120";

/// The shell, in the directory.
///
/// # Panics
///
/// When it is missing.
pub(crate) fn shell(program: &str, home: &Scratch) -> Command {
    let path = std::env::var("PATH").expect("a path");
    assert!(
        std::env::split_paths(&path).any(|place| place.join(program).is_file()),
        "{program} is missing: run scripts/servers shells"
    );
    let binary = Path::new(assert_cmd::cargo::cargo_bin!("divvy"));
    let beside = binary.parent().expect("a directory of the binary");
    let mut command = Command::new("timeout");
    command
        .args(["--foreground", "--signal=KILL", SECONDS_MAX, program])
        .env("PATH", format!("{}:{path}", beside.display()))
        .env("HOME", home.path(""))
        .env("TERM", "dumb")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("ZDOTDIR")
        .current_dir(home.path(""));
    command
}

/// Somebody at a terminal with a shell in it.
pub(crate) struct Typist {
    terminal: File,
    shell: Child,
}

impl Typist {
    pub(crate) fn at(mut shell: Command) -> Self {
        let (terminal, theirs) = pty::open(100);
        shell
            .stdin(Stdio::from(theirs.try_clone().expect("a second handle")))
            .stdout(Stdio::from(theirs.try_clone().expect("a third handle")))
            .stderr(Stdio::from(theirs));
        Self {
            terminal,
            shell: shell.spawn().expect("the shell can be started"),
        }
    }

    /// Types, and waits until all of this is shown.
    #[track_caller]
    pub(crate) fn types(&mut self, typed: &str, wanted: &[&str]) {
        let (mut sent_back, mut shown) = (String::new(), String::new());
        let sent = self.terminal.write_all(typed.as_bytes());
        sent.expect("the terminal takes it");
        while !wanted.iter().all(|wanted| shown.contains(wanted)) {
            let mut bytes = [0; 4096];
            let count = self.terminal.read(&mut bytes).unwrap_or(0);
            assert!(count > 0, "{typed:?} shows {shown:?} and not {wanted:?}");
            sent_back += &String::from_utf8_lossy(&bytes[..count]);
            shown = drawn(&sent_back);
        }
    }

    /// The same in place of what stands on the line.
    #[track_caller]
    pub(crate) fn types_anew(&mut self, typed: &str, wanted: &[&str]) {
        self.types(&format!("\u{15}{typed}"), wanted);
    }

    /// Ends the shell.
    pub(crate) fn leaves(mut self) {
        self.types_anew("exit\n", &["exit"]);
        self.shell.wait().expect("it ends");
    }
}

/// What stands there once the cursor has gone back and written over some of it.
fn drawn(sent: &str) -> String {
    sent.chars().fold(String::new(), |mut drawn, c| {
        match c {
            '\u{8}' => drop(drawn.pop()),
            _ => drawn.push(c),
        }
        drawn
    })
}
