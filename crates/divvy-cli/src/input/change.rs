//! `--to`, `--add N` and `--remove ID,...`: the workers that there will be.

use std::collections::{BTreeMap, BTreeSet};

use divvy::{WORKERS_MAX, Worker, Workers};

use super::{count, workers};
use crate::args::ChangeArgs;
use crate::failure::Failure;

/// The prefix of added workers where no other is in use.
const PREFIX_DEFAULT: &str = "worker";
/// Numbers beyond are taken for a part of the name: there may be none after
/// them.
const NUMBER_MAX: u64 = u64::MAX / 2;

/// What is to become of the workers.
pub(crate) enum Change {
    /// They stay as they are.
    None,
    /// These and no others.
    To(Workers),
    /// Some come and some go.
    By {
        /// How many are added, as typed.
        add: Option<String>,
        /// The ids that are removed.
        remove: Vec<String>,
    },
}

impl Change {
    pub(crate) fn read(args: &ChangeArgs) -> Result<Self, Failure> {
        let by = args.add.is_some() || args.remove.is_some();
        match &args.to {
            Some(_) if by => {
                let rule = "names all workers, so it goes without --add and --remove";
                Err(Failure::usage("option", "--to", rule))
            }
            Some(to) => Ok(Self::To(workers::workers("--to", to)?)),
            None if !by => Ok(Self::None),
            None => Ok(Self::By {
                add: args.add.clone(),
                remove: removed(args.remove.as_deref())?,
            }),
        }
    }

    /// The workers that there will be where there are these.
    pub(crate) fn target(&self, base: &Workers) -> Result<Workers, Failure> {
        let (add, remove) = match self {
            Self::None => return Ok(base.clone()),
            Self::To(workers) => return Ok(workers.clone()),
            Self::By { add, remove } => (add.as_deref(), remove),
        };
        if let Some(stranger) = remove.iter().find(|id| base.index_of(id).is_none()) {
            let rule = format!("is not among the {} workers", base.len());
            return Err(Failure::usage("worker to remove", stranger, rule));
        }
        let leaves: BTreeSet<&str> = remove.iter().map(String::as_str).collect();
        let stays = base.iter().filter(|worker| !leaves.contains(worker.id()));
        let mut target: Vec<Worker> = stays.cloned().collect();
        if let Some(text) = add {
            let max = WORKERS_MAX - base.len();
            let count = count::read("workers to add", text, max).unwrap_or_else(|| {
                let rule = format!("must be a whole number in 0..={max}");
                Err(Failure::usage("workers to add", text, rule))
            })?;
            add_to(&mut target, base, count)?;
        }
        Ok(Workers::new(target)?)
    }
}

/// The ids to remove, each once.
fn removed(text: Option<&str>) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    let mut seen = BTreeSet::new();
    for id in text.into_iter().flat_map(|text| text.split(',')) {
        let id = id.trim();
        if id.is_empty() {
            let rule = "must be ids such as worker-1,worker-2";
            return Err(Failure::usage("worker to remove", id, rule));
        }
        if !seen.insert(id) {
            return Err(Failure::usage("worker to remove", id, "is given twice"));
        }
        ids.push(id.to_owned());
    }
    Ok(ids)
}

/// Adds so many workers. Their numbers go on after those of `base`, of whom
/// some may be leaving: a new worker is not to be taken for one of them.
fn add_to(target: &mut Vec<Worker>, base: &Workers, count: usize) -> Result<(), Failure> {
    let mut zones = Zones::new(base, target);
    let series = Series::of(base);
    for index in 0..count {
        let worker = Worker::new(series.id(index))?;
        target.push(match zones.next() {
            Some(zone) => worker.with_zone(zone)?,
            None => worker,
        });
    }
    Ok(())
}

/// The ids that numbered workers go on with.
struct Series<'a> {
    prefix: &'a str,
    first: u64,
    /// Digits of a number that is written with leading zeros.
    digits: usize,
}

