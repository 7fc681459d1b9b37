//! Every order of what can happen next, up to a depth: two members that both
//! lead and both work, and one partition.
//!
//! Where seeds draw one order of events each, the search takes all: whichever
//! operation is applied next, whichever reply or watch event comes next or is
//! lost, whichever hook returns, a crash, and a member that stands still until
//! its lease is over while its operations are still on their way. It drives
//! the machine that runs in production, from the moment at which one member
//! holds the partition and has just been asked to stop it.

mod small;

use std::collections::BTreeMap;

use divvy_core::leader::Defect;

use crate::invariants::Broken;
use small::{Choice, Small};

/// A search: how deep, how much may go wrong.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Choices in a row.
    pub depth: usize,
    /// Replies that may be lost, with their operation applied or not.
    pub losses: u8,
    /// Processes that may end.
    pub crashes: u8,
    /// Times that a member may stand still for longer than its lease.
    pub stalls: u8,
    /// States after which the search gives up.
    pub states_max: usize,
    /// A mistake in both members.
    pub defect: Option<Defect>,
}

/// What a search came to.
#[derive(Debug, Clone)]
pub struct Searched {
    /// States that were told apart.
    pub states: usize,
    /// Choices that were made.
    pub choices: usize,
    /// Whether all orders up to the depth were taken.
    pub complete: bool,
    /// Grants in all of them: a search in which nothing is granted shows
    /// nothing.
    pub grants: usize,
    /// What was broken, and the choices that led there.
    pub broken: Option<(Broken, Vec<String>)>,
}

impl Search {
    /// Takes all orders.
    pub fn run(&self) -> Searched {
        let mut walk = Walk {
            search: *self,
            seen: BTreeMap::new(),
            path: Vec::new(),
            found: Searched {
                states: 0,
                choices: 0,
                complete: true,
                grants: 0,
                broken: None,
            },
        };
        match Small::begun(self) {
            Ok(start) => walk.from(&start, self.depth),
            Err(broken) => walk.found.broken = Some((broken, vec!["at the start".to_owned()])),
        }
        walk.found.states = walk.seen.len();
        walk.found
    }
}

struct Walk {
    search: Search,
    /// The states that were reached, each with how deep it was searched.
    seen: BTreeMap<u128, usize>,
    path: Vec<Choice>,
    found: Searched,
}

impl Walk {
    fn from(&mut self, state: &Small, depth: usize) {
        if depth == 0 || self.found.broken.is_some() {
            return;
        }
        if self.seen.len() >= self.search.states_max {
            self.found.complete = false;
            return;
        }
        for choice in state.choices() {
            let mut next = state.clone();
            self.found.choices += 1;
            self.path.push(choice);
            match next.take(choice) {
                Err(broken) => {
                    let path = self.path.iter().map(|choice| format!("{choice:?}"));
                    self.found.broken = Some((broken, path.collect()));
                    return;
                }
                Ok(()) => {
                    let searched = self.seen.entry(next.fingerprint()).or_insert(0);
                    if *searched < depth {
                        if *searched == 0 {
                            self.found.grants += next.grants - state.grants;
                        }
                        *searched = depth;
                        self.from(&next, depth - 1);
                    }
                }
            }
            self.path.pop();
            if self.found.broken.is_some() {
                return;
            }
        }
    }
}
