//! Planning by weight: a band on both sides, few moves.

use crate::check::{check_any, check_band, random_previous, random_slots};
use crate::scene::Cluster;
use divvy_core::plan::{Band, Cause, GONE, NONE, Plan, PlanError, Problem, Slot, Weights, banded};

fn anyone(slots: usize) -> impl Fn(u32) -> u32 {
    move |partition| partition.wrapping_mul(2_654_435_761) % (slots as u32 + 1)
}

fn default_band(problem: &Problem<'_>, preferred: &dyn Fn(u32) -> u32) -> Result<Plan, PlanError> {
    banded(problem, &Band::default(), preferred)
}

/// Weights of one of several shapes.
fn random_weights(rng: &mut fastrand::Rng, partitions: usize) -> Vec<u64> {
    let shape = rng.u8(0..6);
    let weight = |rng: &mut fastrand::Rng, at: usize| match shape {
        0 => 1,
        1 => rng.u64(1..=100),
        2 => 1_000_000 / (at as u64 + 1) + 1,
        3 if at.is_multiple_of(20) => rng.u64(10_000..=50_000),
        3 => 100,
        4 if at == 0 => 1_000_000,
        4 => rng.u64(1..=10),
        _ => 1 << rng.u8(0..40),
    };
    (0..partitions).map(|at| weight(rng, at)).collect()
}

#[test]
fn any_problem_gives_a_total_capped_idempotent_plan_with_a_true_certificate() {
    let mut rng = fastrand::Rng::with_seed(11);
    for round in 0..3_000 {
        let most = if round % 10 == 0 { 80 } else { 12 };
        let slots = random_slots(&mut rng, most);
        let partitions = rng.usize(0..if round % 10 == 0 { 1_500 } else { 60 });
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let weights = random_weights(&mut rng, partitions);
        let band = Band {
            width: [0.3, 0.15, 0.05, 0.6, 1.5][rng.usize(0..5)],
            ..Band::default()
        };
        let problem = Problem {
            weights: Weights::Each(&weights),
            slots: &slots,
            previous: &previous,
        };
        let plan = check_any(&problem, |problem| {
            banded(problem, &band, anyone(slots.len()))
        })
        .unwrap_or_else(|broken| panic!("round {round}: {broken}"));
        let certificate = &plan.certificate;
        if certificate.outside == 0 && certificate.giants == 0 {
            check_band(&problem, &plan, band.width).unwrap();
        }
    }
}

#[test]
fn the_heaviest_weights_and_the_widest_band_do_not_overflow() {
    let slots = vec![Slot::new(1e9), Slot::new(1e-9), Slot::new(1.0)];
    let weights = [
        i64::MAX as u64 / 2,
        i64::MAX as u64 / 4,
        i64::MAX as u64 / 8,
        1,
    ];
    for width in [0.01, 0.3, 100.0] {
        for previous in [[NONE; 4], [0, 0, 0, 0], [1, 1, 1, 1], [GONE, 2, 2, 1]] {
            let problem = Problem {
                weights: Weights::Each(&weights),
                slots: &slots,
                previous: &previous,
            };
            let band = Band {
                width,
                ..Band::default()
            };
            check_any(&problem, |problem| banded(problem, &band, |_| 0)).unwrap();
        }
    }
}

