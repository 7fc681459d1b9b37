//! How long one assignment takes, for ourselves: `cargo bench --bench shard_assignment`.
//!
//! - `runners`: 2048 shards on 3, 10, 100 and 1000 runners, all strategies side by side.
//! - `cores`: rendezvous on one core and on all.
//! - `weights`: the weighted strategy with equal weights beside the ring alone, with unequal ones, and
//!   with extremes, on 10, 100 and 1000 workers.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use divvy_core::{
    Balanced, ConsistentHash, Partition, Partitions, Rendezvous, RoundRobin, Scheme, Strategy,
    WeightedConsistentHash, Workers, Zoned,
};

const SHARDS: u32 = 2048;

fn shards(weight: impl Fn(u32) -> i64) -> Partitions {
    let shard = |number| Partition::shard("default", number)?.with_weight(weight(number));
    let shards: Result<Vec<_>, _> = (0..SHARDS).map(shard).collect();
    Partitions::new(shards.expect("valid shards")).expect("shards are distinct")
}

fn runners(count: usize) -> Workers {
    let names: Vec<String> = (0..count)
        .map(|number| format!("runner-{number}:9000"))
        .collect();
    Workers::of(names.iter().map(String::as_str)).expect("names are distinct")
}

/// Benches one assignment under `name/workers` in the group.
fn bench(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    strategy: &dyn Strategy,
    (workers, partitions): (&Workers, &Partitions),
) {
    group.throughput(Throughput::Elements(partitions.len() as u64));
    group.bench_function(BenchmarkId::new(name, workers.len()), |bencher| {
        bencher.iter(|| {
            let assignment = strategy.assign(workers, partitions, None);
            assignment.expect("there are workers")
        });
    });
}

fn strategies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("runners");
    let partitions = shards(|_| 0);
    let weighted = WeightedConsistentHash::new().with_fast_path(false);
    let strategies: [(&str, &dyn Strategy); 7] = [
        ("rendezvous", &Rendezvous::new()),
        (
            "rendezvous-cruster",
            &Rendezvous::new().with_scheme(Scheme::Cruster),
        ),
        ("consistent-hash", &ConsistentHash::new()),
        ("weighted-consistent-hash", &weighted),
        ("balanced", &Balanced::new()),
        ("zoned", &Zoned::new()),
        ("round-robin", &RoundRobin),
    ];
    for count in [3, 10, 100, 1000] {
        let workers = runners(count);
        for (name, strategy) in strategies {
            bench(&mut group, name, strategy, (&workers, &partitions));
        }
    }
}

fn cores(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cores");
    let partitions = shards(|_| 0);
    for count in [3, 10, 100, 1000] {
        let sets = (&runners(count), &partitions);
        bench(&mut group, "one", &Rendezvous::new(), sets);
        bench(&mut group, "all", &Rendezvous::parallel(), sets);
    }
}

fn weights(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("weights");
    let equal = shards(|_| 100);
    let unequal = shards(|number| i64::from(number * 7919 % 100) + 1);
    let extreme = shards(|number| if number % 10 == 0 { 20_000 } else { 100 });
    let strategy = WeightedConsistentHash::new();
    for count in [10, 100, 1000] {
        let workers = runners(count);
        bench(
            &mut group,
            "ring alone",
            &ConsistentHash::new(),
            (&workers, &equal),
        );
        bench(&mut group, "equal", &strategy, (&workers, &equal));
        bench(&mut group, "unequal", &strategy, (&workers, &unequal));
        bench(&mut group, "extreme-heavy", &strategy, (&workers, &extreme));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    targets = strategies, cores, weights
}
criterion_main!(benches);
