//! The properties of plans, computed from nothing but the problem and the plan. `Err` names the one that is
//! broken.
#![allow(dead_code, reason = "every test file uses its own part of the checks")]

use divvy_core::plan::{Cause, GONE, NONE, Plan, PlanError, Problem, Slot, Weights};

type Check = Result<(), String>;

/// What every planner promises, for any input; `planner` is asked again for determinism and for idempotence.
pub(crate) fn check_any(
    problem: &Problem<'_>,
    planner: impl Fn(&Problem<'_>) -> Result<Plan, PlanError>,
) -> Result<Plan, String> {
    let plan = planner(problem).map_err(|error| format!("no plan: {error}"))?;
    check_total(problem, &plan)?;
    check_caps(problem, &plan)?;
    check_moves(problem, &plan)?;
    check_certificate(problem, &plan)?;
    if planner(problem).as_ref() != Ok(&plan) {
        return Err("deterministic: two plans of one problem differ".into());
    }
    let again = Problem {
        previous: &plan.owners,
        ..*problem
    };
    let again = planner(&again).map_err(|error| format!("no second plan: {error}"))?;
    if again.owners != plan.owners || !again.moves.is_empty() {
        return Err(format!(
            "idempotent: planning again moves {:?}",
            again.moves
        ));
    }
    Ok(plan)
}

pub(crate) fn weight(problem: &Problem<'_>, partition: usize) -> u64 {
    match problem.weights {
        Weights::Each(weights) => weights[partition],
        Weights::Even => 1,
    }
}

fn is_orphan(problem: &Problem<'_>, previous: u32) -> bool {
    previous == GONE || (previous != NONE && !problem.slots[previous as usize].is_eligible())
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(broken()) }
}

fn check_total(problem: &Problem<'_>, plan: &Plan) -> Check {
    ensure(plan.owners.len() == problem.previous.len(), || {
        "total: an owner each".into()
    })?;
    for (partition, &owner) in plan.owners.iter().enumerate() {
        let takes = problem
            .slots
            .get(owner as usize)
            .is_some_and(Slot::is_eligible);
        ensure(takes, || {
            format!("total: partition {partition} is given to {owner}")
        })?;
    }
    let mut loads = vec![0; problem.slots.len()];
    let mut counts = vec![0; problem.slots.len()];
    for (partition, &owner) in plan.owners.iter().enumerate() {
        loads[owner as usize] += weight(problem, partition);
        counts[owner as usize] += 1;
    }
    ensure(loads == plan.loads, || "total: loads add up".into())?;
    ensure(counts == plan.counts, || "total: counts add up".into())
}

fn check_caps(problem: &Problem<'_>, plan: &Plan) -> Check {
    for (worker, slot) in problem.slots.iter().enumerate() {
        let most = slot.max_partitions.unwrap_or(u32::MAX);
        ensure(plan.counts[worker] <= most, || {
            format!("caps: worker {worker} owns more than {most}")
        })?;
    }
    Ok(())
}

fn check_moves(problem: &Problem<'_>, plan: &Plan) -> Check {
    let mut changes = plan.moves.iter();
    for (partition, (&from, &to)) in problem.previous.iter().zip(&plan.owners).enumerate() {
        if from == to {
            continue;
        }
        let change = changes.next().ok_or("moves: one is missing")?;
        let named = (change.partition as usize, change.from, change.to);
        ensure(named == (partition, from, to), || {
            format!("moves: {change:?} at {partition}")
        })?;
        ensure((change.cause == Cause::New) == (from == NONE), || {
            format!("moves: {change:?}")
        })?;
        let is_gone = change.cause == Cause::WorkerGone;
        ensure(is_gone == is_orphan(problem, from), || {
            format!("moves: {change:?}")
        })?;
        let rejects_itself = change
            .rejected
            .is_some_and(|rejected| rejected.worker == to);
        ensure(!rejects_itself, || format!("moves: {change:?}"))?;
    }
    ensure(changes.next().is_none(), || {
        "moves: one too many is named".into()
    })
}