#[test]
fn every_shape_ends_in_the_band_or_says_why_not() {
    let mut rng = fastrand::Rng::with_seed(13);
    let uniform: Vec<u64> = (0..1_000).map(|_| rng.u64(1..=100)).collect();
    let zipf: Vec<u64> = (1..=3_000u64).map(|rank| 1_000_000 / rank).collect();
    let mut giant = vec![10; 500];
    giant[77] = 1_000_000;
    let cases = [
        ("weights 1..100", 20, uniform.clone(), 0),
        ("weights 1..100, many workers", 100, uniform, 0),
        ("Zipf", 5, zipf.clone(), 0),
        ("Zipf, heads too heavy", 50, zipf, 5),
        ("one giant", 50, giant, 1),
        ("10 partitions on 100 workers", 100, vec![7; 10], 10),
        ("one worker", 1, vec![3, 9, 27], 0),
        ("nothing", 5, vec![], 0),
    ];
    for (name, workers, weights, giants) in cases {
        let mut cluster = Cluster::new(workers, weights);
        let previous = cluster.previous();
        let problem = Problem {
            weights: Weights::Each(&cluster.weights),
            slots: &cluster.slots,
            previous: &previous,
        };
        let names: Vec<u64> = cluster.names.clone();
        let plan = check_any(&problem, |problem| {
            default_band(problem, &|at| crate::scene::rendezvous(&names, at))
        })
        .unwrap();
        println!("{name:<30} {:?}", plan.certificate);
        assert_eq!(
            plan.certificate.outside, 0,
            "{name}: {:?}",
            plan.certificate
        );
        assert_eq!(plan.certificate.giants, giants, "{name}");
        assert_eq!(
            plan.certificate.target_over_mean < 1.0,
            giants > 0,
            "{name}"
        );
        cluster.plan(default_band);
        cluster.join(1_000, Slot::new(1.0));
        let joined = cluster.plan(default_band).certificate;
        println!("{:<30} {joined:?}", "  one joins");
        assert_eq!(joined.outside, 0, "{name}: {joined:?}");
    }
}

#[test]
fn giants_sit_alone_and_stay_where_they_are() {
    let mut weights = vec![10; 200];
    weights[5] = 5_000;
    weights[150] = 4_000;
    let mut cluster = Cluster::new(10, weights);
    let plan = cluster.plan(default_band);
    let hosts = [plan.owners[5], plan.owners[150]];
    assert!(hosts.iter().all(|&host| plan.counts[host as usize] == 1));
    assert_eq!(plan.certificate.giants, 2);
    cluster.join(10, Slot::new(1.0));
    let plan = cluster.plan(default_band);
    assert_eq!([plan.owners[5], plan.owners[150]], hosts);
    assert_eq!(plan.certificate.outside, 0);
}

#[test]
fn state_inside_the_band_moves_only_what_it_must() {
    // Loads 70 to 130 of a mean of 100: at the very edges, and left alone.
    let slots = vec![Slot::new(1.0); 3];
    let weights = [70, 100, 130, 1];
    let problem = Problem {
        weights: Weights::Each(&weights[..3]),
        slots: &slots,
        previous: &[0, 1, 2],
    };
    assert_eq!(banded(&problem, &Band::default(), |_| 0).unwrap().moves, []);
    let problem = Problem {
        weights: Weights::Each(&weights),
        slots: &slots,
        previous: &[0, 1, 2, GONE],
    };
    let plan = banded(&problem, &Band::default(), |_| 0).unwrap();
    assert_eq!(plan.owners[..3], [0, 1, 2]);
    assert_eq!(plan.moves.len(), 1);
}

#[test]
fn swaps_restore_the_band_where_single_moves_cannot() {
    let slots = vec![Slot::new(1.0); 2];
    let weights = [60, 60, 41, 39];
    let problem = Problem {
        weights: Weights::Each(&weights),
        slots: &slots,
        previous: &[0, 0, 1, 1],
    };
    let plan = banded(
        &problem,
        &Band {
            width: 0.15,
            ..Band::default()
        },
        |_| 0,
    )
    .unwrap();
    assert_eq!(plan.certificate.outside, 0);
    assert_eq!(plan.certificate.moves, 2);
    assert!(plan.moves.iter().all(|change| change.cause == Cause::Over));
}

#[test]
fn capacities_and_caps_hold_in_the_band() {
    let mut rng = fastrand::Rng::with_seed(14);
    for _ in 0..60 {
        let mut cluster = Cluster::new(30, (0..2_000).map(|_| rng.u64(50..=150)).collect());
        for slot in &mut cluster.slots {
            slot.weight = [0.5, 1.0, 2.0, 4.0][rng.usize(0..4)];
        }
        let share = 2_000.0 / cluster.slots.iter().map(|slot| slot.weight).sum::<f64>();
        for slot in &mut cluster.slots {
            slot.max_partitions = rng.bool().then(|| (slot.weight * share * 1.1) as u32 + 1);
        }
        for event in 0..5 {
            let plan = cluster.plan(default_band);
            assert_eq!(
                plan.certificate.outside, 0,
                "event {event}: {:?}",
                plan.certificate
            );
            assert!(plan.certificate.max_over_mean <= 1.3 && plan.certificate.min_over_mean >= 0.7);
            let caps = cluster
                .slots
                .iter()
                .map(|slot| slot.max_partitions.unwrap_or(u32::MAX));
            assert!(
                plan.counts
                    .iter()
                    .zip(caps)
                    .all(|(&count, cap)| count <= cap)
            );
            cluster.join(100 + event, Slot::new(rng.u32(1..4).into()));
        }
    }
}

