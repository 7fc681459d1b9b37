//! How a plan came to the owner of one partition, with what workers had when that was decided.
//!
//! What a reader would get wrong: the loads of a finished plan do not show why a partition is where it is. What
//! was placed after it has changed them, and a repair may have moved others. So a plan by weight records the
//! state in which the partition that is asked about was last given to a worker, and a plan by count, which
//! always places in the same order, is followed again up to it.

use super::banded::Planned;
use super::ledger::{Ledger, Recorded};
use super::outcome::{Cause, Move, Plan, Reason};
use super::place;
use super::problem::{NONE, Problem, Slot};
use super::target::Limits;
use crate::worker::Veto;

/// What was decided about one partition, and what was known then.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    pub(crate) what: What,
    /// What each worker had just before, or has at the end where the partition stayed: its load, or how many
    /// partitions where the plan counts them.
    pub(crate) loads: Vec<u64>,
    /// Why each worker did not get it; nothing is said of the owner, nor of who may own nothing.
    pub(crate) vetoes: Vec<Option<Veto>>,
    /// Whether the plan counts partitions and does not look at their weights.
    pub(crate) by_count: bool,
    /// Whether the lightest is looked for in the lightest zone.
    pub(crate) by_zone: bool,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum What {
    /// It had no owner and got one.
    Placed {
        /// Its turn, from 1 on, of `of`.
        number: usize,
        of: usize,
        by: By,
    },
    /// It had an owner, which it may have got a moment before.
    Moved {
        from: u32,
        cause: Cause,
        /// What the worker that is the cause had, and the limit that it was beyond; `None` where the partition
        /// changed places with another.
        beyond: Option<(u64, u64)>,
    },
    /// It stayed.
    Stayed(Stay),
}

/// What a partition was placed by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum By {
    /// The worker that it hashes to had room.
    Preference,
    /// That one was passed over: its owner was the lightest.
    Lightest {
        preferred: u32,
        reason: Reason,
        /// What the worker, or its zone, would have had, and up to which load it is filled.
        limit: Option<(u64, u64)>,
    },
    /// It is extreme, and its owner was the lightest.
    Extreme,
    /// It is too heavy for the band of anybody, and its owner has nothing else.
    Giant,
}

/// Why a partition stayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stay {
    /// What its worker had before, and has now.
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// What its worker may have.
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Others that its worker gave up.
    pub(crate) given: usize,
    pub(crate) is_giant: bool,
}

impl Decision {
    /// Follows a plan by count up to one partition.
    pub(crate) fn by_count(problem: &Problem<'_>, plan: &Plan, partition: u32) -> Self {
        let owner = plan.owners[partition as usize];
        let mut counts = vec![0u64; problem.slots.len()];
        for (&from, &to) in problem.previous.iter().zip(&plan.owners) {
            counts[to as usize] += u64::from(from == to);
        }
        let seats: Vec<u64> = plan.counts.iter().map(|&count| count.into()).collect();
        // Placed first are those that their preferred worker had a seat for.
        let (mut order, rest): (Vec<&Move>, Vec<&Move>) = plan
            .moves
            .iter()
            .partition(|change| change.rejected.is_none());
        order.extend(rest);
        let at = order
            .iter()
            .position(|change| change.partition == partition);
        let Some(at) = at else {
            let given = plan.moves.iter().filter(|change| change.from == owner);
            let given = given.count();
            let stay = Stay {
                before: counts[owner as usize] + given as u64,
                after: seats[owner as usize],
                least: seats[owner as usize],
                most: seats[owner as usize],
                given,
                is_giant: false,
            };
            let veto = |_: u32| Veto::Enough;
            return Self {
                what: What::Stayed(stay),
                vetoes: vetoes(problem.slots, owner, veto),
                loads: seats,
                by_count: true,
                by_zone: false,
            };
        };
        for change in &order[..at] {
            counts[change.to as usize] += 1;
        }
        let level =
            |worker: u32| counts[worker as usize] as f64 / problem.slots[worker as usize].weight;
        let veto = |worker: u32| {
            if counts[worker as usize] >= seats[worker as usize] {
                Veto::Full
            } else {
                heavier(
                    (level(worker), worker),
                    (level(owner), owner),
                    [Veto::Heavier, Veto::Later],
                )
            }
        };
        let by = match order[at].rejected {
            None => By::Preference,
            Some(rejected) => By::Lightest {
                preferred: rejected.worker,
                reason: rejected.reason,
                limit: None,
            },
        };
        Self {
            what: What::Placed {
                number: at + 1,
                of: plan.moves.len(),
                by,
            },
            vetoes: vetoes(problem.slots, owner, veto),
            loads: counts,
            by_count: true,
            by_zone: false,
        }
    }

