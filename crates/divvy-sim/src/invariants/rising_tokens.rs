//! I2: per-partition tokens strictly increase over grants, and no process ever
//! sees one decrease.
//!
//! A store that went back in silence gives revisions out again. A leader that
//! has not found out may then replace another root than it means, and go on
//! from the one that had this revision and was lost: the tokens of that very
//! root may come again for a while, and no others.

use std::collections::BTreeMap;
use std::sync::Arc;

use divvy_core::leader::{Committed, Holding, SessionId, Version};
use divvy_core::store::{Revision, Token};

use super::excuse::Excuse;
use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};
use crate::ledger::Known;

#[derive(Debug, Clone)]
pub(super) struct RisingTokens {
    /// The highest token that was ever granted, by partition name.
    granted: BTreeMap<Box<str>, Token>,
    /// The last token that each process was started with, by partition.
    started: Vec<BTreeMap<usize, Token>>,
    /// The newest root that each process has adopted.
    adopted: Vec<Version>,
    /// The roots that were written, and that the store has not lost.
    written: Vec<(Revision, Arc<Committed>)>,
    /// The roots that it lost without saying so.
    lost: Vec<(Revision, Arc<Committed>)>,
    /// While a leader that has not found out may go on in an older epoch.
    excuse: Excuse,
}

