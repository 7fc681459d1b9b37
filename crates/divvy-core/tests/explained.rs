//! What a plan says of one partition is what was decided about it.

use std::num::NonZeroU32;

use divvy_core::{
    Assignment, Balanced, Explanation, Partition, Partitions, Strategy, Veto,
    WeightedConsistentHash, Worker, Workers, Zoned,
};

fn planners() -> Vec<Box<dyn Strategy>> {
    vec![
        Box::new(Balanced::new()),
        Box::new(Zoned::new()),
        Box::new(WeightedConsistentHash::new().with_fast_path(false)),
    ]
}

/// Partitions of any weight, now and then a heavy one, or all of the same.
fn partitions(rng: &mut fastrand::Rng) -> Partitions {
    let is_even = rng.bool();
    let weight = |rng: &mut fastrand::Rng| match rng.u32(0..20) {
        _ if is_even => 1,
        0 => rng.i64(200..1500),
        _ => rng.i64(10..100),
    };
    let count = rng.u32(1..60);
    let partition = |number| {
        let partition = Partition::shard("p", number).unwrap();
        partition.with_weight(weight(rng)).unwrap()
    };
    Partitions::new((0..count).map(partition)).unwrap()
}

/// Workers of three zones, of the same weight or of several, some with a cap
/// that leaves room for all.
fn workers(rng: &mut fastrand::Rng, partitions: &Partitions) -> Workers {
    let (is_even, is_capped) = (rng.bool(), rng.bool());
    let count = rng.u32(2..9);
    let worker = |number: u32| {
        let zone = ["a", "b", "c"][rng.usize(0..3)];
        let weight = if is_even { 1 } else { rng.u32(1..4) };
        let cap = NonZeroU32::new(partitions.len() as u32 / count + rng.u32(1..9));
        let worker = Worker::new(format!("w-{number}")).unwrap();
        let worker = worker.with_zone(zone).unwrap();
        let worker = worker.with_weight(f64::from(weight)).unwrap();
        worker.with_max_partitions(cap.filter(|_| is_capped))
    };
    Workers::new((0..count).map(worker)).unwrap()
}

/// Calls with every partition of many plans: without a previous assignment,
/// and after some workers left, some joined and weights changed.
fn each(mut check: impl FnMut(&Scene<'_>, &Explanation)) {
    let mut rng = fastrand::Rng::with_seed(2711);
    for _ in 0..60 {
        let first = partitions(&mut rng);
        let before = workers(&mut rng, &first);
        let second = partitions(&mut rng);
        let after = workers(&mut rng, &second);
        for strategy in planners() {
            let placed = strategy.assign(&before, &first, None).unwrap();
            for (workers, partitions, previous) in
                [(&before, &first, None), (&after, &second, Some(&placed))]
            {
                let plan = strategy.assign(workers, partitions, previous).unwrap();
                let scene = Scene {
                    strategy: strategy.as_ref(),
                    workers,
                    partitions,
                    previous,
                    plan: &plan,
                };
                for partition in partitions {
                    let explained =
                        strategy.explain(partition.as_str(), workers, partitions, previous);
                    check(&scene, &explained.unwrap());
                }
            }
        }
    }
}

struct Scene<'a> {
    strategy: &'a dyn Strategy,
    workers: &'a Workers,
    partitions: &'a Partitions,
    previous: Option<&'a Assignment>,
    plan: &'a Assignment,
}

impl Scene<'_> {
    fn worker(&self, id: &str) -> &Worker {
        &self.workers.as_slice()[self.workers.index_of(id).unwrap()]
    }

    /// The weight of a partition, or 1 where partitions are counted.
    fn weight(&self, partition: &str, by_count: bool) -> u64 {
        let index = self.partitions.index_of(partition).unwrap();
        if by_count {
            1
        } else {
            self.partitions.loads().nth(index).unwrap()
        }
    }

    fn has_moved(&self, partition: &str) -> bool {
        let before = self.previous.and_then(|before| before.owner_of(partition));
        before.map(Worker::id) != self.plan.owner_of(partition).map(Worker::id)
    }
}

