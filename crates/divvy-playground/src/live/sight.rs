//! What is shown of a live cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy::observer::{Mode, PartitionStatus};

use super::Live;
use crate::document::{
    ClockView, InvariantsView, PartitionsView, SettingsView, StoreDocument, Summary, WorkerView,
};
use crate::engine::view::rounded;
use crate::shown::Shown;

/// The load of each worker, by number.
#[derive(Debug, Default)]
struct Loads {
    owned: Vec<usize>,
    load: Vec<f64>,
    share: Vec<f64>,
    /// The shortest lease of what it has.
    left: Vec<Option<Duration>>,
    mean: f64,
    least: f64,
    most: f64,
    imbalance: f64,
}

impl Live {
    /// All that is shown now.
    pub(crate) fn see(&self) -> Shown {
        let loads = self.loads();
        let workers = self.roster.shown().into_iter();
        let workers = workers.filter_map(|number| Some((number, self.worker(number, &loads)?)));
        Shown {
            clock: ClockView {
                now_ms: self.now_ms(),
                running: true,
                lagging: false,
                speed: 1.0,
                began_unix_ms: Some(self.began_unix_ms),
            },
            settings: SettingsView {
                preset: None,
                strategy: None,
                exclusive: None,
                lease_ms: None,
                seed: None,
            },
            store: StoreDocument {
                state: match self.trouble {
                    None => "up",
                    Some(_) => "down",
                },
                latency_ms: self
                    .trouble
                    .is_none()
                    .then(|| rounded(self.seen.took.as_secs_f64() * 1000.0)),
                incarnation: None,
                trouble: self.trouble.clone(),
            },
            workers: workers.collect::<BTreeMap<_, _>>(),
            partitions: self.partitions(),
            summary: self.sums(&loads),
            invariants: InvariantsView {
                checked: 0,
                violations: Vec::new(),
            },
            scenario: None,
            point: self.points.back().cloned(),
        }
    }

    /// The worker of this number, with what the store says of it.
    pub(super) fn worker_view(&self, number: usize) -> Option<WorkerView> {
        self.worker(number, &self.loads())
    }

    fn worker(&self, number: usize, loads: &Loads) -> Option<WorkerView> {
        let known = self.roster.get(number)?;
        let status = known.status.as_ref()?;
        let alive = known.is_here();
        let renewed = status.lease.zip(status.renewed);
        let left = renewed.map(|(lease, ago)| lease.saturating_sub(ago));
        let left = left.or(loads.left[number]).filter(|_| alive);
        Some(WorkerView {
            number,
            name: known.title(),
            id: Some(known.name.clone()),
            state: known.state(),
            alive,
            leader: status.leads && alive,
            health: match status.healthy {
                true => "healthy",
                false => "unhealthy",
            },
            weight: status.weight,
            zone: status.zone.clone(),
            paused: None,
            isolated: None,
            slow: None,
            broken: None,
            cordoned: status.cordoned,
            draining: status.drained,
            owned: loads.owned[number],
            load: rounded(loads.load[number]),
            share: rounded(loads.share[number]),
            lease_left_ms: left.map(|left| left.as_millis() as u64),
            lease_ms: status.lease.map(|lease| lease.as_millis() as u64),
        })
    }

