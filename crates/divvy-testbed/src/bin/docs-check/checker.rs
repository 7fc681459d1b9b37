//! Checks documents, one after another.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer,
};
use tempfile::TempDir;

use crate::directive::Directive;
use crate::document::{Block, Command, blocks, is_as_shown};
use crate::running::{Running, Waited};

/// How long a command may take: the longest builds what it runs.
const COMMAND_TAKES_MAX: Duration = Duration::from_secs(1800);
/// How long one may take to end after Ctrl-C.
const END_TAKES_MAX: Duration = Duration::from_secs(60);
/// Lines of a command's output that a failure repeats.
const TOLD_LINES_MAX: usize = 40;
/// The command that runs all tests.
const TESTS: &str = "scripts/test";
/// What stands for a server in the documents.
const NATS: [&str; 2] = ["nats://localhost:4222", "nats://HOST"];
const REDIS: [&str; 3] = [
    "redis://127.0.0.1:6379",
    "redis://localhost:6379",
    "redis://HOST:6379",
];

/// What was checked so far, and what goes on.
pub(crate) struct Checker {
    root: PathBuf,
    /// Where what commands read is written to.
    scratch: TempDir,
    is_tested: bool,
    nats: Option<NatsServer>,
    redis: Option<RedisServer>,
    /// Files that were there before: what commands leave is removed.
    there: BTreeSet<OsString>,
    going_on: Vec<(String, Running)>,
    checked: usize,
    elsewhere: usize,
    failed: usize,
}

impl Checker {
    pub(crate) fn new(is_tested: bool) -> Self {
        let root = std::env::current_dir().expect("there is a current directory");
        Self {
            there: entries(&root),
            root,
            scratch: tempfile::tempdir().expect("a temporary directory can be made"),
            is_tested,
            nats: None,
            redis: None,
            going_on: Vec::new(),
            checked: 0,
            elsewhere: 0,
            failed: 0,
        }
    }

    /// Checks all blocks of a document.
    pub(crate) async fn check(&mut self, path: &Path) {
        let name = path.display().to_string();
        let text = match fs::read_to_string(self.root.join(path)) {
            Ok(text) => text,
            Err(error) => return self.fail(&name, &error.to_string()),
        };
        let blocks = match blocks(&text) {
            Ok(blocks) => blocks,
            Err(why) => return self.fail(&name, &format!("line {why}")),
        };
        let mut section = 0;
        for block in &blocks {
            if block.section != section {
                self.end_all();
                section = block.section;
            }
            self.check_block(&name, block).await;
        }
        self.end_all();
        self.tidy();
    }

    async fn check_block(&mut self, name: &str, block: &Block) {
        let place = format!("{name}:{}", block.line);
        match block.language.as_str() {
            "console" | "sh" => {
                for command in block.commands() {
                    let place = format!("{name}:{}", command.line);
                    self.check_command(&place, &command, &block.directives)
                        .await;
                }
            }
            // The documentation tests have these, and people alone those.
            "rust" | "text" => {}
            _ => self.check_content(&place, block),
        }
    }

    fn check_content(&mut self, place: &str, block: &Block) {
        let line = match block.directives.first() {
            Some(Directive::File { name }) => {
                let written = fs::write(self.root.join(name), &block.text);
                return match written {
                    Ok(()) => self.pass(place, &format!("the file {name}")),
                    Err(error) => self.fail(place, &error.to_string()),
                };
            }
            Some(Directive::ReadBy { command }) => {
                let path = self.scratch.path().join("block.yaml");
                fs::write(&path, &block.text).expect("a temporary directory can be written to");
                command.replace("FILE", &path.display().to_string())
            }
            Some(Directive::Test { path }) => {
                let test = fs::read_to_string(self.root.join(path)).unwrap_or_default();
                let file = place.split(':').next().unwrap_or_default();
                let document = file.rsplit('/').next().unwrap_or_default();
                return match test.contains(document) {
                    true => self.pass(place, &format!("read by {path}")),
                    false => self.fail(place, &format!("{path} does not read {document}")),
                };
            }
            _ => return self.fail(place, "nothing says how this block is checked"),
        };
        self.run(place, &line, None, 0);
    }

    async fn check_command(&mut self, place: &str, command: &Command, directives: &[Directive]) {
        if command.text == TESTS && self.is_tested {
            return self.pass(place, "has just passed");
        }
        let mut line = command.text.clone();
        let (mut code, mut says) = (0, None);
        for directive in directives {
            match directive {
                Directive::GoesOn { says: words } => says = Some(words),
                Directive::With { shown, run } if !line.contains(shown.as_str()) => {
                    let why = format!("'{shown}' is not in it, which '{run}' stands for");
                    return self.fail(place, &why);
                }
                Directive::With { shown, run } => line = line.replace(shown, run),
                Directive::Ends { code: wanted } => code = *wanted,
                Directive::Elsewhere { why } => {
                    self.elsewhere += 1;
                    return println!("{place}: not run here, it needs {why}");
                }
                other => return self.fail(place, &format!("{other:?} is not for commands")),
            }
        }
        let line = self.with_servers(&line).await;
        match says {
            Some(says) => self.begin(place, &line, says),
            None => {
                let shown = (!command.shown.is_empty()).then_some(command.shown.as_slice());
                self.run(place, &line, shown, code);
            }
        }
    }

