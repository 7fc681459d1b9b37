//! `--to`, `--add N` and `--remove ID,...`: the workers that there will be.

mod series;

use std::collections::{BTreeMap, BTreeSet};

use divvy::{WORKERS_MAX, Worker, Workers};

use super::{count, usual_weight, workers};
use crate::args::ChangeArgs;
use crate::failure::Failure;
use crate::terminal::printable;
use divvy::listing::nearest;
use series::Series;

/// What stands before the name of a zone that is removed.
const ZONE_PREFIX: &str = "zone:";
/// Added workers that are named one by one.
const NAMED_MAX: usize = 3;

/// What is to become of the workers.
pub(crate) enum Change {
    /// They stay as they are.
    None,
    /// These and no others.
    To(Workers),
    /// Some come and some go.
    By {
        /// How many are added, and of which weight, as typed.
        add: Option<String>,
        /// The ids and zones that are removed.
        remove: Vec<String>,
    },
}

/// The workers that there will be.
pub(crate) struct Target {
    pub(crate) workers: Workers,
    /// Who was added, with which weight, in a sentence.
    pub(crate) added: Option<String>,
}

impl Change {
    pub(crate) fn read(args: &ChangeArgs) -> Result<Self, Failure> {
        let by = args.add.is_some() || !args.remove.is_empty() || args.fit.is_some();
        match &args.to {
            Some(_) if by => {
                let rule = "names all workers, so it goes without --add and --remove";
                Err(Failure::usage("option", "--to", rule))
            }
            Some(to) => Ok(Self::To(workers::workers("--to", to)?)),
            None if !by => Ok(Self::None),
            None => Ok(Self::By {
                add: args.add.clone(),
                remove: removed(&args.remove)?,
            }),
        }
    }

    /// The same change with so many added.
    pub(crate) fn adding(&self, count: usize) -> Self {
        Self::By {
            add: Some(count.to_string()),
            remove: match self {
                Self::By { remove, .. } => remove.clone(),
                Self::None | Self::To(_) => Vec::new(),
            },
        }
    }

    /// The workers that there will be where there are these.
    pub(crate) fn target(&self, base: &Workers) -> Result<Target, Failure> {
        let (add, remove) = match self {
            Self::None => return Ok(Target::of(base.clone())),
            Self::To(workers) => return Ok(Target::of(workers.clone())),
            Self::By { add, remove } => (add.as_deref(), remove),
        };
        let mut leaves: BTreeSet<&str> = BTreeSet::new();
        for named in remove {
            leaves.extend(leaving(named, base)?);
        }
        let stays = base.iter().filter(|worker| !leaves.contains(worker.id()));
        let mut target: Vec<Worker> = stays.cloned().collect();
        let added = match add {
            Some(text) => Some(Added::read(text, base)?),
            None => None,
        };
        let new = added.as_ref().map(|added| added.workers(base, &target));
        let new = new.transpose()?.unwrap_or_default();
        let added = added
            .map(|added| added.told(&new))
            .filter(|_| !new.is_empty());
        target.extend(new);
        Ok(Target {
            workers: Workers::new(target)?,
            added,
        })
    }
}

impl Target {
    fn of(workers: Workers) -> Self {
        let added = None;
        Self { workers, added }
    }
}

/// The names to remove, each once.
fn removed(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    for name in given.iter().flat_map(|text| text.split(',')) {
        let name = name.trim();
        if name.is_empty() {
            let rule = "must be ids such as worker-1,worker-2, or zone:NAME";
            return Err(Failure::usage("worker to remove", name, rule));
        }
        if !seen.insert(name) {
            return Err(Failure::usage("worker to remove", name, "is given twice"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// The workers that a name stands for: one, or all of a zone.
fn leaving<'a>(named: &str, base: &'a Workers) -> Result<Vec<&'a str>, Failure> {
    if let Some(index) = base.index_of(named) {
        return Ok(vec![base.as_slice()[index].id()]);
    }
    let hint = |meant: Option<String>| {
        let meant = meant.map(|meant| format!("; did you mean {}?", printable(&meant)));
        meant.unwrap_or_default()
    };
    let Some(zone) = named.strip_prefix(ZONE_PREFIX) else {
        let meant = nearest(named, base.iter().map(Worker::id)).map(str::to_owned);
        let rule = format!("is not among the {} workers{}", base.len(), hint(meant));
        return Err(Failure::usage("worker to remove", named, rule));
    };
    let in_zone = base.iter().filter(|worker| worker.zone() == Some(zone));
    let ids: Vec<&str> = in_zone.map(Worker::id).collect();
    if ids.is_empty() {
        let zones: BTreeSet<&str> = base.iter().filter_map(Worker::zone).collect();
        let meant = nearest(zone, zones.iter().copied());
        let meant = meant.map(|zone| format!("{ZONE_PREFIX}{zone}"));
        let rule = format!("has none of the {} workers{}", base.len(), hint(meant));
        return Err(Failure::usage("zone to remove", zone, rule));
    }
    Ok(ids)
}

/// `N` or `N=WEIGHT`.
struct Added {
    count: usize,
    weight: f64,
    /// Why it is this weight.
    origin: &'static str,
}

impl Added {
    fn read(text: &str, base: &Workers) -> Result<Self, Failure> {
        let (number, weight) = match text.split_once('=') {
            Some((number, weight)) => (number.trim(), Some(weight.trim())),
            None => (text, None),
        };
        let max = WORKERS_MAX - base.len();
        let count = count::read("workers to add", number, max).unwrap_or_else(|| {
            let rule =
                format!("must be a whole number in 0..={max}, or such as 2=1.5 with a weight");
            Err(Failure::usage("workers to add", text, rule))
        })?;
        let (weight, origin) = match (weight, usual_weight(base)) {
            (Some(weight), _) => {
                let Ok(number) = weight.parse() else {
                    let rule = "must be a number, such as 1.5 in --add 2=1.5";
                    return Err(Failure::usage("worker weight", weight, rule));
                };
                (number, "")
            }
            (None, (weight, true)) => (weight, ", as the others have"),
            (None, (weight, false)) => (
                weight,
                ", the median of the others (--add N=WEIGHT sets another)",
            ),
        };
        Ok(Self {
            count,
            weight,
            origin,
        })
    }

    /// The workers to add. Their numbers go on after those of `base`, of whom
    /// some may be leaving: a new worker is not to be taken for one of them.
    fn workers(&self, base: &Workers, staying: &[Worker]) -> Result<Vec<Worker>, Failure> {
        let mut zones = Zones::new(base, staying);
        let series = Series::of(base);
        let mut new = Vec::with_capacity(self.count);
        for index in 0..self.count {
            let worker = Worker::new(series.id(index))?.with_weight(self.weight)?;
            new.push(match zones.next() {
                Some(zone) => worker.with_zone(zone)?,
                None => worker,
            });
        }
        Ok(new)
    }

    /// Who they are, in a sentence.
    fn told(&self, new: &[Worker]) -> String {
        let shown = |worker: &Worker| {
            let zone = worker.zone().map(|zone| format!(" in zone {zone}"));
            format!("{}{}", worker.id(), zone.unwrap_or_default())
        };
        let who = match new {
            [one] => shown(one),
            new if new.len() <= NAMED_MAX => new.iter().map(shown).collect::<Vec<_>>().join(", "),
            [first, .., last] => {
                format!("{} workers, {} to {}", new.len(), first.id(), last.id())
            }
            [] => String::new(),
        };
        let each = if new.len() == 1 { "" } else { "each " };
        format!(
            "added {who}: {each}of weight {}{}",
            self.weight, self.origin
        )
    }
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