    /// What a plan by weight has recorded of one partition.
    pub(super) fn by_weight(planned: &Planned<'_>, previous: &[u32], partition: u32) -> Self {
        let Planned {
            ledger, targets, ..
        } = planned;
        let owner = ledger.owners[partition as usize];
        match &ledger.recorded {
            Some(recorded) if owner != previous[partition as usize] => {
                Self::recorded(planned, recorded, partition)
            }
            _ => {
                let limits = targets.outer.workers[owner as usize];
                let kept = Ledger::new(ledger.weights, ledger.slots, ledger.zones, previous);
                let left = |(&from, &to): (&u32, &u32)| from == owner && to != owner;
                let stay = Stay {
                    before: kept.loads[owner as usize],
                    after: ledger.loads[owner as usize],
                    least: limits.lo,
                    most: limits.hi,
                    given: previous
                        .iter()
                        .zip(&ledger.owners)
                        .filter(|&pair| left(pair))
                        .count(),
                    is_giant: targets.giant_of[owner as usize] == partition,
                };
                let weight = ledger.weights[partition as usize];
                let veto = |worker: u32| {
                    let limits = targets.outer.workers[worker as usize];
                    let load = ledger.loads[worker as usize];
                    unless_full(ledger, limits, worker, weight).unwrap_or(if load >= limits.lo {
                        Veto::Enough
                    } else {
                        Veto::NoGain
                    })
                };
                Self {
                    what: What::Stayed(stay),
                    loads: ledger.loads.clone(),
                    vetoes: vetoes(ledger.slots, owner, veto),
                    by_count: false,
                    by_zone: planned.ledger.zones.len() > 1,
                }
            }
        }
    }

    fn recorded(planned: &Planned<'_>, recorded: &Recorded<'_>, partition: u32) -> Self {
        let Recorded {
            state,
            to,
            cause,
            rejected,
        } = recorded;
        let (targets, to) = (planned.targets, *to);
        let weight = state.weights[partition as usize];
        let from = state.owners[partition as usize];
        let is_giant = targets.giant_of[to as usize] == partition;
        let is_extreme = targets.is_extreme(weight);
        let veto = |worker: u32| match (from, rejected) {
            (_, Some(rejected)) if rejected.worker == worker => veto_of(rejected.reason),
            (from, _) if from == worker => Veto::GaveUp,
            _ if is_giant => Veto::Unchosen,
            (NONE, _) => place::passed_over(state, targets, weight, worker, to),
            _ => {
                let limits = targets.outer.workers[worker as usize];
                unless_full(state, limits, worker, weight).unwrap_or(Veto::Unchosen)
            }
        };
        let what = if from == NONE || is_giant {
            let at = planned
                .pool
                .iter()
                .position(|other| other.partition == partition);
            let by = match rejected {
                _ if is_giant => By::Giant,
                _ if is_extreme => By::Extreme,
                None => By::Preference,
                Some(rejected) => By::Lightest {
                    preferred: rejected.worker,
                    reason: rejected.reason,
                    limit: limit(planned, state, rejected.worker, rejected.reason, weight),
                },
            };
            What::Placed {
                number: at.map_or(1, |at| at + 1),
                of: planned.pool.len().max(1),
                by,
            }
        } else {
            let goal = if planned.is_cold {
                &targets.rest
            } else {
                &targets.outer
            };
            let (giver, taker) = (from as usize, to as usize);
            let (most, least) = (goal.workers[giver].hi, goal.workers[taker].lo);
            let beyond = match cause {
                Cause::Over => Some((state.loads[giver], most)).filter(|(load, most)| load > most),
                Cause::Under => {
                    Some((state.loads[taker], least)).filter(|(load, least)| load < least)
                }
                _ => None,
            };
            What::Moved {
                from,
                cause: *cause,
                beyond,
            }
        };
        Self {
            what,
            loads: state.loads.clone(),
            vetoes: vetoes(state.slots, to, veto),
            by_count: false,
            by_zone: planned.ledger.zones.len() > 1,
        }
    }
}

fn vetoes(slots: &[Slot], owner: u32, veto: impl Fn(u32) -> Veto) -> Vec<Option<Veto>> {
    let workers = (0..).zip(slots);
    let veto = |(worker, slot): (u32, &Slot)| {
        (worker != owner && slot.is_eligible()).then(|| veto(worker))
    };
    workers.map(veto).collect()
}

/// What a rejected worker, or its zone, would have had, and up to which load it is filled.
fn limit(
    planned: &Planned<'_>,
    state: &Ledger<'_>,
    worker: u32,
    reason: Reason,
    weight: u64,
) -> Option<(u64, u64)> {
    let goal = planned.goal();
    let zone = state.zones.of[worker as usize] as usize;
    match reason {
        Reason::OverBand => {
            let worker = worker as usize;
            Some((state.loads[worker] + weight, goal.workers[worker].hi))
        }
        Reason::OverZone => Some((state.zone_loads[zone] + weight, goal.zones[zone].hi)),
        _ => None,
    }
}

/// Why a worker cannot take this weight at all.
fn unless_full(ledger: &Ledger<'_>, limits: Limits, worker: u32, weight: u64) -> Option<Veto> {
    if !ledger.has_room(worker) {
        return Some(Veto::Full);
    }
    let load = ledger.loads[worker as usize] + weight;
    (load > limits.hi).then_some(Veto::OverBand)
}

/// Why of two that may take something the one was passed over for the other, each with its level: the lighter
/// gets it, and of equals the first. `vetoes` are for one that is heavier, and for one that comes later.
pub(super) fn heavier(passed: (f64, u32), taker: (f64, u32), vetoes: [Veto; 2]) -> Veto {
    let [heavier, later] = vetoes;
    if passed.0 > taker.0 {
        heavier
    } else if passed.0 == taker.0 && passed.1 > taker.1 {
        later
    } else {
        Veto::Unchosen
    }
}

fn veto_of(reason: Reason) -> Veto {
    match reason {
        Reason::Full => Veto::Full,
        Reason::Ineligible => Veto::ZeroWeight,
        Reason::OverBand => Veto::OverBand,
        Reason::OverZone => Veto::OverZone,
        Reason::Reserved => Veto::Reserved,
    }
}
