//! Which processes of commands are alive, by `/proc`: those in the command's
//! process group; those that have left it but still have its mark in their
//! environment; and descendants of either, while their parents are alive.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, park_timeout};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;

/// The variable of the environment that holds a command's mark.
pub(super) const MARK_VARIABLE: &str = "DIVVY_RUN";
/// Between two looks at all processes, where the first found nothing.
const SECOND_LOOK: Duration = Duration::from_millis(3);
/// How often processes in the middle of `execve` are read again, and for how
/// long: those that hang there must not keep everybody's partitions.
const EXEC_INTERVAL: Duration = Duration::from_millis(1);
const EXEC_MAX: Duration = Duration::from_secs(1);
/// More than environments usually have.
const ENVIRONMENT_BYTES: usize = 256 * 1024;
/// The flag of kernel threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One start of a command, and how its processes are recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandRun {
    pub(super) group: Pid,
    /// When the leader of the group was started, in ticks since the system was.
    pub(super) started: u64,
    /// Different for every start of a command.
    pub(super) mark: Box<str>,
    /// Processes that have left the group, as of the last look, with the time of
    /// their start. They stay the command's when nothing else shows it any more:
    /// a parent has ended, an environment cannot be read.
    escaped: HashMap<Pid, u64>,
}

impl CommandRun {
    pub(super) fn new(group: Pid, started: u64, mark: Box<str>) -> Self {
        Self {
            group,
            started,
            mark,
            escaped: HashMap::new(),
        }
    }

    /// Remembers the processes that were found.
    pub(super) fn remember(&mut self, found: &[LiveProcess]) {
        let escaped = found.iter().filter(|process| process.has_left);
        self.escaped = escaped
            .map(|process| (process.pid, process.started))
            .collect();
    }
}

/// A process of a command that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LiveProcess {
    pub(super) pid: Pid,
    pub(super) name: String,
    /// When it was started, in ticks since the system was: with the pid, this is
    /// no other process.
    pub(super) started: u64,
    /// Whether it has left the process group of its command.
    pub(super) has_left: bool,
}

impl LiveProcess {
    /// Signals it, unless it has ended: its pid may be another process's by now.
    pub(super) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        let process = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(()),
            opened => opened?,
        };
        let now = Process::read(self.pid);
        let now = now.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if now.is_none_or(|now| now.started != self.started) {
            return Ok(());
        }
        match pidfd_send_signal(process, signal) {
            Err(Errno::SRCH) => Ok(()),
            sent => sent,
        }
    }
}

/// Looks at all processes once for everybody who asks meanwhile: with many
/// commands that end at once, one look for each would take too long.
#[derive(Debug, Default)]
pub(crate) struct Census(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    queries: Vec<Query>,
    is_running: bool,
}

#[derive(Debug)]
struct Query {
    run: CommandRun,
    reply: oneshot::Sender<Result<Vec<LiveProcess>, String>>,
}

impl Census {
    /// The processes of a command that are alive after this was called.
    pub(super) async fn alive(
        self: &Arc<Self>,
        run: CommandRun,
    ) -> Result<Vec<LiveProcess>, String> {
        let (reply, answer) = oneshot::channel();
        {
            let mut queue = self.queue();
            queue.queries.push(Query { run, reply });
            if !std::mem::replace(&mut queue.is_running, true) {
                let this = Arc::clone(self);
                // Not on tokio's threads: it panics where none can be started.
                if let Err(error) = Builder::new().spawn(move || this.run()) {
                    // Everybody who asked meanwhile asks again.
                    *queue = Queue::default();
                    return Err(error.to_string());
                }
            }
        }
        answer.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let queries = {
                let mut queue = self.queue();
                queue.is_running = !queue.queries.is_empty();
                if !queue.is_running {
                    return;
                }
                std::mem::take(&mut queue.queries)
            };
            let (runs, replies): (Vec<_>, Vec<_>) = queries
                .into_iter()
                .map(|query| (query.run, query.reply))
                .unzip();
            let found = find(&runs).map_err(|error| error.to_string());
            for (run, reply) in runs.iter().zip(replies) {
                // Several may ask about one command, also those who do not wait
                // for the answer any more.
                let answer = match &found {
                    Ok(found) => Ok(found.get(&run.group).cloned().unwrap_or_default()),
                    Err(why) => Err(why.clone()),
                };
                let _gone = reply.send(answer);
            }
        }
    }
}

