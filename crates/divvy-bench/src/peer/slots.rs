//! Lookups through numbered slots by anchorhash, jumphash and maglev.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use jumphash::JumpHasher;
use maglev::ConsistentHasher;

use super::{Placer, Sip};
use crate::scene::Node;

/// The crate anchorhash.
pub(crate) struct Anchor<S: BuildHasher> {
    anchor: anchorhash::AnchorHash<&'static str, u32, S>,
}

/// How many more workers than at the start it has room for: the algorithm wants that said beforehand.
const ANCHOR_ROOM: u16 = 100;

impl<S: BuildHasher + Default> Anchor<S> {
    /// The nodes at the start, `before`, changed one by one into `nodes`.
    pub(crate) fn new(before: &[Node<'_>], nodes: &[Node<'_>]) -> Self {
        let indices = |nodes: &[Node<'_>]| nodes.iter().map(|node| node.index).collect();
        let (old, new): (BTreeSet<u32>, BTreeSet<u32>) = (indices(before), indices(nodes));
        let capacity = u16::try_from(old.len()).expect("fewer workers than 2^16") + ANCHOR_ROOM;
        let mut anchor = anchorhash::Builder::with_hasher(S::default())
            .with_resources(old.iter().copied())
            .build(capacity);
        for gone in old.difference(&new) {
            anchor
                .remove_resource(gone)
                .expect("it is among the resources");
        }
        for &added in new.difference(&old) {
            anchor.add_resource(added).expect("there is room");
        }
        Self { anchor }
    }
}

impl<S: BuildHasher> Placer for Anchor<S> {
    fn owner(&self, key: &str) -> u32 {
        // The type of keys may be shortened to the key at hand.
        let anchor: &anchorhash::AnchorHash<&str, u32, S> = &self.anchor;
        *anchor.get_resource(key).expect("there are resources")
    }
}

/// The crate jumphash. Its slots are numbered without gaps: where a worker leaves, the last one takes
/// over its slot.
pub(crate) struct Jump {
    jump: JumpHasher,
    indices: Vec<u32>,
}

impl Jump {
    /// Slots in the order of the indices, gaps filled from the end.
    pub(crate) fn new(nodes: &[Node<'_>]) -> Self {
        let mut indices: Vec<u32> = nodes.iter().map(|node| node.index).collect();
        indices.sort_unstable();
        let mut slot = 0;
        while slot < indices.len() {
            if indices[slot] as usize > slot {
                let last = indices.pop().expect("the slot is among them");
                indices.insert(slot, last);
            }
            slot += 1;
        }
        Self {
            jump: JumpHasher::new_with_keys(0, 0),
            indices,
        }
    }
}

impl Placer for Jump {
    fn owner(&self, key: &str) -> u32 {
        self.indices[self.jump.slot(&key, self.indices.len() as u32) as usize]
    }
}

/// The crate maglev.
pub(crate) struct Maglev<'a> {
    table: maglev::Maglev<Node<'a>, Sip>,
}

impl<'a> Maglev<'a> {
    /// The table of these nodes, with its default of 100 entries for each of the nodes at the start,
    /// `before`: by itself it would choose another size when a node joins, and move everything.
    pub(crate) fn new(before: &[Node<'a>], nodes: &[Node<'a>]) -> Self {
        let (nodes, entries) = (nodes.iter().copied(), 100 * before.len());
        Self {
            table: maglev::Maglev::with_capacity_and_hasher(nodes, entries, Sip::default()),
        }
    }
}

impl Placer for Maglev<'_> {
    fn owner(&self, key: &str) -> u32 {
        self.table.get(key).expect("there are nodes").index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn the_last_slot_fills_a_gap() {
        let scene = Scene::equal(1, 5);
        let mut nodes = scene.nodes();
        nodes.remove(1);
        assert_eq!(Jump::new(&nodes).indices, [0, 4, 2, 3]);
    }
}
