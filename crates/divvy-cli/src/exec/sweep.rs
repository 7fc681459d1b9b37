//! The sweeper, a process of every agent: it kills the commands whose lease has
//! ended, whatever their agent does, and all of them when the agent is gone.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, park_timeout};
use std::time::Duration;

use anyhow::Context as _;
use divvy::Moment;
use divvy::manager::now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use tokio::signal::unix::{SignalKind, signal};

use super::census::{CommandRun, LiveProcess, find, start_of};
use super::sweeper::READY;
use crate::failure::Failure;
use crate::runtime;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// How often processes that have left their group are looked for after it was
/// killed, at most, and how long in between: those of another user stay.
const LOOKS_MAX: u32 = 40;
/// How many times what a look finds is stopped before it is killed: each finds
/// what the last one left time to start.
const STOPS_MAX: u32 = 8;
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Is the sweeper: reads what its agent writes until that is gone.
pub(crate) fn sweep() -> Result<(), Failure> {
    // A service manager asks all processes to end at once; this one is the last.
    let runtime = runtime::here().map_err(Failure::Failed)?;
    let _entered = runtime.enter();
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        // From now on it does nothing, whether somebody waits for it or not.
        let _unheard = signal(kind).context("signals").map_err(Failure::Failed)?;
    }
    // Timers that do not count a suspend would let commands run on after it.
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)
        .context("cannot make a timer")
        .map_err(Failure::Failed)?;
    let mut out = io::stdout();
    // An agent that does not read it is gone, and so are its commands.
    let _gone = out.write_all(READY.as_bytes()).and_then(|()| out.flush());
    let commands = Arc::default();
    let listened = listen(&commands, &timer);
    // Also where listening failed: nobody would end them later.
    let all = lock(&commands).all();
    end(all, None);
    listened.context("stdin").map_err(Failure::Failed)
}

/// Does as its agent says until that is gone.
fn listen(commands: &Arc<Mutex<Commands>>, timer: &OwnedFd) -> io::Result<()> {
    let mut unread = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        set(timer, lock(commands).next_end())?;
        wait(&[io::stdin().as_fd(), timer.as_fd()], None)?;
        // Everything that was said first: it may be that a lease goes on.
        while wait(&[io::stdin().as_fd()], Some(&Timespec::default()))? {
            let read = match rustix::io::read(io::stdin(), &mut buffer) {
                Err(Errno::INTR) => continue,
                read => read?,
            };
            if read == 0 {
                return Ok(());
            }
            unread.extend_from_slice(&buffer[..read]);
            let whole = unread.iter().rposition(|byte| *byte == b'\n');
            let rest = unread.split_off(whole.map_or(0, |at| at + 1));
            let text = String::from_utf8_lossy(&unread);
            let mut commands = lock(commands);
            text.lines().for_each(|line| commands.read(line));
            unread = rest;
        }
        let ended = lock(commands).stop_ended(now());
        if !ended.is_empty() {
            end_aside(commands, ended);
        }
    }
}

fn lock(commands: &Mutex<Commands>) -> MutexGuard<'_, Commands> {
    commands.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends these commands on a thread of its own: others' leases end meanwhile.
fn end_aside(commands: &Arc<Mutex<Commands>>, ended: Vec<CommandRun>) {
    let (aside, runs) = (Arc::clone(commands), ended.clone());
    let spawned = Builder::new().spawn(move || end(runs, Some(&aside)));
    if spawned.is_err() {
        // There are as many threads as there may be.
        end(ended, Some(commands));
    }
}

