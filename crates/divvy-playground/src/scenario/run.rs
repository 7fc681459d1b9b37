//! A scenario that runs: what is due, what was measured, and whether the goal
//! is reached.

use divvy_sim::Mode;
use serde::Serialize;

use super::{Bound, Number, Scenario, Step, Targets};
use crate::document::{Measured, ScenarioState, Violation};
use crate::engine::Engine;
use crate::gauge::Gauge;

/// How a scenario went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Its name.
    pub scenario: String,
    /// Its title.
    pub title: String,
    /// What was to be reached.
    pub goal: String,
    /// Whether it was.
    pub passed: bool,
    /// How many invariants were broken.
    pub violations: usize,
    /// What was broken first, if anything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Why it failed, where no number says it: what was broken, or which step
    /// was refused and why.
    pub reason: Option<String>,
    /// What was measured.
    pub numbers: Vec<Measured>,
    /// Where chance came from.
    pub seed: u64,
    /// How long it took, by the clock of its world.
    pub lasted_ms: u64,
}

/// A scenario that runs.
#[derive(Debug)]
pub(crate) struct Run {
    scenario: Scenario,
    /// What is still to be done: when, the step, and for which worker.
    due: Vec<(u64, usize, Option<usize>)>,
    now_ms: u64,
    /// When what is measured begins: with the first step.
    from_ms: u64,
    last_step_ms: u64,
    moves_before: Option<u64>,
    /// How many steps were refused, and which was the first and why.
    refused: u64,
    refusal: Option<String>,
    broken: Option<String>,
    ended: Option<bool>,
    found: Found,
}

/// What was measured so far.
#[derive(Debug, Clone, Default)]
struct Found {
    owned: usize,
    partitions: usize,
    moves: u64,
    imbalance: f64,
    most_unowned: usize,
    longest_unowned_ms: u64,
    two_owners: usize,
    converged_since: Option<u64>,
    leaders: u64,
    leader: Option<usize>,
    most_owned: usize,
    least_owned: usize,
    neighbour: Beside,
}

/// What was measured of another cluster.
#[derive(Debug, Clone, Default)]
struct Beside {
    owned: usize,
    two_owners: usize,
    moves: u64,
}

