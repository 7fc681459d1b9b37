//! A directory that is gone after the test, and the binary run inside it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Scratch {
    directory: TempDir,
}

/// What a run of the binary left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory for the test"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a file there, and returns the argument that names it.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).expect("a file for the test");
        format!("@{name}")
    }

    /// The binary, in the directory.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("divvy"));
        command
            .current_dir(self.directory.path())
            .env("NO_COLOR", "1");
        command
    }

    pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        Run::of(self.command().args(args))
    }

    /// Runs a line as a shell would, with `divvy` being the binary.
    pub(crate) fn shell(&self, line: &str) -> Run {
        let binary = assert_cmd::cargo::cargo_bin!("divvy");
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("divvy() {{ \"$DIVVY\" \"$@\"; }}; {line}")])
            .env("DIVVY", binary)
            .current_dir(self.directory.path());
        Run::of(&mut command)
    }
}

impl Run {
    fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the command can be started");
        Self {
            code: output.status.code().expect("it ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
        }
    }

    /// What was printed by a run that did what it should, without a word of
    /// warning. A note is none.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        let told = self.stderr.lines();
        let told: Vec<&str> = told.filter(|line| !line.starts_with("note: ")).collect();
        assert_eq!((self.code, told), (0, Vec::new()), "{}", self.stdout);
        self.stdout
    }

    /// The same where one line is said on stderr, which starts like this.
    #[track_caller]
    pub(crate) fn warned(self, start: &str) -> String {
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with(start), "{}", self.stderr);
        assert_eq!(self.code, 0);
        self.stdout
    }

    /// The same as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.done()).expect("--json prints JSON")
    }

    /// Checks that the run was refused in one line that starts with `error: `
    /// and the message, without a result.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, message: &str) {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        let start = format!("error: {message}");
        assert!(self.stderr.starts_with(&start), "{start}\n{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.stdout, "");
    }
}

/// Runs the words of a line, in a scratch directory of its own.
pub(crate) fn divvy(line: &str) -> Run {
    Scratch::new().run(line.split_whitespace())
}
