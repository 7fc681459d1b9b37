//! I2: per-partition tokens strictly increase over grants, and no process ever
//! sees one decrease.

use std::collections::BTreeMap;

use divvy_core::leader::{Committed, Holding, SessionId, Version};
use divvy_core::store::Token;

use super::excuse::Excuse;
use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct RisingTokens {
    /// The highest token that was ever granted, by partition name.
    granted: BTreeMap<Box<str>, Token>,
    /// The last token that each process was started with, by partition.
    started: Vec<BTreeMap<usize, Token>>,
    /// The newest root that each process has adopted.
    adopted: Vec<Version>,
    /// While a leader that has not found out may go on in an older epoch.
    excuse: Excuse,
}

impl RisingTokens {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            granted: BTreeMap::new(),
            started: vec![BTreeMap::new(); bounds.members_max],
            adopted: vec![Version::default(); bounds.members_max],
            excuse: Excuse::of_rollback(bounds),
        }
    }

    /// What the store lost without saying so, and nobody who is there had
    /// adopted, may be granted again.
    fn forget(&mut self, kept: Option<&Committed>) {
        let kept = kept.map(|root| root.root.version);
        let known = self.adopted.iter().copied().chain(kept).max();
        let known = known.and_then(Version::token);
        self.granted.retain(|_, token| Some(*token) <= known);
    }

    fn grants(
        &mut self,
        before: Option<&Committed>,
        root: &Committed,
        is_excused: bool,
    ) -> Result<(), String> {
        for (index, partition) in root.partitions.iter().enumerate() {
            let name = partition.as_str();
            let Some((session, token)) = held(root, index) else {
                continue;
            };
            let kept = before.and_then(|before| {
                let index = before.partitions.index_of(name)?;
                held(before, index)
            });
            if kept == Some((session, token)) {
                continue;
            }
            if Some(token) != root.root.version.token() {
                return Err(format!(
                    "{name} was granted with token {token} by root {}",
                    root.root.version
                ));
            }
            self.grant(name, token, is_excused)?;
        }
        Ok(())
    }

    fn grant(&mut self, name: &str, token: Token, is_excused: bool) -> Result<(), String> {
        let Some(last) = self.granted.get_mut(name) else {
            self.granted.insert(name.into(), token);
            return Ok(());
        };
        match token <= *last {
            true if is_excused => Ok(()),
            true => Err(format!("{name} was granted with {token} after {last}")),
            false => {
                *last = token;
                Ok(())
            }
        }
    }
}

fn held(root: &Committed, index: usize) -> Option<(SessionId, Token)> {
    match root.root.holdings[index] {
        Holding::Held { session, token } => {
            Some((root.root.sessions.get(session as usize)?.session, token))
        }
        Holding::None | Holding::Revoking { .. } => None,
    }
}

impl Invariant for RisingTokens {
    const NUMBER: &'static str = "I2";
    const PROPERTY: &'static str =
        "per-partition tokens strictly increase over grants; no process ever sees one decrease";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        self.excuse.observe(seen);
        match *seen.fact {
            Fact::RootWritten { root, .. } => {
                let before = seen.ledger.root.as_ref().map(|known| &known.value);
                self.grants(before, root, self.excuse.covers(seen.at))
            }
            Fact::LeaseGranted { name, token } => self.grant(name, token, false),
            Fact::StartCalled {
                member,
                partition,
                token,
                ..
            } => match self.started[member].insert(partition, token) {
                Some(last) if last > token => Err(format!(
                    "m{member} was handed {token} after {last} for partition {partition}"
                )),
                _ => Ok(()),
            },
            Fact::Adopted {
                member, version, ..
            } => {
                self.adopted[member] = self.adopted[member].max(version);
                Ok(())
            }
            Fact::Forgot { announced: false } => {
                self.forget(seen.ledger.root.as_ref().map(|known| &known.value));
                Ok(())
            }
            Fact::Gone { member, .. } => {
                self.started[member].clear();
                self.adopted[member] = Version::default();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