    /// Runs a command to its end.
    fn run(&mut self, place: &str, line: &str, shown: Option<&[String]>, code: i32) {
        let began = Instant::now();
        println!("{place}: $ {line}");
        let mut running = Running::start(line, &self.root, &self.environment());
        let why = match running.wait(None, COMMAND_TAKES_MAX) {
            Waited::Ended(status) if status.code() == Some(code) => {
                let printed: Vec<&str> = running.out.iter().map(String::as_str).collect();
                match shown {
                    Some(shown) if !is_as_shown(shown, &printed) => {
                        "it does not print what is shown".to_owned()
                    }
                    _ => {
                        let took = began.elapsed().as_secs_f64();
                        return self.pass(place, &format!("{took:.1} s"));
                    }
                }
            }
            Waited::Ended(status) => format!("{status}, where the code {code} was expected"),
            Waited::Said | Waited::TooLong => format!("it took longer than {COMMAND_TAKES_MAX:?}"),
        };
        self.fail_with(place, &why, &running);
    }

    /// Starts a command that goes on.
    fn begin(&mut self, place: &str, line: &str, says: &str) {
        println!("{place}: $ {line}");
        let mut running = Running::start(line, &self.root, &self.environment());
        match running.wait(Some(says), COMMAND_TAKES_MAX) {
            Waited::Said => {
                self.pass(place, &format!("goes on, and said '{says}'"));
                self.going_on.push((place.to_owned(), running));
            }
            Waited::Ended(status) => {
                let why = format!("{status}, before it said '{says}'");
                self.fail_with(place, &why, &running);
            }
            Waited::TooLong => {
                let why = format!("it did not say '{says}'");
                self.fail_with(place, &why, &running);
            }
        }
    }

    /// Ends what goes on, as Ctrl-C would: that has to end well.
    fn end_all(&mut self) {
        for (place, mut running) in std::mem::take(&mut self.going_on) {
            match running.interrupt(END_TAKES_MAX) {
                Waited::Ended(status) if status.success() => self.pass(&place, "ended by Ctrl-C"),
                Waited::Ended(status) => {
                    self.fail_with(&place, &format!("{status} after Ctrl-C"), &running);
                }
                Waited::Said | Waited::TooLong => {
                    self.fail_with(&place, "it did not end after Ctrl-C", &running);
                }
            }
        }
    }

    /// What was installed is found first.
    fn environment(&self) -> Vec<(String, String)> {
        let installed = self.root.join("target/installed");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}/bin:{path}", installed.display());
        let installed = installed.display().to_string();
        vec![
            ("PATH".to_owned(), path),
            ("CARGO_INSTALL_ROOT".to_owned(), installed),
        ]
    }

    /// Real servers in the place of those that the documents name.
    async fn with_servers(&mut self, line: &str) -> String {
        let mut line = line.to_owned();
        for name in NATS
            .iter()
            .filter(|name| line.contains(**name))
            .collect::<Vec<_>>()
        {
            if self.nats.is_none() {
                let options = NatsOptions::new();
                self.nats = Some(NatsServer::start(NatsVersion::Newest, options).await);
            }
            if let Some(server) = &self.nats {
                line = line.replace(name, &server.url());
                line = line.replace("PID", &server.pid().to_string());
            }
        }
        for name in REDIS
            .iter()
            .filter(|name| line.contains(**name))
            .collect::<Vec<_>>()
        {
            if self.redis.is_none() {
                let options = RedisOptions::new().append_only_synced("everysec");
                self.redis = Some(RedisServer::start(RedisFlavour::Redis7, options).await);
            }
            if let Some(server) = &self.redis {
                line = line.replace(name, &server.url());
            }
        }
        line
    }

    fn pass(&mut self, place: &str, how: &str) {
        self.checked += 1;
        println!("{place}: passed, {how}");
    }

    fn fail(&mut self, place: &str, why: &str) {
        self.failed += 1;
        println!("{place}: FAILED: {why}");
    }

    fn fail_with(&mut self, place: &str, why: &str, running: &Running) {
        self.fail(place, why);
        for (name, lines) in [("stdout", &running.out), ("stderr", &running.errors)] {
            let first = lines.len().saturating_sub(TOLD_LINES_MAX);
            for line in &lines[first..] {
                println!("  {name}: {line}");
            }
        }
    }

    /// Removes what commands have left beside the sources.
    fn tidy(&self) {
        for left in entries(&self.root).difference(&self.there) {
            let path = self.root.join(left);
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            if let Err(error) = removed {
                println!("{}: cannot be removed: {error}", path.display());
            }
        }
    }

    /// Says what came of it.
    pub(crate) fn finish(self) -> ExitCode {
        let (checked, elsewhere) = (self.checked, self.elsewhere);
        println!(
            "{checked} checked, {elsewhere} not run here, {} failed",
            self.failed
        );
        match self.failed {
            0 if self.checked > 0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}

fn entries(directory: &Path) -> BTreeSet<OsString> {
    let listed = fs::read_dir(directory).expect("the current directory can be read");
    listed
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect()
}
