//! Planning by count: exact quotas with exactly the fewest moves.

use crate::check::{
    check_any, check_counts, check_fewest, every_assignment, moves, random_previous, random_slots,
};
use divvy_core::plan::{
    Cause, GONE, NONE, PlanError, Problem, Reason, Rejection, Slot, Weights, balanced,
};

fn even<'a>(slots: &'a [Slot], previous: &'a [u32]) -> Problem<'a> {
    Problem {
        weights: Weights::Even,
        slots,
        previous,
    }
}

/// A preference that has nothing to do with the problem, and now and then names a worker that does not exist.
fn anyone(slots: usize) -> impl Fn(u32) -> u32 {
    move |partition| partition.wrapping_mul(2_654_435_761) % (slots as u32 + 1)
}

#[test]
fn moves_are_the_minimum_over_all_balanced_assignments() {
    // Compares with the best of every assignment there is, on problems small enough to try them all.
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..3_000 {
        let slots = random_slots(&mut rng, 4);
        let partitions = rng.usize(0..=6);
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let problem = even(&slots, &previous);
        let plan = check_any(&problem, |problem| balanced(problem, anyone(slots.len()))).unwrap();
        check_counts(&problem, &plan).unwrap();

        let caps: Vec<u64> = slots.iter().map(crate::check::cap).collect();
        let shares = crate::check::exact_shares(
            partitions as u64,
            &crate::check::whole_weights(&slots),
            &caps,
        );
        let mut fewest = u32::MAX;
        every_assignment(&problem, |owners| {
            let count =
                |worker: u32| owners.iter().filter(|&&owner| owner == worker).count() as u64;
            if (0u32..)
                .zip(&shares)
                .all(|(worker, &(lo, hi))| (lo..=hi).contains(&count(worker)))
            {
                fewest = fewest.min(moves(&problem, owners));
            }
        });
        assert_eq!(plan.certificate.moves, fewest, "{problem:?}");
        assert_eq!(plan.certificate.lower_bound, fewest, "{problem:?}");
    }
}

#[test]
fn moves_equal_the_closed_form_on_large_problems() {
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..60 {
        let workers = rng.usize(1..300);
        let partitions = rng.usize(0..20_000);
        let slots = vec![Slot::new(1.0); workers];
        let previous = random_previous(&mut rng, workers, partitions);
        let problem = even(&slots, &previous);
        let plan = check_any(&problem, |problem| balanced(problem, anyone(workers))).unwrap();
        assert!(plan.certificate.max_count - plan.certificate.min_count <= 1);
        check_fewest(&problem, &plan).unwrap();
    }
}

#[test]
fn weighted_and_capped_counts_follow_their_shares() {
    let mut rng = fastrand::Rng::with_seed(5);
    for _ in 0..400 {
        let slots = random_slots(&mut rng, 60);
        let partitions = rng.usize(0..2_000);
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let weights: Vec<u64> = (0..partitions).map(|_| rng.u64(1..1_000)).collect();
        let problem = Problem {
            weights: Weights::Each(&weights),
            slots: &slots,
            previous: &previous,
        };
        let plan = check_any(&problem, |problem| balanced(problem, anyone(slots.len()))).unwrap();
        check_counts(&problem, &plan).unwrap();
    }
}

#[test]
fn a_fourth_worker_takes_a_quarter_and_nothing_else_moves() {
    let slots = vec![Slot::new(1.0); 4];
    let previous: Vec<u32> = (0..2048).map(|partition| partition % 3).collect();
    let plan = balanced(&even(&slots, &previous), |_| 3).unwrap();
    assert_eq!(plan.counts, [512; 4]);
    assert_eq!(
        (plan.certificate.moves, plan.certificate.lower_bound),
        (512, 512)
    );
    assert!(
        plan.moves
            .iter()
            .all(|change| change.to == 3 && change.cause == Cause::Over)
    );
}

#[test]
fn departed_worker_moves_only_its_own_partitions() {
    let mut slots = vec![Slot::new(1.0); 100];
    let previous: Vec<u32> = (0..3000).map(|partition| partition % 100).collect();
    slots[17].weight = 0.0;
    let plan = balanced(&even(&slots, &previous), anyone(100)).unwrap();
    assert_eq!((plan.certificate.moves, plan.certificate.orphans), (30, 30));
    assert!(
        plan.moves
            .iter()
            .all(|change| change.from == 17 && change.cause == Cause::WorkerGone)
    );
}

