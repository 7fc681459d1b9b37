//! Strategies that know the previous assignment, by name.

mod logs;

use std::num::NonZeroU32;

use divvy_core::{
    Assignment, AssignmentDocument, Balanced, Cause, ConsistentHash, Error, Partition, Partitions,
    PlanDocument, Proposal, Rendezvous, RoundRobin, Strategy, WeightedConsistentHash, Worker,
    Workers, Zoned, hash,
};
use logs::{debug_lines_of, warnings_of};

fn planners() -> Vec<Box<dyn Strategy>> {
    vec![
        Box::new(Balanced::new()),
        Box::new(WeightedConsistentHash::new().with_fast_path(false)),
        Box::new(Zoned::new()),
    ]
}

/// Weights 1 to 100, the same on every run.
fn mixed(count: u32) -> Partitions {
    let weight = |n: u32| 1 + (hash::bytes64(&n.to_le_bytes(), 1) % 100) as i64;
    let partition = |n| {
        Partition::shard("p", n)
            .unwrap()
            .with_weight(weight(n))
            .unwrap()
    };
    Partitions::new((0..count).map(partition)).unwrap()
}

fn even(count: u32) -> Partitions {
    Partitions::shards([("default", count)]).unwrap()
}

fn in_zones(counts: &[usize]) -> Workers {
    let workers = counts.iter().enumerate().flat_map(|(zone, &count)| {
        (0..count).map(move |n| {
            let worker = Worker::new(format!("z{zone}-{n}")).unwrap();
            worker.with_zone(format!("zone-{zone}")).unwrap()
        })
    });
    Workers::new(workers).unwrap()
}

/// The changes of a proposal are the difference of the two assignments, and
/// its numbers are theirs.
fn check_account(proposal: &Proposal, before: Option<&Assignment>) {
    let after = &proposal.assignment;
    let nothing = Assignment::new(after.workers(), &Partitions::new([]).unwrap(), vec![]).unwrap();
    let moves = after.moves_from(before.unwrap_or(&nothing));
    let told: Vec<_> = proposal
        .changes
        .iter()
        .map(|c| (c.partition.as_str(), c.from.as_deref(), Some(c.to.as_str())))
        .collect();
    let found: Vec<_> = moves
        .iter()
        .filter(|change| change.to.is_some())
        .map(|m| (m.partition.as_str(), m.from.as_deref(), m.to.as_deref()))
        .collect();
    assert_eq!(told, found);
    assert_eq!(proposal.certificate.moves as usize, moves.moved());
    assert!(proposal.certificate.lower_bound <= proposal.certificate.moves);
    let balance = after.balance();
    assert!((proposal.certificate.max_over_mean - balance.max_over_mean).abs() < 1e-9);
    assert!((proposal.certificate.min_over_mean - balance.min_over_mean).abs() < 1e-9);
}

#[test]
fn every_strategy_accounts_for_its_changes() {
    let mut strategies = planners();
    strategies.push(Box::new(Rendezvous::new()));
    strategies.push(Box::new(ConsistentHash::new()));
    strategies.push(Box::new(RoundRobin));
    strategies.push(Box::new(WeightedConsistentHash::new()));
    for strategy in strategies {
        for partitions in [even(300), mixed(300)] {
            let first = strategy
                .propose(&Workers::numbered("w", 7).unwrap(), &partitions, None)
                .unwrap();
            check_account(&first, None);
            let before = first.assignment;
            // Two leave, three join, and a tenth of the partitions is new.
            let workers = Workers::of(["w-0", "w-1", "w-2", "w-3", "w-4", "x", "y", "z"]).unwrap();
            let kept = partitions.iter().skip(30).cloned();
            let new = (0..30).map(|n| Partition::shard("new", n).unwrap());
            let changed = Partitions::new(kept.chain(new)).unwrap();
            let second = strategy.propose(&workers, &changed, Some(&before)).unwrap();
            check_account(&second, Some(&before));
            for change in &second.changes {
                let gone = ["w-5", "w-6"].contains(&change.from.as_deref().unwrap_or_default());
                assert_eq!(change.cause == Cause::WorkerGone, gone, "{change:?}");
                assert_eq!(
                    change.cause == Cause::New,
                    change.from.is_none(),
                    "{change:?}"
                );
            }
        }
    }
}

