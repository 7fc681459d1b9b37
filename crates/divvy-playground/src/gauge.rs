//! Who has what, as the world really is, and who had it before.

use std::collections::{BTreeMap, VecDeque};

use divvy_core::store::Token;
use divvy_sim::{Deed, Done, Hands};

/// Past owners of a partition that are kept.
const TENURES_MAX: usize = 32;

/// A partition in somebody's hands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tenure {
    pub(crate) worker: usize,
    pub(crate) token: Token,
    pub(crate) from_ms: u64,
    pub(crate) until_ms: Option<u64>,
    pub(crate) cause: &'static str,
}

/// A partition that somebody started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Start {
    pub(crate) at_ms: u64,
    pub(crate) partition: usize,
    pub(crate) worker: usize,
    /// Who had it before, if that was somebody else.
    pub(crate) before: Option<usize>,
    pub(crate) token: Token,
}

/// Who has what.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// By partition, the worker that works on it; -1 is nobody.
    pub(crate) owners: Vec<i32>,
    /// By partition, the token of that worker.
    pub(crate) tokens: Vec<Option<Token>>,
    /// By partition, whether another works on it, too.
    pub(crate) doubles: Vec<bool>,
    /// By partition, who works on it beside its owner.
    pub(crate) also: BTreeMap<usize, Vec<usize>>,
    /// By partition, whether there is one of this number.
    pub(crate) wanted: Vec<bool>,
    /// How many there are.
    pub(crate) count: usize,
    /// By partition, whether a hook of it runs.
    pub(crate) hooks: Vec<bool>,
    /// By partition, since when nobody works on it.
    pub(crate) unowned_since: Vec<Option<u64>>,
    pub(crate) owned: usize,
    pub(crate) moving: usize,
    pub(crate) two_owners: usize,
    /// Partitions that went from one worker to another.
    pub(crate) moves: u64,
    /// When one last did.
    pub(crate) moved_ms: u64,
    /// Counts changes of owners and hooks.
    pub(crate) version: u64,
    tenures: Vec<VecDeque<Tenure>>,
}

impl Gauge {
    /// Looks at everything.
    pub(crate) fn look(&mut self, world: &dyn Hands, now_ms: u64) {
        let count = world.count_partitions();
        let (mut owners, mut hooks) = (vec![-1; count], vec![false; count]);
        let (mut tokens, mut doubles) = (vec![None; count], vec![false; count]);
        let mut also: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        world.each_working(&mut |place, partition, token: Token| {
            let Some(owner) = owners.get_mut(partition) else {
                return;
            };
            let Ok(other) = usize::try_from(*owner) else {
                *owner = place as i32;
                tokens[partition] = Some(token);
                return;
            };
            doubles[partition] = true;
            // Of two, the one that was granted it last is shown.
            let is_last = tokens[partition].is_none_or(|other| other < token);
            also.entry(partition)
                .or_default()
                .push(if is_last { other } else { place });
            if is_last {
                *owner = place as i32;
                tokens[partition] = Some(token);
            }
        });
        world.each_hook(&mut |_, partition| {
            if let Some(hook) = hooks.get_mut(partition) {
                *hook = true;
            }
        });
        self.unowned_since.resize(count, None);
        self.wanted = (0..count).map(|number| world.is_wanted(number)).collect();
        self.count = self.wanted.iter().filter(|wanted| **wanted).count();
        let each = owners.iter().zip(&self.wanted);
        for (since, (owner, wanted)) in self.unowned_since.iter_mut().zip(each) {
            *since = match (*owner, *since) {
                _ if !wanted => None,
                (0.., _) => None,
                (_, None) => Some(now_ms),
                (_, since) => since,
            };
        }
        let owned = owners.iter().zip(&self.wanted);
        self.owned = owned
            .filter(|(owner, wanted)| **wanted && **owner >= 0)
            .count();
        self.moving = hooks.iter().filter(|hook| **hook).count();
        self.two_owners = doubles.iter().filter(|double| **double).count();
        if owners != self.owners || hooks != self.hooks || tokens != self.tokens {
            self.version += 1;
        }
        (self.owners, self.hooks) = (owners, hooks);
        (self.tokens, self.doubles) = (tokens, doubles);
        self.also = also;
    }

    /// Takes in what was done; gives what was started.
    pub(crate) fn hear(&mut self, done: &Done) -> Option<Start> {
        let at_ms = done.at.nanos() / 1_000_000;
        match done.deed {
            Deed::Started {
                place,
                partition,
                token,
            } => {
                if self.tenures.len() <= partition {
                    self.tenures.resize(partition + 1, VecDeque::new());
                }
                let last = self.tenures[partition].back().map(|tenure| tenure.worker);
                let before = last.filter(|worker| *worker != place);
                if before.is_some() {
                    self.moves += 1;
                    self.moved_ms = at_ms;
                }
                Some(Start {
                    at_ms,
                    partition,
                    worker: place,
                    before,
                    token,
                })
            }
            Deed::Stopped { place, partition } | Deed::StartFailed { place, partition } => {
                self.end(place, partition, at_ms);
                None
            }
            Deed::Gone { place, .. } => {
                for partition in 0..self.tenures.len() {
                    self.end(place, partition, at_ms);
                }
                None
            }
            _ => None,
        }
    }

    /// Notes whose it is from then on. Where no partition has two owners, it
    /// was another's until then.
    pub(crate) fn begin(&mut self, start: &Start, cause: &'static str, exclusive: bool) {
        let tenures = &mut self.tenures[start.partition];
        if exclusive {
            for tenure in tenures.iter_mut() {
                tenure.until_ms.get_or_insert(start.at_ms);
            }
        }
        if tenures.len() == TENURES_MAX {
            tenures.pop_front();
        }
        tenures.push_back(Tenure {
            worker: start.worker,
            token: start.token,
            from_ms: start.at_ms,
            until_ms: None,
            cause,
        });
    }

    /// Who had a partition, the first of them first.
    pub(crate) fn tenures(&self, partition: usize) -> impl Iterator<Item = &Tenure> {
        self.tenures.get(partition).into_iter().flatten()
    }

    fn end(&mut self, worker: usize, partition: usize, at_ms: u64) {
        let tenures = self.tenures.get_mut(partition).into_iter().flatten();
        for tenure in tenures.filter(|tenure| tenure.worker == worker) {
            tenure.until_ms.get_or_insert(at_ms);
        }
    }
}