fn load(explained: &Explanation, worker: &str) -> u64 {
    let ranked = explained.ranking.iter().find(|r| r.worker == worker);
    ranked.unwrap().load.unwrap()
}

#[test]
fn notes_agree_with_the_loads_beside_them() {
    let mut seen = std::collections::BTreeMap::new();
    each(|scene, explained| {
        let owner = scene.worker(&explained.owner);
        let by_count = explained.loads.unwrap().by_count;
        let zone_level = |zone: Option<&str>| {
            let of_zone = || scene.workers.iter().filter(|worker| worker.zone() == zone);
            let loads: u64 = of_zone().map(|worker| load(explained, worker.id())).sum();
            loads as f64 / of_zone().map(Worker::weight).sum::<f64>()
        };
        let level = |worker: &Worker| load(explained, worker.id()) as f64 / worker.weight();
        for ranked in &explained.ranking {
            let Some(veto) = ranked.veto else { continue };
            *seen.entry(veto.to_string()).or_insert(0) += 1;
            let worker = scene.worker(&ranked.worker);
            let weight = scene.weight(&explained.partition, by_count) as f64;
            let context = format!("{} {explained:?}", scene.strategy.name());
            match veto {
                Veto::Heavier => {
                    // The heaviest partitions are compared by what workers would have with them.
                    let with = |worker: &Worker| level(worker) + weight / worker.weight();
                    assert!(
                        level(worker) > level(owner) || with(worker) > with(owner),
                        "{context}"
                    );
                }
                Veto::Later => {
                    assert!(
                        level(worker) == level(owner) && worker.id() > owner.id(),
                        "{context}"
                    );
                }
                // A giant and its worker are left out of its zone's level.
                Veto::HeavierZone if !explained_by_giants(scene) => {
                    assert!(
                        zone_level(worker.zone()) > zone_level(owner.zone()),
                        "{context}"
                    );
                }
                Veto::LaterZone => assert!(worker.zone() > owner.zone(), "{context}"),
                Veto::Enough | Veto::NoGain => {
                    assert!(!scene.has_moved(&explained.partition), "{context}");
                }
                Veto::Unchosen => {
                    let why = explained.why.as_deref().unwrap();
                    let is_placed = number_of(why).is_some() || why.starts_with("It was placed, ");
                    assert!(!is_placed, "{context}");
                }
                Veto::GaveUp => assert!(load(explained, worker.id()) >= weight as u64),
                _ => {}
            }
        }
    });
    for veto in [
        Veto::Enough,
        Veto::Full,
        Veto::GaveUp,
        Veto::Heavier,
        Veto::HeavierZone,
        Veto::Later,
        Veto::LaterZone,
        Veto::OverBand,
        Veto::OverZone,
        Veto::Reserved,
        Veto::Unchosen,
    ] {
        assert!(seen.contains_key(&veto.to_string()), "{veto:?}: {seen:?}");
    }
}

fn explained_by_giants(scene: &Scene<'_>) -> bool {
    let proposal = scene
        .strategy
        .propose(scene.workers, scene.partitions, scene.previous);
    proposal.unwrap().certificate.giants > 0
}

