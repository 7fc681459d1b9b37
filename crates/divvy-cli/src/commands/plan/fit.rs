//! `--fit LOAD`: as few more workers as keep every load at or below it.

use divvy::{Partitions, Proposal, WORKERS_MAX, Workers};

use crate::failure::Failure;
use crate::input::{Change, Target};

/// Numbers of workers that are tried from the least that could do.
const TRIES_MAX: usize = 64;

/// The first number of added workers with which nobody has more than `limit`,
/// and what is then proposed. One more worker may be worse than none, so all
/// numbers are tried in turn.
pub(super) fn find(
    limit: u64,
    change: &Change,
    base: &Workers,
    partitions: &Partitions,
    propose: impl Fn(&Workers) -> Result<Proposal, Failure>,
) -> Result<(Target, Proposal), Failure> {
    let heaviest = partitions.iter().zip(partitions.loads());
    if let Some((partition, load)) = heaviest.max_by_key(|(_, load)| *load)
        && load > limit
    {
        let rule = format!("is too little: {partition} alone has {load}");
        return Err(Failure::usage("load", limit, rule));
    }
    let stays = change.adding(0).target(base)?.workers;
    let able = stays.iter().filter(|worker| worker.is_eligible()).count();
    let total: u64 = partitions.loads().sum();
    let least = usize::try_from(total.div_ceil(limit)).unwrap_or(usize::MAX);
    let first = least.max(1).saturating_sub(able);
    let most = WORKERS_MAX - base.len();
    for count in (first..=most).take(TRIES_MAX) {
        let target = change.adding(count).target(base)?;
        let proposal = propose(&target.workers)?;
        let loads = proposal.assignment.loads();
        if loads.iter().all(|&load| load <= limit) {
            return Ok((target, proposal));
        }
    }
    let last = first.saturating_add(TRIES_MAX - 1).min(most);
    let rule = format!(
        "is too little: with {first} to {last} workers more, somebody still has more than that"
    );
    Err(Failure::usage("load", limit, rule))
}
