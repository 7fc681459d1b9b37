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
        /// How many are added, of which weight and where.
        add: Option<Addition>,
        /// The ids and zones that are removed.
        remove: Vec<String>,
    },
}

/// `N[=WEIGHT][@ZONE,...]` taken apart.
#[derive(Clone)]
pub(crate) struct Addition {
    /// All of it, as typed.
    text: String,
    count: String,
    weight: Option<String>,
    /// The zones that workers go to in turn; `None` where the zones with the
    /// fewest workers are filled up.
    zones: Option<Vec<String>>,
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
            None => {
                let zones = args.fit.as_ref().and_then(|fit| fit.zones.as_ref());
                // How many `--fit` adds is found later.
                let fitted = zones.map(|zones| format!("0@{zones}"));
                let add = args.add.as_ref().or(fitted.as_ref());
                Ok(Self::By {
                    add: add.map(|text| Addition::read(text)).transpose()?,
                    remove: removed(&args.remove)?,
                })
            }
        }
    }

    /// The same change with so many added.
    pub(crate) fn adding(&self, count: usize) -> Self {
        let (zones, remove) = match self {
            Self::By { add, remove } => {
                let zones = add.as_ref().and_then(|add| add.zones.clone());
                (zones, remove.clone())
            }
            Self::None | Self::To(_) => (None, Vec::new()),
        };
        let add = Addition {
            text: count.to_string(),
            count: count.to_string(),
            weight: None,
            zones,
        };
        let add = Some(add);
        Self::By { add, remove }
    }

    /// The same change with these removed, too.
    pub(crate) fn removing(&self, ids: &[&str]) -> Self {
        let (add, mut remove) = match self {
            Self::By { add, remove } => (add.clone(), remove.clone()),
            Self::None | Self::To(_) => (None, Vec::new()),
        };
        remove.extend(ids.iter().map(|&id| id.to_owned()));
        Self::By { add, remove }
    }

    /// The workers that there will be where there are these.
    pub(crate) fn target(&self, base: &Workers) -> Result<Target, Failure> {
        let (add, remove) = match self {
            Self::None => return Ok(Target::of(base.clone())),
            Self::To(workers) => return Ok(Target::of(workers.clone())),
            Self::By { add, remove } => (add.as_ref(), remove),
        };
        let mut leaves: BTreeSet<&str> = BTreeSet::new();
        let mut closed: BTreeSet<&str> = BTreeSet::new();
        for named in remove {
            let (ids, zone) = leaving(named, base)?;
            leaves.extend(ids);
            closed.extend(zone);
        }
        let stays = base.iter().filter(|worker| !leaves.contains(worker.id()));
        let mut target: Vec<Worker> = stays.cloned().collect();
        let added = add.map(|add| Added::read(add, base)).transpose()?;
        let mut new = Vec::new();
        if let (Some(add), Some(added)) = (add, &added) {
            let mut zones = match &add.zones {
                Some(named) => Zones::named(named, base, &closed)?,
                None => Zones::fewest(base, &target, &closed),
            };
            if matches!(zones, Zones::NoneLeft) && added.count > 0 {
                let rule = "need a zone, and --remove names all there are: keep one, or name all \
                            workers with --to";
                return Err(Failure::usage("workers to add", &add.text, rule));
            }
            new = added.workers(base, &mut zones)?;
        }
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

/// `; did you mean ...?` where somebody may have meant that.
fn hint(meant: Option<&str>) -> String {
    let meant = meant.map(|meant| format!("; did you mean {}?", printable(meant)));
    meant.unwrap_or_default()
}

/// The workers that a name stands for: one, or all of a zone, which is then
/// named.
fn leaving<'a>(
    named: &'a str,
    base: &'a Workers,
) -> Result<(Vec<&'a str>, Option<&'a str>), Failure> {
    if let Some(index) = base.index_of(named) {
        return Ok((vec![base.as_slice()[index].id()], None));
    }
    let Some(zone) = named.strip_prefix(ZONE_PREFIX) else {
        let meant = nearest(named, base.iter().map(Worker::id));
        let rule = format!("is not among the {} workers{}", base.len(), hint(meant));
        return Err(Failure::usage("worker to remove", named, rule));
    };
    let in_zone = base.iter().filter(|worker| worker.zone() == Some(zone));
    let ids: Vec<&str> = in_zone.map(Worker::id).collect();
    if ids.is_empty() {
        let zones: BTreeSet<&str> = base.iter().filter_map(Worker::zone).collect();
        let meant = nearest(zone, zones.iter().copied());
        let meant = meant.map(|zone| format!("{ZONE_PREFIX}{zone}"));
        let rule = format!(
            "has none of the {} workers{}",
            base.len(),
            hint(meant.as_deref())
        );
        return Err(Failure::usage("zone to remove", zone, rule));
    }
    Ok((ids, Some(zone)))
}