#[test]
fn extremes_are_shed_when_their_share_falls() {
    // 30 extremes on 10 workers may be 4 each; on 30 workers 2.
    let mut weights = vec![1; 300];
    weights[..30].fill(1_000);
    let mut cluster = Cluster::new(10, weights);
    assert!(cluster.plan(default_band).certificate.extremes_max <= 4);
    (10..30).for_each(|name| cluster.join(name, Slot::new(1.0)));
    let certificate = cluster.plan(default_band).certificate;
    assert_eq!((certificate.extremes, certificate.extremes_limit), (30, 2));
    assert!(certificate.extremes_max <= 2, "{certificate:?}");
}

#[test]
fn thousand_events_in_a_row_stay_in_the_band_without_more_and_more_moves() {
    // Verifies that hysteresis does not store up trouble: joins, losses, drift, new and removed weight, in
    // random order between 80 and 120 workers. Moves beyond orphans per event, first half against second
    // half.
    let mut rng = fastrand::Rng::with_seed(15);
    let mut cluster = Cluster::reference(&mut rng);
    cluster.plan(default_band);
    let mut name = 1_000;
    let mut halves = [0u32; 2];
    let mut worst = 0;
    for event in 0..1_000 {
        let workers = cluster.names.len();
        match rng.u8(0..4) {
            0 | 1 if workers <= 80 || (workers < 120 && rng.bool()) => {
                cluster.join(name, Slot::new(1.0));
                name += 1;
            }
            0 | 1 => cluster.leave(*rng.choice(&cluster.names).unwrap()),
            2 => {
                for weight in &mut cluster.weights {
                    let drifted = *weight as f64 * (0.97 + 0.06 * rng.f64());
                    *weight = (drifted.round() as u64)
                        .clamp(if *weight < 5_000 { 50 } else { 10_000 }, 50_000);
                }
            }
            _ => {
                let partition = rng.usize(0..cluster.weights.len());
                cluster.owners[partition] = None;
            }
        }
        let certificate = cluster.plan(default_band).certificate;
        if certificate.giants == 0 {
            assert_eq!(certificate.outside, 0, "event {event}: {certificate:?}");
            assert!(certificate.max_over_mean <= 1.3 && certificate.min_over_mean >= 0.7);
        }
        assert!(
            certificate.extremes_max <= certificate.extremes_limit,
            "event {event}: {certificate:?}"
        );
        let beyond = certificate.moves - certificate.orphans;
        halves[event / 500] += beyond;
        worst = worst.max(beyond);
    }
    println!(
        "moves beyond orphans: {} in events 1 to 500, {} in 501 to 1000, at most {worst} in one",
        halves[0], halves[1]
    );
    assert!(f64::from(halves[1]) <= 1.25 * f64::from(halves[0]) + 100.0);
}

#[test]
fn bands_out_of_range_are_refused() {
    let problem = Problem {
        weights: Weights::Even,
        slots: &[Slot::new(1.0)],
        previous: &[NONE],
    };
    for width in [0.0, -1.0, f64::NAN, 101.0] {
        let error = banded(
            &problem,
            &Band {
                width,
                ..Band::default()
            },
            |_| 0,
        )
        .unwrap_err();
        assert!(matches!(error, PlanError::BandRange { field: "width", .. }));
    }
    let error = banded(
        &problem,
        &Band {
            extreme: 0.5,
            ..Band::default()
        },
        |_| 0,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "extreme of the band is out of range: 0.5"
    );
}

