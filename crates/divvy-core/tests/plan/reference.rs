//! The figures to reach in the reference scenario: 100 workers, 2850 partitions of weight 100, 150 of
//! 10,000 to 50,000, band ± 30 %.

use crate::scene::Cluster;
use divvy_core::plan::{Band, Plan, PlanError, Problem, Slot, banded};

const DRAWS: u64 = 200;

fn reference_band(
    problem: &Problem<'_>,
    preferred: &dyn Fn(u32) -> u32,
) -> Result<Plan, PlanError> {
    banded(problem, &Band::default(), preferred)
}

/// A column of percentages.
#[derive(Debug, Default)]
struct Column {
    values: Vec<f64>,
}

impl Column {
    fn push(&mut self, moves: u32, of: usize) {
        self.values.push(100.0 * f64::from(moves) / of as f64);
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    fn worst(&self) -> f64 {
        self.values
            .iter()
            .fold(0.0, |worst: f64, &value| worst.max(value))
    }

    fn print(&self, name: &str) {
        println!(
            "{name:<44} {:>6.2} % mean {:>6.2} % worst",
            self.mean(),
            self.worst()
        );
    }
}

#[derive(Debug, Default)]
struct Table {
    join_ten: Column,
    join_ten_bound: Column,
    join_ten_weight: Column,
    leave_same_ten: Column,
    leave_random_ten: Column,
    join_one: Column,
    leave_one: Column,
    drift: Column,
    drift_later: Column,
    low: f64,
    high: f64,
    cold_low: f64,
    cold_high: f64,
    count_max: u32,
}

/// Every worker inside the band, and no worker with too many extremes.
fn assert_in_band(plan: &Plan, what: &str) {
    let certificate = &plan.certificate;
    assert_eq!(certificate.outside, 0, "{what}: {certificate:?}");
    assert_eq!(certificate.giants, 0, "{what}: {certificate:?}");
    assert!(certificate.max_over_mean <= 1.3, "{what}: {certificate:?}");
    assert!(certificate.min_over_mean >= 0.7, "{what}: {certificate:?}");
    assert!(
        certificate.extremes_max <= certificate.extremes_limit,
        "{what}: {certificate:?}"
    );
    assert!(
        certificate.lower_bound <= certificate.moves,
        "{what}: {certificate:?}"
    );
}

fn drifted(cluster: &Cluster, rng: &mut fastrand::Rng) -> Cluster {
    let mut drifted = cluster.clone();
    for weight in &mut drifted.weights {
        *weight = (*weight as f64 * (0.95 + 0.1 * rng.f64())).round() as u64;
    }
    drifted
}

/// One draw: a cold start and the events of the table, each from the state it names.
fn draw(seed: u64, table: &mut Table) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut base = Cluster::reference(&mut rng);
    let partitions = base.weights.len();
    let mut step = |cluster: &mut Cluster, what: &str| {
        let plan = cluster.plan(reference_band);
        assert_in_band(&plan, &format!("draw {seed}, {what}"));
        table.low = table.low.min(plan.certificate.min_over_mean);
        table.high = table.high.max(plan.certificate.max_over_mean);
        plan.certificate
    };
    let cold = step(&mut base, "cold start");
    table.cold_low = table.cold_low.min(cold.min_over_mean);
    table.cold_high = table.cold_high.max(cold.max_over_mean);
    table.count_max = table.count_max.max(cold.max_count);

    let mut grown = base.clone();
    (100..110).for_each(|name| grown.join(name, Slot::new(1.0)));
    let joined = step(&mut grown, "100 -> 110");
    table.join_ten.push(joined.moves, partitions);
    table.join_ten_bound.push(joined.lower_bound, partitions);
    let total: u64 = base.weights.iter().sum();
    table
        .join_ten_weight
        .values
        .push(100.0 * joined.moved_weight as f64 / total as f64);

    let later = step(&mut drifted(&grown, &mut rng), "drift after 100 -> 110");
    table.drift_later.push(later.moves, partitions);

    let mut back = grown.clone();
    (100..110).for_each(|name| back.leave(name));
    table
        .leave_same_ten
        .push(step(&mut back, "110 -> 100").moves, partitions);

    let mut shrunk = base.clone();
    for _ in 0..10 {
        shrunk.leave(*rng.choice(&shrunk.names).expect("workers are left"));
    }
    let left = step(&mut shrunk, "ten random leave");
    table
        .leave_random_ten
        .push(left.moves - left.orphans, partitions);

    let mut one_more = base.clone();
    one_more.join(100, Slot::new(1.0));
    table
        .join_one
        .push(step(&mut one_more, "one joins").moves, partitions);

    let mut one_less = base.clone();
    one_less.leave(*rng.choice(&one_less.names).expect("workers are left"));
    let left = step(&mut one_less, "one lost");
    table.leave_one.push(left.moves - left.orphans, partitions);

    table.drift.push(
        step(&mut drifted(&base, &mut rng), "drift").moves,
        partitions,
    );
}

#[test]
fn reference_scenario_reaches_its_figures() {
    let mut table = Table {
        low: 1.0,
        high: 1.0,
        cold_low: 1.0,
        cold_high: 1.0,
        ..Table::default()
    };
    (0..DRAWS).for_each(|seed| draw(seed, &mut table));

    println!("{DRAWS} draws, 100 workers, 3000 partitions; moved:");
    table.join_ten.print("100 -> 110");
    table.join_ten_bound.print("  its lower bound");
    table.join_ten_weight.print("  by weight");
    table.leave_same_ten.print("110 -> 100, the same ten leave");
    table
        .leave_random_ten
        .print("ten random leave, beyond the orphans");
    table.join_one.print("one joins");
    table.leave_one.print("one lost, beyond the orphans");
    table.drift.print("all weights drift by 5 %");
    table.drift_later.print("  the same after 100 -> 110");
    println!(
        "loads over the mean {:.3} to {:.3}; at a cold start {:.3} to {:.3}, counts up to {}",
        table.low, table.high, table.cold_low, table.cold_high, table.count_max
    );

    assert!(table.join_ten.mean() <= 2.0 && table.join_ten.worst() <= 5.0);
    assert!(table.leave_same_ten.mean() <= 2.0);
    assert!(table.leave_random_ten.mean() <= 1.0);
    assert!(table.join_one.mean() <= 0.3);
    assert!(table.leave_one.mean() <= 0.3);
    assert_eq!(table.drift.worst(), 0.0);
    // Inside these a drift by 5 % of any weights in any direction cannot leave the band.
    assert!(table.cold_low >= 0.7 * 1.05 / 0.95 && table.cold_high <= 1.3 * 0.95 / 1.05);
}
