//! Workers that take over from another system: nothing moves.

use std::collections::BTreeMap;

use divvy::{
    Assignment, AssignmentDocument, Partitions, Rendezvous, RoundRobin, Scheme, Strategy, Workers,
};

use crate::bed::Bed;
use crate::fleet::Fleet;

const PARTITIONS: u32 = 12;

/// What the other system has: counts are even, as `divvy worker` will want them,
/// but no strategy of its own places so.
fn dealt(instances: [&str; 3]) -> Assignment {
    let partitions = Partitions::shards([("p", PARTITIONS)]).unwrap();
    let workers = Workers::of(instances).unwrap();
    RoundRobin.assign(&workers, &partitions, None).unwrap()
}

fn by_partition(assignment: &Assignment) -> BTreeMap<String, String> {
    let names = assignment.partitions().iter();
    let owner = |name: &str| assignment.owner_of(name).unwrap().id().to_owned();
    names
        .map(|p| (p.as_str().to_owned(), owner(p.as_str())))
        .collect()
}

/// Who was told first to start each partition.
fn first_owners(fleet: &Fleet) -> BTreeMap<String, String> {
    let mut first: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for worker in &fleet.workers {
        for line in worker.lines() {
            if line["event"] == "assigned" {
                let partition = line["partition"].as_str().unwrap().to_owned();
                let told = (line["at_us"].as_u64().unwrap(), worker.instance.clone());
                let known = first.entry(partition).or_insert_with(|| told.clone());
                *known = told.min(known.clone());
            }
        }
    }
    let owners = first.into_iter();
    owners.map(|(p, (_, instance))| (p, instance)).collect()
}

/// Three workers that begin with what a file says.
async fn taken_over(bed: Bed, file: &str, content: &str, before: &Assignment) -> Fleet {
    let path = bed.file(file);
    std::fs::write(&path, content).unwrap();
    let previous = format!("@{}", path.display());
    let mut fleet = Fleet::empty(bed, PARTITIONS);
    for worker in before.workers().iter() {
        fleet.join(worker.id(), &["--previous", &previous]);
    }
    fleet.owned().await;
    assert_eq!(first_owners(&fleet), by_partition(before), "{file}");
    fleet
}

/// An even past stays for good.
async fn nothing_moves(bed: Bed, file: &str, content: &str, before: &Assignment) {
    let fleet = taken_over(bed, file, content, before).await;
    fleet.balanced().await;
    assert_eq!(fleet.grants().len(), PARTITIONS as usize, "{file}");
    fleet.check().await;
}

pub(crate) async fn a_map_of_owners_is_taken_over_without_a_move(bed: Bed) {
    let before = dealt(["pod-a", "pod-b", "pod-c"]);
    let owned: BTreeMap<&str, Vec<&str>> = before
        .by_worker()
        .into_iter()
        .map(|(worker, owned)| (worker.id(), owned.iter().map(|p| p.as_str()).collect()))
        .collect();
    let content = serde_json::to_string(&owned).unwrap();
    nothing_moves(bed, "today.json", &content, &before).await;
}

pub(crate) async fn a_table_of_owners_is_taken_over_without_a_move(bed: Bed) {
    let before = dealt(["consumer-1", "consumer-2", "consumer-3"]);
    let rows = by_partition(&before).into_iter();
    let rows: Vec<String> = rows.map(|(p, worker)| format!("{p},{worker}")).collect();
    let content = format!("key,worker\n{}\n", rows.join("\n"));
    nothing_moves(bed, "group.csv", &content, &before).await;
}

pub(crate) async fn what_cruster_placed_is_where_workers_begin(bed: Bed) {
    let runners = Workers::of(["10.0.0.1:9000", "10.0.0.2:9000", "10.0.0.3:9000"]).unwrap();
    let shards = Partitions::shards([("p", PARTITIONS)]).unwrap();
    let cruster = Rendezvous::new().with_scheme(Scheme::Cruster);
    let before = cruster.assign(&runners, &shards, None).unwrap();
    let content = AssignmentDocument::new("rendezvous", &before).to_json();
    let fleet = taken_over(bed, "runners.json", &content, &before).await;
    fleet.check().await;
}
