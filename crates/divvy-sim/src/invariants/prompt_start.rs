//! P3: a committed grant is started within one poll and two round trips.
//!
//! Looked at while a sound cluster loses a worker and gets another: before
//! that, whoever is granted something may be gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use divvy_core::leader::{Committed, Holding, SessionId};
use divvy_core::store::Token;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Phase, Seen};
use crate::time::TrueTime;

#[derive(Debug, Clone)]
pub(super) struct PromptStart {
    sound: bool,
    within: Duration,
    /// Grants that have not been started, and by when they must be.
    due: BTreeMap<Box<str>, (Token, TrueTime)>,
    /// The session of each member that has one.
    sessions: Vec<Option<SessionId>>,
    /// Sessions whose process is gone: nobody knows yet, and grants to them
    /// start nowhere.
    dead: BTreeSet<SessionId>,
}

impl PromptStart {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            sound: false,
            within: bounds.start_within,
            due: BTreeMap::new(),
            sessions: vec![None; bounds.members_max],
            dead: BTreeSet::new(),
        }
    }

    /// Notes what a root grants that the one before did not, and forgets what
    /// it takes back.
    fn note(&mut self, at: TrueTime, root: &Committed) {
        let granted = root.root.version.token();
        for (partition, holding) in root.partitions.iter().zip(&root.root.holdings) {
            let name = partition.as_str();
            match *holding {
                Holding::Held { token, session } if Some(token) == granted => {
                    let session = root.root.sessions[session as usize].session;
                    if self.dead.contains(&session) {
                        continue;
                    }
                    self.due.insert(name.into(), (token, at + self.within));
                }
                Holding::Held { token, .. } => {
                    if self.due.get(name).is_some_and(|(due, _)| *due != token) {
                        self.due.remove(name);
                    }
                }
                Holding::None | Holding::Revoking { .. } => {
                    self.due.remove(name);
                }
            }
        }
    }

    fn overdue(&self, at: TrueTime) -> Result<(), String> {
        let mut due = self.due.iter();
        match due.find(|(_, (_, due))| *due < at) {
            None => Ok(()),
            Some((name, (token, due))) => Err(format!(
                "{name} was granted with {token} and not started by {due}"
            )),
        }
    }
}

impl Invariant for PromptStart {
    const NUMBER: &'static str = "P3";
    const PROPERTY: &'static str = "a committed grant is started within one poll + 2 round trips";
    const HEARS_STEPS: bool = true;

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Entered(phase) => {
                self.sound = phase == Phase::Probe;
                Ok(())
            }
            Fact::Deadline {
                member,
                identity: Some((_, session)),
                ..
            } => {
                self.sessions[member] = Some(session);
                Ok(())
            }
            Fact::RootWritten { root, .. } if self.sound => {
                self.note(seen.at, root);
                Ok(())
            }
            Fact::StartCalled { name, token, .. } if !self.due.is_empty() => {
                if self.due.get(name).is_some_and(|(due, _)| *due == token) {
                    self.due.remove(name);
                }
                Ok(())
            }
            // Whoever was to start it is gone: it is another's now.
            Fact::Gone { member, .. } => {
                self.dead.extend(self.sessions[member].take());
                self.due.clear();
                Ok(())
            }
            Fact::Stepped { .. } if !self.due.is_empty() => self.overdue(seen.at),
            _ => Ok(()),
        }
    }
}