#[test]
fn planning_again_moves_nothing() {
    for strategy in planners() {
        for partitions in [even(500), mixed(500), even(3), mixed(1)] {
            let workers = in_zones(&[3, 2, 4]);
            let first = strategy.assign(&workers, &partitions, None).unwrap();
            let again = strategy
                .propose(&workers, &partitions, Some(&first))
                .unwrap();
            assert_eq!(again.changes, [], "{}", strategy.name());
            assert_eq!(again.assignment, first);
        }
    }
}

#[test]
fn balanced_moves_exactly_the_minimum_to_even_counts() {
    let partitions = even(2048);
    let three = Workers::numbered("worker", 3).unwrap();
    let before = Balanced::new().assign(&three, &partitions, None).unwrap();
    assert_eq!(before.counts(), [683, 683, 682]);
    let four = Workers::numbered("worker", 4).unwrap();
    let joined = Balanced::new()
        .propose(&four, &partitions, Some(&before))
        .unwrap();
    assert_eq!(joined.assignment.counts(), [512; 4]);
    assert_eq!(
        (joined.certificate.moves, joined.certificate.lower_bound),
        (512, 512)
    );

    // A hundred workers lose one: exactly its partitions move.
    let hundred = Workers::numbered("worker", 100).unwrap();
    let before = Balanced::new().assign(&hundred, &partitions, None).unwrap();
    let rest = hundred
        .iter()
        .filter(|worker| worker.id() != "worker-17")
        .cloned();
    let rest = Workers::new(rest).unwrap();
    let left = Balanced::new()
        .propose(&rest, &partitions, Some(&before))
        .unwrap();
    let owned = before.partitions_of("worker-17").unwrap().count();
    assert_eq!(left.certificate.moves as usize, owned);
    assert!(
        left.changes
            .iter()
            .all(|c| c.from.as_deref() == Some("worker-17"))
    );
    let counts = left.assignment.counts();
    assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
}

#[test]
fn balanced_without_a_previous_assignment_mostly_follows_rendezvous() {
    let workers = Workers::numbered("worker", 10).unwrap();
    let partitions = even(2000);
    let hashed = Rendezvous::new()
        .assign(&workers, &partitions, None)
        .unwrap();
    let balanced = Balanced::new().assign(&workers, &partitions, None).unwrap();
    assert_eq!(balanced.counts(), [200; 10]);
    // Only the overflow of workers above their share is placed elsewhere.
    let overflow: usize = hashed.counts().iter().map(|&n| n.saturating_sub(200)).sum();
    assert_eq!(balanced.moves_from(&hashed).moved(), overflow);
}

#[test]
fn weights_and_caps_hold_in_every_planner() {
    let cap = |worker: Worker, cap| worker.with_max_partitions(NonZeroU32::new(cap));
    let worker = |id: &str, weight| Worker::new(id).unwrap().with_weight(weight).unwrap();
    let workers = Workers::new([
        worker("big", 4.0),
        worker("small", 1.0),
        cap(worker("capped", 4.0), 5),
    ])
    .unwrap();
    for strategy in planners() {
        for partitions in [even(100), mixed(100)] {
            let assignment = strategy.assign(&workers, &partitions, None).unwrap();
            let count = |id| assignment.partitions_of(id).unwrap().count();
            assert!(count("capped") <= 5, "{}", strategy.name());
            assert!(
                count("big") > 2 * count("small"),
                "{}: {:?}",
                strategy.name(),
                assignment.counts()
            );
        }
        let tight = Workers::new([cap(worker("a", 1.0), 3), cap(worker("b", 1.0), 4)]).unwrap();
        let error = strategy.assign(&tight, &even(8), None).unwrap_err();
        assert_eq!(
            error,
            Error::NoRoom {
                partitions: 8,
                room: 7
            }
        );
        assert_eq!(
            error.to_string(),
            "no room: 8 partitions, and the workers may own 7 together"
        );
        assert!(strategy.assign(&tight, &even(7), None).is_ok());
    }
}