impl Run {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let mut due = Vec::new();
        for (index, step) in scenario.steps.iter().enumerate() {
            for time in 0..step.times {
                let at = step.at_ms + time * step.every_ms;
                match &step.targets {
                    Targets::These(workers) if step.each_after_ms > 0 => {
                        for (turn, worker) in workers.iter().enumerate() {
                            let at = at + turn as u64 * step.each_after_ms;
                            due.push((at, index, Some(*worker)));
                        }
                    }
                    Targets::All if step.each_after_ms > 0 => {
                        for worker in 0..scenario.setup.workers {
                            let at = at + worker as u64 * step.each_after_ms;
                            due.push((at, index, Some(worker)));
                        }
                    }
                    _ => due.push((at, index, None)),
                }
            }
        }
        due.retain(|(at, _, _)| *at <= scenario.lasts_ms);
        due.sort_by_key(|(at, index, worker)| (*at, *index, *worker));
        let times = due.iter().map(|(at, _, _)| *at);
        Self {
            now_ms: 0,
            from_ms: times.clone().min().unwrap_or(0),
            last_step_ms: times.max().unwrap_or(0),
            due,
            scenario,
            moves_before: None,
            refused: 0,
            refusal: None,
            broken: None,
            ended: None,
            found: Found::default(),
        }
    }

    /// Whether its end has not come.
    pub(crate) const fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// When something is due next.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        if !self.is_running() {
            return None;
        }
        let next = self.due.first().map(|(at, _, _)| *at);
        Some(next.unwrap_or(self.scenario.lasts_ms))
    }

    /// Takes the next step that is due by now.
    pub(crate) fn next(&mut self, now_ms: u64) -> Option<Step> {
        if !self.is_running() || self.due.first().is_none_or(|(at, _, _)| *at > now_ms) {
            return None;
        }
        let (_, index, worker) = self.due.remove(0);
        let mut step = self.scenario.steps[index].clone();
        if let Some(worker) = worker {
            step.targets = Targets::These(vec![worker]);
        }
        Some(step)
    }

    /// A step could not be done.
    pub(crate) fn refused(&mut self, why: String) {
        self.refused += 1;
        self.refusal.get_or_insert(why);
    }

    /// Takes in how things are.
    pub(crate) fn measure(&mut self, now_ms: u64, gauge: &Gauge, converged_since: Option<u64>) {
        if !self.is_running() {
            return;
        }
        self.now_ms = now_ms;
        let found = &mut self.found;
        found.partitions = gauge.count;
        found.owned = gauge.owned;
        found.converged_since = converged_since;
        if now_ms < self.from_ms {
            return;
        }
        let before = *self.moves_before.get_or_insert(gauge.moves);
        found.moves = gauge.moves - before;
        found.most_unowned = found.most_unowned.max(found.partitions - gauge.owned);
        found.two_owners = found.two_owners.max(gauge.two_owners);
        let oldest = gauge.unowned_since.iter().flatten().min();
        let longest = oldest.map_or(0, |since| now_ms - (*since).max(self.from_ms));
        found.longest_unowned_ms = found.longest_unowned_ms.max(longest);
    }

    /// Takes in how another cluster is.
    pub(crate) fn measure_neighbour(&mut self, gauge: &Gauge) {
        if self.is_running() {
            let most = self.found.neighbour.two_owners;
            self.found.neighbour = Beside {
                owned: gauge.owned,
                two_owners: most.max(gauge.two_owners),
                moves: gauge.moves,
            };
        }
    }

    /// Takes in who leads and how even it is.
    pub(crate) fn weigh(&mut self, leader: Option<usize>, imbalance: f64, owned: &[usize]) {
        if !self.is_running() {
            return;
        }
        let found = &mut self.found;
        found.imbalance = imbalance;
        found.most_owned = owned.iter().copied().max().unwrap_or(0);
        found.least_owned = owned.iter().copied().min().unwrap_or(0);
        if leader.is_some() && leader != found.leader {
            if found.leader.is_some() && self.now_ms >= self.from_ms {
                found.leaders += 1;
            }
            found.leader = leader;
        }
    }

    /// Whether it is over, and how it went.
    pub(crate) fn end(&mut self, now_ms: u64, violations: &[Violation]) -> Option<(bool, String)> {
        let is_due = now_ms >= self.scenario.lasts_ms || !violations.is_empty();
        if !self.is_running() || !is_due {
            return None;
        }
        self.now_ms = now_ms;
        self.broken = violations.first().map(told);
        let reason = self.reason();
        let passed = reason.is_none() && self.numbers().iter().all(|n| n.met);
        self.ended = Some(passed);
        let goal = &self.scenario.goal;
        Some(match reason {
            Some(reason) => (passed, format!("{goal}: {reason}")),
            None => (passed, goal.clone()),
        })
    }

    /// Why it fails whatever was measured.
    fn reason(&self) -> Option<String> {
        let refused = self.refusal.as_ref().map(|first| match self.refused {
            1 => first.clone(),
            count => format!("{first}; and {} more were refused", count - 1),
        });
        self.broken.clone().or(refused)
    }

    fn value(&self, number: Number) -> f64 {
        let found = &self.found;
        match number {
            Number::Owned => found.owned as f64,
            Number::Unowned => (found.partitions - found.owned) as f64,
            Number::Moves => found.moves as f64,
            Number::Imbalance => found.imbalance,
            Number::MostUnowned => found.most_unowned as f64,
            Number::LongestUnownedMs => found.longest_unowned_ms as f64,
            Number::TwoOwners => found.two_owners as f64,
            Number::ConvergedAfterMs => match found.converged_since {
                Some(since) => since.saturating_sub(self.last_step_ms) as f64,
                None => self.now_ms.saturating_sub(self.last_step_ms) as f64,
            },
            Number::Leaders => found.leaders as f64,
            Number::MostOwned => found.most_owned as f64,
            Number::LeastOwned => found.least_owned as f64,
            Number::NeighbourOwned => found.neighbour.owned as f64,
            Number::NeighbourTwoOwners => found.neighbour.two_owners as f64,
            Number::NeighbourMoves => found.neighbour.moves as f64,
        }
    }

    fn numbers(&self) -> Vec<Measured> {
        let bounds = self.scenario.bounds.iter();
        bounds.map(|bound| self.measured(bound)).collect()
    }

    fn measured(&self, bound: &Bound) -> Measured {
        let measured = self.value(bound.number);
        // What has not converged at all is not what was asked for, however
        // soon it is over.
        let is_open =
            bound.number == Number::ConvergedAfterMs && self.found.converged_since.is_none();
        let met = match bound.is_most {
            true => measured <= bound.value && !is_open,
            false => measured >= bound.value,
        };
        Measured {
            name: bound.number.as_str(),
            measured,
            bound: bound.value,
            rule: if bound.is_most { "at_most" } else { "at_least" },
            met,
        }
    }

    /// How it is doing.
    pub(crate) fn state(&self) -> ScenarioState {
        let lasts_ms = self.scenario.lasts_ms;
        ScenarioState {
            name: self.scenario.name.clone(),
            title: self.scenario.title.clone(),
            goal: self.scenario.goal.clone(),
            state: match self.ended {
                None => "running",
                Some(true) => "passed",
                Some(false) => "failed",
            },
            reason: self.reason(),
            progress: (self.now_ms as f64 / lasts_ms as f64).min(1.0),
            at_ms: self.now_ms,
            lasts_ms,
            numbers: self.numbers(),
        }
    }

    /// How it went.
    pub(crate) fn outcome(&self, violations: &[Violation]) -> Outcome {
        Outcome {
            scenario: self.scenario.name.clone(),
            title: self.scenario.title.clone(),
            goal: self.scenario.goal.clone(),
            passed: self.ended == Some(true),
            violations: violations.len(),
            broken: violations.first().map(told),
            reason: self.reason(),
            numbers: self.numbers(),
            seed: self.scenario.setup.seed,
            lasted_ms: self.now_ms,
        }
    }
}

