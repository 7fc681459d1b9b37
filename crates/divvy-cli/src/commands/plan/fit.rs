//! `--fit LOAD`: as few more workers as keep every load at or below it, and
//! what would need fewer.

use std::collections::BTreeMap;

use divvy::{Assignment, Proposal, WORKERS_MAX, Worker, Workers};

use super::Planner;
use crate::failure::Failure;
use crate::input::{Change, Target};
use crate::table::counted;
use crate::terminal::printable;

/// Numbers of workers that are tried from the least that could do.
const TRIES_MAX: usize = 64;
/// Narrower bands that are tried where a band needs more than the least, the
/// narrowest that there is first.
const BANDS: [f64; 4] = [0.15, 0.2, 0.25, 0.3];
/// Workers that a sentence names.
const NAMED_MAX: usize = 8;

/// What is to be fitted.
pub(super) struct Fit<'a> {
    limit: u64,
    planner: &'a Planner<'a>,
    change: &'a Change,
    base: &'a Workers,
    /// The load of all partitions.
    total: u64,
}

/// The workers that keep to the limit.
pub(super) struct Fitted {
    pub(super) target: Target,
    pub(super) proposal: Proposal,
    /// What would need fewer, in sentences.
    pub(super) notes: Vec<String>,
}

/// The first number of added workers with which nobody has more than the limit.
struct Found {
    count: usize,
    target: Target,
    proposal: Proposal,
}

/// A narrower band that needs fewer workers.
struct Narrower {
    band: f64,
    count: usize,
    moves: u32,
}

impl<'a> Fit<'a> {
    pub(super) fn new(limit: u64, planner: &'a Planner<'a>, base: &'a Workers) -> Self {
        Self {
            limit,
            planner,
            change: planner.change,
            base,
            total: planner.partitions.loads().sum(),
        }
    }

    /// Finds as few workers as are enough.
    pub(super) fn find(&self) -> Result<Fitted, Failure> {
        self.refuse_too_heavy()?;
        let stays = self.change.adding(0).target(self.base)?.workers;
        let able = stays.iter().filter(|worker| worker.is_eligible()).count();
        let least = self.least();
        let first = least.saturating_sub(able);
        let most = WORKERS_MAX - self.base.len();
        let last = first.saturating_add(TRIES_MAX - 1).min(most);
        let Some(found) = self.search(self.planner, first, last)? else {
            let mut rule = format!(
                "is too little: with {first} to {last} workers more, some worker still has more than \
                 that"
            );
            let narrower = self.narrower(self.planner.chosen.band(), first, last)?;
            if let Some(Narrower { band, count, .. }) = narrower {
                rule += &format!("; with --band {band}, {count} more are enough");
            }
            return Err(Failure::usage("load", self.limit, rule));
        };
        let mut notes = Vec::new();
        if found.count == 0 {
            notes.extend(self.fewer(&stays, able - least.min(able))?);
        } else if found.count == first {
            notes.push(format!(
                "Fewer cannot be enough: all partitions together have {}, more than {} times {}.",
                self.total,
                least - 1,
                self.limit
            ));
        } else {
            let band = self
                .planner
                .chosen
                .band()
                .filter(|_| is_banded(&found.proposal));
            let narrower = self.narrower(band, first, found.count - 1)?;
            notes.push(match (band, narrower) {
                (Some(band), Some(narrower)) => band_costs(&found, band, &narrower),
                (band, _) => {
                    let tried = match band {
                        None => "",
                        Some(band) if is_narrower(BANDS[0], band) => {
                            "No narrower --band that was tried needs fewer. "
                        }
                        Some(_) => "There is no narrower --band. ",
                    };
                    format!(
                        "{tried}However even loads are, {first} more would be the least: all \
                         partitions together have {}.",
                        self.total
                    )
                }
            });
        }
        Ok(Fitted {
            target: found.target,
            proposal: found.proposal,
            notes,
        })
    }

    /// Workers without which the load of all partitions is too much, however
    /// even it is.
    fn least(&self) -> usize {
        let least = self.total.div_ceil(self.limit).max(1);
        usize::try_from(least).unwrap_or(usize::MAX)
    }

    fn refuse_too_heavy(&self) -> Result<(), Failure> {
        let partitions = self.planner.partitions;
        let loads = partitions.iter().zip(partitions.loads());
        match loads.max_by_key(|(_, load)| *load) {
            Some((partition, load)) if load > self.limit => {
                let rule = format!("is too little: {partition} alone has {load}");
                Err(Failure::usage("load", self.limit, rule))
            }
            _ => Ok(()),
        }
    }

    fn fits(&self, proposal: &Proposal) -> bool {
        let loads = proposal.assignment.loads();
        loads.iter().all(|&load| load <= self.limit)
    }