#[test]
fn equal_weights_are_placed_as_consistent_hash_places_them_bit_for_bit() {
    let ring = ConsistentHash::new().with_virtual_nodes(90).with_seed(3);
    let weighted = WeightedConsistentHash::new()
        .with_virtual_nodes(90)
        .with_seed(3);
    let seven = |name: &Partition| name.clone().with_weight(7).unwrap();
    let sevens = Partitions::new(even(3000).iter().map(seven)).unwrap();
    for workers in [1, 2, 30, 100] {
        let workers = Workers::numbered("worker", workers).unwrap();
        for partitions in [even(3000), sevens.clone()] {
            let expected = ring.assign(&workers, &partitions, None).unwrap();
            let before = RoundRobin.assign(&workers, &partitions, None).unwrap();
            for previous in [None, Some(&before)] {
                let ours = weighted.assign(&workers, &partitions, previous).unwrap();
                assert_eq!(ours, expected);
                let proposed = weighted.propose(&workers, &partitions, previous).unwrap();
                assert_eq!(proposed.assignment, expected);
            }
        }
    }
}

#[test]
fn without_the_fast_path_equal_weights_keep_the_band_too() {
    let workers = Workers::numbered("worker", 100).unwrap();
    let fast = WeightedConsistentHash::new()
        .assign(&workers, &even(3000), None)
        .unwrap();
    assert!(fast.balance().max_over_mean > 1.3, "{:?}", fast.balance());
    let banded = WeightedConsistentHash::new().with_fast_path(false);
    let banded = banded.assign(&workers, &even(3000), None).unwrap();
    assert!(
        banded.balance().max_over_mean <= 1.3,
        "{:?}",
        banded.balance()
    );
    assert!(
        banded.balance().min_over_mean >= 0.7,
        "{:?}",
        banded.balance()
    );
}

#[test]
fn a_partition_of_weight_0_counts_as_the_default_weight() {
    let strategy = WeightedConsistentHash::new().with_default_weight(50);
    let workers = Workers::of(["a", "b"]).unwrap();
    let heavy = Partition::new(["heavy"]).unwrap().with_weight(200).unwrap();
    let partitions = Partitions::new(even(4).iter().cloned().chain([heavy])).unwrap();
    let assignment = strategy.assign(&workers, &partitions, None).unwrap();
    assert_eq!(assignment.loads(), [200, 200]);
    // All of one effective weight is the fast path, whichever way it was given.
    let fifty = Partition::new(["fifty"]).unwrap().with_weight(50).unwrap();
    let equal = Partitions::new(even(40).iter().cloned().chain([fifty])).unwrap();
    let ring = ConsistentHash::new()
        .assign(&workers, &equal, None)
        .unwrap();
    assert_eq!(
        strategy.assign(&workers, &equal, None).unwrap().owners(),
        ring.owners()
    );
}

