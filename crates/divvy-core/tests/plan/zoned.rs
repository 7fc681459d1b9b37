//! Zones first: by count with exactly the fewest moves, by weight inside two bands.

use crate::check::{
    check_any, check_band, every_assignment, exact_shares, moves, random_previous, random_slots,
};
use crate::scene::Cluster;
use divvy_core::plan::{
    Band, Cause, NONE, Plan, PlanError, Problem, Slot, Weights, balanced, banded, zoned,
    zoned_banded,
};

fn anyone(slots: usize) -> impl Fn(u32) -> u32 {
    move |partition| partition.wrapping_mul(2_654_435_761) % (slots as u32 + 1)
}

fn in_zones(problem: &Problem<'_>, preferred: &dyn Fn(u32) -> u32) -> Result<Plan, PlanError> {
    zoned_banded(problem, &Band::default(), preferred)
}

fn flat(problem: &Problem<'_>, preferred: &dyn Fn(u32) -> u32) -> Result<Plan, PlanError> {
    banded(problem, &Band::default(), preferred)
}

fn members(slots: &[Slot], zone: u32) -> Vec<usize> {
    (0..slots.len())
        .filter(|&worker| slots[worker].zone == zone)
        .collect()
}

/// Whether these counts are balanced over zones, and inside each zone.
fn is_balanced(slots: &[Slot], counts: &[u64]) -> bool {
    let weights = crate::check::whole_weights(slots);
    let caps: Vec<u64> = slots.iter().map(crate::check::cap).collect();
    let zones: Vec<Vec<usize>> = (0..3).map(|zone| members(slots, zone)).collect();
    let sums = |of: &[u64]| -> Vec<u64> {
        zones
            .iter()
            .map(|zone| zone.iter().map(|&worker| of[worker]).sum())
            .collect()
    };
    let is_inside = |counts: &[u64], shares: &[(u64, u64)]| {
        counts
            .iter()
            .zip(shares)
            .all(|(count, &(lo, hi))| (lo..=hi).contains(count))
    };
    let zone_counts = sums(counts);
    let zone_shares = exact_shares(counts.iter().sum(), &sums(&weights), &sums(&caps));
    is_inside(&zone_counts, &zone_shares)
        && zones.iter().zip(&zone_counts).all(|(zone, &total)| {
            let pick = |of: &[u64]| -> Vec<u64> { zone.iter().map(|&worker| of[worker]).collect() };
            is_inside(
                &pick(counts),
                &exact_shares(total, &pick(&weights), &pick(&caps)),
            )
        })
}

#[test]
fn moves_are_the_minimum_over_all_assignments_balanced_over_zones() {
    // Compares with the best of every assignment there is, on problems small enough to try them all.
    let mut rng = fastrand::Rng::with_seed(21);
    for _ in 0..3_000 {
        let slots = random_slots(&mut rng, 4);
        let partitions = rng.usize(0..=6);
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let problem = Problem {
            weights: Weights::Even,
            slots: &slots,
            previous: &previous,
        };
        let plan = check_any(&problem, |problem| zoned(problem, anyone(slots.len()))).unwrap();
        let mut fewest = u32::MAX;
        every_assignment(&problem, |owners| {
            let mut counts = vec![0; slots.len()];
            owners.iter().for_each(|&owner| counts[owner as usize] += 1);
            if is_balanced(&slots, &counts) {
                fewest = fewest.min(moves(&problem, owners));
            }
        });
        assert_eq!(plan.certificate.moves, fewest, "{problem:?}");
        let without = balanced(&problem, anyone(slots.len())).unwrap();
        assert_eq!(plan.certificate.flat_bound, without.certificate.lower_bound);
    }
}

#[test]
fn counts_are_balanced_over_zones_on_larger_problems() {
    let mut rng = fastrand::Rng::with_seed(22);
    for _ in 0..400 {
        let slots = random_slots(&mut rng, 60);
        let partitions = rng.usize(0..2_000);
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let problem = Problem {
            weights: Weights::Even,
            slots: &slots,
            previous: &previous,
        };
        let plan = check_any(&problem, |problem| zoned(problem, anyone(slots.len()))).unwrap();
        let counts: Vec<u64> = plan.counts.iter().map(|&count| count.into()).collect();
        assert!(is_balanced(&slots, &counts));
    }
}

