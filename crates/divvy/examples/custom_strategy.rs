//! A strategy of your own: all partitions of a tenant stay together on one worker.
//!
//! It lets another strategy place the tenants, each as heavy as its partitions
//! together, and gives every partition to whoever got its tenant. It is asked
//! directly, held to what every strategy promises, and then used by a cluster
//! of three workers, of which one leaves. It ends by itself.
//!
//! ```console
//! $ cargo run --release -p divvy --example custom_strategy
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use divvy::manager::{Manager, Settings, Shutdown, StaticSource};
use divvy::store::MemoryKeyValue;
use divvy::{
    Assignment, Error, Health, Partition, Partitions, Strategy, WeightedConsistentHash, Worker,
    Workers,
};

/// How often it is looked whether a cluster has settled.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Tenants with the numbers of their partitions.
const TENANTS: [(&str, u32); 8] = [
    ("acme", 6),
    ("bolt", 2),
    ("core", 4),
    ("dune", 3),
    ("echo", 5),
    ("flux", 1),
    ("gale", 4),
    ("hive", 2),
];

/// Keeps the partitions of a tenant together; `S` decides where.
#[derive(Debug)]
struct Together<S>(S);

impl<S: Strategy> Strategy for Together<S> {
    fn name(&self) -> &str {
        "together"
    }

    // It must be a pure function of what it is handed: no clock, no chance, no
    // hash map with a random order, nothing remembered. Whoever leads next
    // calculates anew.
    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        let tenants = tenants_of(partitions)?;
        let before = previous.map(tenants_before).transpose()?;
        let placed = self.0.assign(workers, &tenants, before.as_ref())?;
        // An assignment is an index of a worker for every partition.
        let owners = partitions.iter().map(|partition| {
            let tenant = tenants.index_of(partition.group());
            placed.owners()[tenant.expect("every partition has a tenant")]
        });
        Assignment::new(workers, partitions, owners.collect())
    }
}

/// Every tenant as one partition that weighs as much as all of its own.
fn tenants_of(partitions: &Partitions) -> Result<Partitions, Error> {
    let mut weights = BTreeMap::<&str, u64>::new();
    for (partition, load) in partitions.iter().zip(partitions.loads()) {
        *weights.entry(partition.group()).or_default() += load;
    }
    let tenants = weights.into_iter().map(|(tenant, weight)| {
        let weight = i64::try_from(weight).unwrap_or(i64::MAX);
        Partition::new([tenant])?.with_weight(weight)
    });
    Partitions::new(tenants.collect::<Result<Vec<_>, _>>()?)
}

/// Whose the tenants were: what their first partitions say.
fn tenants_before(previous: &Assignment) -> Result<Assignment, Error> {
    let tenants = tenants_of(previous.partitions())?;
    let mut owners = BTreeMap::new();
    for (partition, owner) in previous.partitions().iter().zip(previous.owners()) {
        owners.entry(partition.group()).or_insert(*owner);
    }
    // Both are sorted by the tenants' names.
    Assignment::new(previous.workers(), &tenants, owners.into_values().collect())
}

/// What every strategy promises, and what this one does besides. A strategy
/// that breaks one of these moves partitions without need, or lets members of
/// one cluster disagree.
fn check(strategy: &dyn Strategy) -> Result<Vec<&'static str>, Box<dyn std::error::Error>> {
    let mut kept = Vec::new();
    let mut holds = |promise: &'static str, holds: bool| {
        kept.push(promise);
        let broken = format!("{} breaks its promise: {promise}", strategy.name());
        holds.then_some(()).ok_or(broken)
    };
    let workers = Workers::of(["alpha", "beta", "gamma"])?;
    let partitions = Partitions::shards(TENANTS)?;
    let first = strategy.assign(&workers, &partitions, None)?;

    let again = strategy.assign(&workers, &partitions, None)?;
    holds("the same input gives the same owners", again == first)?;

    let reversed = Workers::new(workers.iter().rev().cloned())?;
    let shuffled = Partitions::new(partitions.iter().rev().cloned())?;
    let other = strategy.assign(&reversed, &shuffled, None)?;
    holds(
        "the order of workers and partitions does not matter",
        other == first,
    )?;

    let after = strategy.assign(&workers, &partitions, Some(&first))?;
    holds("nothing moves unless something changes", after == first)?;

    let ill = Worker::new("ill")?.with_health(Health::Unhealthy);
    let idle = Worker::new("idle")?.with_weight(0.0)?;
    let more = Workers::new(workers.iter().cloned().chain([ill, idle]))?;
    let counts = strategy.assign(&more, &partitions, None)?;
    let unfit = ["ill", "idle"]
        .iter()
        .filter_map(|id| counts.partitions_of(id));
    let nothing = unfit.flatten().next().is_none();
    holds("who is ill or weighs nothing gets nothing", nothing)?;

    let nobody = strategy.assign(&Workers::of([])?, &partitions, None);
    let is_refused = matches!(nobody, Err(Error::NoWorkers { .. }));
    holds("without workers it is an error, not a panic", is_refused)?;

    let fewer = Workers::of(["alpha", "gamma"])?;
    let left = strategy.assign(&fewer, &partitions, Some(&first))?;
    let all_whole = [first, counts, left].iter().all(are_together);
    holds("every tenant is together", all_whole)?;
    Ok(kept)
}