#[test]
fn each_corrected_option_is_warned_of_once() {
    type Strategy = WeightedConsistentHash;
    let new = Strategy::new;
    type Case = (&'static str, fn() -> Strategy, Strategy);
    let cases: [Case; 6] = [
        (
            "overload threshold 1.1",
            || Strategy::new().with_overload_threshold(1.1),
            new().with_overload_threshold(1.15),
        ),
        (
            "overload threshold NaN",
            || Strategy::new().with_overload_threshold(f64::NAN),
            new().with_overload_threshold(1.15),
        ),
        (
            "overload threshold inf",
            || Strategy::new().with_overload_threshold(f64::INFINITY),
            new().with_overload_threshold(100.0),
        ),
        (
            "extreme threshold 1",
            || Strategy::new().with_extreme_threshold(1.0),
            new().with_extreme_threshold(1.5),
        ),
        (
            "default weight -3",
            || Strategy::new().with_default_weight(-3),
            new().with_default_weight(1),
        ),
        (
            "virtual nodes 0",
            || Strategy::new().with_virtual_nodes(0),
            new().with_virtual_nodes(1),
        ),
    ];
    for (part, given, corrected) in cases {
        let mut built = None;
        let warnings = warnings_of(|| built = Some(given()));
        assert_eq!(built, Some(corrected), "{part}");
        assert_eq!(warnings.len(), 1, "{part}: {warnings:?}");
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
    let good = || {
        _ = new()
            .with_overload_threshold(1.15)
            .with_extreme_threshold(1.5)
            .with_default_weight(1);
    };
    assert!(warnings_of(good).is_empty());
}

#[test]
fn overflow_is_logged_in_one_debug_line_per_plan() {
    // One partition heavier than any worker may have: placed all the same.
    let giant = Partition::new(["giant"])
        .unwrap()
        .with_weight(1_000_000)
        .unwrap();
    let partitions = Partitions::new(mixed(200).iter().cloned().chain([giant])).unwrap();
    let workers = Workers::numbered("w", 5).unwrap();
    let mut proposal = None;
    let lines = debug_lines_of(|| {
        proposal = Some(
            WeightedConsistentHash::new()
                .propose(&workers, &partitions, None)
                .unwrap(),
        );
    });
    let proposal = proposal.unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("did not fit on the worker that the ring prefers"),
        "{lines:?}"
    );
    assert_eq!(proposal.certificate.giants, 1);
    let owner = proposal
        .assignment
        .owner_of("giant")
        .unwrap()
        .id()
        .to_owned();
    assert_eq!(
        proposal.assignment.partitions_of(&owner).unwrap().count(),
        1
    );
    // The others are even among themselves.
    let loads = proposal.assignment.loads();
    let others: Vec<u64> = loads.into_iter().filter(|&load| load < 1_000_000).collect();
    let (min, max) = (others.iter().min().unwrap(), others.iter().max().unwrap());
    assert!(*max as f64 <= 1.3 / 0.7 * *min as f64, "{others:?}");

    let strategy = WeightedConsistentHash::new();
    let lines = debug_lines_of(|| {
        _ = strategy.propose(&workers, &even(1000), None).unwrap();
        // Nor what was planned before, nor an explanation of it.
        let previous = Some(&proposal.assignment);
        _ = strategy.propose(&workers, &partitions, previous).unwrap();
        _ = strategy
            .explain("giant", &workers, &partitions, None)
            .unwrap();
    });
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn zones_get_their_share_first() {
    let partitions = even(900);
    let workers = in_zones(&[1, 2, 6]);
    let assignment = Zoned::new().assign(&workers, &partitions, None).unwrap();
    assert_eq!(assignment.counts(), [100; 9]);
    // A zone is lost: the others take over in proportion, nothing else moves.
    let rest = Workers::new(
        workers
            .iter()
            .filter(|w| w.zone() != Some("zone-1"))
            .cloned(),
    )
    .unwrap();
    let proposal = Zoned::new()
        .propose(&rest, &partitions, Some(&assignment))
        .unwrap();
    assert_eq!(proposal.certificate.moves, 200);
    assert!(
        proposal
            .changes
            .iter()
            .all(|c| c.cause == Cause::WorkerGone)
    );
}

#[test]
fn a_plan_document_is_the_start_of_the_next_plan() {
    let partitions = mixed(200);
    let strategy = WeightedConsistentHash::new();
    let before = strategy
        .assign(&Workers::numbered("w", 5).unwrap(), &partitions, None)
        .unwrap();
    let six = Workers::numbered("w", 6).unwrap();
    let proposal = strategy.propose(&six, &partitions, Some(&before)).unwrap();
    let json = PlanDocument::new(strategy.name(), &before, &proposal).to_json();
    let read = AssignmentDocument::from_json(&json).unwrap();
    assert_eq!(read.strategy(), Some("weighted-consistent-hash"));
    assert_eq!(read.assignment().unwrap(), proposal.assignment);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["format"], 1);
    assert_eq!(value["moves"], proposal.changes.len());
    assert_eq!(value["before"]["workers"].as_array().unwrap().len(), 5);
    assert_eq!(value["after"]["workers"].as_array().unwrap().len(), 6);
    assert_eq!(value["changes"][0]["cause"], "under_band");
}

/// Placements from nothing may change between releases without moving what
/// runs, because the previous assignment stays; but never by accident.
#[test]
fn placements_from_nothing_are_pinned() {
    let workers = in_zones(&[3, 2, 4]);
    let digest = |strategy: &dyn Strategy, partitions: &Partitions| {
        let assignment = strategy.assign(&workers, partitions, None).unwrap();
        let bytes: Vec<u8> = assignment
            .owners()
            .iter()
            .flat_map(|o| o.to_le_bytes())
            .collect();
        format!("{:016x}", hash::xxh64(&bytes))
    };
    let digests: Vec<String> = planners()
        .iter()
        .flat_map(|strategy| {
            [
                digest(&**strategy, &even(500)),
                digest(&**strategy, &mixed(500)),
            ]
        })
        .collect();
    assert_eq!(digests, PINNED);
}

const PINNED: [&str; 6] = [
    "0ba867cdf7694299",
    "8cc3fb0910cffc8b",
    "34dff1d4911792df",
    "e47e1f6b4700dd09",
    "75fd12694f26c14a",
    "847d7be7383ca6ae",
];