/// The processes of these commands that are alive, by process group.
pub(super) fn find(runs: &[CommandRun]) -> io::Result<HashMap<Pid, Vec<LiveProcess>>> {
    let mut hanging = HashSet::new();
    let mut found = look(runs, &mut hanging)?;
    if runs.iter().any(|run| !found.contains_key(&run.group)) {
        // A look is no snapshot: a process may start another one whose pid was
        // passed already, and end before its own is reached.
        park_timeout(SECOND_LOOK);
        for (group, processes) in look(runs, &mut hanging)? {
            found.entry(group).or_insert(processes);
        }
    }
    Ok(found)
}

/// Looks once. Processes that hang in `execve` are waited for and become known
/// as `hanging`; those that are known are not waited for.
fn look(
    runs: &[CommandRun],
    hanging: &mut HashSet<(Pid, u64)>,
) -> io::Result<HashMap<Pid, Vec<LiveProcess>>> {
    let processes = Process::all()?;
    // A session may have no number in this namespace of pids.
    let session = processes.get(&getpid()).and_then(|own| own.session);
    // The number of a group is another's where its leader is another process, or
    // where it has none and is of another session.
    let groups: HashMap<Pid, u64> = runs.iter().map(|run| (run.group, run.started)).collect();
    let own_group = |process: &Process| {
        let group = process.group?;
        let started = groups.get(&group)?;
        let leader = processes.get(&group).map(|leader| leader.started);
        let is_same = leader.unwrap_or(*started) == *started;
        (is_same && process.session == session).then_some(group)
    };
    let mut escaped = HashMap::new();
    for run in runs {
        escaped.extend(run.escaped.iter().map(|process| (process, run.group)));
    }
    let mut owners = HashMap::new();
    let mut others = Vec::new();
    for (pid, process) in &processes {
        match own_group(process).or_else(|| escaped.get(&(pid, &process.started)).copied()) {
            Some(group) => {
                owners.insert(*pid, group);
            }
            None => others.push((*pid, process)),
        }
    }
    let by_mark: HashMap<&str, Pid> = runs.iter().map(|run| (&*run.mark, run.group)).collect();
    for (pid, mark) in marks(others, hanging)? {
        owners.extend(by_mark.get(mark.as_str()).map(|group| (pid, *group)));
    }
    let mut found: HashMap<Pid, Vec<LiveProcess>> = HashMap::new();
    for (pid, process) in &processes {
        let Some(group) = owner_of(*pid, &processes, &owners) else {
            continue;
        };
        found.entry(group).or_default().push(LiveProcess {
            pid: *pid,
            name: process.name.clone(),
            started: process.started,
            has_left: process.group != Some(group),
        });
    }
    for processes in found.values_mut() {
        processes.sort_by_key(|process| process.pid.as_raw_nonzero());
    }
    Ok(found)
}

/// The marks of those processes that have one.
fn marks(
    mut unread: Vec<(Pid, &Process)>,
    hanging: &mut HashSet<(Pid, u64)>,
) -> io::Result<Vec<(Pid, String)>> {
    // One deadline for all: many that hang take no longer than one.
    let deadline = Instant::now() + EXEC_MAX;
    let mut marks = Vec::new();
    loop {
        let mut replaced = Vec::new();
        for (pid, process) in unread {
            match process.mark(pid)? {
                Mark::Is(mark) => marks.push((pid, mark)),
                Mark::None => {}
                Mark::Replaced => replaced.push((pid, process)),
            }
        }
        let is_late = Instant::now() >= deadline;
        if is_late {
            hanging.extend(
                replaced
                    .iter()
                    .map(|(pid, process)| (*pid, process.started)),
            );
        }
        let is_known =
            |(pid, process): &(Pid, &Process)| hanging.contains(&(*pid, process.started));
        if replaced.iter().all(is_known) {
            return Ok(marks);
        }
        park_timeout(EXEC_INTERVAL);
        unread = replaced;
    }
}

/// The group of the command that a process, or one of its ancestors, is of.
fn owner_of(
    mut pid: Pid,
    processes: &HashMap<Pid, Process>,
    owners: &HashMap<Pid, Pid>,
) -> Option<Pid> {
    // Processes come and go during a look, so that parents might form a circle.
    for _ in 0..processes.len() {
        if let Some(group) = owners.get(&pid) {
            return Some(*group);
        }
        let parent = processes.get(&pid)?.parent?;
        if processes.get(&parent)?.started > processes.get(&pid)?.started {
            // Its parent has ended, and this one got its pid.
            return None;
        }
        pid = parent;
    }
    None
}

/// What the environment of a process tells.
enum Mark {
    Is(String),
    /// It has none, or none that may be read.
    None,
    /// It has no environment yet, in the middle of `execve`.
    Replaced,
}

