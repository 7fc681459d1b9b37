//! The process beside this one that ends commands when this one cannot: when it
//! is killed, and when it stands still while leases end. Here is what tells it
//! which process groups there are and until when they may run.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use divvy::Moment;
use divvy::manager::Lease;
use rustix::process::Pid;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::census::{Census, Sought};
use super::leader::Leader;
use super::ourselves::ourselves;
use crate::failure::plain;
use crate::voice::say;

/// What the process beside says when no signal but the last ends it.
pub(super) const READY: &str = "ready\n";

/// The process groups of commands that run.
#[derive(Debug)]
pub(crate) struct Sweeper {
    known: Mutex<Known>,
    /// There is something to write.
    changed: Arc<Notify>,
    /// How many changes are written.
    written: watch::Sender<u64>,
    census: Arc<Census>,
}

#[derive(Debug, Default)]
struct Known {
    groups: BTreeMap<i32, Group>,
    leases: BTreeMap<u64, Followed>,
    /// Counts leases.
    last_lease: u64,
    outbox: Outbox,
    process: Option<Child>,
    /// Counts processes.
    number: u64,
}

#[derive(Debug)]
struct Group {
    mark: Box<str>,
    /// Without one it may run for as long as this process.
    lease: Option<u64>,
}

/// A lease whose end the process beside has to know.
#[derive(Debug)]
struct Followed {
    lease: Lease,
    /// Nanoseconds of the clock that counts suspends; 0 if it has ended.
    until: u64,
    groups: usize,
    task: AbortHandle,
}

/// What is to be written. Renewals replace each other, so that it does not grow
/// while nobody reads it.
#[derive(Debug, Default)]
struct Outbox {
    lines: String,
    renewals: BTreeMap<u64, u64>,
    /// Counts changes.
    last: u64,
}

impl Sweeper {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            known: Mutex::default(),
            changed: Arc::default(),
            written: watch::Sender::new(0),
            census: Arc::default(),
        })
    }

    pub(super) fn census(&self) -> &Arc<Census> {
        &self.census
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the process beside ready, before there is anything to end.
    pub(crate) async fn begin(self: &Arc<Self>) -> io::Result<()> {
        if self.known().process.is_some() {
            return Ok(());
        }
        let (this, runtime) = (Arc::clone(self), Handle::current());
        // It is waited for until it is ready.
        let starting = tokio::task::spawn_blocking(move || {
            let mut known = this.known();
            match known.process {
                Some(_) => Ok(()),
                None => this.start(&mut known, &runtime),
            }
        });
        starting.await.map_err(io::Error::other)?
    }

    /// Nothing of this command outlives this process or the lease. Returns when
    /// that holds whatever becomes of this process.
    pub(super) async fn add(
        self: &Arc<Self>,
        command: &Sought,
        lease: Option<&Lease>,
    ) -> io::Result<()> {
        let change = {
            let mut known = self.known();
            let lease = lease.map(|lease| self.follow(&mut known, lease));
            let group = Group {
                mark: command.mark.clone(),
                lease,
            };
            let number = command.group.as_raw_nonzero().get();
            known.outbox.add(&group.line(number));
            known.groups.insert(number, group);
            known.outbox.last
        };
        self.write_until(change).await;
        if self.known().process.is_none() {
            let why = "the process that ends what commands start has ended";
            return Err(io::Error::other(why));
        }
        Ok(())
    }

    /// Nothing of this command outlives this process.
    pub(crate) async fn watch(self: &Arc<Self>, leader: &Leader) -> io::Result<()> {
        self.add(leader.sought(), None).await
    }

    /// Nothing of the group is alive. Returns when the process beside knows.
    pub(super) async fn remove(&self, group: Pid) {
        let change = {
            let mut known = self.known();
            let number = group.as_raw_nonzero().get();
            let Some(group) = known.groups.remove(&number) else {
                return;
            };
            known.outbox.add(&format!("-{number}\n"));
            if let Some(lease) = group.lease {
                known.unfollow(lease);
            }
            known.outbox.last
        };
        self.write_until(change).await;
    }

    async fn write_until(&self, change: u64) {
        if self.known().process.is_none() {
            return;
        }
        self.changed.notify_one();
        let mut written = self.written.subscribe();
        // This has the sender.
        let _closed = written.wait_for(|written| *written >= change).await;
    }

    /// The number of a lease, which is followed from now on.
    fn follow(self: &Arc<Self>, known: &mut Known, lease: &Lease) -> u64 {
        let mut all = known.leases.iter_mut();
        if let Some((number, followed)) = all.find(|(_, followed)| followed.lease == *lease) {
            followed.groups += 1;
            return *number;
        }
        known.last_lease += 1;
        let (number, until) = (known.last_lease, lease.until());
        let following = follow(Arc::downgrade(self), lease.clone(), number, until);
        let followed = Followed {
            lease: lease.clone(),
            until: nanos(until),
            groups: 1,
            task: tokio::spawn(following).abort_handle(),
        };
        known.outbox.add(&format!("={} {number}\n", followed.until));
        known.leases.insert(number, followed);
        number
    }

    fn renewed(&self, lease: u64, until: Option<Moment>) {
        let mut known = self.known();
        if let Some(followed) = known.leases.get_mut(&lease) {
            followed.until = nanos(until);
            known.outbox.renewals.insert(lease, nanos(until));
            self.changed.notify_one();
        }
    }

    /// Starts the process beside, and tells it everything.
    fn start(self: &Arc<Self>, known: &mut Known, runtime: &Handle) -> io::Result<()> {
        known.end();
        let mut process = ourselves()?
            .arg("sweep-children")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // No terminal's signals.
            .process_group(0)
            .spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (mut pipe, heard) = pipes.expect("both are piped");
        pipe.write_all(known.everything().as_bytes())?;
        let mut heard = BufReader::new(heard);
        let mut word = String::new();
        heard.read_line(&mut word)?;
        if word != READY {
            let _gone = process.kill();
            let _gone = process.wait();
            let why = "the process that ends what commands start has ended itself";
            return Err(io::Error::other(why));
        }
        let number = known.number + 1;
        let (this, changed) = (Arc::downgrade(self), Arc::clone(&self.changed));
        let (watched, handle) = (Weak::clone(&this), runtime.clone());
        let _entered = runtime.enter();
        let pipe = ChildStdin::from_std(pipe)?;
        std::thread::Builder::new()
            .name("sweeper".to_owned())
            .spawn(move || watch_end(&watched, heard, number, &handle))?;
        tokio::spawn(write(this, pipe, changed, number));
        known.number = number;
        known.process = Some(process);
        let (written, _) = known.outbox.take();
        self.written.send_replace(written);
        Ok(())
    }
}