fn check_certificate(problem: &Problem<'_>, plan: &Plan) -> Check {
    let certificate = &plan.certificate;
    let pairs = || problem.previous.iter().zip(&plan.owners).enumerate();
    let moved = || pairs().filter(|(_, (from, to))| from != to && **from != NONE);
    let moves = moved().count();
    ensure(certificate.moves as usize == moves, || {
        format!("certificate: {moves} moves")
    })?;
    let moved_weight: u64 = moved()
        .map(|(partition, _)| weight(problem, partition))
        .sum();
    ensure(certificate.moved_weight == moved_weight, || {
        format!("certificate: weight {moved_weight}")
    })?;
    let orphans = problem
        .previous
        .iter()
        .filter(|&&owner| is_orphan(problem, owner))
        .count();
    ensure(certificate.orphans as usize == orphans, || {
        format!("certificate: {orphans} orphans")
    })?;
    let new = problem
        .previous
        .iter()
        .filter(|&&owner| owner == NONE)
        .count();
    ensure(certificate.new as usize == new, || {
        format!("certificate: {new} new")
    })?;
    ensure(certificate.lower_bound <= certificate.moves, || {
        format!("bound: {certificate:?}")
    })?;
    ensure(certificate.lower_bound >= certificate.orphans, || {
        format!("bound: {certificate:?}")
    })?;
    let (low, high) = levels(problem, &plan.loads);
    let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
    ensure(is_near(certificate.min_over_mean, low), || {
        format!("certificate: lowest level {low}")
    })?;
    ensure(is_near(certificate.max_over_mean, high), || {
        format!("certificate: highest level {high}")
    })
}

/// Lowest and highest load per unit of weight over the mean.
fn levels(problem: &Problem<'_>, loads: &[u64]) -> (f64, f64) {
    let eligible = || {
        problem
            .slots
            .iter()
            .zip(loads)
            .filter(|(slot, _)| slot.is_eligible())
    };
    let total: u64 = loads.iter().sum();
    if total == 0 {
        return (1.0, 1.0);
    }
    let weight: f64 = eligible().map(|(slot, _)| slot.weight).sum();
    let level = |(slot, load): (&Slot, &u64)| *load as f64 * weight / slot.weight / total as f64;
    eligible()
        .map(level)
        .fold((f64::INFINITY, 0.0), |(low, high), level| {
            (low.min(level), high.max(level))
        })
}

/// Every worker inside the band; only for problems that allow it.
pub(crate) fn check_band(problem: &Problem<'_>, plan: &Plan, width: f64) -> Check {
    let (low, high) = levels(problem, &plan.loads);
    ensure(high <= 1.0 + width + 1e-9, || {
        format!("band: highest level {high}")
    })?;
    ensure(low >= 1.0 - width - 1e-9, || {
        format!("band: lowest level {low}")
    })?;
    ensure(plan.certificate.outside == 0, || {
        "band: outside is counted wrong".into()
    })
}

/// Every count is the exact share rounded down or up.
pub(crate) fn check_counts(problem: &Problem<'_>, plan: &Plan) -> Check {
    let caps: Vec<u64> = problem.slots.iter().map(cap).collect();
    let shares = exact_shares(
        plan.owners.len() as u64,
        &whole_weights(problem.slots),
        &caps,
    );
    for (worker, &(lo, hi)) in shares.iter().enumerate() {
        let count = u64::from(plan.counts[worker]);
        ensure((lo..=hi).contains(&count), || {
            format!("counts: worker {worker} owns {count}, not {lo} to {hi}")
        })?;
    }
    Ok(())
}

/// As few moves as possible, for equal workers without caps: of every worker its share may stay, and as many
/// as there are larger shares go to workers who hold that many.
pub(crate) fn check_fewest(problem: &Problem<'_>, plan: &Plan) -> Check {
    let (partitions, workers) = (problem.previous.len(), problem.slots.len());
    let (share, larger) = (partitions / workers, partitions % workers);
    let mut held = vec![0; workers];
    for &owner in problem
        .previous
        .iter()
        .filter(|&&owner| owner != NONE && owner != GONE)
    {
        held[owner as usize] += 1;
    }
    let holding_more = held.iter().filter(|&&held| held > share).count();
    let stay = held.iter().map(|&held| held.min(share)).sum::<usize>() + holding_more.min(larger);
    let new = problem
        .previous
        .iter()
        .filter(|&&owner| owner == NONE)
        .count();
    let fewest = partitions - new - stay;
    ensure(plan.certificate.moves as usize == fewest, || {
        format!("fewest: {fewest} moves suffice")
    })?;
    ensure(plan.certificate.lower_bound as usize == fewest, || {
        format!("fewest: the bound is {fewest}")
    })
}

