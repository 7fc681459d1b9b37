//! One seed, run: what came of it, and how to run it again.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use divvy_core::StrategyName;

use crate::defects::Defect;
use crate::hands::Hands;
use crate::invariants::Broken;
use crate::leader::World;
use crate::lease::{LeaseProfile, LeaseWorld};
use crate::mode::Mode;
use crate::profile::Profile;
use crate::world::{Coordination, Tally, WorldOf};

/// Lines of a trace that a failure shows.
const TAIL_LINES: usize = 60;
/// Runs that making a failure smaller may take.
const SHRINK_RUNS_MAX: usize = 400;

/// A seed with what is left out of its world or planted into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Which kind of world it is.
    pub mode: Mode,
    /// The seed.
    pub seed: u64,
    /// Faults that are left out.
    pub without: BTreeSet<usize>,
    /// A mistake in every member.
    pub defect: Option<Defect>,
}

/// What came of a trial.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Which kind of world it was.
    pub mode: Mode,
    /// What happened in it, counted.
    pub tally: Tally,
    /// The invariant that did not hold, if one did not.
    pub broken: Option<Broken>,
    /// The lines of the trace, if they were asked for.
    pub trace: Vec<String>,
}

/// A trial that broke an invariant, made as small as it could be.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The trial, with all faults left out that do not matter.
    pub trial: Trial,
    /// How many faults are left.
    pub faults: usize,
    /// What was broken.
    pub broken: Broken,
    /// The last lines of the trace.
    pub tail: Vec<String>,
}

impl Trial {
    /// The trial of a seed, as it is.
    pub const fn of_seed(mode: Mode, seed: u64) -> Self {
        Self {
            mode,
            seed,
            without: BTreeSet::new(),
            defect: None,
        }
    }

    /// The same with a mistake in every member.
    #[must_use]
    pub fn with_defect(self, defect: Option<Defect>) -> Self {
        Self { defect, ..self }
    }

    /// How many faults its world has, with those that are left out.
    pub fn faults(&self) -> usize {
        match self.mode {
            Mode::Leader => self.leader_profile().faults.len(),
            Mode::Lease => self.lease_profile().faults.len(),
        }
    }

    fn leader_profile(&self) -> Profile {
        let mut profile = Profile::of_seed(self.seed);
        profile.without.clone_from(&self.without);
        match self.defect {
            Some(Defect::Leader(defect)) => profile.defect = Some(defect),
            Some(Defect::Driver(Mode::Leader, defect)) => profile.driver.defect = Some(defect),
            _ => {}
        }
        profile
    }

    fn lease_profile(&self) -> LeaseProfile {
        let mut profile = LeaseProfile::of_seed(self.seed);
        profile.without.clone_from(&self.without);
        match self.defect {
            Some(Defect::Lease(defect)) => profile.defect = Some(defect),
            Some(Defect::Driver(Mode::Lease, defect)) => profile.driver.defect = Some(defect),
            _ => {}
        }
        profile
    }

    /// Its world, to be watched while it runs.
    pub fn watched(&self) -> Box<dyn Hands> {
        match self.mode {
            Mode::Leader => Box::new(World::watched(self.leader_profile())),
            Mode::Lease => Box::new(LeaseWorld::watched(self.lease_profile())),
        }
    }

    /// Who places partitions in it.
    pub fn strategy(&self) -> StrategyName {
        match self.mode {
            Mode::Leader => self.leader_profile().strategy,
            Mode::Lease => StrategyName::Rendezvous,
        }
    }

    /// Runs it. A machine that panics breaks an invariant too.
    pub fn run(&self, traced: bool) -> Outcome {
        match self.mode {
            Mode::Leader => self.outcome(World::new(self.leader_profile(), traced)),
            Mode::Lease => self.outcome(LeaseWorld::new(self.lease_profile(), traced)),
        }
    }

    fn outcome<C: Coordination>(&self, mut world: WorldOf<C>) -> Outcome {
        let broken = survived(|| world.run());
        if let Some(broken) = &broken {
            world.note_end(&broken.to_string());
        }
        Outcome {
            mode: self.mode,
            tally: world.tally(),
            broken,
            trace: world.take_trace(),
        }
    }

    /// The command that runs it again.
    pub fn command(&self) -> String {
        let mut command = format!("divvy simulate --mode {} --seed {}", self.mode, self.seed);
        if !self.without.is_empty() {
            let without: Vec<String> = self.without.iter().map(usize::to_string).collect();
            command.push_str(&format!(" --without {}", without.join(",")));
        }
        if let Some(defect) = self.defect {
            command.push_str(&format!(" --defect {}", defect.name()));
        }
        command.push_str(" --trace");
        command
    }

    /// The command that shows it in the browser.
    pub fn replay_command(&self) -> String {
        let command = self.command();
        let command = command.trim_end_matches(" --trace");
        let told = format!("divvy simulate --mode {} --seed {}", self.mode, self.seed);
        let replay = format!("divvy playground --replay {}:{}", self.mode, self.seed);
        command.replace(&told, &replay)
    }

    /// Leaves out every fault that is not needed for the same invariant to
    /// break, and tells how it breaks.
    pub fn shrunk(&self) -> Option<Failure> {
        let first = self.run(false).broken?;
        let all = self.faults();
        let mut smallest = self.clone();
        let mut runs = 0;
        let mut step = all.max(1);
        while step > 0 && runs < SHRINK_RUNS_MAX {
            let mut dropped_any = false;
            let kept: Vec<usize> = (0..all).filter(|i| !smallest.without.contains(i)).collect();
            for few in kept.chunks(step) {
                let mut smaller = smallest.clone();
                smaller.without.extend(few);
                runs += 1;
                let broken = smaller.run(false).broken;
                if broken.is_some_and(|broken| broken.invariant == first.invariant) {
                    smallest = smaller;
                    dropped_any = true;
                }
            }
            if !dropped_any || step == 1 {
                step /= 2;
            }
        }
        let outcome = smallest.run(true);
        let from = outcome.trace.len().saturating_sub(TAIL_LINES);
        Some(Failure {
            faults: all - smallest.without.len(),
            broken: outcome.broken.unwrap_or(first),
            tail: outcome.trace[from..].to_vec(),
            trial: smallest,
        })
    }
}

/// What a run broke, if it did; a panic is broken too.
fn survived(run: impl FnOnce() -> Result<(), Broken>) -> Option<Broken> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(outcome) => outcome.err(),
        Err(panic) => Some(Broken {
            invariant: "panic",
            property: "no member panics",
            seen: panic_message(panic.as_ref()),
        }),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