/// Writes what changes to the process of this number, as long as there is it.
async fn write(sweeper: Weak<Sweeper>, mut pipe: ChildStdin, changed: Arc<Notify>, number: u64) {
    loop {
        changed.notified().await;
        let Some(sweeper) = sweeper.upgrade() else {
            return;
        };
        let (last, text) = {
            let mut known = sweeper.known();
            if known.number != number {
                // For its successor.
                changed.notify_one();
                return;
            }
            known.outbox.take()
        };
        if pipe.write_all(text.as_bytes()).await.is_err() {
            // Its successor learns everything.
            return;
        }
        sweeper.written.send_replace(last);
    }
}

/// Starts a successor when the process of this number ends while it is needed.
fn watch_end(sweeper: &Weak<Sweeper>, mut heard: impl io::Read, number: u64, runtime: &Handle) {
    // It says nothing more: this returns when it is gone.
    let _end = io::copy(&mut heard, &mut io::sink());
    let Some(sweeper) = sweeper.upgrade() else {
        return;
    };
    let mut known = sweeper.known();
    if known.process.is_none() || known.number != number {
        return;
    }
    let became = match sweeper.start(&mut known, runtime) {
        Ok(()) => "another one has taken its place".to_owned(),
        Err(error) => {
            // Nobody waits for what cannot be written.
            sweeper.written.send_replace(known.outbox.last);
            format!("it cannot be started again yet: {}", plain(&error))
        }
    };
    say!("warning: the process that ends what commands start was killed; {became}");
}

/// Tells the process beside of every renewal of a lease, and of its end.
async fn follow(sweeper: Weak<Sweeper>, lease: Lease, number: u64, mut until: Option<Moment>) {
    loop {
        until = lease.changed(until).await;
        match sweeper.upgrade() {
            Some(sweeper) => sweeper.renewed(number, until),
            None => return,
        }
    }
}

impl Known {
    fn unfollow(&mut self, number: u64) {
        let Some(followed) = self.leases.get_mut(&number) else {
            return;
        };
        followed.groups -= 1;
        if followed.groups == 0 {
            followed.task.abort();
            self.leases.remove(&number);
            self.outbox.renewals.remove(&number);
            self.outbox.add(&format!("~{number}\n"));
        }
    }

    /// All that a process has to know.
    fn everything(&self) -> String {
        let leases = self.leases.iter();
        let leases = leases.map(|(number, followed)| format!("={} {number}\n", followed.until));
        let groups = self.groups.iter();
        leases
            .chain(groups.map(|(number, group)| group.line(*number)))
            .collect()
    }

    /// Ends the process, which is of no use any more.
    fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _gone = process.kill();
            let _gone = process.wait();
        }
    }
}

impl Group {
    fn line(&self, number: i32) -> String {
        let lease = self
            .lease
            .map_or_else(String::new, |lease| format!(" {lease}"));
        format!("+{number} {}{lease}\n", self.mark)
    }
}

impl Outbox {
    fn add(&mut self, line: &str) {
        self.lines.push_str(line);
        self.last += 1;
    }

    /// What is to be written, and how many changes that is in all.
    fn take(&mut self) -> (u64, String) {
        let mut text = std::mem::take(&mut self.lines);
        let mut leases: BTreeMap<u64, String> = BTreeMap::new();
        for (lease, until) in std::mem::take(&mut self.renewals) {
            let line = leases.entry(until).or_insert_with(|| format!("={until}"));
            line.push_str(&format!(" {lease}"));
        }
        for line in leases.into_values() {
            text.push_str(&line);
            text.push('\n');
        }
        (self.last, text)
    }
}

fn nanos(until: Option<Moment>) -> u64 {
    until.map_or(0, |until| {
        u64::try_from(until.to_origin().as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewals_of_leases_that_end_together_are_one_line() {
        let mut outbox = Outbox::default();
        for until in [100, 200] {
            for lease in 1..=4 {
                outbox.renewals.insert(lease, until);
            }
        }
        outbox.renewals.insert(3, 0);
        outbox.add("-7\n");
        assert_eq!(outbox.take(), (1, "-7\n=0 3\n=200 1 2 4\n".to_owned()));
        assert_eq!(outbox.take(), (1, String::new()));
    }
}
