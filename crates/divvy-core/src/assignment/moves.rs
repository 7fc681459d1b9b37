//! The difference between two assignments.

use std::cmp::Ordering;

use serde::Serialize;

use super::Assignment;
use crate::partition::Partition;

/// A partition that has another owner than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The partition's text form.
    pub partition: String,
    /// Who owned it; `None` where the partition is new.
    pub from: Option<String>,
    /// Who owns it now; `None` where the partition is gone.
    pub to: Option<String>,
}

/// What changes between two assignments, in the order of the partitions.
///
/// Partitions and workers are matched by name, so both sets may have changed.
///
/// ```
/// use divvy_core::{Partitions, RoundRobin, Strategy, Workers};
///
/// let partitions = Partitions::shards([("orders", 4)])?;
/// let before = RoundRobin.assign(&Workers::of(["a", "b"])?, &partitions, None)?;
/// let after = RoundRobin.assign(&Workers::of(["a", "b", "c"])?, &partitions, None)?;
/// let moves = after.moves_from(&before);
/// let first = moves.iter().next().expect("round robin moves most partitions");
/// assert_eq!((first.from.as_deref(), first.to.as_deref()), (Some("a"), Some("c")));
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    changes: Vec<Move>,
    moved: usize,
    common: usize,
}

impl Moves {
    pub(super) fn between(before: &Assignment, after: &Assignment) -> Self {
        // By index of a worker before, its index after.
        let renumbered: Vec<Option<u32>> = before
            .workers()
            .iter()
            .map(|worker| {
                after
                    .workers()
                    .index_of(worker.id())
                    .map(|index| index as u32)
            })
            .collect();
        let old = before.partitions().as_slice();
        let new = after.partitions().as_slice();
        let (mut i, mut j) = (0, 0);
        let mut moves = Self {
            changes: Vec::new(),
            moved: 0,
            common: 0,
        };
        while i < old.len() || j < new.len() {
            let order = match (old.get(i), new.get(j)) {
                (Some(a), Some(b)) => a.as_str().cmp(b.as_str()),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let (from, to) = match order {
                Ordering::Less => (Some(i), None),
                Ordering::Equal => (Some(i), Some(j)),
                Ordering::Greater => (None, Some(j)),
            };
            i += usize::from(from.is_some());
            j += usize::from(to.is_some());
            if let (Some(from), Some(to)) = (from, to) {
                moves.common += 1;
                let owner_before = renumbered[before.owners()[from] as usize];
                if owner_before == Some(after.owners()[to]) {
                    continue;
                }
                moves.moved += 1;
            }
            let partition = from.map_or_else(|| &new[j - 1], |index| &old[index]);
            moves.changes.push(Move::new(
                partition,
                from.map(|index| owner_id(before, index)),
                to.map(|index| owner_id(after, index)),
            ));
        }
        moves
    }

    /// Every change: moved, new and gone partitions.
    pub fn iter(&self) -> std::slice::Iter<'_, Move> {
        self.changes.iter()
    }

    /// How many changes there are in all.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How many partitions that both assignments know changed their owner.
    pub fn moved(&self) -> usize {
        self.moved
    }

    /// The share of the partitions that both assignments know and that kept
    /// their owner; 1 where they have none in common.
    pub fn affinity(&self) -> f64 {
        if self.common == 0 {
            return 1.0;
        }
        (self.common - self.moved) as f64 / self.common as f64
    }
}

impl<'a> IntoIterator for &'a Moves {
    type Item = &'a Move;
    type IntoIter = std::slice::Iter<'a, Move>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Move {
    fn new(partition: &Partition, from: Option<String>, to: Option<String>) -> Self {
        Self {
            partition: partition.to_string(),
            from,
            to,
        }
    }
}

fn owner_id(assignment: &Assignment, partition: usize) -> String {
    let owner = assignment.owners()[partition] as usize;
    assignment.workers().as_slice()[owner].id().to_owned()
}
