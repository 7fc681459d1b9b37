//! What workers hash to for partitions, calculated once for many members that
//! share a process, as those of a simulated world do.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::group::Group;
use crate::store::WorkerId;
use crate::strategy::rendezvous::rendezgo;

/// The hashes of workers for the partitions of groups. They are the same for
/// everybody, so whoever has many members need not let each of them calculate
/// all: see [`Member::share`](super::Member::share). What is not here, members
/// calculate by themselves, so it may be too little and never wrong.
#[derive(Debug, Clone, Default)]
pub struct Hashes {
    /// By group and by the id of the worker.
    columns: BTreeMap<Box<str>, BTreeMap<Box<str>, Arc<Column>>>,
}

impl Hashes {
    /// Adds those of a worker for all partitions of a group.
    pub fn add(&mut self, group: &Group, worker: &WorkerId) {
        let of_group = self.columns.entry(group.name().as_str().into());
        let column = of_group.or_default().entry(worker.to_string().into());
        let id = column.key().clone();
        let is_whole = |known: &Arc<Column>| known.hashes.len() >= group.partitions() as usize;
        let make = || Arc::new(Column::new(group, &id));
        match column {
            std::collections::btree_map::Entry::Occupied(mut known) => {
                if !is_whole(known.get()) {
                    known.insert(make());
                }
            }
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(make());
            }
        }
    }

    /// Those of one worker, if they are all there.
    pub(super) fn of(&self, group: &Group, id: &str) -> Option<&Column> {
        let column = self.columns.get(group.name().as_str())?.get(id)?;
        (column.hashes.len() >= group.partitions() as usize).then_some(column)
    }
}

/// The hashes of one worker, by the number of the partition. As all scores are
/// made of them: as floating point numbers.
#[derive(Debug)]
pub(super) struct Column {
    hashes: Box<[f64]>,
    /// Their logarithms, once somebody needs them: they cost more.
    logarithms: OnceLock<Box<[f64]>>,
}

impl Column {
    fn new(group: &Group, id: &str) -> Self {
        let mut scratch = Vec::new();
        let hashes = (0..group.partitions()).map(|number| {
            let slot = rendezgo::slot_of(group.name().as_str(), number);
            rendezgo::hash(&slot, id, &mut scratch) as f64
        });
        Self {
            hashes: hashes.collect(),
            logarithms: OnceLock::new(),
        }
    }

    pub(super) fn hashes(&self) -> &[f64] {
        &self.hashes
    }

    pub(super) fn logarithms(&self) -> &[f64] {
        self.logarithms.get_or_init(|| {
            let hashes = self.hashes.iter();
            hashes.map(|hash| rendezgo::logarithm(*hash)).collect()
        })
    }
}
