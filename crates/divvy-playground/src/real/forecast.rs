//! What the death of a worker would cause: asked of the strategy that the
//! members have, over what is seen of them.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy::controller::ControllerSettings;
use divvy::manager::{LeaderSettings, Settings};
use divvy::observer::{PartitionStatus, WorkerStatus};
use divvy_core::{
    Assignment, Error, Health, Partition, Partitions, StrategySettings, Worker, Workers,
};
use divvy_sim::Mode;

use super::Real;
use super::troupe::Troupe;
use crate::engine::{Gain, MoveDocument, Refusal, WhatIf};
use crate::setup::Setup;
use crate::stage::Desired;

/// What starting a partition and telling of it takes besides.
const BESIDES: Duration = Duration::from_secs(1);

impl Troupe {
    /// Who should have each partition if a worker was not there, in lease mode.
    pub(crate) async fn desired_without(&self, worker: usize) -> Desired {
        let (name, group, partitions) = {
            let known = self.board.known();
            let place = known.places.get(worker)?;
            let partitions = known.setup.partitions as u32;
            (place.name.clone(), known.group.clone(), partitions)
        };
        let asked = self.opened.desired_without(&name, &group, partitions).await;
        asked.ok().filter(|desired| !desired.is_empty())
    }
}

impl Real {
    pub(super) fn forecast(&self, number: usize, desired: Desired) -> Result<WhatIf, Refusal> {
        let setup = {
            let known = self.board.known();
            let place = known.places.get(number);
            let place = place.ok_or_else(|| {
                Refusal::Missing(format!("there is no worker {number} that was started here"))
            })?;
            if !place.is_alive() {
                return Err(Refusal::Conflict(format!("{} is gone already", place.name)));
            }
            known.setup.clone()
        };
        let after = match setup.mode {
            Mode::Leader => self.by_strategy(number, &setup),
            Mode::Lease => desired.map(|desired| self.by_outlook(desired)),
        };
        let Some(after) = after else {
            let text = "the store does not answer: what would become of it is not known";
            return Err(Refusal::Conflict(text.to_owned()));
        };
        Ok(self.told(number, &setup, &after))
    }

    /// By index of what is shown, who should have it.
    fn by_outlook(&self, desired: Vec<Option<String>>) -> Vec<Option<usize>> {
        let names = self.live.shown().partitions.names.iter();
        let owner = |name: &String| {
            let number: usize = name.rsplit(':').next()?.parse().ok()?;
            self.live.number(desired.get(number)?.as_deref()?)
        };
        names.map(owner).collect()
    }

    /// The same by the strategy: cordoned workers keep what they have, drained
    /// ones do not, and what is pinned is not asked about.
    fn by_strategy(&self, without: usize, setup: &Setup) -> Option<Vec<Option<usize>>> {
        let seen = self.live.seen();
        let number = |status: &WorkerStatus| self.live.number(&status.name);
        let here = seen.workers.iter().filter(|status| {
            let may_own = status.healthy && status.weight > 0.0 && !status.drained;
            status.life.is_here() && may_own && number(status) != Some(without)
        });
        let here: BTreeMap<&str, &WorkerStatus> =
            here.map(|status| (status.name.as_str(), status)).collect();
        let kept = |partition: &PartitionStatus| -> Option<usize> {
            let pinned = partition.pinned.as_deref().and_then(|id| here.get(id));
            let owner = partition.owner.as_deref().and_then(|id| here.get(id));
            let kept = pinned.or_else(|| owner.filter(|status| status.cordoned))?;
            number(kept)
        };
        let mut after: Vec<Option<usize>> = seen.partitions.iter().map(kept).collect();
        let open = seen.partitions.iter().zip(&after);
        let open = open.filter(|(_, kept)| kept.is_none());
        let open: Vec<&PartitionStatus> = open.map(|(partition, _)| partition).collect();
        let eligible = here.values().filter(|status| !status.cordoned);
        let workers = Workers::new(eligible.filter_map(|status| worker(status).ok())).ok()?;
        let partitions = Partitions::new(open.iter().filter_map(|p| sized(p).ok())).ok()?;
        let previous = previous(&seen.workers, &open);
        let strategy = StrategySettings::new(setup.strategy).build().ok()?;
        let answer = strategy.assign(&workers, &partitions, previous.as_ref());
        // Where nobody may have it, nobody gets it.
        let Ok(answer) = answer else {
            return Some(after);
        };
        for (partition, slot) in seen.partitions.iter().zip(&mut after) {
            let owner = answer.owner_of(&partition.name);
            let number = owner.and_then(|owner| self.live.number(owner.id()));
            *slot = slot.or(number);
        }
        Some(after)
    }