/// When a process was started, in ticks since the system was, also of one that
/// has ended and was not waited for; nothing where there is none.
pub(super) fn start_of(pid: Pid) -> io::Result<Option<u64>> {
    match fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(stat) => {
            let stat = String::from_utf8_lossy(&stat);
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            // It is the 22nd in all.
            let started = fields.split_whitespace().nth(22 - 3);
            Ok(started.and_then(|started| started.parse().ok()))
        }
        Err(error) if has_ended(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Debug)]
struct Process {
    name: String,
    parent: Option<Pid>,
    group: Option<Pid>,
    session: Option<Pid>,
    /// In ticks since the system was started.
    started: u64,
    /// Whether the main thread has ended, and others have not.
    is_headless: bool,
    /// Whether it has an environment without any variable, and is not just about
    /// to get another one.
    has_no_variables: bool,
}

impl Process {
    /// All that are alive, but for the kernel's own.
    fn all() -> io::Result<HashMap<Pid, Self>> {
        let mut all = HashMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            let Some(pid) = number.and_then(Pid::from_raw) else {
                continue;
            };
            // It may have ended since.
            all.extend(Self::read(pid)?.map(|process| (pid, process)));
        }
        Ok(all)
    }

    /// A process, if it is alive and may be seen. That it cannot be read, as
    /// for want of a file descriptor, does not mean that it has ended.
    fn read(pid: Pid) -> io::Result<Option<Self>> {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        match fs::read(path) {
            Ok(stat) => Ok(Self::parse(&String::from_utf8_lossy(&stat))),
            // Mounted with `hidepid=1`, `/proc` denies other users' processes.
            Err(error) if has_ended(&error) || is_denied(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads what `proc_pid_stat(5)` describes.
    fn parse(stat: &str) -> Option<Self> {
        // A name may hold anything, also brackets.
        let (before, rest) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The page counts fields from 1, and the state is the third.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let pid = |field| Pid::from_raw(i32::try_from(number(field)?).ok()?);
        let threads = number(20)?;
        let is_dead = match *fields.first()? {
            // Of a process whose main thread has ended, others may run on.
            "Z" => threads <= 1,
            "X" | "x" => true,
            _ => false,
        };
        let is_kernels = number(9)? & KERNEL_THREAD != 0;
        // The environment's addresses are 0 or equal in the middle of `execve`,
        // and that of the code is 0 until they are not.
        let is_complete = number(26)? != 0;
        let environment = number(50)?..number(51)?;
        (!is_dead && !is_kernels).then(|| Self {
            name: name.to_owned(),
            parent: pid(4),
            group: pid(5),
            session: pid(6),
            started: number(22).unwrap_or_default(),
            is_headless: fields.first() == Some(&"Z"),
            has_no_variables: is_complete && environment.is_empty(),
        })
    }

    /// The mark in its environment.
    fn mark(&self, pid: Pid) -> io::Result<Mark> {
        let Some(mut environment) = self.environment(pid)? else {
            return Ok(Mark::None);
        };
        if environment.is_empty() {
            // It has ended, or has none, or is in the middle of `execve`.
            let now = Self::read(pid)?.filter(|now| now.started == self.started);
            let Some(now) = now.filter(|now| !now.has_no_variables) else {
                return Ok(Mark::None);
            };
            environment = match now.environment(pid)? {
                Some(environment) if environment.is_empty() => return Ok(Mark::Replaced),
                Some(environment) => environment,
                None => return Ok(Mark::None),
            };
        }
        let mut variables = environment.split(|byte| *byte == 0);
        let mark = variables.find_map(|variable| {
            let value = variable.strip_prefix(MARK_VARIABLE.as_bytes())?;
            value.strip_prefix(b"=")
        });
        let mark = mark.and_then(|mark| String::from_utf8(mark.to_vec()).ok());
        Ok(mark.map_or(Mark::None, Mark::Is))
    }

    /// Its environment; empty where there is none at the moment, and none where
    /// it may not be read.
    fn environment(&self, pid: Pid) -> io::Result<Option<Vec<u8>>> {
        let directory = format!("/proc/{}", pid.as_raw_nonzero());
        if !self.is_headless {
            return read_environment(Path::new(&directory));
        }
        // A thread that has ended has none, and the others have the same.
        let threads = match fs::read_dir(format!("{directory}/task")) {
            Err(error) if has_ended(&error) || is_denied(&error) => return Ok(None),
            threads => threads?,
        };
        let mut longest = None;
        for thread in threads {
            let thread = match thread {
                Err(error) if has_ended(&error) => break,
                thread => thread?,
            };
            longest = longest.max(read_environment(&thread.path())?);
        }
        Ok(longest)
    }
}

fn read_environment(directory: &Path) -> io::Result<Option<Vec<u8>>> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(directory.join("environ"))?;
        let mut environment = Vec::with_capacity(ENVIRONMENT_BYTES);
        // A second read may find another program, with an environment that ends
        // earlier: one read has to do where it can.
        rustix::io::read(&file, spare_capacity(&mut environment))?;
        if environment.len() == ENVIRONMENT_BYTES {
            file.read_to_end(&mut environment)?;
        }
        Ok(environment)
    };
    match read() {
        Ok(environment) => Ok(Some(environment)),
        Err(error) if has_ended(&error) => Ok(Some(Vec::new())),
        Err(error) if is_denied(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn has_ended(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::SRCH)
    )
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Longer than anything takes, even on a machine that does much else.
    const SOON: Duration = Duration::from_secs(60);

    fn stat(name: &str, state: char, threads: u32, environment: &str) -> String {
        // The address of the code comes with those of the environment.
        let code = if environment == "0 0" { "0" } else { "7" };
        let between = ["0"; 23].join(" ");
        format!(
            "7 ({name}) {state} 1 42 42 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 {threads} 0 555 0 0 0 {code} {between} {environment} 0"
        )
    }

    #[test]
    fn a_process_is_alive_until_its_last_thread_has_ended() {
        let read = Process::parse(&stat("a) S (b", 'R', 1, "8 9")).unwrap();
        assert_eq!(
            (read.name.as_str(), read.group, read.parent, read.started),
            ("a) S (b", Pid::from_raw(42), Pid::from_raw(1), 555)
        );
        assert!(!read.has_no_variables && !read.is_headless);
        assert!(
            Process::parse(&stat("sh", 'S', 1, "9 9")).is_some_and(|read| read.has_no_variables)
        );
        // In the middle of `execve`.
        assert!(
            Process::parse(&stat("sh", 'R', 1, "0 0")).is_some_and(|read| !read.has_no_variables)
        );
        assert!(Process::parse(&stat("sh", 'Z', 1, "0 0")).is_none());
        assert!(Process::parse(&stat("java", 'Z', 2, "0 0")).is_some_and(|read| read.is_headless));
        assert!(Process::parse("7 (sh").is_none());
    }

    /// A shell that runs this in a process group of its own, which it leads.
    struct Shell {
        child: Child,
        run: CommandRun,
    }

    impl Shell {
        fn start(script: &str) -> Self {
            let mark = format!("{:032x}", fastrand::u128(..));
            let child = Command::new("sh")
                .args(["-c", script])
                .env(MARK_VARIABLE, &mark)
                .stdin(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap();
            let group = Pid::from_child(&child);
            let started = start_of(group).unwrap().unwrap();
            let run = CommandRun::new(group, started, mark.into());
            Self { child, run }
        }

        /// Looks until so many are alive.
        fn wait_for(&mut self, count: usize) -> Vec<LiveProcess> {
            let begun = Instant::now();
            loop {
                let mut found = find(std::slice::from_ref(&self.run)).unwrap();
                let found = found.remove(&self.run.group).unwrap_or_default();
                self.run.remember(&found);
                if found.len() == count {
                    return found;
                }
                assert!(begun.elapsed() < SOON, "{found:?} are not {count}");
                park_timeout(Duration::from_millis(5));
            }
        }
    }

    impl Shell {
        /// Looks until all that it started, so many, have left its group.
        fn wait_until_left(&mut self, count: usize) {
            let begun = Instant::now();
            let has_left = |process: &&LiveProcess| process.has_left;
            while self.wait_for(count + 1).iter().filter(has_left).count() < count {
                assert!(begun.elapsed() < SOON, "nothing leaves its group");
            }
        }
    }

    impl Drop for Shell {
        /// Also where a test fails, nothing stays.
        fn drop(&mut self) {
            let _gone = self.child.kill();
            let _gone = self.child.wait();
            for processes in find(std::slice::from_ref(&self.run)).unwrap().values() {
                for process in processes {
                    let _gone = process.signal(Signal::KILL);
                }
            }
        }
    }

    #[test]
    fn a_process_that_left_its_group_is_found_by_its_mark() {
        let mut shell = Shell::start("setsid sleep 1000 & read line");
        shell.wait_until_left(1);
        drop(shell.child.stdin.take());
        shell.child.wait().unwrap();
        // Nothing but the mark shows whose it is.
        shell.run.remember(&[]);
        let [escaped] = shell.wait_for(1).try_into().unwrap();
        assert!(escaped.has_left);
        let another = LiveProcess {
            started: escaped.started + 1,
            ..escaped.clone()
        };
        another.signal(Signal::KILL).unwrap();
        let [same] = shell.wait_for(1).try_into().unwrap();
        // Its name may have changed, from `setsid` to `sleep`.
        let identity = |process: &LiveProcess| (process.pid, process.started);
        assert_eq!(identity(&same), identity(&escaped));
        escaped.signal(Signal::KILL).unwrap();
        shell.wait_for(0);
    }

    #[test]
    fn a_group_whose_number_is_another_leaders_by_now_is_not_the_commands() {
        let mut shell = Shell::start("read line");
        let own = shell.wait_for(1);
        let mut another = CommandRun::new(shell.run.group, shell.run.started - 1, "x".into());
        let found = find(std::slice::from_ref(&another)).unwrap();
        assert!(found.is_empty(), "{found:?}");
        another.started = shell.run.started;
        let found = find(&[another]).unwrap();
        assert_eq!(found[&shell.run.group], own);
    }

    #[tokio::test]
    async fn everybody_who_asks_about_a_command_gets_the_same_answer() {
        let mut shell = Shell::start("read line");
        let expected = shell.wait_for(1);
        let census = Arc::new(Census::default());
        // So that both questions are answered by one look.
        census.queue().is_running = true;
        let answers = async {
            tokio::join!(
                census.alive(shell.run.clone()),
                census.alive(shell.run.clone()),
                async { census.run() }
            )
        };
        let (first, second, ()) = answers.await;
        assert_eq!(
            (first.unwrap(), second.unwrap()),
            (expected.clone(), expected)
        );
    }

    #[test]
    fn a_descendant_without_mark_is_found_and_remembered_when_its_parent_is_gone() {
        let mut shell = Shell::start("env -i setsid sleep 1000 & read line");
        shell.wait_until_left(1);
        drop(shell.child.stdin.take());
        shell.child.wait().unwrap();
        let [escaped] = shell.wait_for(1).try_into().unwrap();
        escaped.signal(Signal::KILL).unwrap();
        shell.wait_for(0);
    }

    #[test]
    fn processes_that_replace_themselves_all_the_time_are_always_found() {
        // Each is in the middle of `execve` for a good part of its life. It left its
        // group and its parent, but not its session: with a session of its own,
        // the scheduler would take a core from all other tests for it.
        let again = r#"exec sh -c "$AGAIN""#;
        let leave =
            r#"import os; os.setpgid(0, 0); os.execlp("sh", "sh", "-c", os.environ["AGAIN"])"#;
        let mut shell = Shell::start(&format!(
            "export AGAIN='{again}'; for i in 1 2; do python3 -c '{leave}' & done; read line"
        ));
        shell.wait_for(3);
        shell.wait_until_left(2);
        drop(shell.child.stdin.take());
        shell.child.wait().unwrap();
        let mut all = shell.wait_for(2);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            // One look, by mark alone.
            shell.run.remember(&[]);
            let runs = std::slice::from_ref(&shell.run);
            let mut found = look(runs, &mut HashSet::new()).unwrap();
            let found = found.remove(&shell.run.group).unwrap_or_default();
            assert_eq!(found.len(), 2, "{found:?} are not {all:?}");
            all = found;
        }
        for process in all {
            process.signal(Signal::KILL).unwrap();
        }
        shell.wait_for(0);
    }

    #[test]
    fn a_process_whose_main_thread_has_ended_is_found_by_its_mark() {
        let script = "import ctypes, threading, time\n\
                      threading.Thread(target=time.sleep, args=(1000,)).start()\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let mut shell = Shell::start(&format!("setsid python3 -c '{script}' & read line"));
        let begun = Instant::now();
        let pid = loop {
            let found = shell.wait_for(2);
            let left = found.iter().find(|process| process.has_left);
            let read = left.and_then(|left| Some((left.pid, Process::read(left.pid).unwrap()?)));
            if let Some((pid, _)) = read.filter(|(_, read)| read.is_headless) {
                break pid;
            }
            assert!(begun.elapsed() < SOON, "its main thread does not end");
        };
        drop(shell.child.stdin.take());
        shell.child.wait().unwrap();
        shell.run.remember(&[]);
        let [escaped] = shell.wait_for(1).try_into().unwrap();
        assert_eq!(escaped.pid, pid);
        escaped.signal(Signal::KILL).unwrap();
        shell.wait_for(0);
    }
}