#[test]
fn loads_are_those_before_a_partition_was_placed_or_after_a_plan_in_which_it_stayed() {
    let mut placed = 0;
    each(|scene, explained| {
        let loads_at = explained.loads.unwrap();
        let stays = !scene.has_moved(&explained.partition);
        assert_eq!(loads_at.after, stays, "{explained:?}");
        let why = explained.why.as_deref().unwrap();
        assert_eq!(why.starts_with("It stays on "), stays, "{why}");
        let total: u64 = scene.workers.iter().map(|w| load(explained, w.id())).sum();
        if stays {
            let counts = || scene.plan.counts().into_iter().map(|count| count as u64);
            let loads = if loads_at.by_count {
                counts().collect()
            } else {
                scene.plan.loads()
            };
            let told: Vec<u64> = scene
                .workers
                .iter()
                .map(|w| load(explained, w.id()))
                .collect();
            assert_eq!(told, loads, "{explained:?}");
        } else if scene.previous.is_none()
            && let Some(number) = number_of(why)
            && !explained_by_giants(scene)
        {
            // From nothing, exactly those that were placed before are there.
            placed += 1;
            let mut weights: Vec<u64> = scene.partitions.loads().collect();
            weights.sort_unstable_by(|a, b| b.cmp(a));
            let before: u64 = if loads_at.by_count {
                number - 1
            } else {
                weights[..number as usize - 1].iter().sum()
            };
            assert_eq!(total, before, "{explained:?}");
        }
    });
    assert!(placed > 500, "{placed}");
}

/// The turn of a partition: `It was placed as number 7 of 12, ...`.
fn number_of(why: &str) -> Option<u64> {
    let rest = why.strip_prefix("It was placed as number ")?;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn a_partition_that_stays_says_why() {
    let weighted = |name: &str, weight| {
        let partition: Partition = name.parse().unwrap();
        partition.with_weight(weight).unwrap()
    };
    let set = |weights: &[(&str, i64)]| {
        let partitions = weights.iter().map(|&(name, weight)| weighted(name, weight));
        Partitions::new(partitions).unwrap()
    };
    let strategy = WeightedConsistentHash::new().with_fast_path(false);
    let why = |partition: &str, workers: &[&str], weights: &[(&str, i64)], owners: Vec<u32>| {
        let partitions = set(weights);
        let workers = Workers::of(workers.iter().copied()).unwrap();
        let previous = Assignment::new(&workers, &partitions, owners).unwrap();
        let explained = strategy.explain(partition, &workers, &partitions, Some(&previous));
        let why = explained.unwrap().why.unwrap();
        why.split(" That ").next().unwrap().to_owned()
    };
    let even = [("a", 50), ("b", 50), ("c", 51), ("d", 50)];
    assert_eq!(
        why("a", &["x", "y"], &even, vec![0, 0, 1, 1]),
        "It stays on x, which had 100, inside its band of 71 to 130: nothing has to leave it."
    );
    assert_eq!(
        why("b", &["x", "y"], &even, vec![0, 0, 0, 1]),
        "It stays on x, which had 151 and should have 130 at most: it gives up 1 other, and that \
         is enough."
    );
    assert_eq!(
        why("d", &["x", "y"], &even, vec![0, 0, 0, 1]),
        "It stays on y, which had 50 and should have 71 at least: it gives nothing up."
    );
    let giant = [("a", 900), ("b", 50), ("c", 51), ("d", 50)];
    assert_eq!(
        why("a", &["x", "y"], &giant, vec![0, 1, 1, 1]),
        "It stays on x, being too heavy for the band of any worker, and has it to itself."
    );
    let counted = |partition: &str, owners: Vec<u32>| {
        let partitions = Partitions::shards([("p", 6)]).unwrap();
        let workers = Workers::of(["x", "y"]).unwrap();
        let previous = Assignment::new(&workers, &partitions, owners).unwrap();
        let explained = Balanced::new().explain(partition, &workers, &partitions, Some(&previous));
        let why = explained.unwrap().why.unwrap();
        why.split(" That ").next().unwrap().to_owned()
    };
    assert_eq!(
        counted("p:0", vec![0, 0, 0, 1, 1, 1]),
        "It stays on x, which had 3 partitions and has a share of 3: it gives nothing up."
    );
    let moved = counted("p:4", vec![0, 0, 0, 0, 0, 1]);
    assert!(
        moved.starts_with("It moves from x to y: over its share. "),
        "{moved}"
    );
    assert_eq!(
        counted("p:0", vec![0, 0, 0, 0, 0, 1]),
        "It stays on x, which had 5 partitions and has a share of 3: it gives up 2 others, the \
         last by name."
    );
}