/// A broken invariant, in words.
fn told(violation: &Violation) -> String {
    let (number, property) = (violation.invariant, violation.property);
    format!("{number} ({property}): {}", violation.seen)
}

impl Targets {
    /// Why there is nobody to do something to.
    pub(crate) fn nobody(&self) -> String {
        match self {
            Self::None | Self::These(_) => "no worker is named".to_owned(),
            Self::Leader => "nobody leads".to_owned(),
            Self::Followers => "nobody follows".to_owned(),
            Self::All => "there are no workers".to_owned(),
            Self::Half => "there are fewer than two workers".to_owned(),
            Self::Paused => "nobody stands still".to_owned(),
            Self::Gone => "nobody is gone".to_owned(),
            Self::Zone(zone) => format!("nobody is in the zone {zone}"),
        }
    }
}

impl Engine {
    /// The workers that a step is about; one time none, where it is about
    /// none.
    pub(crate) fn targets(&self, step: &Step) -> Vec<Option<usize>> {
        let places = self.all_places();
        let alive = (0..places.len()).filter(|number| places[*number].is_alive());
        let alive: Vec<usize> = alive.collect();
        let leader = alive
            .iter()
            .copied()
            .find(|number| places[*number].is_leader);
        // Where nobody leads, the first is as good as a leader.
        let first = match self.setup().mode {
            Mode::Leader => leader,
            Mode::Lease => leader.or_else(|| alive.first().copied()),
        };
        let workers: Vec<usize> = match &step.targets {
            Targets::None => return vec![None],
            Targets::These(workers) => workers.clone(),
            Targets::Leader => first.into_iter().collect(),
            Targets::Followers => alive
                .into_iter()
                .filter(|one| Some(*one) != first)
                .collect(),
            Targets::All => (0..self.setup().workers).collect(),
            Targets::Half => alive[..alive.len() / 2].to_vec(),
            Targets::Paused => {
                let stands = |number: &usize| places[*number].is_paused;
                alive.into_iter().filter(stands).collect()
            }
            Targets::Gone => (0..places.len())
                .filter(|number| !places[*number].is_alive())
                .collect(),
            Targets::Zone(zone) => {
                let is_there = |number: &usize| places[*number].zone.as_ref() == Some(zone);
                alive.into_iter().filter(is_there).collect()
            }
        };
        workers.into_iter().map(Some).collect()
    }
}
