//! Which processes of commands are alive, by `/proc`: those in the command's
//! process group; those that have left it but still have its mark in their
//! environment; and descendants of either, while their parents are alive.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;

/// The variable of the environment that holds a command's mark.
pub(super) const MARK_VARIABLE: &str = "DIVVY_RUN";
/// Between two looks at all processes, where the first found nothing.
const SECOND_LOOK: Duration = Duration::from_millis(3);
/// How often a process in the middle of `execve` is read again, and for how
/// long: one that hangs there must not keep everybody's partitions.
const EXEC_INTERVAL: Duration = Duration::from_millis(1);
const EXEC_MAX: Duration = Duration::from_secs(1);
/// More than environments usually have.
const ENVIRONMENT_BYTES: usize = 256 * 1024;
/// The flag of kernel threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One start of a command, and how its processes are recognised.
#[derive(Debug, Clone)]
pub(super) struct CommandRun {
    pub(super) group: Pid,
    /// Different for every start of a command.
    pub(super) mark: Box<str>,
    /// Processes that have left the group, as of the last look, with the time of
    /// their start. They stay the command's when nothing else shows it any more:
    /// a parent has ended, an environment cannot be read.
    escaped: HashMap<Pid, u64>,
}

impl CommandRun {
    pub(super) fn new(group: Pid, mark: Box<str>) -> Self {
        Self {
            group,
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
        if Process::read(self.pid).is_none_or(|now| now.started != self.started) {
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
                tokio::task::spawn_blocking(move || this.run());
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
    let mut found = look(runs)?;
    if runs.iter().any(|run| !found.contains_key(&run.group)) {
        // A look is no snapshot: a process may start another one whose pid was
        // passed already, and end before its own is reached.
        park_timeout(SECOND_LOOK);
        for (group, processes) in look(runs)? {
            found.entry(group).or_insert(processes);
        }
    }
    Ok(found)
}

fn look(runs: &[CommandRun]) -> io::Result<HashMap<Pid, Vec<LiveProcess>>> {
    let processes = Process::all()?;
    let groups: HashSet<Pid> = runs.iter().map(|run| run.group).collect();
    let marks: HashMap<&str, Pid> = runs.iter().map(|run| (&*run.mark, run.group)).collect();
    let mut escaped = HashMap::new();
    for run in runs {
        escaped.extend(run.escaped.iter().map(|process| (process, run.group)));
    }
    let by_itself = |(pid, process): (&Pid, &Process)| {
        let own = process.group.filter(|group| groups.contains(group));
        let group = own
            .or_else(|| escaped.get(&(pid, &process.started)).copied())
            .or_else(|| marks.get(process.mark(*pid)?.as_str()).copied())?;
        Some((*pid, group))
    };
    let owners: HashMap<Pid, Pid> = processes.iter().filter_map(by_itself).collect();
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

#[derive(Debug)]
struct Process {
    name: String,
    parent: Option<Pid>,
    group: Option<Pid>,
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
            all.extend(Self::read(pid).map(|process| (pid, process)));
        }
        Ok(all)
    }

    /// A process, if it is alive.
    fn read(pid: Pid) -> Option<Self> {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        Self::parse(&String::from_utf8_lossy(&fs::read(path).ok()?))
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
            started: number(22).unwrap_or_default(),
            is_headless: fields.first() == Some(&"Z"),
            has_no_variables: is_complete && environment.is_empty(),
        })
    }

    /// The mark in its environment, where that may be read.
    fn mark(&self, pid: Pid) -> Option<String> {
        let begun = Instant::now();
        let mut environment = self.environment(pid)?;
        // In the middle of `execve` there is none to be read for a moment.
        while environment.is_empty() && begun.elapsed() < EXEC_MAX {
            let now = Self::read(pid).filter(|now| now.started == self.started)?;
            if now.has_no_variables {
                return None;
            }
            park_timeout(EXEC_INTERVAL);
            environment = now.environment(pid)?;
        }
        let mut variables = environment.split(|byte| *byte == 0);
        let mark = variables.find_map(|variable| {
            let value = variable.strip_prefix(MARK_VARIABLE.as_bytes())?;
            value.strip_prefix(b"=")
        })?;
        String::from_utf8(mark.to_vec()).ok()
    }

    /// Its environment; empty where there is none at the moment, and none where
    /// it may not be read.
    fn environment(&self, pid: Pid) -> Option<Vec<u8>> {
        let directory = format!("/proc/{}", pid.as_raw_nonzero());
        if !self.is_headless {
            return read_environment(Path::new(&directory));
        }
        // A thread that has ended has none, and the others have the same.
        let threads = fs::read_dir(format!("{directory}/task")).ok()?.flatten();
        let read = threads.filter_map(|thread| read_environment(&thread.path()));
        read.max_by_key(Vec::len)
    }
}

fn read_environment(directory: &Path) -> Option<Vec<u8>> {
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
        Ok(environment) => Some(environment),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Err(_) => Some(Vec::new()),
    }
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
            let run = CommandRun::new(Pid::from_child(&child), mark.into());
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
        /// Looks until what it started has left its group.
        fn wait_until_left(&mut self) {
            let begun = Instant::now();
            while !self.wait_for(2).iter().any(|process| process.has_left) {
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
        shell.wait_until_left();
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
        assert_eq!(same, escaped, "the pid is another's");
        escaped.signal(Signal::KILL).unwrap();
        shell.wait_for(0);
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
        shell.wait_until_left();
        drop(shell.child.stdin.take());
        shell.child.wait().unwrap();
        let [escaped] = shell.wait_for(1).try_into().unwrap();
        escaped.signal(Signal::KILL).unwrap();
        shell.wait_for(0);
    }

    #[test]
    fn processes_that_replace_themselves_all_the_time_are_always_found() {
        // Each is in the middle of `execve` for a good part of its life, and has
        // left its group and its parent.
        let again = r#"exec sh -c "$AGAIN""#;
        let mut shell = Shell::start(&format!(
            "export AGAIN='{again}'; for i in 1 2 3 4; do setsid sh -c \"$AGAIN\" & done; read line"
        ));
        shell.wait_for(5);
        drop(shell.child.stdin.take());
        shell.child.wait().unwrap();
        let mut all = shell.wait_for(4);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            // One look, by mark alone.
            shell.run.remember(&[]);
            let mut found = look(std::slice::from_ref(&shell.run)).unwrap();
            let found = found.remove(&shell.run.group).unwrap_or_default();
            assert_eq!(found.len(), 4, "{found:?} are not {all:?}");
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
            let read = left.and_then(|left| Some((left.pid, Process::read(left.pid)?)));
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