#[test]
fn one_zone_is_planned_as_without_zones() {
    let mut rng = fastrand::Rng::with_seed(23);
    for _ in 0..300 {
        let mut slots = random_slots(&mut rng, 20);
        slots.iter_mut().for_each(|slot| slot.zone = 7);
        let partitions = rng.usize(0..300);
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let weights: Vec<u64> = (0..previous.len()).map(|_| rng.u64(1..=100)).collect();
        let problem = Problem {
            weights: Weights::Each(&weights),
            slots: &slots,
            previous: &previous,
        };
        let preferred = anyone(slots.len());
        assert_eq!(zoned(&problem, &preferred), balanced(&problem, &preferred));
        let band = Band::default();
        assert_eq!(
            zoned_banded(&problem, &band, &preferred),
            banded(&problem, &band, &preferred)
        );
    }
}

#[test]
fn a_zone_over_its_share_names_the_zone_as_cause() {
    // Four workers hold two each; the zones hold 6 and 2 where both should hold 4, so zone 0 gives two away.
    let zone = |zone| Slot {
        zone,
        ..Slot::new(1.0)
    };
    let slots = [zone(0), zone(0), zone(0), zone(1)];
    let mut heavy = slots;
    heavy[3].weight = 3.0;
    let previous = [0, 0, 1, 1, 2, 2, 3, 3];
    let problem = Problem {
        weights: Weights::Even,
        slots: &heavy,
        previous: &previous,
    };
    let plan = zoned(&problem, |_| 3).unwrap();
    assert_eq!(plan.certificate.moves, 2);
    assert_eq!(plan.counts[3], 4);
    let causes: Vec<Cause> = plan.moves.iter().map(|change| change.cause).collect();
    assert!(
        causes
            .iter()
            .all(|&cause| cause == Cause::Zone || cause == Cause::Over),
        "{causes:?}"
    );
}

#[test]
fn any_weighted_problem_gives_a_plan_with_a_true_certificate() {
    let mut rng = fastrand::Rng::with_seed(24);
    for round in 0..4_000 {
        let slots = random_slots(&mut rng, 15);
        let partitions = rng.usize(0..80);
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let is_coarse = rng.bool();
        let weight = |rng: &mut fastrand::Rng| {
            if is_coarse {
                1 << rng.u8(0..20)
            } else {
                rng.u64(1..=100)
            }
        };
        let weights: Vec<u64> = (0..partitions).map(|_| weight(&mut rng)).collect();
        let problem = Problem {
            weights: Weights::Each(&weights),
            slots: &slots,
            previous: &previous,
        };
        let plan = check_any(&problem, |problem| {
            zoned_banded(problem, &Band::default(), anyone(slots.len()))
        })
        .unwrap_or_else(|broken| panic!("round {round}: {broken}"));
        let certificate = &plan.certificate;
        assert!(certificate.flat_bound <= certificate.lower_bound);
        if certificate.outside == 0 && certificate.giants == 0 {
            check_band(&problem, &plan, 0.3).unwrap();
        }
    }
}

