//! A ring of virtual nodes.

mod points;

use points::Points;

use crate::error::{Error, Invalid};
use crate::hash;
use crate::worker::{Worker, Workers};

/// Most points of one ring: 8 bytes each, and twice that while it is built.
pub const RING_POINTS_MAX: usize = 1 << 25;

/// The step of the counter that numbers a worker's virtual nodes, from the
/// golden ratio, as SplitMix64 has it.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Workers on a circle of 2^32 positions; a key belongs to the first point at
/// or after its own position.
///
/// A worker of weight `w` has `round(virtual_nodes × w)` points, at least 1.
/// Its `i`-th point does not depend on the other workers nor on its weight, so
/// a change of workers or weights moves only what it has to.
///
/// ```
/// use divvy_core::{Ring, Workers};
///
/// let workers = Workers::of(["a", "b", "c"])?;
/// let ring = Ring::new(&workers, 150, 0)?;
/// let owner = &workers.as_slice()[ring.owner_of("customer-4711") as usize];
/// assert_eq!(owner.id(), "b");
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ring {
    points: Points,
    seed: u64,
}

impl Ring {
    /// The ring of the eligible workers, with `virtual_nodes` points per unit
    /// of weight.
    ///
    /// [`Error::NoWorkers`] where nobody is eligible; an error where there
    /// would be more than [`RING_POINTS_MAX`] points.
    pub fn new(workers: &Workers, virtual_nodes: u32, seed: u64) -> Result<Self, Error> {
        workers.eligible()?;
        Self::with(workers, virtual_nodes, seed, Worker::is_eligible)
    }

    /// The ring of the workers that `takes_part`, fit to own partitions or not.
    pub(super) fn with(
        workers: &Workers,
        virtual_nodes: u32,
        seed: u64,
        takes_part: impl Fn(&Worker) -> bool,
    ) -> Result<Self, Error> {
        let members: Vec<Member> = workers
            .iter()
            .zip(0..)
            .filter(|(worker, _)| takes_part(worker))
            .map(|(worker, index)| Member {
                index,
                counter: hash::worker128(worker.id(), seed) as u64,
                points: points_of(worker, virtual_nodes),
            })
            .collect();
        let total: f64 = members.iter().map(|member| member.points).sum();
        if total > RING_POINTS_MAX as f64 {
            let rule = format!(
                "at most {RING_POINTS_MAX} are allowed; lower the weights or the virtual nodes"
            );
            return Err(Invalid::new("points of the ring", total, rule).into());
        }
        let positions = || members.iter().flat_map(Member::positions);
        Ok(Self {
            points: Points::new(total as usize, workers.len(), positions),
            seed,
        })
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is no point; [`Ring::new`] never makes such a ring.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index, in the set that the ring was made of, of the worker that
    /// `key` belongs to.
    pub fn owner_of(&self, key: &str) -> u32 {
        self.points.owner_at(self.position_of(key))
    }

    /// How many bytes the points take.
    pub fn heap_bytes(&self) -> usize {
        self.points.heap_bytes()
    }

    /// Where `key` is on the ring.
    pub(super) fn position_of(&self, key: &str) -> u32 {
        (hash::bytes64(key.as_bytes(), self.seed) >> 32) as u32
    }

    /// The points in the order in which a walk from `position` meets them, as
    /// pairs of position and worker.
    pub(super) fn walk(&self, position: u32) -> impl Iterator<Item = (u32, u32)> {
        let start = self.points.first_at(position);
        let numbers = (start..self.len()).chain(0..start);
        numbers.map(|number| self.points.point(number))
    }
}

/// A worker with where its points come from.
struct Member {
    index: u32,
    counter: u64,
    points: f64,
}

impl Member {
    /// Its points as pairs of position and worker.
    fn positions(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut counter = self.counter;
        (0..self.points as u64).map(move |_| {
            counter = counter.wrapping_add(STEP);
            ((hash::mix64(counter) >> 32) as u32, self.index)
        })
    }
}

fn points_of(worker: &Worker, virtual_nodes: u32) -> f64 {
    (f64::from(virtual_nodes) * worker.weight())
        .round()
        .max(1.0)
}
