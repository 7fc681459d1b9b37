//! The process of a member.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::board::Board;
use crate::member::line::{Brief, LINE_BYTES_MAX, Numbered, Order, next_line};

/// Orders that wait for a member that stands still.
const ORDERS_MAX: usize = 256;
/// Longest that a member takes to answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Longest that a signal takes to have an effect, and how often that is looked
/// at.
const SIGNALLED_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How much of its last words is kept, and how long they are waited for.
const LAST_LINES: usize = 4;
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// A process that runs, or ran.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) life: usize,
    id: u32,
    handle: OwnedFd,
    orders: mpsc::Sender<String>,
    ended: watch::Receiver<bool>,
    /// Counts orders.
    count: u64,
}

impl Process {
    /// Starts a member, and listens to it from then on.
    pub(crate) fn start(
        command: std::process::Command,
        brief: &Brief,
        life: usize,
        board: Board,
    ) -> io::Result<Self> {
        let mut command = Command::from(command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // No terminal's signals.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let id = child.id().expect("nobody has waited for it");
        let pid = Pid::from_raw(id as i32).expect("processes have numbers");
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        let stdin = child.stdin.take().expect("it is piped");
        let (orders, ordered) = mpsc::channel(ORDERS_MAX);
        let first = serde_json::to_string(brief).expect("briefs have a JSON form");
        tokio::spawn(speak(stdin, first, ordered));
        let stderr = child.stderr.take().expect("it is piped");
        let (said, last_words) = oneshot::channel();
        tokio::spawn(last_lines(stderr, said));
        let (ending, ended) = watch::channel(false);
        let stdout = child.stdout.take().expect("it is piped");
        tokio::spawn(attend(child, stdout, (life, board), last_words, ending));
        Ok(Self {
            life,
            id,
            handle,
            orders,
            ended,
            count: 0,
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits until it has ended.
    pub(crate) async fn until_ended(&self) {
        let mut ended = self.ended.clone();
        // Whoever would say so is gone when the program ends.
        let _gone = ended.wait_for(|ended| *ended).await.is_err();
    }

    /// Tells it to do something, and waits until it is done. One that stands
    /// still does it when it goes on.
    pub(crate) async fn tell(
        &mut self,
        order: Order,
        is_heard: bool,
        board: &Board,
    ) -> Result<(), String> {
        self.count += 1;
        let number = self.count;
        let (asked, answer) = oneshot::channel();
        if is_heard {
            board.known().asked.insert((self.life, number), asked);
        }
        let line = serde_json::to_string(&Numbered { number, order });
        let line = line.expect("orders have a JSON form");
        if self.orders.try_send(line).is_err() {
            return Err("it takes no more orders".to_owned());
        }
        if !is_heard {
            return Ok(());
        }
        match timeout(ANSWER_MAX, answer).await {
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some(why))) => Err(why),
            Ok(Err(_gone)) => Err("it has ended".to_owned()),
            Err(_elapsed) => Err(format!("it does not answer within {ANSWER_MAX:?}")),
        }
    }

    pub(crate) async fn kill(&self) {
        self.signal(Signal::KILL);
        self.until_ended().await;
    }

    /// Lets it stand still; returns when it does.
    pub(crate) async fn pause(&self) -> Result<(), String> {
        self.signal(Signal::STOP);
        self.until_state(true).await
    }

    /// Lets it go on.
    pub(crate) async fn resume(&self) -> Result<(), String> {
        self.signal(Signal::CONT);
        self.until_state(false).await
    }

    fn signal(&self, signal: Signal) {
        // Who has ended needs none.
        let _ended = pidfd_send_signal(&self.handle, signal);
    }

    async fn until_state(&self, is_still: bool) -> Result<(), String> {
        let reached = async {
            while self.is_still() != is_still && !self.has_ended() {
                sleep(LOOK_EVERY).await;
            }
        };
        let waited = timeout(SIGNALLED_MAX, reached).await;
        waited.map_err(|_elapsed| "the system does not do as it is told".to_owned())
    }

    /// Whether the system says that it stands still.
    fn is_still(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id));
        stat.is_ok_and(|stat| stat.contains(") T "))
    }
}

/// Writes to a member, until nobody has anything to say to it: then it ends.
async fn speak(mut stdin: ChildStdin, first: String, mut orders: mpsc::Receiver<String>) {
    let mut next = Some(first);
    while let Some(mut line) = next {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
        next = orders.recv().await;
    }
}

/// Listens to a member until it has ended.
async fn attend(
    mut child: Child,
    stdout: ChildStdout,
    (life, board): (usize, Board),
    last_words: oneshot::Receiver<String>,
    ending: watch::Sender<bool>,
) {
    let mut ear = BufReader::new(stdout);
    while let Ok(Some(line)) = next_line(&mut ear, LINE_BYTES_MAX).await {
        let Ok(said) = serde_json::from_str(&line) else {
            break;
        };
        board.known().hear(life, line, said);
    }
    // Whoever closed its output, or says what cannot be read, is over.
    let _ended = child.start_kill();
    let status = child.wait().await;
    let words = timeout(LAST_WORDS_MAX, last_words).await;
    let words = words.ok().and_then(Result::ok).unwrap_or_default();
    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let words = match words.is_empty() {
        true => status,
        false => format!("{words} ({status})"),
    };
    let now = super::now();
    board.known().gone(now, life, &words);
    ending.send_replace(true);
}

async fn last_lines(stderr: ChildStderr, said: oneshot::Sender<String>) {
    let mut ear = BufReader::new(stderr);
    let mut kept = VecDeque::new();
    while let Ok(Some(line)) = next_line(&mut ear, LINE_BYTES_MAX).await {
        if kept.len() == LAST_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    // Nobody may want to know.
    let _unheard = said.send(Vec::from(kept).join("; "));
}