    fn told(&self, number: usize, setup: &Setup, after: &[Option<usize>]) -> WhatIf {
        let shown = self.live.shown();
        let named = |number: usize| {
            let worker = shown.workers.get(&number);
            worker.map_or_else(String::new, |worker| worker.name.clone())
        };
        let (mut moves, mut gains) = (Vec::new(), BTreeMap::new());
        let owners = shown.partitions.owners.iter();
        let each = shown.partitions.names.iter().zip(owners).zip(after);
        for ((name, &owner), to) in each {
            let is_its = owner == number as i32;
            let stays = *to == usize::try_from(owner).ok() || owner < 0;
            // What is on its way already would be so without that death.
            if !is_its && (setup.mode == Mode::Lease || stays) {
                continue;
            }
            if let Some(to) = to {
                *gains.entry(*to).or_insert(0) += 1;
            }
            moves.push(MoveDocument {
                partition: name.clone(),
                to: to.map_or(-1, |to| to as i32),
                to_name: to.map(named),
            });
        }
        let by_worker = gains.into_iter();
        let by_worker = by_worker.map(|(worker, gains)| Gain::new(worker, named(worker), gains));
        WhatIf {
            worker: number,
            unchanged: shown.partitions.names.len().saturating_sub(moves.len()),
            by_worker: by_worker.collect(),
            bound_ms: handed_on_within(setup).as_millis() as u64,
            note: "by the same strategy, and nothing has been changed".to_owned(),
            moves,
        }
    }
}

/// Within which the partitions of a dead worker run elsewhere.
fn handed_on_within(setup: &Setup) -> Duration {
    let leader = |settings: LeaderSettings| {
        LeaderSettings::observed(settings.leader_lease)
            + LeaderSettings::observed(settings.heartbeat_ttl)
            + settings.root_poll_interval * 2
    };
    let lease =
        |settings: ControllerSettings| settings.lease.lease_ttl + settings.lease.reconcile_interval;
    let within = match (setup.mode, setup.preset.as_str()) {
        (Mode::Leader, "fast") => leader(Settings::fast().leader),
        (Mode::Leader, "calm") => leader(Settings::calm().leader),
        (Mode::Leader, _) => leader(Settings::default().leader),
        (Mode::Lease, "fast") => lease(ControllerSettings::fast()),
        (Mode::Lease, "rendezgo") => lease(ControllerSettings::rendezgo()),
        (Mode::Lease, _) => lease(ControllerSettings::default()),
    };
    within + BESIDES
}

fn worker(status: &WorkerStatus) -> Result<Worker, Error> {
    let worker = Worker::new(status.name.as_str())?.with_weight(status.weight)?;
    let worker = worker.with_health(match status.healthy {
        true => Health::Healthy,
        false => Health::Unhealthy,
    });
    match &status.zone {
        Some(zone) => worker.with_zone(zone.as_str()),
        None => Ok(worker),
    }
}

fn sized(partition: &PartitionStatus) -> Result<Partition, Error> {
    let weight = (partition.weight * crate::member::line::UNIT).round() as i64;
    partition.name.parse::<Partition>()?.with_weight(weight)
}

/// The assignment in force, of those partitions that somebody has.
fn previous(workers: &[WorkerStatus], partitions: &[&PartitionStatus]) -> Option<Assignment> {
    let workers = Workers::new(workers.iter().filter_map(|status| worker(status).ok())).ok()?;
    let owner = |partition: &PartitionStatus| {
        let owner = partition.owner.as_deref()?;
        workers.index_of(owner).map(|index| index as u32)
    };
    let owned: BTreeMap<&str, u32> = partitions
        .iter()
        .filter_map(|partition| Some((partition.name.as_str(), owner(partition)?)))
        .collect();
    let listed = partitions.iter();
    let listed = listed.filter(|partition| owned.contains_key(partition.name.as_str()));
    let listed = Partitions::new(listed.filter_map(|partition| sized(partition).ok())).ok()?;
    let owners = listed.iter().map(|partition| owned[partition.as_str()]);
    let owners = owners.collect();
    Assignment::new(&workers, &listed, owners).ok()
}
