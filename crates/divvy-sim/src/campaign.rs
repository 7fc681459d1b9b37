//! Many seeds, on several threads, with a place to go on from.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fs, io, thread};

use serde::{Deserialize, Serialize};

use crate::defects::Defect;
use crate::mode::Mode;
use crate::totals::Totals;
use crate::trial::{Failure, Trial};

/// Seeds that are run between two writes of the place to go on from.
const BATCH: u64 = 500;
/// Failures that are made smaller and told; more are only counted.
const FAILURES_MAX: usize = 5;
/// What the format of the file is called.
const FORMAT: u32 = 1;

/// When a campaign is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// After so many seeds.
    Seeds(u64),
    /// After so many hours of clusters' lives.
    ClusterHours(f64),
}

/// Many seeds to run.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// Which kind of worlds.
    pub mode: Mode,
    /// The first seed.
    pub first: u64,
    /// When it is over.
    pub goal: Goal,
    /// A mistake that every member has.
    pub defect: Option<Defect>,
    /// Threads to run on.
    pub jobs: usize,
    /// Where to go on from, and to write how far it has come.
    pub resume: Option<PathBuf>,
}

/// How far a campaign has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Checkpoint {
    format: u32,
    mode: String,
    next_seed: u64,
    totals: Totals,
}

/// What a campaign came to.
#[derive(Debug)]
pub struct Report {
    /// The sums.
    pub totals: Totals,
    /// The first failures, by seed, made smaller.
    pub failures: Vec<Failure>,
}

impl Campaign {
    /// Runs it. `progress` is told the sums and how much is done, 0 to 1, now
    /// and then.
    pub fn run(&self, progress: impl Fn(&Totals, f64) + Sync) -> io::Result<Report> {
        let start = match &self.resume {
            Some(path) => read(path, self.mode)?,
            None => None,
        };
        let (mut next, mut totals) = match start {
            Some(checkpoint) => (checkpoint.next_seed, checkpoint.totals),
            None => (self.first, Totals::default()),
        };
        let mut failures = Vec::new();
        while self.done(&totals) < 1.0 {
            let count = self.next_batch(&totals);
            let batch = self.batch(next, count, &totals, &progress);
            totals.merge(&batch.0);
            failures.extend(batch.1);
            if failures.len() >= FAILURES_MAX {
                // Not all of the batch has run: whoever goes on runs it again.
                break;
            }
            next = next.wrapping_add(count);
            if let Some(path) = &self.resume {
                write(path, self.mode, next, &totals)?;
            }
        }
        failures.sort();
        failures.truncate(FAILURES_MAX);
        let failures = failures.into_iter();
        let failures = failures.filter_map(|seed| self.trial(seed).shrunk());
        Ok(Report {
            totals,
            failures: failures.collect(),
        })
    }

    fn trial(&self, seed: u64) -> Trial {
        Trial::of_seed(self.mode, seed).with_defect(self.defect)
    }

    fn done(&self, totals: &Totals) -> f64 {
        let (done, goal) = match self.goal {
            Goal::Seeds(seeds) => (totals.seeds as f64, seeds as f64),
            Goal::ClusterHours(hours) => (totals.cluster_hours(), hours),
        };
        if done >= goal { 1.0 } else { done / goal }
    }

    /// How many seeds to run before the next look: not many more than are
    /// needed.
    fn next_batch(&self, totals: &Totals) -> u64 {
        match self.goal {
            Goal::Seeds(seeds) => BATCH.min(seeds - totals.seeds),
            Goal::ClusterHours(_) if totals.seeds == 0 => self.jobs.max(1) as u64,
            Goal::ClusterHours(hours) => {
                let each = totals.cluster_hours() / totals.seeds as f64;
                let left = (hours - totals.cluster_hours()) / each;
                (left.ceil() as u64).clamp(1, BATCH)
            }
        }
    }

    /// Runs some seeds on all threads; gives their sums, and those that failed.
    fn batch(
        &self,
        first: u64,
        count: u64,
        before: &Totals,
        progress: &(impl Fn(&Totals, f64) + Sync),
    ) -> (Totals, Vec<u64>) {
        let next = AtomicU64::new(0);
        let enough = AtomicBool::new(false);
        let sums = Mutex::new((Totals::default(), Vec::new()));
        let work = || {
            while !enough.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return;
                }
                let seed = first.wrapping_add(index);
                let outcome = self.trial(seed).run(false);
                let mut sums = sums.lock().expect("no thread panics while it adds");
                sums.0.add(&outcome);
                if outcome.broken.is_some() {
                    sums.1.push(seed);
                    enough.store(sums.1.len() >= FAILURES_MAX, Ordering::Relaxed);
                }
                if sums.0.seeds % 16 == 0 {
                    let mut sofar = before.clone();
                    sofar.merge(&sums.0);
                    progress(&sofar, self.done(&sofar));
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.jobs.max(1) {
                scope.spawn(work);
            }
            work();
        });
        sums.into_inner().expect("no thread panics while it adds")
    }
}

fn read(path: &Path, mode: Mode) -> io::Result<Option<Checkpoint>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let checkpoint: Checkpoint = serde_json::from_str(&text).map_err(|error| {
        io::Error::other(format!("is not a file that a run can go on from: {error}"))
    })?;
    if checkpoint.format != FORMAT || checkpoint.mode != mode.as_str() {
        let found = format!("format {} of mode {}", checkpoint.format, checkpoint.mode);
        return Err(io::Error::other(format!(
            "{found} is not one that a run of mode {mode} can go on from"
        )));
    }
    Ok(Some(checkpoint))
}

/// Written beside and put in place, so that an interruption leaves the old one.
fn write(path: &Path, mode: Mode, next_seed: u64, totals: &Totals) -> io::Result<()> {
    let checkpoint = Checkpoint {
        format: FORMAT,
        mode: mode.as_str().to_owned(),
        next_seed,
        totals: totals.clone(),
    };
    let text = serde_json::to_string_pretty(&checkpoint).map_err(io::Error::other)?;
    let beside = path.with_extension("part");
    fs::write(&beside, text + "\n")?;
    fs::rename(&beside, path)
}
