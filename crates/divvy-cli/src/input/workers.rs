//! `--workers N | ID[=WEIGHT],... | @FILE`.

use divvy::{Health, WORKERS_MAX, Worker, Workers};

use super::row::Row;
use super::{count, file};
use crate::failure::Failure;

/// Fields of a file of workers.
const ID: usize = 0;
const WEIGHT: usize = 1;
const ZONE: usize = 2;
const HEALTHY: usize = 3;
const MAX_PARTITIONS: usize = 4;
const FIELDS: [&str; 5] = ["id", "weight", "zone", "healthy", "max_partitions"];

/// What `--workers` may be.
pub(super) const FORMS: &str = "a count, ids such as a,b=2, or @FILE";

/// The workers that were typed or that a file lists.
pub(super) fn workers(text: &str) -> Result<Workers, Failure> {
    if let Some(path) = text.strip_prefix('@') {
        let workers = file::rows("workers", path, &FIELDS, worker_of_row)?;
        return Workers::new(workers).map_err(|error| file::wrong(path, &error));
    }
    if let Some(count) = count::read("worker count", text, WORKERS_MAX) {
        return Ok(Workers::numbered("worker", count?)?);
    }
    if text.trim().is_empty() {
        let rule = format!("must be {FORMS}");
        return Err(Failure::usage("workers", text, rule));
    }
    let workers: Result<Vec<Worker>, Failure> = text.split(',').map(worker_of_text).collect();
    Ok(Workers::new(workers?)?)
}

/// `ID` or `ID=WEIGHT`.
fn worker_of_text(text: &str) -> Result<Worker, Failure> {
    let text = text.trim();
    let Some((id, weight)) = text.rsplit_once('=') else {
        return Ok(Worker::new(text)?);
    };
    let worker = Worker::new(id.trim())?;
    let Ok(number) = weight.trim().parse() else {
        let rule = format!("must be a number (worker '{}')", worker.id());
        return Err(Failure::usage("worker weight", weight, rule));
    };
    Ok(worker.with_weight(number)?)
}

fn worker_of_row(row: &Row<'_>) -> Result<Worker, String> {
    let told = |error: divvy::Error| error.to_string();
    let mut worker = Worker::new(row.required(ID)?).map_err(told)?;
    if let Some(weight) = row.parsed::<f64>(WEIGHT, "must be a number such as 1.5")? {
        worker = worker.with_weight(weight).map_err(told)?;
    }
    if let Some(zone) = row.text(ZONE) {
        worker = worker.with_zone(zone).map_err(told)?;
    }
    let health = match row.text(HEALTHY).map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "yes" | "1") => Health::Healthy,
        Some("false" | "no" | "0") => Health::Unhealthy,
        Some(_) => return Err(row.breaks(HEALTHY, "must be true or false")),
    };
    let rule = "must be a whole number in 1..=4294967295";
    let max_partitions = row.parsed(MAX_PARTITIONS, rule)?;
    Ok(worker
        .with_health(health)
        .with_max_partitions(max_partitions))
}
