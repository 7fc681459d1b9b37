//! Equal weights, where the weighted strategy takes the ring's way.

use divvy_core::{ConsistentHash, Strategy, WeightedConsistentHash};

use super::{Figure, Unit};
use crate::clock::{self, timed};
use crate::scene::Scene;

/// How much slower than the ring alone it may be.
const AT_MOST: f64 = 1.05;

/// The weighted strategy against the ring, in turns.
pub(super) fn measure(rounds: usize, quick: bool) -> Vec<Figure> {
    let sizes: &[(usize, usize)] = match quick {
        true => &[(3000, 100)],
        false => &[
            (2048, 10),
            (3000, 100),
            (5000, 64),
            (2048, 1000),
            (100_000, 1000),
        ],
    };
    let figure = |&(partitions, workers): &(usize, usize)| {
        eprintln!("{partitions}x{workers}, equal weights");
        let scene = Scene::equal(partitions, workers);
        let assign = |strategy: &dyn Strategy| {
            let assignment = strategy.assign(&scene.workers, &scene.partitions, None);
            assignment.expect("there are workers")
        };
        let (weighted, ring) = (WeightedConsistentHash::new(), ConsistentHash::new());
        assert_eq!(assign(&weighted), assign(&ring));
        let (weighted_ns, ring_ns) = clock::duel(
            4 * rounds,
            || timed(|| assign(&weighted)),
            || timed(|| assign(&ring)),
        );
        Figure {
            job: format!("{partitions}x{workers}, equal weights"),
            case: "cold start",
            way: "assign, ConsistentHash",
            unit: Unit::Ratio,
            value: weighted_ns / ring_ns,
            at_most: Some(AT_MOST),
            moves: None,
        }
    };
    sizes.iter().map(figure).collect()
}