    /// One more worker may be worse than none, so all numbers are tried in
    /// turn.
    fn search(
        &self,
        planner: &Planner<'_>,
        first: usize,
        last: usize,
    ) -> Result<Option<Found>, Failure> {
        for count in first..=last {
            let target = self.change.adding(count).target(self.base)?;
            let proposal = planner.propose(&target.workers)?;
            if self.fits(&proposal) {
                return Ok(Some(Found {
                    count,
                    target,
                    proposal,
                }));
            }
        }
        Ok(None)
    }

    /// The narrower band that needs the fewest, of `first` to `last` workers;
    /// of bands that need as many the widest, which moves least.
    fn narrower(
        &self,
        band: Option<f64>,
        first: usize,
        last: usize,
    ) -> Result<Option<Narrower>, Failure> {
        let mut best: Option<Narrower> = None;
        let narrower = |&other: &f64| band.is_some_and(|band| is_narrower(other, band));
        for band in BANDS.into_iter().filter(narrower) {
            let last = best.as_ref().map_or(last, |best| best.count);
            if let Some(found) = self.search(&self.planner.with_band(band)?, first, last)? {
                best = Some(Narrower {
                    band,
                    count: found.count,
                    moves: found.proposal.certificate.moves,
                });
            }
        }
        Ok(best)
    }

    /// That fewer than there are would be enough, `most` of them less at most.
    fn fewer(&self, stays: &Workers, most: usize) -> Result<Option<String>, Failure> {
        let order = dispensable(&self.planner.before, stays);
        let without = |count: usize| -> Result<Option<Proposal>, Failure> {
            let ids: Vec<&str> = order[..count].iter().map(|worker| worker.id()).collect();
            let target = self.change.adding(0).removing(&ids).target(self.base)?;
            let proposal = self.planner.propose(&target.workers)?;
            Ok(Some(proposal).filter(|proposal| self.fits(proposal)))
        };
        // By bisection, because there may be many: that the answer fits has been
        // planned, that no smaller one does has not.
        let mut best = None;
        let (mut enough, mut too_many) = (0, most + 1);
        while too_many - enough > 1 {
            let count = enough.midpoint(too_many);
            match without(count)? {
                Some(proposal) => (enough, best) = (count, Some(proposal)),
                None => too_many = count,
            }
        }
        let Some(proposal) = best else {
            return Ok(None);
        };
        let shown = order[..enough].iter().take(NAMED_MAX);
        let shown: Vec<String> = shown.map(|worker| printable(worker.id()).into()).collect();
        let left = counted(proposal.assignment.workers().len(), "worker");
        let fullest = proposal.assignment.loads().into_iter().max().unwrap_or(0);
        let (ids, others) = (shown.join(","), enough - shown.len());
        let which = match others {
            0 => format!("{ids}: --remove {ids} shows that plan, too"),
            others => format!("{ids} and {others} others"),
        };
        Ok(Some(format!(
            "Fewer would be enough: {left}, of whom the fullest has {fullest}, without {which}."
        )))
    }
}

/// Whether one band is narrower than another. In binary, 1.3 less 1 is not 0.3.
fn is_narrower(band: f64, than: f64) -> bool {
    band < than - 1e-9
}

/// What the band costs, and which would cost less.
fn band_costs(found: &Found, band: f64, narrower: &Narrower) -> String {
    let needs = match (found.count, narrower.count) {
        (1, 0) => "Only the band needs this one".to_owned(),
        (all, 0) => format!("Only the band needs these {all}"),
        (all, enough) => format!("The band needs {} of these {all}", all - enough),
    };
    let enough = match narrower.count {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    let moves = match found.proposal.certificate.moves {
        moves if moves == narrower.moves => "as many moves".to_owned(),
        moves => format!(
            "{} in place of {moves}",
            counted(narrower.moves as usize, "move")
        ),
    };
    format!(
        "{needs}: it leaves a worker alone that has up to {:.2} times its share. With --band {}, \
         {enough} would be enough, for {moves}.",
        1.0 + band,
        narrower.band
    )
}

/// Whether a band was kept, and not only counts.
fn is_banded(proposal: &Proposal) -> bool {
    proposal.certificate.extremes_limit > 0
}

/// The workers that own something or may, in the order in which one would do
/// without them: from the zone that has most, the one with the least load,
/// which moves least.
fn dispensable<'a>(before: &Assignment, stays: &'a Workers) -> Vec<&'a Worker> {
    let loads = before.loads();
    let load = |worker: &Worker| before.workers().index_of(worker.id()).map(|at| loads[at]);
    let mut zones: BTreeMap<Option<&str>, Vec<&Worker>> = BTreeMap::new();
    for worker in stays.iter().filter(|worker| worker.is_eligible()) {
        zones.entry(worker.zone()).or_default().push(worker);
    }
    for workers in zones.values_mut() {
        // The last is the first to go.
        workers.sort_by_key(|worker| std::cmp::Reverse(load(worker)));
    }
    let next = || {
        zones
            .values_mut()
            .max_by_key(|workers| workers.len())?
            .pop()
    };
    std::iter::from_fn(next).collect()
}