    fn loads(&self) -> Loads {
        let all = self.roster.all();
        let count = all.len();
        let mut loads = Loads {
            owned: vec![0; count],
            load: vec![0.0; count],
            share: vec![0.0; count],
            left: vec![None; count],
            imbalance: 1.0,
            ..Loads::default()
        };
        let mut total = 0.0;
        for partition in &self.seen.partitions {
            total += partition.weight;
            let Some(owner) = self.owner(partition) else {
                continue;
            };
            loads.owned[owner] += 1;
            loads.load[owner] += partition.weight;
            loads.left[owner] = match (loads.left[owner], partition.lease_left) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        let weight = |number: usize| -> Option<f64> {
            let status = all[number].status.as_ref()?;
            let is_eligible = all[number].is_here() && status.healthy && !status.drained;
            (is_eligible && status.weight > 0.0).then_some(status.weight)
        };
        let eligible: Vec<(usize, f64)> = (0..count)
            .filter_map(|number| Some((number, weight(number)?)))
            .collect();
        let capacity: f64 = eligible.iter().map(|(_, weight)| weight).sum();
        for &(number, weight) in &eligible {
            let share = total * weight / capacity;
            loads.share[number] = share;
            if share > 0.0 {
                loads.imbalance = loads.imbalance.max(loads.load[number] / share);
            }
        }
        if !eligible.is_empty() {
            let of = |entry: &(usize, f64)| loads.load[entry.0];
            loads.mean = total / eligible.len() as f64;
            loads.least = eligible.iter().map(of).fold(f64::INFINITY, f64::min);
            loads.most = eligible.iter().map(of).fold(0.0, f64::max);
        }
        loads
    }

    /// Who has a partition, or has to give it back, unless it is gone.
    pub(super) fn owner(&self, partition: &PartitionStatus) -> Option<usize> {
        let owner = partition.owner.as_deref()?;
        self.roster.find(owner)
    }

    fn partitions(&self) -> PartitionsView {
        let all = &self.seen.partitions;
        let is_even = all.iter().all(|partition| partition.weight == 1.0);
        let owner = |partition: &PartitionStatus| {
            let owner = self.owner(partition).filter(|_| !partition.orphaned);
            owner.map_or(-1, |owner| owner as i32)
        };
        let token = |partition: &PartitionStatus| {
            let token = partition.token.filter(|_| !partition.orphaned);
            token.map_or_else(String::new, |token| token.to_string())
        };
        PartitionsView {
            names: all.iter().map(|partition| partition.name.clone()).collect(),
            weights: (!is_even).then(|| all.iter().map(|partition| partition.weight).collect()),
            owners: all.iter().map(owner).collect(),
            tokens: all.iter().map(token).collect(),
            marks: all.iter().map(mark).collect(),
        }
    }

    /// The sums of what was seen.
    pub(super) fn summary(&self) -> Summary {
        self.sums(&self.loads())
    }

    fn sums(&self, loads: &Loads) -> Summary {
        let all = &self.seen.partitions;
        let owned = all.iter().filter(|p| p.owner.is_some() && !p.orphaned);
        let misplaced = all.iter().filter(|p| matches!(mark(p), 2..=7));
        let since = self.settled_since;
        Summary {
            owned: owned.count(),
            partitions: all.len(),
            moving: all.iter().filter(|p| mark(p) == 1).count(),
            // In leader mode only the leader knows where things should be.
            misplaced: (self.mode == Mode::Lease).then(|| misplaced.count()),
            two_owners: None,
            mean: rounded(loads.mean),
            least: rounded(loads.least),
            most: rounded(loads.most),
            imbalance: rounded(loads.imbalance),
            moves: self.moves,
            converged: since.is_some(),
            converged_for_ms: since.map_or(0, |since| self.now_ms().saturating_sub(since)),
        }
    }

    /// Whether everything has an owner who is there, nothing is on its way, and
    /// in lease mode everything is where it should be.
    pub(super) fn is_settled(&self) -> bool {
        let is_still = !self.seen.quarantine && !matches!(self.seen.lifecycle, Some("cold_start"));
        let all = &self.seen.partitions;
        is_still && !all.is_empty() && all.iter().all(|partition| mark(partition) == 0)
    }
}

/// What is the matter with a partition, as far as the store tells.
pub(super) fn mark(partition: &PartitionStatus) -> u8 {
    match &partition.owner {
        None if partition.misaligned == Some("cap") => 4,
        None => 8,
        Some(_) if partition.orphaned => 8,
        Some(_) if partition.asked_back => 1,
        Some(_) if partition.foreign => 7,
        Some(owner) => {
            let desired = partition.desired.as_ref();
            match desired.is_none_or(|desired| desired == owner) {
                true => 0,
                false => 7,
            }
        }
    }
}
