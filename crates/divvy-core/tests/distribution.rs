//! How even the strategies are, against what probability promises.
//!
//! Each test goes over many sets of names, sequential ones included, and looks
//! at the sum of the squared deviations: a hash that is a little uneven shows
//! there long before a single count is out of bounds. Names are fixed, so the
//! outcome is too.

mod statistics;

use divvy_core::{
    ConsistentHash, FilteredRendezvous, Partitions, Rendezvous, Scheme, Strategy,
    VIRTUAL_NODES_DEFAULT, Worker, Workers,
};
use statistics::Deviations;

/// Worker names as fleets have them. No name is in two sets: a worker whose
/// points lie well would count twice.
fn names(set: usize, count: usize) -> Vec<String> {
    (0..count)
        .map(|n| match set % 5 {
            0 => format!("worker-{}", set * 100 + n),
            1 => format!("host{n}:{}", 9000 + set),
            2 => format!("10.{}.{}.{n}", set / 256, set % 256),
            3 => format!(
                "{:016x}",
                ((set * 1000 + n) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ),
            _ => format!("pod-{set}-{}", "x".repeat(n % 20) + &n.to_string()),
        })
        .collect()
}

fn workers(names: &[String], weight: impl Fn(usize) -> f64) -> Workers {
    let worker = |(n, id): (usize, &String)| {
        Worker::new(id.as_str())
            .unwrap()
            .with_weight(weight(n))
            .unwrap()
    };
    Workers::new(names.iter().enumerate().map(worker)).unwrap()
}

fn schemes() -> [Scheme; 3] {
    [
        Scheme::Native { seed: 0 },
        Scheme::Cruster,
        Scheme::Rendezgo {
            cluster: "demo".to_owned(),
        },
    ]
}

#[test]
fn rendezvous_counts_are_binomial() {
    for scheme in schemes() {
        let strategy = Rendezvous::new().with_scheme(scheme.clone());
        for (count, shards, sets) in [(3, 2048, 300), (10, 1000, 150), (100, 4000, 12)] {
            let partitions = Partitions::shards([("default", shards)]).unwrap();
            let mut deviations = Deviations::default();
            for set in 0..sets {
                let workers = workers(&names(set, count), |_| 1.0);
                let assignment = strategy.assign(&workers, &partitions, None).unwrap();
                let share = 1.0 / count as f64;
                deviations.multinomial(&assignment.counts(), |_| share);
            }
            deviations.check(&format!("{scheme:?} {shards} on {count}"));
        }
    }
}

#[test]
fn rendezvous_spreads_the_partitions_of_a_departed_worker_evenly() {
    for scheme in schemes() {
        let strategy = Rendezvous::new().with_scheme(scheme.clone());
        let partitions = Partitions::shards([("default", 3000)]).unwrap();
        let mut deviations = Deviations::default();
        for set in 0..60 {
            let names = names(set, 8);
            let before = strategy
                .assign(&workers(&names, |_| 1.0), &partitions, None)
                .unwrap();
            let rest = workers(&names[1..], |_| 1.0);
            let moves = strategy
                .assign(&rest, &partitions, None)
                .unwrap()
                .moves_from(&before);
            let mut heirs = vec![0; rest.len()];
            for change in &moves {
                heirs[rest.index_of(change.to.as_deref().unwrap()).unwrap()] += 1;
            }
            deviations.multinomial(&heirs, |_| 1.0 / 7.0);
        }
        deviations.check(&format!("{scheme:?} heirs"));
    }
}

#[test]
fn rendezvous_weights_of_3_to_1_give_75_to_25() {
    for scheme in schemes() {
        let strategy = Rendezvous::new().with_scheme(scheme.clone());
        let partitions = Partitions::shards([("default", 2048)]).unwrap();
        let mut deviations = Deviations::default();
        for set in 0..300 {
            let workers = workers(&names(set, 2), |n| if n == 0 { 3.0 } else { 1.0 });
            let assignment = strategy.assign(&workers, &partitions, None).unwrap();
            let weights: Vec<f64> = workers.iter().map(Worker::weight).collect();
            deviations.multinomial(&assignment.counts(), |index| weights[index] / 4.0);
        }
        deviations.check(&format!("{scheme:?} 3:1"));
    }
}

#[test]
fn rendezvous_shares_follow_fractional_weights() {
    let partitions = Partitions::shards([("default", 4000)]).unwrap();
    let weights = [0.25, 0.5, 1.0, 1.75, 4.5];
    let total: f64 = weights.iter().sum();
    let mut deviations = Deviations::default();
    for set in 0..150 {
        let workers = workers(&names(set, weights.len()), |n| weights[n]);
        let assignment = Rendezvous::new()
            .assign(&workers, &partitions, None)
            .unwrap();
        let weights: Vec<f64> = workers.iter().map(Worker::weight).collect();
        deviations.multinomial(&assignment.counts(), |index| weights[index] / total);
    }
    deviations.check("fractional weights");
}

#[test]
fn seeds_give_independent_placements() {
    // Two independent placements on 10 workers agree on a tenth of the partitions.
    let partitions = Partitions::shards([("default", 5000)]).unwrap();
    let ten = Workers::numbered("worker", 10).unwrap();
    let ring = |seed| {
        ConsistentHash::new()
            .with_seed(seed)
            .assign(&ten, &partitions, None)
            .unwrap()
    };
    let rendezvous = |seed| {
        let strategy = Rendezvous::new().with_scheme(Scheme::Native { seed });
        strategy.assign(&ten, &partitions, None).unwrap()
    };
    for seed in 1..20 {
        let same = rendezvous(seed).affinity(&rendezvous(0));
        assert!(
            (same - 0.1).abs() < 4.0 * (0.09f64 / 5000.0).sqrt(),
            "seed {seed}: {same}"
        );
        // Uneven shares of a ring agree a little more often than even ones.
        let same = ring(seed).affinity(&ring(0));
        assert!((same - 0.1).abs() < 0.03, "ring, seed {seed}: {same}");
    }
}

/// Verifies the ring against its own promise. Cutting a circle at random
/// points, 150 per unit of weight, makes the shares Dirichlet-distributed, on
/// top of which counts are multinomial: together the variance of the counts is
/// that of multinomial ones times `1 + (n - 1) / (points + 1)`.
#[test]
fn ring_shares_deviate_as_random_cuts_of_a_circle_do() {
    let shards = 5000;
    let partitions = Partitions::shards([("default", shards)]).unwrap();
    for (count, weighted, sets) in [
        (3, false, 150),
        (10, false, 100),
        (10, true, 100),
        (50, false, 20),
    ] {
        let mut deviations = Deviations::default();
        for set in 0..sets {
            let weight = |n: usize| if weighted { 1.0 + (n % 3) as f64 } else { 1.0 };
            let workers = workers(&names(set, count), weight);
            let weights: Vec<f64> = workers.iter().map(Worker::weight).collect();
            let total: f64 = weights.iter().sum();
            let points = f64::from(VIRTUAL_NODES_DEFAULT) * total;
            let dispersion = 1.0 + (f64::from(shards) - 1.0) / (points + 1.0);
            let assignment = ConsistentHash::new()
                .assign(&workers, &partitions, None)
                .unwrap();
            let share = |index: usize| weights[index] / total;
            deviations.dispersed(&assignment.counts(), share, dispersion);
        }
        deviations.check(&format!("ring of {count}, weighted {weighted}"));
    }
}

/// Verifies how much less even the filter is than meeting everybody: buckets
/// differ in size as Poisson counts do, with a mean of a worker in 128, and a
/// worker's load is averaged over 32 of them.
#[test]
fn filtered_rendezvous_adds_the_spread_of_its_buckets() {
    let count = 2000;
    let partitions = Partitions::shards([("default", 400_000)]).unwrap();
    let workers = Workers::numbered("worker", count).unwrap();
    let variance = |strategy: &dyn Strategy| {
        let assignment = strategy.assign(&workers, &partitions, None).unwrap();
        assignment.balance().stddev_over_mean.powi(2)
    };
    let (filtered, exact) = (
        variance(&FilteredRendezvous::new()),
        variance(&Rendezvous::new()),
    );
    let added = (filtered - exact).sqrt();
    let expected = 2.0 / (count as f64).sqrt();
    println!("standard deviation on top: {added:.4} of the mean, expected {expected:.4}");
    assert!(
        (0.7..1.4).contains(&(added / expected)),
        "{added} of {expected}"
    );
}

#[test]
fn a_skewed_hash_does_not_pass() {
    // A worker that takes one in twenty partitions of another is found out.
    let partitions = Partitions::shards([("default", 2048)]).unwrap();
    let mut deviations = Deviations::default();
    for set in 0..300 {
        let workers = workers(&names(set, 3), |_| 1.0);
        let mut counts = Rendezvous::new()
            .assign(&workers, &partitions, None)
            .unwrap()
            .counts();
        let skew = counts[1] / 20;
        counts[0] += skew;
        counts[1] -= skew;
        deviations.multinomial(&counts, |_| 1.0 / 3.0);
    }
    assert!(std::panic::catch_unwind(|| deviations.check("planted")).is_err());
}
