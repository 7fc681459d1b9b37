//! `--workers N | ID[=WEIGHT],... | @FILE`.

use divvy::listing::{Field, Row, Shape};
use divvy::{Health, WORKERS_MAX, Worker, Workers};

use super::count;
use super::file::{self, Source};
use crate::failure::Failure;

/// Fields of a file of workers.
const ID: usize = 0;
const WEIGHT: usize = 1;
const ZONE: usize = 2;
const HEALTHY: usize = 3;
const MAX_PARTITIONS: usize = 4;
const SHAPE: Shape = Shape {
    noun: "workers",
    count: "worker count",
    count_max: WORKERS_MAX,
    fields: &[
        Field::of_name("id").or(&["node", "worker", "name"]),
        Field::of_value("weight").or(&["capacity"]),
        Field::of_name("zone"),
        Field::of_value("healthy"),
        Field::of_value("max_partitions"),
    ],
};

/// What `--workers` may be.
pub(super) const FORMS: &str = "a count, ids such as a,b=2, or @FILE";
/// What of them a count with separators is meant to be.
const COUNT: &str = "count without separators";

/// The workers that were typed behind a flag or that a file lists.
pub(super) fn workers(flag: &'static str, text: &str) -> Result<Workers, Failure> {
    if let Some(source) = Source::of(flag, text) {
        return source.set(&SHAPE, "worker id", worker_of_row, Workers::new);
    }
    if count::has_separators(text) {
        let rule = format!("must be {}", FORMS.replacen("count", COUNT, 1));
        return Err(Failure::usage("workers", text, rule));
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
    if let Some(rule) = file::meant(text) {
        return Err(Failure::usage("worker", text, rule));
    }
    let Some((id, weight)) = text.rsplit_once('=') else {
        return Ok(Worker::new(text)?);
    };
    let id = id.trim();
    if id.contains('=') {
        let rule = "must be ID or ID=WEIGHT; an id with '=' can stand in a file";
        return Err(Failure::usage("worker", text, rule));
    }
    let worker = Worker::new(id)?;
    let Ok(number) = weight.trim().parse() else {
        let rule = format!("must be a number (worker '{}')", worker.id());
        return Err(Failure::usage("worker weight", weight, rule));
    };
    Ok(worker.with_weight(number)?)
}

fn worker_of_row(row: &Row<'_>) -> Result<Worker, String> {
    let told = |error: divvy::Error| error.to_string();
    let mut worker = Worker::new(row.required(ID)?).map_err(told)?;
    if let Some(weight) = row.decimal(WEIGHT)? {
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