#[test]
fn weighted_zones_stay_in_their_band_through_events_at_little_cost() {
    // The reference scenario in three zones of 40, 35 and 25 workers; the same events with and without zones.
    let (mut zoned_moves, mut flat_moves, mut outside) = (0, 0, 0);
    let events = 40;
    for seed in 0..10 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut cluster = Cluster::reference(&mut rng);
        for (worker, slot) in cluster.slots.iter_mut().enumerate() {
            slot.zone = if worker < 40 {
                1
            } else if worker < 75 {
                5
            } else {
                9
            };
        }
        let mut without = cluster.clone();
        assert_eq!(cluster.plan(in_zones).certificate.zones_outside, 0);
        without.plan(flat);
        for event in 0..events {
            if rng.bool() || cluster.names.len() < 80 {
                let slot = Slot {
                    zone: [1, 5, 9][rng.usize(0..3)],
                    ..Slot::new(1.0)
                };
                cluster.join(1_000 + event, slot);
                without.join(1_000 + event, slot);
            } else {
                let name = *rng.choice(&cluster.names).unwrap();
                cluster.leave(name);
                without.leave(name);
            }
            let plan = cluster.plan(in_zones);
            let certificate = plan.certificate;
            assert_eq!(
                (certificate.outside, certificate.zones_outside),
                (0, 0),
                "seed {seed}, {certificate:?}"
            );
            assert!(certificate.max_over_mean <= 1.3 && certificate.min_over_mean >= 0.7);
            outside += zones_outside(&cluster, &plan);
            zoned_moves += certificate.moves - certificate.orphans;
            let certificate = without.plan(flat).certificate;
            flat_moves += certificate.moves - certificate.orphans;
        }
    }
    println!(
        "moves beyond orphans in {} events: {zoned_moves} with zones, {flat_moves} without",
        events * 10
    );
    assert_eq!(outside, 0);
    assert!(zoned_moves <= 2 * flat_moves);
}

/// Zones whose load is more than a tenth off their share, computed from the plan.
fn zones_outside(cluster: &Cluster, plan: &Plan) -> usize {
    let mean = plan.loads.iter().sum::<u64>() as f64 / cluster.slots.len() as f64;
    let is_outside = |zone: &u32| {
        let members = members(&cluster.slots, *zone);
        let load: u64 = members.iter().map(|&worker| plan.loads[worker]).sum();
        (load as f64 / (mean * members.len() as f64) - 1.0).abs() > 0.1
    };
    [1, 5, 9].iter().filter(|zone| is_outside(zone)).count()
}

#[test]
fn a_lost_zone_is_taken_over_by_the_others_in_proportion() {
    let mut rng = fastrand::Rng::with_seed(25);
    let mut cluster = Cluster::new(30, (0..3_000).map(|_| rng.u64(1..=100)).collect());
    (0..30).for_each(|worker| cluster.slots[worker].zone = worker as u32 / 10);
    cluster.plan(in_zones);
    (0..10).for_each(|name| cluster.leave(name));
    let plan = cluster.plan(in_zones);
    let certificate = plan.certificate;
    assert_eq!((certificate.outside, certificate.zones_outside), (0, 0));
    assert_eq!(
        certificate.moves, certificate.orphans,
        "what stays was balanced"
    );
    assert!(
        plan.moves
            .iter()
            .all(|change| change.cause == Cause::WorkerGone && change.from != NONE)
    );
}

#[test]
fn a_zone_that_cannot_be_helped_does_not_stop_the_repair_of_others() {
    let slot = |zone: u32| Slot {
        zone,
        ..Slot::new(1.0)
    };
    let tight = Slot {
        max_partitions: Some(1),
        ..slot(0)
    };
    let slots: Vec<Slot> = [tight]
        .into_iter()
        .chain((0..40).map(|n| slot(1 + n / 20)))
        .collect();
    // Zone 1 has far more than zone 2, and zone 0 can only ever own one.
    let weights: Vec<u64> = (0..1000).map(|n| 90 + n % 21).collect();
    let previous: Vec<u32> = (0..1000u32)
        .map(|n| match n {
            0 => 0,
            n if n % 5 < 3 => 1 + n % 20,
            n => 21 + n % 20,
        })
        .collect();
    let problem = Problem {
        weights: Weights::Each(&weights),
        slots: &slots,
        previous: &previous,
    };
    let plan = zoned_banded(&problem, &Band::default(), |_| 1).unwrap();
    let load = |zone: std::ops::Range<usize>| plan.loads[zone].iter().sum::<u64>() as f64;
    let (one, two) = (load(1..21), load(21..41));
    assert!(
        one / two <= 1.1 / 0.9 + 0.01,
        "{one} and {two}: {:?}",
        plan.certificate
    );
}
