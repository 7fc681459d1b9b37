//! A cluster of named workers that lives through events, with the planner in between.
#![allow(dead_code, reason = "every test file uses its own part of the scene")]

use divvy_core::plan::{GONE, NONE, Plan, PlanError, Problem, Slot, Weights};

/// Workers by name, partitions, and who owns them by name.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    /// Names in order; a slot each.
    pub(crate) names: Vec<u64>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) weights: Vec<u64>,
    /// Name of the owner of each partition, if it has one.
    pub(crate) owners: Vec<Option<u64>>,
}

impl Cluster {
    /// `workers` equal workers named from 0, nothing placed.
    pub(crate) fn new(workers: u64, weights: Vec<u64>) -> Self {
        Self {
            names: (0..workers).collect(),
            slots: vec![Slot::new(1.0); workers as usize],
            owners: vec![None; weights.len()],
            weights,
        }
    }

    /// the reference scenario: 2850 partitions of weight 100 and 150 of 10,000 to 50,000.
    pub(crate) fn reference(rng: &mut fastrand::Rng) -> Self {
        let mut weights = vec![100; 2850];
        weights.extend((0..150).map(|_| rng.u64(10_000..=50_000)));
        rng.shuffle(&mut weights);
        Self::new(100, weights)
    }

    pub(crate) fn join(&mut self, name: u64, slot: Slot) {
        let at = self.names.partition_point(|&other| other < name);
        self.names.insert(at, name);
        self.slots.insert(at, slot);
    }

    pub(crate) fn leave(&mut self, name: u64) {
        let at = self
            .names
            .binary_search(&name)
            .expect("a worker of the cluster");
        self.names.remove(at);
        self.slots.remove(at);
    }

    /// Previous owners as the planner wants them.
    pub(crate) fn previous(&self) -> Vec<u32> {
        let index = |owner: &Option<u64>| match owner {
            None => NONE,
            Some(name) => self.names.binary_search(name).map_or(GONE, |at| at as u32),
        };
        self.owners.iter().map(index).collect()
    }

    /// Plans with `planner` and takes the plan over.
    pub(crate) fn plan(&mut self, planner: impl Planner) -> Plan {
        let previous = self.previous();
        let problem = Problem {
            weights: Weights::Each(&self.weights),
            slots: &self.slots,
            previous: &previous,
        };
        let names = &self.names;
        let plan = planner(&problem, &|partition| rendezvous(names, partition)).expect("a plan");
        self.owners = plan
            .owners
            .iter()
            .map(|&owner| Some(self.names[owner as usize]))
            .collect();
        plan
    }
}

/// A planner with its settings.
pub(crate) trait Planner:
    Fn(&Problem<'_>, &dyn Fn(u32) -> u32) -> Result<Plan, PlanError>
{
}

impl<F: Fn(&Problem<'_>, &dyn Fn(u32) -> u32) -> Result<Plan, PlanError>> Planner for F {}

/// The worker that a partition hashes to: highest random weight by name.
pub(crate) fn rendezvous(names: &[u64], partition: u32) -> u32 {
    let best = names
        .iter()
        .enumerate()
        .max_by_key(|&(at, &name)| (mix(name, partition), std::cmp::Reverse(at)));
    best.map_or(0, |(at, _)| at as u32)
}

fn mix(name: u64, partition: u32) -> u64 {
    let mut x = name.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ u64::from(partition).wrapping_mul(0xD1B5_4A32_D192_ED03);
    x ^= x >> 30;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
