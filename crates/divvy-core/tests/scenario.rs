//! The production case that weighted placement is made for, by name and with
//! the real ring: 100 workers, 2850 partitions of weight 100 and 150 of 10,000
//! to 50,000, scaled to 110 workers and back.

use divvy_core::{
    Assignment, Partition, Partitions, Proposal, Strategy, WeightedConsistentHash, Workers,
};

const DRAWS: u64 = 30;

fn partitions(rng: &mut fastrand::Rng) -> Partitions {
    let weighted = (0..3000).map(|n| {
        let weight = if n % 20 == 0 {
            rng.i64(10_000..=50_000)
        } else {
            100
        };
        let partition = Partition::shard("tool", n).unwrap();
        partition.with_weight(weight).unwrap()
    });
    Partitions::new(weighted).unwrap()
}

fn plan(workers: &Workers, partitions: &Partitions, previous: Option<&Assignment>) -> Proposal {
    let strategy = WeightedConsistentHash::new();
    let proposal = strategy.propose(workers, partitions, previous).unwrap();
    let balance = proposal.assignment.balance();
    assert!(
        balance.max_over_mean <= 1.3 && balance.min_over_mean >= 0.7,
        "{balance:?}"
    );
    let extreme = |partition: &&Partition| partition.weight() > 5_000;
    for (worker, owned) in proposal.assignment.by_worker() {
        let extremes = owned.iter().copied().filter(extreme).count();
        assert!(
            extremes <= 150usize.div_ceil(workers.len()) + 1,
            "{}: {extremes}",
            worker.id()
        );
    }
    proposal
}

#[test]
fn scaling_to_110_workers_and_back_moves_little_and_stays_in_the_band() {
    let hundred = Workers::numbered("worker", 100).unwrap();
    let more = Workers::numbered("worker", 110).unwrap();
    let (mut up, mut down, mut again) = (0, 0, 0);
    for seed in 0..DRAWS {
        let partitions = partitions(&mut fastrand::Rng::with_seed(seed));
        let start = plan(&hundred, &partitions, None).assignment;
        let grown = plan(&more, &partitions, Some(&start));
        assert!(grown.certificate.moves <= 150, "{:?}", grown.certificate);
        up += grown.certificate.moves;
        let back = plan(&hundred, &partitions, Some(&grown.assignment));
        down += back.certificate.moves;
        // Nothing accumulates: the second round costs what the first did.
        let regrown = plan(&more, &partitions, Some(&back.assignment));
        again += regrown.certificate.moves;
    }
    let percent = |moves: u32| f64::from(moves) / 30.0 / DRAWS as f64;
    println!(
        "moved: up {:.2} %, down {:.2} %, up again {:.2} %",
        percent(up),
        percent(down),
        percent(again)
    );
    assert!(percent(up) <= 2.0 && percent(down) <= 2.0 && percent(again) <= 2.0);
}

#[test]
fn weights_from_1_to_100_stay_within_30_percent() {
    let weighted = (0..2000).map(|n: u32| {
        let partition = Partition::shard("p", n).unwrap();
        partition.with_weight(1 + i64::from(n % 100)).unwrap()
    });
    let partitions = Partitions::new(weighted).unwrap();
    for workers in [1, 2, 7, 20] {
        plan_any(&Workers::numbered("w", workers).unwrap(), &partitions);
    }
}

fn plan_any(workers: &Workers, partitions: &Partitions) {
    let assignment = WeightedConsistentHash::new()
        .assign(workers, partitions, None)
        .unwrap();
    let balance = assignment.balance();
    assert!(
        balance.max_over_mean <= 1.3 && balance.min_over_mean >= 0.7,
        "{balance:?}"
    );
}

#[test]
fn more_workers_than_partitions_leaves_the_rest_idle() {
    let workers = Workers::numbered("w", 100).unwrap();
    let heavy = |n: u32| {
        Partition::shard("p", n)
            .unwrap()
            .with_weight(1 + i64::from(n))
            .unwrap()
    };
    let partitions = Partitions::new((0..10).map(heavy)).unwrap();
    let assignment = WeightedConsistentHash::new()
        .assign(&workers, &partitions, None)
        .unwrap();
    assert_eq!(
        assignment
            .counts()
            .iter()
            .filter(|&&count| count == 1)
            .count(),
        10
    );
}
