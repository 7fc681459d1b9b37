//! Which processes of commands are alive, by `/proc`: those in the command's
//! process group, and those that have left it but still have its mark in their
//! environment.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;

/// The variable of the environment that holds a command's mark.
pub(super) const MARK_VARIABLE: &str = "DIVVY_RUN";

/// A command, as its processes are found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sought {
    pub(super) group: Pid,
    /// Different for every start of a command.
    pub(super) mark: Box<str>,
}

/// A process of a command that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) pid: Pid,
    pub(super) name: String,
    /// Whether it has left the process group of its command.
    pub(super) has_left: bool,
}

/// Looks at all processes once for everybody who asks meanwhile: with many
/// commands that end at once, one look for each would take too long.
#[derive(Debug, Default)]
pub(crate) struct Census(Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    questions: Vec<Question>,
    is_running: bool,
}

#[derive(Debug)]
struct Question {
    sought: Sought,
    reply: oneshot::Sender<Result<Vec<Found>, String>>,
}

impl Census {
    /// The processes of a command that are alive after this was called.
    pub(super) async fn alive(self: &Arc<Self>, sought: Sought) -> Result<Vec<Found>, String> {
        let (reply, answer) = oneshot::channel();
        {
            let mut asked = self.asked();
            asked.questions.push(Question { sought, reply });
            if !std::mem::replace(&mut asked.is_running, true) {
                let this = Arc::clone(self);
                tokio::task::spawn_blocking(move || this.run());
            }
        }
        answer.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let questions = {
                let mut asked = self.asked();
                asked.is_running = !asked.questions.is_empty();
                if !asked.is_running {
                    return;
                }
                std::mem::take(&mut asked.questions)
            };
            let sought = questions.iter().map(|question| question.sought.clone());
            let mut found = find(&sought.collect::<Vec<_>>()).map_err(|error| error.to_string());
            for question in questions {
                let answer = match &mut found {
                    Ok(found) => Ok(found.remove(&question.sought.group).unwrap_or_default()),
                    Err(why) => Err(why.clone()),
                };
                let _gone = question.reply.send(answer);
            }
        }
    }
}

/// The processes of these commands that are alive, by process group.
pub(super) fn find(sought: &[Sought]) -> io::Result<HashMap<Pid, Vec<Found>>> {
    let marks: HashMap<&str, Pid> = sought
        .iter()
        .map(|command| (&*command.mark, command.group))
        .collect();
    let groups: HashSet<Pid> = sought.iter().map(|command| command.group).collect();
    let mut found: HashMap<Pid, Vec<Found>> = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        // It may have ended since.
        let Some(process) = Process::read(pid) else {
            continue;
        };
        let own = process.group.filter(|group| groups.contains(group));
        let escaped = || mark_of(pid).and_then(|mark| marks.get(mark.as_str()).copied());
        if let Some(group) = own.or_else(escaped) {
            found.entry(group).or_default().push(Found {
                pid,
                name: process.name,
                has_left: own.is_none(),
            });
        }
    }
    Ok(found)
}

/// Kills a process that has left the group of its command, if it still is that
/// process: its number may have been given to another one.
pub(super) fn kill_escaped(pid: Pid, mark: &str) -> rustix::io::Result<()> {
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(()),
        opened => opened?,
    };
    if mark_of(pid).as_deref() != Some(mark) {
        return Ok(());
    }
    match pidfd_send_signal(process, Signal::KILL) {
        Err(Errno::SRCH) => Ok(()),
        sent => sent,
    }
}

struct Process {
    name: String,
    group: Option<Pid>,
}

impl Process {
    /// A process, if it is alive.
    fn read(pid: Pid) -> Option<Self> {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        Self::parse(&String::from_utf8_lossy(&fs::read(path).ok()?))
    }

    fn parse(stat: &str) -> Option<Self> {
        // A name may hold anything, also brackets.
        let (before, rest) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = rest.split_whitespace();
        let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
        let is_dead = matches!(state, "Z" | "X" | "x");
        (!is_dead).then(|| Self {
            name: name.to_owned(),
            group: group.parse().ok().and_then(Pid::from_raw),
        })
    }
}

/// The mark in the environment of a process, where that may be read.
fn mark_of(pid: Pid) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let mark = variables.find_map(|variable| {
        let value = variable.strip_prefix(MARK_VARIABLE.as_bytes())?;
        value.strip_prefix(b"=")
    })?;
    String::from_utf8(mark.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is_and_a_dead_one_is_none() {
        let read = Process::parse("7 (a) S (b) R 1 42 42 0 -1").unwrap();
        assert_eq!(
            (read.name.as_str(), read.group),
            ("a) S (b", Pid::from_raw(42))
        );
        assert!(Process::parse("7 (sh) Z 1 42 42 0 -1").is_none());
        assert!(Process::parse("7 (sh").is_none());
    }

    #[tokio::test]
    async fn processes_are_found_by_their_group_and_by_their_mark() {
        use std::os::unix::process::CommandExt as _;
        let mark = format!("{:x}", fastrand::u128(..));
        let mut leader = std::process::Command::new("setsid")
            .args(["--fork", "sleep", "1000"])
            .env(MARK_VARIABLE, &mark)
            .process_group(0)
            .spawn()
            .unwrap();
        let sought = Sought {
            group: Pid::from_child(&leader),
            mark: mark.clone().into(),
        };
        // It leaves a process in a session of its own behind.
        leader.wait().unwrap();
        let census = Arc::new(Census::default());
        let found = census.alive(sought.clone()).await.unwrap();
        let [escaped] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!(escaped.has_left);
        kill_escaped(escaped.pid, "another mark").unwrap();
        assert_eq!(census.alive(sought.clone()).await.unwrap().len(), 1);
        kill_escaped(escaped.pid, &mark).unwrap();
        while !census.alive(sought.clone()).await.unwrap().is_empty() {}
    }
}