/// Waits until something can be read, and says whether that is so.
fn wait(of: &[std::os::fd::BorrowedFd<'_>], limit: Option<&Timespec>) -> io::Result<bool> {
    let mut all: Vec<PollFd<'_>> = of.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    match poll(&mut all, limit) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

fn set(timer: &OwnedFd, at: Option<Moment>) -> io::Result<()> {
    // No time at all is none that it would go off at.
    let at = at.unwrap_or_default().to_origin();
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec {
            tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at.subsec_nanos().into(),
        },
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}

/// Kills everything of these commands. While their agent lives, their groups are
/// stopped already, and known to it.
fn end(mut runs: Vec<CommandRun>, known: Option<&Mutex<Commands>>) {
    if known.is_none() {
        runs.iter().for_each(stop_led);
    }
    // The number of a group may be another's when its agent is gone: then each
    // process is signalled by itself.
    let is_aimed_at = |process: &LiveProcess| known.is_none() || process.has_left;
    stop_all(&mut runs, is_aimed_at);
    if let Some(commands) = known {
        lock(commands).kill_groups(&runs);
    }
    for _ in 0..LOOKS_MAX {
        // A look that fails may succeed later.
        if let Ok(found) = find(&runs) {
            if found.is_empty() {
                return;
            }
            for run in &mut runs {
                let processes = found.get(&run.group).map_or(&[][..], Vec::as_slice);
                run.remember(processes);
                for process in processes.iter().filter(|process| is_aimed_at(process)) {
                    // The agent reports those that may not be signalled.
                    let _refused = process.signal(Signal::KILL);
                }
            }
        }
        park_timeout(LOOK_INTERVAL);
    }
}

/// Stops these processes until a look finds no others: children without a mark
/// are known by their parents alone, which must not end before they are found.
fn stop_all(runs: &mut [CommandRun], is_aimed_at: impl Fn(&LiveProcess) -> bool) {
    let mut stopped = HashSet::new();
    for _ in 0..STOPS_MAX {
        let Ok(found) = find(runs) else { return };
        let before = stopped.len();
        for run in &mut *runs {
            let processes = found.get(&run.group).map_or(&[][..], Vec::as_slice);
            run.remember(processes);
            for process in processes.iter().filter(|process| is_aimed_at(process)) {
                if stopped.insert((process.pid, process.started)) {
                    let _refused = process.signal(Signal::STOP);
                }
            }
        }
        if stopped.len() == before {
            return;
        }
    }
}

/// Stops the group of a command whose agent is gone, if its leader shows that
/// the number is still the command's.
fn stop_led(run: &CommandRun) {
    if start_of(run.group).is_ok_and(|started| started == Some(run.started)) {
        signal_group(run.group, Signal::STOP);
    }
}

/// The commands of an agent.
#[derive(Debug, Default)]
struct Commands {
    groups: HashMap<Pid, Command>,
    /// When leases end; those that have ended have no time left.
    leases: HashMap<u64, Moment>,
    /// Commands whose lease has ended, and that are stopped or killed.
    killed: HashSet<Pid>,
}

#[derive(Debug)]
struct Command {
    started: u64,
    mark: Box<str>,
    lease: Option<u64>,
}

impl Commands {
    fn read(&mut self, line: &str) {
        let Some((sign, rest)) = line.split_at_checked(1) else {
            return;
        };
        let mut words = rest.split(' ');
        let first = words.next().unwrap_or_default();
        match sign {
            "+" => {
                let mark = words.next().unwrap_or_default().into();
                let mut number = || words.next()?.parse().ok();
                let (started, lease) = (number().unwrap_or_default(), number());
                let command = Command {
                    started,
                    mark,
                    lease,
                };
                if let Some(group) = first.parse().ok().and_then(Pid::from_raw) {
                    self.groups.insert(group, command);
                    self.killed.remove(&group);
                }
            }
            "-" => {
                if let Some(group) = first.parse().ok().and_then(Pid::from_raw) {
                    self.groups.remove(&group);
                    self.killed.remove(&group);
                }
            }
            "=" => {
                let nanos = first.parse().unwrap_or_default();
                let until = Moment::from_origin(Duration::from_nanos(nanos));
                let leases = words.filter_map(|word| word.parse().ok());
                self.leases.extend(leases.map(|lease| (lease, until)));
            }
            "~" => {
                first
                    .parse()
                    .ok()
                    .map(|lease: u64| self.leases.remove(&lease));
            }
            // The agent wants to know that everything until here was read.
            "?" => answer(first),
            _ => {}
        }
    }

    /// Commands that run, and when their leases end.
    fn running(&self) -> impl Iterator<Item = (Pid, &Command, Moment)> {
        let running = self
            .groups
            .iter()
            .filter(|(group, _)| !self.killed.contains(group));
        running.filter_map(|(group, command)| {
            let until = self.leases.get(&command.lease?)?;
            Some((*group, command, *until))
        })
    }

    fn next_end(&self) -> Option<Moment> {
        self.running().map(|(_, _, until)| until).min()
    }

    /// Stops the commands whose lease has ended, so that they do nothing more.
    fn stop_ended(&mut self, now: Moment) -> Vec<CommandRun> {
        let ended: Vec<CommandRun> = self
            .running()
            .filter(|(_, _, until)| *until <= now)
            .map(|(group, command, _)| command.run(group))
            .collect();
        for run in &ended {
            self.killed.insert(run.group);
            signal_group(run.group, Signal::STOP);
        }
        ended
    }

    /// Kills those of these groups that the agent has not removed since: their
    /// numbers are the commands'.
    fn kill_groups(&self, runs: &[CommandRun]) {
        for run in runs {
            let command = self.groups.get(&run.group);
            if command.is_some_and(|command| command.mark == run.mark) {
                signal_group(run.group, Signal::KILL);
            }
        }
    }

    fn all(&self) -> Vec<CommandRun> {
        let all = self.groups.iter();
        all.map(|(group, command)| command.run(*group)).collect()
    }
}

impl Command {
    fn run(&self, group: Pid) -> CommandRun {
        CommandRun::new(group, self.started, self.mark.clone())
    }
}

fn answer(number: &str) {
    let mut out = io::stdout();
    // An agent that is gone needs none.
    let _gone = writeln!(out, "{number}").and_then(|()| out.flush());
}

/// The number has to be the command's: its agent does not wait for it before
/// this was told that nothing of it is left.
fn signal_group(group: Pid, signal: Signal) {
    // Who is gone already needs no signal; who may not be signalled is reported
    // by the agent.
    let _gone = kill_process_group(group, signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::from_origin(Duration::from_nanos(nanos))
    }

    #[test]
    fn a_command_runs_until_its_lease_ends_and_leases_are_shared() {
        let mut commands = Commands::default();
        // Numbers that no process has.
        for line in [
            "=100 1 2",
            "+2000000001 a 7 1",
            "+2000000002 b 7 2",
            "+2000000003 c 7 1",
            "+2000000004 d 7",
        ] {
            commands.read(line);
        }
        assert_eq!(commands.next_end(), Some(at(100)));
        commands.read("=200 1");
        assert_eq!(commands.next_end(), Some(at(100)));
        let marks = |mut killed: Vec<CommandRun>| {
            killed.sort_by_key(|command| command.group.as_raw_nonzero());
            killed
                .into_iter()
                .map(|command| command.mark.to_string())
                .collect::<String>()
        };
        assert_eq!(marks(commands.stop_ended(at(99))), "");
        assert_eq!(marks(commands.stop_ended(at(100))), "b");
        assert_eq!(
            marks(commands.stop_ended(at(100))),
            "",
            "it is stopped once"
        );
        assert_eq!(commands.next_end(), Some(at(200)));
        commands.read("-2000000003");
        commands.read("=0 1");
        assert_eq!(
            marks(commands.stop_ended(at(100))),
            "a",
            "it has no time left"
        );
        assert_eq!(commands.next_end(), None);
        assert_eq!(marks(commands.all()), "abd");
    }
}
