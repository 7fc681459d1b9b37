//! What every strategy must hold, as functions over any strategy, so that
//! deliberately broken ones can be shown to fail.

use divvy_core::{Assignment, Error, Health, Partitions, Strategy, Worker, Workers};

/// What a property found wrong.
pub(crate) type Verdict = Result<(), String>;

fn assign(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
) -> Result<Assignment, String> {
    strategy
        .assign(workers, partitions, None)
        .map_err(|error| format!("{}: {error}", strategy.name()))
}

fn require(holds: bool, claim: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(claim()) }
}

/// Every partition has exactly one owner, every worker is listed, idle ones
/// with an empty list.
pub(crate) fn total(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
) -> Verdict {
    let assignment = assign(strategy, workers, partitions)?;
    let grouped = assignment.by_worker();
    require(grouped.len() == workers.len(), || {
        "a worker is missing".into()
    })?;
    let mut listed: Vec<&str> = grouped
        .iter()
        .flat_map(|(_, owned)| owned.iter().map(|partition| partition.as_str()))
        .collect();
    listed.sort_unstable();
    let expected: Vec<&str> = partitions.iter().map(|p| p.as_str()).collect();
    require(listed == expected, || {
        "partitions were lost or doubled".into()
    })
}

/// Unhealthy workers and workers of weight 0 get nothing.
pub(crate) fn only_eligible(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
) -> Verdict {
    for (worker, owned) in assign(strategy, workers, partitions)?.by_worker() {
        require(worker.is_eligible() || owned.is_empty(), || {
            format!("{} is not eligible and got {}", worker.id(), owned.len())
        })?;
    }
    Ok(())
}

/// The same input gives the same output, call after call.
pub(crate) fn deterministic(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
) -> Verdict {
    let first = assign(strategy, workers, partitions)?;
    for _ in 0..3 {
        let again = assign(strategy, workers, partitions)?;
        require(again == first, || "two calls disagree".into())?;
    }
    Ok(())
}

/// The order in which workers and partitions come does not matter.
pub(crate) fn order_independent(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
    seed: u64,
) -> Verdict {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut shuffled_workers: Vec<Worker> = workers.iter().cloned().collect();
    let mut shuffled_partitions: Vec<_> = partitions.iter().cloned().collect();
    rng.shuffle(&mut shuffled_workers);
    rng.shuffle(&mut shuffled_partitions);
    let again = assign(
        strategy,
        &Workers::new(shuffled_workers).map_err(|error| error.to_string())?,
        &Partitions::new(shuffled_partitions).map_err(|error| error.to_string())?,
    )?;
    require(again == assign(strategy, workers, partitions)?, || {
        "another order of input gives another output".into()
    })
}

/// Nobody to own anything is `NoWorkers`, partitions or not.
pub(crate) fn no_workers_is_an_error(strategy: &dyn Strategy, partitions: &Partitions) -> Verdict {
    let none = Workers::new([]).map_err(|error| error.to_string())?;
    let sick = Worker::new("sick").map(|worker| worker.with_health(Health::Unhealthy));
    let idle = Worker::new("idle").and_then(|worker| worker.with_weight(0.0));
    let unfit = Workers::new([
        sick.map_err(|e| e.to_string())?,
        idle.map_err(|e| e.to_string())?,
    ])
    .map_err(|error| error.to_string())?;
    let empty = Partitions::new([]).map_err(|error| error.to_string())?;
    for workers in [&none, &unfit] {
        for partitions in [&empty, partitions] {
            let result = strategy.assign(workers, partitions, None);
            require(matches!(result, Err(Error::NoWorkers { .. })), || {
                format!("{} workers gave {result:?}", workers.len())
            })?;
        }
    }
    Ok(())
}

/// When a worker leaves, its partitions move and no others do.
pub(crate) fn departed_worker_moves_only_its_own(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
) -> Verdict {
    let before = assign(strategy, workers, partitions)?;
    for (gone, owned) in before.by_worker() {
        let rest = workers
            .iter()
            .filter(|worker| worker.id() != gone.id())
            .cloned();
        let rest = Workers::new(rest).map_err(|error| error.to_string())?;
        if rest.eligible().is_err() {
            continue;
        }
        let moves = assign(strategy, &rest, partitions)?.moves_from(&before);
        require(moves.moved() == owned.len(), || {
            format!("{} had {}, {} moved", gone.id(), owned.len(), moves.moved())
        })?;
        require(
            moves.iter().all(|m| m.from.as_deref() == Some(gone.id())),
            || format!("somebody else's partitions moved when {} left", gone.id()),
        )?;
    }
    Ok(())
}

/// When a worker joins, partitions move to it and to nobody else.
pub(crate) fn new_worker_only_gains(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
    new: &Worker,
) -> Verdict {
    let before = assign(strategy, workers, partitions)?;
    let more = Workers::new(workers.iter().chain([new]).cloned()).map_err(|e| e.to_string())?;
    let moves = assign(strategy, &more, partitions)?.moves_from(&before);
    require(
        moves.iter().all(|m| m.to.as_deref() == Some(new.id())),
        || format!("{} joined and others gained", new.id()),
    )
}

/// The explanation names the owner that the assignment has, and ranks everyone.
pub(crate) fn explanation_agrees(
    strategy: &dyn Strategy,
    workers: &Workers,
    partitions: &Partitions,
) -> Verdict {
    let assignment = assign(strategy, workers, partitions)?;
    for partition in partitions {
        let name = partition.as_str();
        let explanation = strategy
            .explain(name, workers, partitions, None)
            .map_err(|error| error.to_string())?;
        let owner = assignment.owner_of(name).map(Worker::id);
        require(owner == Some(&explanation.owner), || {
            format!(
                "{name} belongs to {owner:?}, explained as {}",
                explanation.owner
            )
        })?;
        let ranked = explanation.ranking.len();
        require(ranked == workers.len(), || {
            format!("{ranked} workers are ranked")
        })?;
        let scores: Vec<f64> = explanation.ranking.iter().filter_map(|r| r.score).collect();
        require(scores.is_sorted_by(|a, b| a >= b), || {
            format!("{name}: the ranking is not by score: {scores:?}")
        })?;
    }
    Ok(())
}
