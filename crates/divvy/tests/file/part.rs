//! Processes of their own: this very program, started again to play a part.
//!
//! A process ends with the test that started it, and also when that is killed:
//! then its standard input is closed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::{env, io, process, thread};

use divvy::store::{Expected, KeyValue, Leases, Outcome, StoreErrorKind};
use rustix::process::{Pid, Signal, kill_process};

use crate::scratch::{self, SOON, claim, key, put, worker};

const PART: &str = "DIVVY_TEST_PART";
const DATABASE: &str = "DIVVY_TEST_DATABASE";
/// What a part says begins so, to tell it from what the test harness says.
const SAID: &str = "part says: ";

/// A process that plays a part on a database.
pub(crate) struct Part {
    child: Child,
    cues: ChildStdin,
    said: Receiver<String>,
}

impl Part {
    pub(crate) fn start(part: &str, database: &Path) -> Self {
        Self::start_by(Command::new(env::current_exe().unwrap()), part, database)
    }

    /// Starts it by a command that runs what is given to it as arguments.
    pub(crate) fn start_under(program: &str, options: &[&str], part: &str, at: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(options).arg(env::current_exe().unwrap());
        Self::start_by(command, part, at)
    }

    fn start_by(mut command: Command, part: &str, database: &Path) -> Self {
        let mut child = command
            .args([
                "--exact",
                "part::a_process_without_a_part_ends",
                "--nocapture",
            ])
            .env(PART, part)
            .env(DATABASE, database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (cues, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (say, said) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The harness begins a line of its own without ending it.
                if let Some((_, words)) = line.split_once(SAID) {
                    let _unheard = say.send(words.to_owned());
                }
            }
        });
        Self { child, cues, said }
    }

    /// Waits for the next thing that it says.
    pub(crate) fn says(&self) -> String {
        self.said
            .recv_timeout(SOON)
            .expect("the part says something")
    }

    /// Everything that it says from now on, until it ends.
    pub(crate) fn says_until_it_ends(&self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            match self.said.recv_timeout(SOON) {
                Ok(words) => all.push(words),
                Err(RecvTimeoutError::Disconnected) => return all,
                Err(RecvTimeoutError::Timeout) => panic!("the part does not end"),
            }
        }
    }

    /// Lets it go on.
    pub(crate) fn cue(&mut self) {
        self.cues.write_all(b"go\n").unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it as a debugger would; it stands still from then on.
    pub(crate) fn stop(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    /// SIGKILL: it has no chance to clean up.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// What the other processes run. In the test run itself there is no part.
#[test]
fn a_process_without_a_part_ends() {
    let (Ok(part), Ok(database)) = (env::var(PART), env::var(DATABASE)) else {
        return;
    };
    let (cue, cues) = channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let _ended = cue.send(line);
        }
        process::exit(3); // the test is gone
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(play(&part, Path::new(&database), &cues));
    process::exit(0);
}

fn say(words: impl std::fmt::Display) {
    println!("{SAID}{words}");
}

async fn play(part: &str, database: &Path, cues: &Receiver<String>) {
    match part {
        "count" => count(database, cues).await,
        "fill" => fill(database).await,
        "lease" => lease(database).await,
        "write" => write(database, cues).await,
        "commit in silence" => commit_in_silence(database, cues),
        "hold the turn" => hold_the_turn(database, cues),
        "outgrow the limit" => outgrow_the_limit(database).await,
        "overwrite" => overwrite(database).await,
        "open" => match scratch::open(database, &scratch::settings()).await {
            Ok(_) => say("opened"),
            Err(error) => say(format_args!("{:?} {error}", error.kind())),
        },
        other => panic!("no part is called {other}"),
    }
}

pub(crate) const COUNTED_EACH: u64 = 40;

/// Adds to one number, by compare-and-set only.
async fn count(database: &Path, cues: &Receiver<String>) {
    let store = scratch::open(database, &scratch::settings()).await.unwrap();
    say("ready");
    cues.recv().unwrap();
    let key = key("count");
    for _ in 0..COUNTED_EACH {
        loop {
            let entry = store.get(&key).await.unwrap();
            let last = entry.as_ref().map_or(0, |entry| number(&entry.value));
            let expected = Expected::from(entry.map(|entry| entry.revision));
            let next = (last + 1).to_le_bytes();
            let written = store.compare_and_set(&key, expected, &next).await.unwrap();
            if let Outcome::Done(_) = written {
                break;
            }
        }
    }
}

pub(crate) fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

pub(crate) const FILLED_BYTES: usize = 100_000;

/// Writes the same byte throughout a value that takes many pages, and says
/// which it was when the write was acknowledged.
async fn fill(database: &Path) {
    let store = scratch::open(database, &scratch::settings()).await.unwrap();
    let key = key("filled");
    for byte in (1..=250).cycle() {
        let entry = store.get(&key).await.unwrap();
        let expected = Expected::from(entry.map(|entry| entry.revision));
        let value = vec![byte; FILLED_BYTES];
        let written = store.compare_and_set(&key, expected, &value).await;
        if let Outcome::Done(revision) = written.unwrap() {
            say(revision);
        }
    }
}

pub(crate) const LEASE_TTL: std::time::Duration = std::time::Duration::from_millis(400);

/// Takes leases and renews them until it is killed.
async fn lease(database: &Path) {
    let store = scratch::open(database, &scratch::settings()).await.unwrap();
    let (me, claims) = (worker("killed"), [claim(1, 1), claim(2, 2)]);
    say(format_args!(
        "{:?}",
        store.acquire(&me, &claims, LEASE_TTL).await.unwrap()
    ));
    while store.renew(&me, &claims, LEASE_TTL).await.is_ok() {}
}

async fn write(database: &Path, cues: &Receiver<String>) {
    let store = scratch::open(database, &scratch::settings()).await.unwrap();
    say("ready");
    for line in cues {
        let entry = store.get(&key("word")).await.unwrap();
        let expected = Expected::from(entry.map(|entry| entry.revision));
        put(&store, "word", expected, line.as_bytes()).await;
    }
}

/// Does what a writer does that is killed after its commit, before it could
/// wake anybody.
fn commit_in_silence(database: &Path, cues: &Receiver<String>) {
    let _turn = turn_file(database);
    let direct = rusqlite::Connection::open(database).unwrap();
    direct
        .execute_batch(
            "INSERT INTO log (kind, cluster, subject) VALUES (1, 'default', 'word');
             INSERT INTO entry SELECT 'default', 'word', max(id), x'6f6f' FROM log;",
        )
        .unwrap();
    say("committed");
    cues.recv().unwrap();
}

fn hold_the_turn(database: &Path, cues: &Receiver<String>) {
    let turn = turn_file(database);
    turn.lock().unwrap();
    say("held");
    cues.recv().unwrap();
}

fn turn_file(database: &Path) -> std::fs::File {
    let mut path = database.to_owned().into_os_string();
    path.push("-turn");
    std::fs::OpenOptions::new().write(true).open(path).unwrap()
}

/// Writes more and more until the disk takes no more; what is small and what is
/// read must work on.
async fn outgrow_the_limit(database: &Path) {
    let store = scratch::open(database, &scratch::settings()).await.unwrap();
    let (me, claims) = (worker("w"), [claim(1, 1)]);
    store.acquire(&me, &claims, SOON).await.unwrap();
    let mut written = 0;
    let failure = loop {
        let name = key(&format!("part{written}"));
        let value = vec![7; 200_000];
        match store.compare_and_set(&name, Expected::Absent, &value).await {
            Ok(outcome) => assert!(!outcome.is_conflict()),
            Err(error) => break error,
        }
        written += 1;
    };
    say(written);
    say(format_args!("{:?} {failure}", failure.kind()));
    let read = store.list(&divvy::store::Prefix::ALL).await.unwrap();
    say(read.len());
    divvy_testbed::until(SOON, "a renewal finds room", async || {
        store.renew(&me, &claims, SOON).await.is_ok()
    })
    .await;
    say("renewed");
}

/// Writes one value again and again: the log grows, the database does not.
async fn overwrite(database: &Path) {
    let store = scratch::open(database, &scratch::settings()).await.unwrap();
    let mut failures = 0;
    for byte in 0..60 {
        divvy_testbed::until(SOON, "a write finds room", async || {
            let entry = store.get(&key("value")).await.unwrap();
            let expected = Expected::from(entry.map(|entry| entry.revision));
            let value = vec![byte; 200_000];
            match store.compare_and_set(&key("value"), expected, &value).await {
                Ok(outcome) => !outcome.is_conflict(),
                Err(error) => {
                    assert_eq!(error.kind(), StoreErrorKind::Unfit, "{error}");
                    failures += 1;
                    false
                }
            }
        })
        .await;
    }
    say(failures);
}