/// Light workers that are full by their cap must not hide those that have room.
#[test]
fn full_workers_do_not_stand_in_the_way_of_a_repair() {
    for capped in [5, 6, 20, 200] {
        let cap = |_| Slot {
            max_partitions: Some(2),
            ..Slot::new(1.0)
        };
        let slots: Vec<Slot> = (0..capped)
            .map(cap)
            .chain((0..10).map(|_| Slot::new(1.0)))
            .collect();
        let mut weights = Vec::new();
        let mut previous = Vec::new();
        for worker in 0..capped as u32 {
            weights.extend([450, 450]);
            previous.extend([worker, worker]);
        }
        for worker in 0..10u32 {
            let count = if worker == 0 { 180 } else { 95 };
            weights.extend((0..count).map(|n| 8 + n % 5));
            previous.extend((0..count).map(|_| capped as u32 + worker));
        }
        let problem = Problem {
            weights: Weights::Each(&weights),
            slots: &slots,
            previous: &previous,
        };
        let plan = banded(&problem, &Band::default(), |_| capped as u32).unwrap();
        assert_eq!(
            plan.certificate.outside, 0,
            "{capped}: {:?}",
            plan.certificate
        );
        assert!(
            plan.certificate.moves < 70,
            "{capped}: {:?}",
            plan.certificate
        );
    }
}

#[test]
fn others_are_balanced_beside_a_giant_of_any_size() {
    for giant in [
        1_000_000,
        1_000_000_000,
        10_000_000_000,
        100_000_000_000_000,
    ] {
        let weights: Vec<u64> = [giant]
            .into_iter()
            .chain((0..300).map(|n| 1 + n % 100))
            .collect();
        let problem = |slots: &[Slot], previous: &[u32]| {
            let weights = Weights::Each(&weights);
            banded(
                &Problem {
                    weights,
                    slots,
                    previous,
                },
                &Band::default(),
                |at| at % 10,
            )
            .unwrap()
        };
        let ten = vec![Slot::new(1.0); 10];
        let cold = problem(&ten, &vec![NONE; weights.len()]);
        assert_eq!(
            cold.certificate.outside, 0,
            "{giant}: {:?}",
            cold.certificate
        );
        let fifteen = vec![Slot::new(1.0); 15];
        let grown = problem(&fifteen, &cold.owners);
        assert_eq!(
            grown.certificate.outside, 0,
            "{giant}: {:?}",
            grown.certificate
        );
        assert!(
            grown.counts[10..].iter().all(|&count| count > 0),
            "{giant}: {:?}",
            grown.counts
        );
        assert_eq!(
            grown.counts[grown.owners[0] as usize], 1,
            "{giant}: a giant shares its worker"
        );
    }
}

#[test]
fn a_giant_moves_where_that_moves_fewer_than_its_neighbours() {
    let weights: Vec<u64> = [1000].into_iter().chain([1; 100]).collect();
    let slots = [Slot::new(1.0), Slot::new(1.0)];
    let plan = |previous: &[u32]| {
        let weights = Weights::Each(&weights);
        let problem = Problem {
            weights,
            slots: &slots,
            previous,
        };
        banded(&problem, &Band::default(), |_| 0).unwrap()
    };
    let moved = plan(&[0; 101]);
    assert_eq!((moved.certificate.moves, moved.owners[0]), (1, 1));
    assert_eq!(plan(&moved.owners).certificate.moves, 0);
}

/// A light worker beside a very heavy one has the share that the certificate
/// measures it by.
#[test]
fn shares_hold_for_the_smallest_weight_beside_the_largest() {
    let slots = [Slot::new(1e6), Slot::new(1e-6)];
    let weights: Vec<u64> = (0..3000).map(|n| 1_000_000_000 * (1 + n % 7)).collect();
    let problem = Problem {
        weights: Weights::Each(&weights),
        slots: &slots,
        previous: &vec![NONE; weights.len()],
    };
    let plan = banded(&problem, &Band::default(), |_| 0).unwrap();
    let max = plan.certificate.max_over_mean;
    assert!(
        plan.certificate.outside > 0 || max <= 1.3,
        "{:?}",
        plan.certificate
    );
}
