//! A root in the making: every entry of the root before, what may be done with
//! it, and what was decided.
//!
//! An entry leaves `Held` or `Revoking` only when its holder is gone or has
//! acknowledged: facts that cannot become untrue, judged against the very root
//! that is replaced. That is why two leaders at once can do no harm.

use super::Member;
use super::keys::Keys;
use super::roster::{Fate, Roster};
use crate::hash;
use crate::leader::codec::Committed;
use crate::leader::defect::Defect;
use crate::leader::record::{Holding, SessionEntry, Version};
use crate::partition::{Partition, Partitions};

/// What may be done with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may be granted to anybody. The session that had it last.
    Free(Option<u32>),
    /// A session that goes on has it, by its place in the roster.
    Held(usize),
    /// It waits for the worker that had it, or nothing is known.
    Fixed,
    /// It was asked back, and may still run.
    Waiting,
}

/// A root in the making.
#[derive(Debug, Clone)]
pub(super) struct Sketch {
    pub(super) roster: Roster,
    pub(super) version: Version,
    pub(super) partitions: Partitions,
    pub(super) holdings: Vec<Holding>,
    pub(super) standings: Vec<Standing>,
    /// The source no longer names it.
    pub(super) is_dropped: Vec<bool>,
    /// By index of the partition, the place in the roster of who gets it.
    pub(super) grants: Vec<(usize, usize)>,
    pub(super) revoked: u32,
    pub(super) is_list_new: bool,
}

impl Sketch {
    /// Asks a partition back, if somebody has it.
    pub(super) fn revoke(&mut self, index: usize) {
        if let Holding::Held { session, .. } = self.holdings[index] {
            self.holdings[index] = Holding::Revoking {
                session,
                since: self.version,
            };
            self.revoked += 1;
        }
    }

    pub(super) fn is_changed(&self) -> bool {
        self.is_list_new || self.revoked > 0 || !self.grants.is_empty()
    }
}

impl Member {
    /// Everything as the root before has it, over the list of partitions that
    /// is to be.
    pub(super) fn sketch(&self, committed: &Committed, version: Version) -> Sketch {
        let roster = self.roster();
        let standings = self.standings(committed, &roster);
        let mut sketch = Sketch {
            roster,
            version,
            partitions: committed.partitions.clone(),
            holdings: committed.root.holdings.clone(),
            is_dropped: vec![false; standings.len()],
            standings,
            grants: Vec::new(),
            revoked: 0,
            is_list_new: false,
        };
        let leading = self.leading.as_ref();
        let believed = leading.and_then(|leading| leading.source.believed.as_ref());
        let loses = self.defect == Some(Defect::LoseUnowned);
        if let Some(believed) = believed
            && (*believed != committed.partitions || loses)
        {
            self.merge(&mut sketch, believed);
        }
        sketch
    }

    /// What may be done with every entry of a root.
    pub(super) fn standings(&self, committed: &Committed, roster: &Roster) -> Vec<Standing> {
        let root = &committed.root;
        let fates: Vec<Fate> = root
            .sessions
            .iter()
            .map(|entry| self.fate(entry, roster))
            .collect();
        let entries = committed.partitions.iter().zip(&root.holdings);
        entries
            .map(|(partition, holding)| self.standing(partition, *holding, &root.sessions, &fates))
            .collect()
    }

    fn standing(
        &self,
        partition: &Partition,
        holding: Holding,
        sessions: &[SessionEntry],
        fates: &[Fate],
    ) -> Standing {
        match holding {
            Holding::None => Standing::Free(None),
            Holding::Held { session, .. } => match fates[session as usize] {
                Fate::Here(place) => Standing::Held(place),
                Fate::Gone => Standing::Free(Some(session)),
                Fate::Alive | Fate::Kept | Fate::Unknown => Standing::Fixed,
            },
            Holding::Revoking { session, since } => {
                let entry = &sessions[session as usize];
                let is_free = match fates[session as usize] {
                    Fate::Gone | Fate::Kept => true,
                    _ if self.defect == Some(Defect::GrantWithoutAck) => true,
                    Fate::Here(_) | Fate::Alive => self.has_acked(entry, since, partition),
                    Fate::Unknown => false,
                };
                match is_free {
                    true => Standing::Free(None),
                    false => Standing::Waiting,
                }
            }
        }
    }

    /// Whether that session has stopped the partition, by its own word.
    pub(super) fn has_acked(
        &self,
        entry: &SessionEntry,
        since: Version,
        partition: &Partition,
    ) -> bool {
        let Some(observed) = self.observation.get(&Keys::worker(&entry.worker)) else {
            return false;
        };
        let record = &observed.record;
        let name = hash::bytes64(partition.as_str().as_bytes(), 0);
        record.session == entry.session && record.acked >= since && !record.stopping.contains(&name)
    }

    /// Goes over to the list that the source names now. What it no longer
    /// names stays until it is known to have stopped.
    fn merge(&self, sketch: &mut Sketch, believed: &Partitions) {
        let old = sketch.partitions.clone();
        let keeps_dropped = self.defect != Some(Defect::ForgetDropped);
        let loses = self.defect == Some(Defect::LoseUnowned);
        let is_lost =
            |index: usize| loses && matches!(sketch.standings[index], Standing::Free(Some(_)));
        let mut list: Vec<Partition> = believed.iter().cloned().collect();
        let mut dropped = Vec::new();
        for (index, partition) in old.iter().enumerate() {
            let is_known = believed.index_of(partition.as_str()).is_some();
            let is_free = matches!(sketch.standings[index], Standing::Free(_));
            if !is_known && !is_free && keeps_dropped {
                dropped.push(partition.clone());
            }
            if is_known && is_lost(index) {
                list.retain(|kept| kept.as_str() != partition.as_str());
            }
        }
        list.extend(dropped);
        let Ok(list) = Partitions::new(list)
            .and_then(|list| list.with_default_weight(believed.default_weight()))
        else {
            return;
        };
        if list == old {
            return sketch.drop_unnamed(believed);
        }
        let places: Vec<Option<usize>> = list.places_in(&old).collect();
        let at = |place: &Option<usize>| place.map(|index| sketch.holdings[index]);
        let holdings = places
            .iter()
            .map(|place| at(place).unwrap_or(Holding::None));
        let holdings: Vec<Holding> = holdings.collect();
        let free = Standing::Free(None);
        let standing = |place: &Option<usize>| place.map_or(free, |i| sketch.standings[i]);
        sketch.standings = places.iter().map(standing).collect();
        sketch.holdings = holdings;
        sketch.partitions = list;
        sketch.is_list_new = true;
        sketch.drop_unnamed(believed);
    }
}

impl Sketch {
    /// What the source no longer names is asked back.
    fn drop_unnamed(&mut self, believed: &Partitions) {
        let named = self.partitions.iter();
        self.is_dropped = named
            .map(|partition| believed.index_of(partition.as_str()).is_none())
            .collect();
        for index in 0..self.is_dropped.len() {
            if self.is_dropped[index] {
                self.revoke(index);
            }
        }
    }
}
