//! The groups of a world, as whoever keeps them wants them.

use divvy_core::lease::{Event, Group};
use divvy_core::store::{LeaseKey, LeaseName, LeaseNotice, LeaseTable};

use super::{LeaseProfile, LeaseWorld};
use crate::coverage::Mishap;
use crate::invariants::Broken;
use crate::world::{Arrival, Happening};

/// Texts that are no document of a group.
const GARBAGE: [&str; 5] = [
    "",
    "{",
    "[1, 2]",
    r#"{"name": "another", "units": 4}"#,
    r#"{"units": -1}"#,
];

/// One of them.
#[derive(Debug, Clone)]
struct Kept {
    name: LeaseName,
    partitions: u32,
    most: u32,
    /// The lowest limit that it has had: members read it when they do.
    strictest: Option<u32>,
    stored: bool,
    /// It is not there at the moment.
    removed: bool,
    /// Its document is this text at the moment.
    garbage: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(super) struct Groups {
    kept: Vec<Kept>,
    /// Partitions that each group can have.
    stride: u32,
}

impl Groups {
    pub(super) fn new(profile: &LeaseProfile) -> Self {
        let kept = profile.groups.iter().map(|plan| Kept {
            name: LeaseName::new("group", plan.name).expect("a valid name"),
            partitions: plan.partitions,
            most: plan.most,
            strictest: (plan.most > 0).then_some(plan.most),
            stored: plan.stored,
            removed: false,
            garbage: None,
        });
        Self {
            kept: kept.collect(),
            stride: profile.partitions_max(),
        }
    }

    /// Most partitions that there can ever be, and above all of their numbers.
    pub(super) fn partitions_max(&self) -> usize {
        self.kept.len() * self.stride as usize
    }

    pub(super) fn partition_of(&self, key: &LeaseKey) -> Option<usize> {
        let group = self.kept.iter().position(|kept| kept.name == key.group)?;
        (key.number < self.stride).then_some(group * self.stride as usize + key.number as usize)
    }

    pub(super) fn key_of(&self, partition: usize) -> LeaseKey {
        LeaseKey {
            group: self.kept[self.group_of(partition)].name.clone(),
            number: (partition % self.stride as usize) as u32,
        }
    }

    pub(super) const fn group_of(&self, partition: usize) -> usize {
        partition / self.stride as usize
    }

    /// The partitions that there are.
    pub(super) fn wanted(&self) -> impl Iterator<Item = usize> {
        let there = self
            .kept
            .iter()
            .enumerate()
            .filter(|(_, kept)| !kept.removed);
        there.flat_map(|(group, kept)| {
            let first = group * self.stride as usize;
            first..first + kept.partitions as usize
        })
    }

    /// Whether there is a partition of this number.
    pub(super) fn is_wanted(&self, partition: usize) -> bool {
        let kept = self.kept.get(self.group_of(partition));
        let number = (partition % self.stride as usize) as u32;
        kept.is_some_and(|kept| !kept.removed && number < kept.partitions)
    }

    /// The groups that there are.
    pub(super) fn present(&self) -> Vec<Group> {
        let there = (0..self.kept.len()).filter(|&index| !self.kept[index].removed);
        there.map(|index| self.group(index)).collect()
    }

    /// How many partitions of a group one worker may have, by the group.
    pub(super) fn most_of(&self, group: usize) -> Option<usize> {
        let most = self.kept[group].most;
        (most > 0).then_some(most as usize)
    }

    /// The lowest limit for each worker that a group has had.
    pub(super) fn strictest_of(&self, group: usize) -> Option<usize> {
        self.kept[group].strictest.map(|most| most as usize)
    }

    pub(super) const fn count(&self) -> usize {
        self.kept.len()
    }

    /// Whether all workers serve a group, because the store has it.
    pub(super) fn is_stored(&self, group: usize) -> bool {
        self.kept[group].stored
    }

    pub(super) fn group(&self, index: usize) -> Group {
        let kept = &self.kept[index];
        let group = Group::new(kept.name.as_str(), kept.partitions);
        let group = group.expect("groups have partitions");
        group.with_max_per_worker(kept.most)
    }

