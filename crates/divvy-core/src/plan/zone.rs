//! The zones of a problem: dense numbers, members and what they may hold together.

use super::problem::Slot;

/// Which slots are in which zone. Zones are numbered densely in the order of the numbers the slots carry.
#[derive(Debug)]
pub(super) struct Zones {
    /// Zone of each slot.
    pub(super) of: Vec<u32>,
    /// Slots of each zone that may own something.
    pub(super) members: Vec<Vec<u32>>,
}

impl Zones {
    pub(super) fn new(slots: &[Slot]) -> Self {
        let mut names: Vec<u32> = slots.iter().map(|slot| slot.zone).collect();
        names.sort_unstable();
        names.dedup();
        let of: Vec<u32> = slots
            .iter()
            .map(|slot| names.partition_point(|&name| name < slot.zone) as u32)
            .collect();
        let mut members = vec![Vec::new(); names.len()];
        for (worker, slot) in slots.iter().enumerate() {
            if slot.is_eligible() {
                members[of[worker] as usize].push(worker as u32);
            }
        }
        Self { of, members }
    }

    /// All slots in one zone: what planning without zones is.
    pub(super) fn single(slots: &[Slot]) -> Self {
        let eligible =
            (0..slots.len() as u32).filter(|&worker| slots[worker as usize].is_eligible());
        Self {
            of: vec![0; slots.len()],
            members: vec![eligible.collect()],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }
}