/// Whether every tenant's partitions have one owner.
fn are_together(assignment: &Assignment) -> bool {
    let mut owners = BTreeMap::new();
    let mut each = assignment.partitions().iter().zip(assignment.owners());
    each.all(|(partition, owner)| owners.entry(partition.group()).or_insert(owner) == &owner)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let strategy = Together(WeightedConsistentHash::new());

    println!("alone, without any store:");
    let workers = Workers::of(["alpha", "beta", "gamma"])?;
    let partitions = Partitions::shards(TENANTS)?;
    let assignment = strategy.assign(&workers, &partitions, None)?;
    for (worker, owned) in assignment.by_worker() {
        show(worker.id(), owned.into_iter());
    }

    println!("\nwhat it promises:");
    for promise in check(&strategy)? {
        println!("  kept: {promise}");
    }

    println!("\nin a cluster of three workers:");
    let store = MemoryKeyValue::new();
    let mut managers = Vec::new();
    for name in ["alpha", "beta", "gamma"] {
        let settings = Settings {
            instance: Some(name.to_owned()),
            ..Settings::fast()
        };
        let source = StaticSource::new(partitions.clone());
        let manager = Manager::builder(store.clone(), source)
            .settings(settings)
            .strategy(Together(WeightedConsistentHash::new()));
        managers.push((name, manager.start().await?));
    }
    settled(&managers, partitions.len()).await;
    show_all(&managers);

    let (name, leaving) = managers.remove(1);
    println!("\n{name} leaves:");
    leaving.stop(Shutdown::Leave).await?;
    settled(&managers, partitions.len()).await;
    show_all(&managers);

    for (_, manager) in managers {
        manager.stop(Shutdown::Leave).await?;
    }
    Ok(())
}

/// Waits until everybody has something, everything has somebody, and every
/// tenant is together: moves are made one by one.
async fn settled(managers: &[(&str, Manager)], partitions: usize) {
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    loop {
        looks.tick().await;
        let assignments = managers.iter().map(|(_, m)| m.current_assignment());
        let assignments: Vec<_> = assignments.collect();
        let mut holders = BTreeSet::new();
        for (holder, assignment) in assignments.iter().enumerate() {
            let owned = assignment.partitions.iter();
            holders.extend(owned.map(|owned| (owned.partition.group(), holder)));
        }
        let everybody = assignments.iter().all(|one| !one.partitions.is_empty());
        let owned: usize = assignments.iter().map(|one| one.partitions.len()).sum();
        if everybody && owned == partitions && holders.len() == TENANTS.len() {
            return;
        }
    }
}

fn show_all(managers: &[(&str, Manager)]) {
    for (name, manager) in managers {
        let assignment = manager.current_assignment();
        let owned = assignment.partitions.iter();
        show(name, owned.map(|owned| &owned.partition));
    }
}

/// Prints what somebody owns, as tenants with the numbers of partitions.
fn show<'a>(name: &str, owned: impl Iterator<Item = &'a Partition>) {
    let mut tenants = BTreeMap::<&str, u32>::new();
    let mut count = 0;
    for partition in owned {
        *tenants.entry(partition.group()).or_default() += 1;
        count += 1;
    }
    let tenants = tenants
        .iter()
        .map(|(tenant, count)| format!("{tenant} {count}"));
    let tenants: Vec<_> = tenants.collect();
    println!("  {name:<6} {count:>2} partitions: {}", tenants.join(", "));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use divvy::{Balanced, Rendezvous};

    use super::*;

    #[test]
    fn tenants_stay_together_whoever_places_them() {
        check(&Together(WeightedConsistentHash::new())).unwrap();
        check(&Together(Balanced::new())).unwrap();
        check(&Together(Rendezvous::new())).unwrap();
    }

    #[test]
    fn a_strategy_that_parts_tenants_is_caught() {
        let broken = check(&Rendezvous::new()).unwrap_err().to_string();
        assert!(broken.ends_with("every tenant is together"), "{broken}");
    }

    /// Another worker takes everything each time.
    #[derive(Debug, Default)]
    struct Remembering(AtomicUsize);

    impl Strategy for Remembering {
        fn name(&self) -> &str {
            "remembering"
        }

        fn assign(
            &self,
            workers: &Workers,
            partitions: &Partitions,
            _previous: Option<&Assignment>,
        ) -> Result<Assignment, Error> {
            let eligible = workers.eligible()?;
            let turn = self.0.fetch_add(1, Ordering::Relaxed);
            let owner = eligible[turn % eligible.len()];
            Assignment::new(workers, partitions, vec![owner; partitions.len()])
        }
    }

    #[test]
    fn a_strategy_that_remembers_is_caught() {
        let broken = check(&Remembering::default()).unwrap_err().to_string();
        assert!(
            broken.ends_with("the same input gives the same owners"),
            "{broken}"
        );
    }
}