pub(crate) fn cap(slot: &Slot) -> u64 {
    match slot.is_eligible() {
        true => u64::from(slot.max_partitions.unwrap_or(u32::MAX)),
        false => 0,
    }
}

/// Weights as integers; the tests use multiples of a half.
pub(crate) fn whole_weights(slots: &[Slot]) -> Vec<u64> {
    let whole = |slot: &Slot| {
        if slot.is_eligible() {
            (slot.weight * 2.0) as u64
        } else {
            0
        }
    };
    slots.iter().map(whole).collect()
}

/// Shares rounded down and up: caps whoever is over its cap at the present level, until nobody is.
pub(crate) fn exact_shares(total: u64, weights: &[u64], caps: &[u64]) -> Vec<(u64, u64)> {
    let mut is_capped = vec![false; weights.len()];
    loop {
        let free = |of: &[u64]| -> u64 {
            (0..of.len())
                .filter(|&i| !is_capped[i])
                .map(|i| of[i])
                .sum()
        };
        let taken: u64 = (0..caps.len())
            .filter(|&i| is_capped[i])
            .map(|i| caps[i])
            .sum();
        let (left, all) = (total - taken, free(weights).max(1));
        let over: Vec<usize> = (0..caps.len())
            .filter(|&i| !is_capped[i] && caps[i] * all < left * weights[i])
            .collect();
        if over.is_empty() {
            let share = |i: usize| match is_capped[i] {
                true => (caps[i], caps[i]),
                false => ((left * weights[i]) / all, (left * weights[i]).div_ceil(all)),
            };
            return (0..caps.len()).map(share).collect();
        }
        over.into_iter().for_each(|i| is_capped[i] = true);
    }
}

/// Calls `visit` with every assignment of the partitions to eligible workers.
pub(crate) fn every_assignment(problem: &Problem<'_>, mut visit: impl FnMut(&[u32])) {
    let workers: Vec<u32> = (0..problem.slots.len() as u32)
        .filter(|&worker| problem.slots[worker as usize].is_eligible())
        .collect();
    let mut digits = vec![0; problem.previous.len()];
    loop {
        let owners: Vec<u32> = digits.iter().map(|&digit: &usize| workers[digit]).collect();
        visit(&owners);
        let Some(at) = digits.iter().position(|&digit| digit + 1 < workers.len()) else {
            return;
        };
        digits[..at].fill(0);
        digits[at] += 1;
    }
}

/// Moves from the previous owners to these.
pub(crate) fn moves(problem: &Problem<'_>, owners: &[u32]) -> u32 {
    let pairs = problem.previous.iter().zip(owners);
    pairs
        .filter(|(from, to)| from != to && **from != NONE)
        .count() as u32
}

/// Random slots: mostly weight 1, some others, some capped, some that take nothing; at least one takes something.
pub(crate) fn random_slots(rng: &mut fastrand::Rng, most: usize) -> Vec<Slot> {
    let is_plain = rng.bool();
    let mut slots: Vec<Slot> = (0..rng.usize(1..=most))
        .map(|_| {
            let mut slot = Slot::new(1.0);
            slot.zone = rng.u32(0..3);
            if !is_plain {
                slot.weight = [1.0, 1.0, 1.0, 0.5, 2.0, 3.5, 0.0][rng.usize(0..7)];
                slot.max_partitions = (rng.u8(0..5) == 0).then(|| rng.u32(0..8));
            }
            slot
        })
        .collect();
    let last = slots.len() - 1;
    slots[last] = Slot {
        weight: 1.0,
        max_partitions: None,
        ..slots[last]
    };
    slots
}

/// Random previous owners, new and gone ones among them.
pub(crate) fn random_previous(
    rng: &mut fastrand::Rng,
    slots: usize,
    partitions: usize,
) -> Vec<u32> {
    let is_cold = rng.u8(0..8) == 0;
    let owner = |rng: &mut fastrand::Rng| match rng.u8(0..12) {
        _ if is_cold => NONE,
        0 => NONE,
        1 => GONE,
        _ => rng.u32(0..slots as u32),
    };
    (0..partitions).map(|_| owner(rng)).collect()
}
