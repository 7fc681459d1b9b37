//! What one would write first: a loop over `weight / -ln(u)` in `f64`.

use divvy_core::hash;

use super::Placer;
use crate::scene::Node;

/// Divvy's native score, worker by worker, with the standard library's logarithm.
pub(crate) struct Plain {
    workers: Vec<Mixed>,
}

/// A worker hashed.
struct Mixed {
    index: u32,
    weight: f64,
    multiplier: u32,
    addend: u32,
    finisher: u32,
}

impl Plain {
    /// Hashes the workers.
    pub(crate) fn new(nodes: &[Node<'_>]) -> Self {
        let mixed = |node: &Node<'_>| {
            let identity = hash::worker128(node.name, 0);
            Mixed {
                index: node.index,
                weight: f64::from(node.weight),
                multiplier: identity as u32 | 1,
                addend: (identity >> 32) as u32,
                finisher: (identity >> 64) as u32 | 1,
            }
        };
        Self {
            workers: nodes.iter().map(mixed).collect(),
        }
    }
}

impl Placer for Plain {
    fn owner(&self, key: &str) -> u32 {
        let key = hash::bytes64(key.as_bytes(), 0);
        let (low, high) = (key as u32, (key >> 32) as u32);
        let mut best = (f64::NEG_INFINITY, 0);
        for worker in &self.workers {
            let mixed = low
                .wrapping_mul(worker.multiplier)
                .wrapping_add(worker.addend);
            let hash = (mixed ^ (mixed >> 16) ^ high).wrapping_mul(worker.finisher);
            let u = (f64::from(hash) + 0.5) / 4_294_967_296.0;
            let score = worker.weight / -u.ln();
            if score > best.0 {
                best = (score, worker.index);
            }
        }
        best.1
    }
}