impl Addition {
    fn read(text: &str) -> Result<Self, Failure> {
        let (number, zones) = match text.split_once('@') {
            Some((number, zones)) => (number, Some(zones)),
            None => (text, None),
        };
        let (count, weight) = match number.split_once('=') {
            Some((count, weight)) => (count.trim(), Some(weight.trim().to_owned())),
            None => (number.trim(), None),
        };
        Ok(Self {
            text: text.to_owned(),
            count: count.to_owned(),
            weight,
            zones: zones.map(zone_names).transpose()?,
        })
    }
}

/// `ZONE,...` taken apart, each once.
fn zone_names(text: &str) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim) {
        let rule = match name {
            "" => "must be the name of a zone: --add 3@a,c adds to zones a and c in turn",
            name if names.iter().any(|known| known == name) => "is given twice",
            name => {
                names.push(name.to_owned());
                continue;
            }
        };
        return Err(Failure::usage("zone to add to", name, rule));
    }
    Ok(names)
}

/// An [`Addition`] with its numbers.
struct Added {
    count: usize,
    weight: f64,
    /// Why it is this weight.
    origin: &'static str,
}

impl Added {
    fn read(add: &Addition, base: &Workers) -> Result<Self, Failure> {
        let max = WORKERS_MAX - base.len();
        let count = count::read("workers to add", &add.count, max).unwrap_or_else(|| {
            let rule = format!(
                "must be a whole number in 0..={max}, or such as 2=1.5 with a weight, or 2@a,c \
                 with zones"
            );
            Err(Failure::usage("workers to add", &add.text, rule))
        })?;
        let weight = add.weight.as_deref();
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
    fn workers(&self, base: &Workers, zones: &mut Zones) -> Result<Vec<Worker>, Failure> {
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

/// The zones that added workers go to. A zone that is removed is never one of
/// them: who plans without it does not want its workers back.
enum Zones {
    /// How many there are in each, of which the fewest get the next.
    Fewest(BTreeMap<String, usize>),
    /// These in turn.
    InTurn { names: Vec<String>, next: usize },
    /// All zones that there are, are removed.
    NoneLeft,
}

impl Zones {
    /// None where a worker of the base is without one.
    fn fewest(base: &Workers, staying: &[Worker], closed: &BTreeSet<&str>) -> Self {
        if base.iter().any(|worker| worker.zone().is_none()) {
            return Self::Fewest(BTreeMap::new());
        }
        let zones = base.iter().filter_map(Worker::zone);
        let open = zones.filter(|zone| !closed.contains(zone));
        let mut counts: BTreeMap<String, usize> = open.map(|zone| (zone.to_owned(), 0)).collect();
        if counts.is_empty() && !closed.is_empty() {
            return Self::NoneLeft;
        }
        for zone in staying.iter().filter_map(Worker::zone) {
            *counts.entry(zone.to_owned()).or_default() += 1;
        }
        Self::Fewest(counts)
    }

    fn named(names: &[String], base: &Workers, closed: &BTreeSet<&str>) -> Result<Self, Failure> {
        let known: BTreeSet<&str> = base.iter().filter_map(Worker::zone).collect();
        for name in names {
            let rule = if closed.contains(name.as_str()) {
                format!("is removed by --remove {ZONE_PREFIX}{}", printable(name))
            } else if !known.contains(name.as_str()) {
                let open = known.iter().copied().filter(|zone| !closed.contains(zone));
                let meant = hint(nearest(name, open));
                format!("has none of the {} workers{meant}", base.len())
            } else {
                continue;
            };
            return Err(Failure::usage("zone to add to", name, rule));
        }
        Ok(Self::InTurn {
            names: names.to_vec(),
            next: 0,
        })
    }

    /// Where the next worker goes: the named zone whose turn it is, or the one
    /// with the fewest workers, the smaller name of equals.
    fn next(&mut self) -> Option<String> {
        match self {
            Self::Fewest(counts) => {
                let (zone, count) = counts.iter_mut().min_by_key(|(_, count)| **count)?;
                *count += 1;
                Some(zone.clone())
            }
            Self::InTurn { names, next } => {
                let zone = names[*next % names.len()].clone();
                *next += 1;
                Some(zone)
            }
            Self::NoneLeft => None,
        }
    }
}