impl<'a> Series<'a> {
    /// Of the prefix that most workers have, the smaller of equals.
    fn of(workers: &'a Workers) -> Self {
        // By prefix: how many, the highest number and how it is written.
        let mut series: BTreeMap<&str, (usize, u64, &str)> = BTreeMap::new();
        for worker in workers {
            let Some((prefix, text, number)) = numbered(worker.id()) else {
                continue;
            };
            let entry = series.entry(prefix).or_insert((0, number, text));
            entry.0 += 1;
            if number >= entry.1 {
                (entry.1, entry.2) = (number, text);
            }
        }
        let most = series.values().map(|(count, ..)| *count).max();
        let found = series
            .into_iter()
            .find(|(_, (count, ..))| Some(*count) == most);
        match found {
            Some((prefix, (_, highest, text))) => Self {
                prefix,
                first: highest + 1,
                digits: if text.starts_with('0') { text.len() } else { 0 },
            },
            None => Self {
                prefix: PREFIX_DEFAULT,
                first: 0,
                digits: 0,
            },
        }
    }

    fn id(&self, index: usize) -> String {
        let (number, digits) = (self.first + index as u64, self.digits);
        format!("{}-{number:0digits$}", self.prefix)
    }
}

/// `<prefix>-<number>` taken apart, the number also as it is written.
fn numbered(id: &str) -> Option<(&str, &str, u64)> {
    let (prefix, text) = id.rsplit_once('-')?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|&number| number <= NUMBER_MAX)?;
    digits.then_some((prefix, text, number))
}

/// The zones that added workers go to in turn, with how many are there; none
/// where a worker of the base is without one.
struct Zones(BTreeMap<String, usize>);

impl Zones {
    fn new(base: &Workers, staying: &[Worker]) -> Self {
        if base.iter().any(|worker| worker.zone().is_none()) {
            return Self(BTreeMap::new());
        }
        let zones = base.iter().filter_map(Worker::zone);
        let mut counts: BTreeMap<String, usize> = zones.map(|zone| (zone.to_owned(), 0)).collect();
        for zone in staying.iter().filter_map(Worker::zone) {
            *counts.entry(zone.to_owned()).or_default() += 1;
        }
        Self(counts)
    }

    /// The zone with the fewest workers, the smaller name of equals.
    fn next(&mut self) -> Option<String> {
        let (zone, count) = self.0.iter_mut().min_by_key(|(_, count)| **count)?;
        *count += 1;
        Some(zone.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(base: &[&str], count: usize) -> Vec<String> {
        let base = Workers::of(base.iter().copied()).expect("workers");
        let mut target = Vec::new();
        add_to(&mut target, &base, count).expect("ids within bounds");
        target.iter().map(|worker| worker.id().to_owned()).collect()
    }

    #[test]
    fn numbers_go_on_after_the_highest() {
        assert_eq!(
            added(&["worker-0", "worker-2"], 2),
            ["worker-3", "worker-4"]
        );
        assert_eq!(added(&["worker-9", "worker-10"], 1), ["worker-11"]);
        assert_eq!(added(&[], 2), ["worker-0", "worker-1"]);
        assert_eq!(added(&["a", "b", "c-x", "d-+5"], 1), ["worker-0"]);
        assert_eq!(added(&["eu-west-7", "eu-west-3"], 1), ["eu-west-8"]);
    }

    #[test]
    fn the_prefix_that_most_have_goes_on_and_of_equals_the_smaller() {
        assert_eq!(added(&["a-9", "b-1", "b-2"], 1), ["b-3"]);
        assert_eq!(added(&["b-1", "a-9"], 1), ["a-10"]);
    }

    #[test]
    fn leading_zeros_are_kept() {
        assert_eq!(added(&["w-008", "w-009"], 2), ["w-010", "w-011"]);
        assert_eq!(added(&["w-099", "w-100"], 1), ["w-101"]);
    }

    #[test]
    fn a_number_that_has_none_after_it_is_a_name() {
        let huge = format!("w-{}", u64::MAX);
        assert_eq!(
            added(&[&huge, "w-99999999999999999999999"], 1),
            ["worker-0"]
        );
        assert_eq!(added(&[&huge, "w-4"], 1), ["w-5"]);
    }
}