#[test]
fn preferred_worker_is_asked_first_and_its_rejection_is_remembered() {
    let mut slots = vec![Slot::new(1.0); 3];
    slots[2].weight = 0.0;
    let plan = balanced(&even(&slots, &[NONE, NONE, GONE, GONE]), |partition| {
        [1, 1, 1, 2][partition as usize]
    })
    .unwrap();
    assert_eq!(plan.owners, [1, 1, 0, 0]);
    let rejected: Vec<_> = plan.moves.iter().map(|change| change.rejected).collect();
    let full = Some(Rejection {
        worker: 1,
        reason: Reason::Full,
    });
    let ineligible = Some(Rejection {
        worker: 2,
        reason: Reason::Ineligible,
    });
    assert_eq!(rejected, [None, None, full, ineligible]);
}

#[test]
fn only_partitions_that_must_be_placed_ask_for_a_preference() {
    let slots = vec![Slot::new(1.0); 2];
    let mut asked = Vec::new();
    balanced(&even(&slots, &[0, GONE, 0, 1, NONE, 1]), |partition| {
        asked.push(partition);
        0
    })
    .unwrap();
    assert_eq!(asked, [1, 4]);
}

#[test]
fn a_worker_over_its_cap_says_so() {
    let mut slots = vec![Slot::new(1.0); 2];
    slots[0].max_partitions = Some(1);
    let plan = balanced(&even(&slots, &[0, 0, 0, 1]), |_| 0).unwrap();
    assert_eq!(plan.counts, [1, 3]);
    assert!(plan.moves.iter().all(|change| change.cause == Cause::Cap));
}

#[test]
fn problems_that_cannot_be_planned_are_refused_with_their_numbers() {
    let none: &[u32] = &[];
    assert_eq!(balanced(&even(&[], none), |_| 0), Err(PlanError::NoWorkers));
    assert_eq!(
        balanced(&even(&[Slot::new(0.0)], none), |_| 0),
        Err(PlanError::NoWorkers)
    );
    let capped = [Slot {
        max_partitions: Some(2),
        ..Slot::new(1.0)
    }];
    let error = balanced(&even(&capped, &[NONE; 3]), |_| 0).unwrap_err();
    assert_eq!(
        error,
        PlanError::NoRoom {
            partitions: 3,
            room: 2
        }
    );
    assert_eq!(
        error.to_string(),
        "workers may own fewer partitions than there are: 2 of 3"
    );
    let error = balanced(&even(&[Slot::new(1.0)], &[NONE, 7]), |_| 0).unwrap_err();
    assert_eq!(
        error,
        PlanError::UnknownOwner {
            partition: 1,
            owner: 7,
            workers: 1
        }
    );
    for weight in [-1.0, f64::NAN, f64::INFINITY, 1e-10] {
        assert!(matches!(
            balanced(&even(&[Slot::new(weight)], none), |_| 0),
            Err(PlanError::WorkerWeight { .. })
        ));
    }
    let one = [Slot::new(1.0)];
    let weights = |weights, previous| Problem {
        weights: Weights::Each(weights),
        slots: &one,
        previous,
    };
    assert!(matches!(
        balanced(&weights(&[1], &[]), |_| 0),
        Err(PlanError::WeightCount { .. })
    ));
    assert!(matches!(
        balanced(&weights(&[0], &[NONE]), |_| 0),
        Err(PlanError::WeightZero { partition: 0 })
    ));
    assert!(matches!(
        balanced(&weights(&[u64::MAX], &[NONE]), |_| 0),
        Err(PlanError::WeightTotal { .. })
    ));
}

#[test]
fn no_partitions_leave_every_worker_empty() {
    let plan = balanced(&even(&[Slot::new(1.0), Slot::new(2.0)], &[]), |_| 0).unwrap();
    assert_eq!(plan.counts, [0, 0]);
    assert_eq!(
        (
            plan.certificate.max_over_mean,
            plan.certificate.min_over_mean
        ),
        (1.0, 1.0)
    );
}