impl RisingTokens {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            granted: BTreeMap::new(),
            started: vec![BTreeMap::new(); bounds.members_max],
            adopted: vec![Version::default(); bounds.members_max],
            written: Vec::new(),
            lost: Vec::new(),
            excuse: Excuse::of_rollback(bounds),
        }
    }

    /// What the store lost without saying so, and nobody who is there had
    /// adopted, may be granted again.
    fn forget(&mut self, kept: Option<&Known<Committed>>) {
        let lost = self.take_lost(kept);
        self.lost.extend(lost);
        let kept = kept.map(|known| known.value.root.version);
        let known = self.adopted.iter().copied().chain(kept).max();
        let known = known.and_then(Version::token);
        self.granted.retain(|_, token| Some(*token) <= known);
    }

    /// The roots that were written after the one that is left.
    fn take_lost(&mut self, kept: Option<&Known<Committed>>) -> Vec<(Revision, Arc<Committed>)> {
        let kept = kept.map(|known| known.revision);
        let is_lost = |(revision, _): &mut (Revision, _)| Some(*revision) > kept;
        self.written.extract_if(.., is_lost).collect()
    }

    fn grants(
        &mut self,
        before: Option<&Known<Committed>>,
        root: &Committed,
        is_excused: bool,
    ) -> Result<(), String> {
        let mut bases: Vec<Arc<Committed>> = Vec::new();
        if is_excused {
            let revision = before.map(|known| known.revision);
            let repeated = self.lost.iter().filter(|(at, _)| Some(*at) == revision);
            bases.extend(repeated.map(|(_, lost)| Arc::clone(lost)));
        }
        for (index, partition) in root.partitions.iter().enumerate() {
            let name = partition.as_str();
            let Some((session, token)) = held(root, index) else {
                continue;
            };
            let is_kept = |before: &Committed| {
                let index = before.partitions.index_of(name);
                index.and_then(|index| held(before, index)) == Some((session, token))
            };
            let is_replaced = before.is_some_and(|known| is_kept(&known.value));
            if is_replaced || bases.iter().any(|lost| is_kept(lost)) {
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
            Fact::RootWritten { root, revision, .. } => {
                self.written.push((revision, Arc::new(root.clone())));
                let before = seen.ledger.root.as_ref();
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
                self.forget(seen.ledger.root.as_ref());
                Ok(())
            }
            Fact::Forgot { announced: true } => {
                // Nobody writes before the new incarnation is known, so no root
                // that was lost is the base of another.
                self.take_lost(seen.ledger.root.as_ref());
                self.lost.clear();
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use divvy_core::Partitions;
    use divvy_core::leader::{Lifecycle, Root, SessionEntry, encode_root};
    use divvy_core::store::Incarnation;

    use super::*;
    use crate::ledger::Ledger;
    use crate::time::TrueTime;

    const LEASE: Duration = Duration::from_secs(1);

    const fn version(epoch: u64) -> Version {
        Version { epoch, number: 0 }
    }

    fn revision(number: u64) -> Revision {
        Revision::new(number).unwrap()
    }

    /// A root of this epoch in which a session holds the only partition since the
    /// root of another epoch, or nobody does.
    fn root(epoch: u64, held: Option<(u128, u64)>) -> Committed {
        let partitions = Partitions::shards([("p", 1)]).unwrap();
        let holding = held.map_or(Holding::None, |(_, granted)| Holding::Held {
            session: 0,
            token: version(granted).token().unwrap(),
        });
        let sessions = held.map(|(session, _)| SessionEntry {
            session: SessionId(session),
            worker: "worker-0".into(),
            seen: revision(1),
        });
        let root = Root {
            incarnation: Incarnation::new("run-1"),
            version: version(epoch),
            lifecycle: Lifecycle::Stable,
            quarantine: held.is_none(),
            answered: 0,
            lease: LEASE,
            sessions: sessions.into_iter().collect(),
            holdings: vec![holding],
        };
        encode_root(root, &partitions, None, 0, 1 << 20)
            .unwrap()
            .committed
    }

    /// The invariant, and what the store holds.
    struct World {
        invariant: RisingTokens,
        ledger: Ledger,
    }

    impl World {
        fn observe(&mut self, at: Duration, fact: &Fact<'_>) -> Result<(), String> {
            let at = TrueTime::ZERO + at;
            let ledger = &self.ledger;
            self.invariant.observe(&Seen { at, fact, ledger })
        }

        fn write(&mut self, at: Duration, number: u64, root: Committed) -> Result<(), String> {
            let fact = Fact::RootWritten {
                by: 0,
                root: &root,
                revision: revision(number),
            };
            self.observe(at, &fact)?;
            self.ledger.root = Some(Known {
                value: root,
                revision: revision(number),
                written: TrueTime::ZERO + at,
            });
            Ok(())
        }
    }

    /// A root at revision 8 is lost in silence, and a quarantine is set at the
    /// revision `quarantine`, over the root at revision 5 that is left.
    fn gone_back(quarantine: u64) -> World {
        let bounds = Bounds {
            lease: LEASE,
            is_exclusive: true,
            is_stale: false,
            is_calm: false,
            ends_late: false,
            leader_lease: LEASE,
            value_bytes_max: usize::MAX,
            operations_max: usize::MAX,
            members_max: 1,
            partitions_max: 1,
            start_within: LEASE,
            beat_within: LEASE,
        };
        let mut world = World {
            invariant: RisingTokens::new(&bounds),
            ledger: Ledger::default(),
        };
        world.write(LEASE, 5, root(1, Some((1, 1)))).unwrap();
        let kept = world.ledger.root.clone();
        world.write(LEASE, 8, root(2, Some((2, 2)))).unwrap();
        world.ledger.root = kept;
        let forgot = Fact::Forgot { announced: false };
        world.observe(LEASE, &forgot).unwrap();
        world.write(LEASE, quarantine, root(3, None)).unwrap();
        world
    }

    #[test]
    fn a_lost_root_goes_on_over_its_own_revision_only() {
        let goes_on = || root(4, Some((2, 2)));
        assert_eq!(gone_back(8).write(LEASE, 9, goes_on()), Ok(()));
        assert!(gone_back(7).write(LEASE, 8, goes_on()).is_err());
    }

    #[test]
    fn a_lost_root_goes_on_with_its_own_tokens_only() {
        for held in [(1, 1), (2, 1), (1, 2)] {
            let other = root(4, Some(held));
            assert!(gone_back(8).write(LEASE, 9, other).is_err(), "{held:?}");
        }
    }

    #[test]
    fn a_lost_root_does_not_go_on_once_all_had_time_to_find_out() {
        let late = LEASE * 6;
        assert!(gone_back(8).write(late, 9, root(4, Some((2, 2)))).is_err());
    }
}
