//! Taking over from another system: who had which partition there.
//!
//! The first placement of a cluster gives everything to whoever had it, if
//! that is there, and leaves only the rest to the strategy: so nothing moves
//! because another system coordinates it now. From then on the strategy's rules
//! hold, and what is uneven beyond the threshold is moved like anything else.

use super::Member;
use super::roster::Roster;
use super::sketch::{Sketch, Standing};
use crate::leader::codec::Committed;
use crate::leader::record::{Holding, Lifecycle};

impl Member {
    /// By index of the partition, the place in the roster of who had it before
    /// this cluster began. Empty where there is nothing to take over, or where
    /// this cluster has placed something itself.
    pub(super) fn inherited(&self, sketch: &Sketch, before: &Committed) -> Vec<Option<usize>> {
        let Some(previous) = &self.setup.previous else {
            return Vec::new();
        };
        if before.root.lifecycle != Lifecycle::ColdStart {
            return Vec::new();
        }
        let workers = previous.workers().iter();
        let places: Vec<Option<usize>> = workers
            .map(|worker| sketch.roster.place_known_as(worker.id()))
            .collect();
        let owners = previous.owners();
        let heir = |index: usize, name: &str| {
            let was_owned = !matches!(sketch.holdings[index], Holding::None);
            if was_owned || sketch.standings[index] != Standing::Free(None) {
                return None;
            }
            let place = places[owners[previous.partitions().index_of(name)?] as usize]?;
            sketch.roster.takes(place, name).then_some(place)
        };
        let partitions = sketch.partitions.iter().enumerate();
        partitions
            .map(|(index, partition)| heir(index, partition.as_str()))
            .collect()
    }
}

impl Roster {
    /// Whoever another system knew by this name: an instance, or a stable id.
    fn place_known_as(&self, name: &str) -> Option<usize> {
        let mut instances = self.candidates.iter();
        let instance = instances.position(|candidate| &*candidate.instance == name);
        instance.or_else(|| self.place_of(name))
    }
}