    /// The groups of the settings of whoever serves these.
    pub(super) fn own(&self, serves: &[bool]) -> Vec<Group> {
        let served = (0..self.kept.len()).filter(|&index| {
            let kept = &self.kept[index];
            !kept.stored && !kept.removed && serves.get(index).copied().unwrap_or(false)
        });
        served.map(|index| self.group(index)).collect()
    }

    /// Writes all that belong into the store.
    pub(super) fn write(&self, table: &mut LeaseTable) {
        for (index, kept) in self.kept.iter().enumerate() {
            if !kept.stored {
                continue;
            }
            match (kept.removed, kept.garbage) {
                (true, _) => {
                    table.remove_group(&kept.name);
                }
                (false, Some(text)) => table.set_group(&kept.name, text),
                (false, None) => table.set_group(&kept.name, &self.group(index).to_json()),
            }
        }
    }
}

impl LeaseWorld {
    /// Changes the size of a group.
    pub(super) fn resize(&mut self, group: usize, by: i32) {
        self.count(Mishap::GroupChanged);
        let stride = i64::from(self.own.groups.stride);
        let kept = &mut self.own.groups.kept[group];
        let partitions = (i64::from(kept.partitions) + i64::from(by)).clamp(1, stride);
        kept.partitions = partitions as u32;
        self.regroup();
    }

    /// Lets a group have so many partitions from now on.
    pub(super) fn set_size(&mut self, group: usize, partitions: u32) {
        let partitions = partitions.clamp(1, self.own.groups.stride);
        self.own.groups.kept[group].partitions = partitions;
        self.regroup();
    }

    /// Changes the limit of a group.
    pub(super) fn limit(&mut self, group: usize, most: u32) {
        self.count(Mishap::GroupChanged);
        let kept = &mut self.own.groups.kept[group];
        kept.most = most;
        if most > 0 {
            kept.strictest = Some(kept.strictest.map_or(most, |known| known.min(most)));
        }
        self.regroup();
    }

    /// Groups are there, and have documents, or not.
    pub(super) fn set_groups(&mut self, removed: &[bool], garbled: &[Option<usize>]) {
        let mut changed = false;
        for group in 0..self.own.groups.kept.len() {
            let kept = &mut self.own.groups.kept[group];
            let garbage = garbled[group].filter(|_| kept.stored);
            let garbage = garbage.map(|which| GARBAGE[which % GARBAGE.len()]);
            if kept.removed == removed[group] && kept.garbage == garbage {
                continue;
            }
            changed = true;
            let (gone, spoilt) = (removed[group], garbage.is_some());
            let was_spoilt = kept.garbage.is_some();
            (kept.removed, kept.garbage) = (gone, garbage);
            if gone {
                self.count(Mishap::GroupRemoved);
            } else if spoilt && !was_spoilt {
                self.count(Mishap::GroupGarbled);
            }
        }
        if changed {
            self.regroup();
        }
    }

    /// Lets everybody know of the groups: the store at once, those who have
    /// them in their settings one after another.
    fn regroup(&mut self) {
        self.write_groups();
        for member in 0..self.processes.len() {
            let process = &self.processes[member];
            if !process.is_alive() {
                continue;
            }
            let generation = process.generation;
            let arrival = Arrival::Errand(Self::reread_groups);
            let most = self.profile.settings.reconcile_interval;
            let after = self.dice.span(std::time::Duration::ZERO, most);
            self.after(after, Happening::Arrive(member, generation, arrival));
        }
    }

    /// A member reads its settings again.
    pub(super) fn reread_groups(&mut self, member: usize) -> Result<(), Broken> {
        let own = self.own.groups.own(&self.profile.plan_of(member).serves);
        self.hand(member, Event::Regrouped(own))
    }

    /// Writes the groups that belong into the store.
    pub(super) fn write_groups(&mut self) {
        if !self.profile.is_dynamic() {
            return;
        }
        if self.reach.down_until > self.now {
            self.queue
                .push(self.reach.down_until, Happening::Errand(Self::write_groups));
            return;
        }
        self.own.groups.write(&mut self.store.table);
        // One for all of them: whoever hears it reads them all.
        self.spread(&LeaseNotice::Group("all".to_owned()));
    }
}
