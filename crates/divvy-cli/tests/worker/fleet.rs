//! Workers as processes: started, stopped, killed and paused, with everything
//! that they print.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use divvy::manager::{SessionId, Version};
use divvy::store::Token;
use divvy::{Moment, Partitions};
use divvy_sim::{Happened, History};
use divvy_testbed::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bed::{Bed, LEASE, SOON};
use crate::writes;

/// One process, from its start to its end.
pub(crate) struct Worker {
    pub(crate) instance: String,
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    /// What it tries to write to the store.
    writes: PathBuf,
    /// Since when it is gone, and whether it ended in order.
    gone: Option<(Moment, bool)>,
}

impl Worker {
    fn start(bed: &Bed, number: usize, instance: &str, partitions: u32, more: &[&str]) -> Self {
        let config = bed.config();
        let writes = bed.file(&format!("writes-{number}"));
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
            .args([
                "worker",
                "--deadlines",
                "--die-with-parent",
                "--strategy",
                "balanced",
                "--tick",
                "50ms",
            ])
            .args(["--store", &bed.address(), "--cluster", "tests"])
            .args([
                "--instance",
                instance,
                "--partitions",
                &format!("p:{partitions}"),
            ])
            .arg("--config")
            .arg(config)
            .arg("--writes")
            .arg(&writes)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (out, heard) = (child.stdout.take().unwrap(), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                // A killed process may end in the middle of a line.
                let Ok(line) = line else { return };
                let Ok(line) = serde_json::from_str(&line) else {
                    return;
                };
                heard.lock().unwrap().push(line);
            }
        });
        Self {
            instance: instance.to_owned(),
            child,
            lines,
            writes,
            gone: None,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is our child");
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.gone.is_none()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }

    /// What it owns by its own words, each with its token.
    pub(crate) fn owns(&self) -> BTreeMap<String, i64> {
        let mut owned = BTreeMap::new();
        for line in self.lines.lock().unwrap().iter() {
            let Some(partition) = line["partition"].as_str() else {
                continue;
            };
            match line["event"].as_str().unwrap() {
                "assigned" => {
                    owned.insert(partition.to_owned(), token(line).get());
                }
                "stopped" => {
                    owned.remove(partition);
                }
                // As when it was paused before its start was called.
                "started" if line["failed"] == true => {
                    owned.remove(partition);
                }
                _ => {}
            }
        }
        owned
    }

    pub(crate) fn has(&self, event: &str) -> bool {
        self.lines
            .lock()
            .unwrap()
            .iter()
            .any(|line| line["event"] == event)
    }

    pub(crate) fn id(&self) -> Option<String> {
        let lines = self.lines.lock().unwrap();
        let claim = lines.iter().rev().find(|line| line["event"] == "claimed");
        Some(claim?["worker"].as_str()?.to_owned())
    }

    pub(crate) fn leads(&self) -> bool {
        let lines = self.lines.lock().unwrap();
        let last = lines
            .iter()
            .rev()
            .find(|line| line["event"] == "leadership_changed");
        self.is_alive() && last.is_some_and(|line| line["is_leader"] == true)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Fails only if it has ended already. A paused process is killed, too.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

pub(crate) struct Fleet {
    pub(crate) bed: Bed,
    pub(crate) partitions: u32,
    pub(crate) workers: Vec<Worker>,
    /// When the store lost everything.
    pub(crate) forgot: Option<Moment>,
    /// Whether they go on working without the store.
    pub(crate) overlaps: bool,
}

impl Fleet {
    pub(crate) fn empty(bed: Bed, partitions: u32) -> Self {
        Self {
            bed,
            partitions,
            workers: Vec::new(),
            forgot: None,
            overlaps: false,
        }
    }

    /// So many workers, started at once, that own everything.
    pub(crate) async fn settled(bed: Bed, workers: usize, partitions: u32) -> Self {
        let mut fleet = Self::empty(bed, partitions);
        for number in 0..workers {
            fleet.join(&format!("host-{number}"), &[]);
        }
        fleet.balanced().await;
        fleet
    }

    pub(crate) fn join(&mut self, instance: &str, more: &[&str]) -> usize {
        let number = self.workers.len();
        let worker = Worker::start(&self.bed, number, instance, self.partitions, more);
        self.workers.push(worker);
        number
    }

    pub(crate) fn kill(&mut self, number: usize) {
        let worker = &mut self.workers[number];
        worker.child.kill().unwrap();
        worker.child.wait().unwrap();
        worker.gone = Some((divvy::manager::now(), false));
    }

    pub(crate) fn pause(&self, number: usize) {
        self.workers[number].signal(Signal::STOP);
    }

    pub(crate) fn resume(&self, number: usize) {
        self.workers[number].signal(Signal::CONT);
    }

    /// Asks one to end, and waits until it has, in order.
    pub(crate) async fn end(&mut self, number: usize) {
        let worker = &mut self.workers[number];
        worker.signal(Signal::TERM);
        until(SOON, "it ends", async || {
            worker.child.try_wait().unwrap().is_some()
        })
        .await;
        let status = worker.child.wait().unwrap();
        until(SOON, "its last word", async || worker.has("ended")).await;
        assert!(status.success(), "{status}");
        worker.gone = Some((divvy::manager::now(), true));
    }

    /// Who owns each partition.
    pub(crate) fn owners(&self) -> BTreeMap<String, Vec<String>> {
        let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for worker in self.workers.iter().filter(|worker| worker.is_alive()) {
            for name in worker.owns().into_keys() {
                owners
                    .entry(name)
                    .or_default()
                    .push(worker.instance.clone());
            }
        }
        owners
    }

    pub(crate) fn is_owned(&self) -> bool {
        let owners = self.owners();
        owners.len() == self.partitions as usize && owners.values().all(|by| by.len() == 1)
    }

    pub(crate) async fn owned(&self) {
        until(SOON, "every partition has one owner", async || {
            self.is_owned()
        })
        .await;
    }

    pub(crate) async fn balanced(&self) {
        let alive = self.workers.iter().filter(|worker| worker.is_alive());
        let alive: Vec<_> = alive.collect();
        let is_fair = async || {
            let counts: Vec<_> = alive.iter().map(|worker| worker.owns().len()).collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            most - least <= 1 && self.is_owned()
        };
        let waiting = until(SOON, "all own a fair share", is_fair);
        let waited = tokio::time::timeout(SOON / 2, waiting).await;
        assert!(waited.is_ok(), "{:#?}", self.owners());
    }

    pub(crate) fn leader(&self) -> usize {
        let leads = self.workers.iter().position(Worker::leads);
        leads.expect("somebody leads")
    }

    pub(crate) fn follower(&self) -> usize {
        let follows = |worker: &Worker| worker.is_alive() && !worker.leads();
        self.workers
            .iter()
            .position(follows)
            .expect("somebody follows")
    }

    /// Grants that were started: a partition and its token.
    pub(crate) fn grants(&self) -> BTreeSet<(String, i64)> {
        let mut grants = BTreeSet::new();
        for worker in &self.workers {
            for line in worker
                .lines()
                .iter()
                .filter(|line| line["event"] == "assigned")
            {
                let partition = line["partition"].as_str().unwrap().to_owned();
                grants.insert((partition, token(line).get()));
            }
        }
        grants
    }

    /// How many partitions somebody worked on after this moment.
    pub(crate) fn worked_since(&self, since: Moment) -> usize {
        let lines = self.workers.iter().flat_map(Worker::lines);
        let late = lines.filter(|line| {
            line["event"] == "worked" && moment(&line["at_us"]).is_some_and(|at| at > since)
        });
        let names = late.map(|line| line["partition"].to_string());
        names.collect::<BTreeSet<_>>().len()
    }

    /// What the workers said must hold together, and a resource that compares
    /// tokens must not have taken anything from who was owner before.
    pub(crate) async fn check(&self) {
        let mut history = History::default();
        let partitions = Partitions::shards([("p", self.partitions)]).unwrap();
        history.listed(Moment::default(), partitions);
        self.forgot.into_iter().for_each(|at| history.forgot(at));
        if self.overlaps {
            history.allow_overlap();
        }
        for (number, worker) in self.workers.iter().enumerate() {
            for line in worker.lines() {
                if let Some(happened) = happened(&line) {
                    history.add(number, moment(&line["at_us"]).unwrap(), happened);
                }
            }
            if let Some((at, in_order)) = worker.gone {
                history.add(number, at, Happened::Gone(in_order));
            }
            writes::read(&worker.writes, number, &mut history);
        }
        // What is there at the end tells who wrote it.
        for entry in self.bed.entries().await {
            history.found(&entry);
        }
        if let Err(broken) = history.check(LEASE) {
            panic!("{broken}");
        }
        assert_eq!(history.two_owners(), Duration::ZERO);
        assert_eq!(history.duplicate_ids(), 0);
        assert_eq!(self.stale_effects(), 0, "effects of who was owner before");
    }

    /// Effects, in the order of time, whose token is below one that was there
    /// before: what a resource refuses.
    fn stale_effects(&self) -> usize {
        let mut effects = Vec::new();
        for worker in &self.workers {
            for line in worker
                .lines()
                .iter()
                .filter(|line| line["event"] == "worked")
            {
                let partition = line["partition"].as_str().unwrap().to_owned();
                effects.push((moment(&line["at_us"]).unwrap(), partition, token(line)));
            }
        }
        effects.sort();
        assert!(!effects.is_empty(), "nobody worked");
        let mut highest: BTreeMap<String, Token> = BTreeMap::new();
        let refused = effects.into_iter().filter(|(_, partition, token)| {
            let last = highest.entry(partition.clone()).or_insert(*token);
            *last = (*last).max(*token);
            token < last
        });
        refused.count()
    }
}

fn token(line: &Value) -> Token {
    let text = line["token"].as_str().unwrap();
    Token::new(text.parse().unwrap()).unwrap()
}

pub(crate) fn moment(micros: &Value) -> Option<Moment> {
    micros
        .as_u64()
        .map(|micros| Moment::from_origin(Duration::from_micros(micros)))
}

fn session(line: &Value) -> Option<SessionId> {
    let text = line["session"].as_str()?;
    Some(SessionId(u128::from_str_radix(text, 16).unwrap()))
}

fn happened(line: &Value) -> Option<Happened> {
    let partition = || line["partition"].as_str().unwrap().to_owned();
    Some(match line["event"].as_str()? {
        "assigned" => Happened::StartCalled(partition(), token(line)),
        "started" => Happened::StartEnded(partition(), line["failed"] == true),
        "revoked" => Happened::StopCalled(partition()),
        "stopped" => Happened::StopEnded(partition()),
        "deadline" => {
            let worker = line["worker"].as_str().map(str::to_owned);
            Happened::Deadline(worker.zip(session(line)), moment(&line["until_us"]))
        }
        "adopted" => {
            let version = Version {
                epoch: line["epoch"].as_u64()?,
                number: u32::try_from(line["version"].as_u64()?).ok()?,
            };
            Happened::Adopted(session(line), version)
        }
        _ => return None,
    })
}
