//! The groups that this worker serves: of its own settings, and of the store.

use std::collections::BTreeMap;

use crate::lease::group::Group;
use crate::store::{GroupDocument, SERVED_GROUPS_MAX};

/// Longest that all names together are told, in bytes: written as JSON they
/// still fit into what a worker may say of itself.
const TOLD_BYTES_MAX: usize = 30 * 1024;
/// The same where each is told twice.
const SIZED_BYTES_MAX: usize = 12 * 1024;

/// Groups, from where they come.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    /// Those of the settings.
    own: Vec<Group>,
    /// The last good documents of the store; nothing until they were read.
    stored: Option<BTreeMap<Box<str>, Group>>,
    /// What cannot be read is told once: the texts that were.
    told: BTreeMap<Box<str>, Option<String>>,
    served: Vec<Group>,
}

impl Groups {
    pub(super) fn new(own: Vec<Group>) -> Self {
        let mut groups = Self {
            own,
            ..Self::default()
        };
        groups.combine();
        groups
    }

    /// All that are served.
    pub(super) fn served(&self) -> &[Group] {
        &self.served
    }

    /// What the others are told that is served: nothing, which they take for
    /// everything, if it is too much to tell.
    pub(super) fn told(&self) -> Option<Vec<String>> {
        let bytes: usize = self
            .served
            .iter()
            .map(|group| group.name().as_str().len())
            .sum();
        let is_much = self.served.len() > SERVED_GROUPS_MAX || bytes > TOLD_BYTES_MAX;
        let names = || self.served.iter().map(|group| group.name().to_string());
        (!is_much).then(|| names().collect())
    }

    /// How many partitions each has, for those who look on; nothing if it is
    /// too much to tell beside the names.
    pub(super) fn sizes(&self) -> BTreeMap<String, u32> {
        let names = self.served.iter().map(|group| group.name().as_str().len());
        if self.served.len() > SERVED_GROUPS_MAX || names.sum::<usize>() > SIZED_BYTES_MAX {
            return BTreeMap::new();
        }
        let sizes = self.served.iter();
        sizes
            .map(|group| (group.name().to_string(), group.partitions()))
            .collect()
    }

    /// Whether the store's documents were never read.
    pub(super) const fn is_unread(&self) -> bool {
        self.stored.is_none()
    }

    /// The groups of the settings changed. Whether what is served did.
    pub(super) fn set_own(&mut self, own: Vec<Group>) -> bool {
        self.own = own;
        self.combine()
    }

    /// The store's documents were read. Whether what is served changed, and
    /// what could not be read: of that, the last good stays.
    pub(super) fn read(&mut self, documents: &[GroupDocument]) -> (bool, Vec<String>) {
        let mut problems = Vec::new();
        let before = self.stored.take().unwrap_or_default();
        let mut stored = BTreeMap::new();
        for document in documents {
            let name: Box<str> = document.name.as_str().into();
            let read = match &document.json {
                Some(json) => Group::from_json(&name, json).map_err(|error| error.to_string()),
                None => Err("it is listed and has no document".to_owned()),
            };
            match read {
                Ok(group) => {
                    self.told.remove(&name);
                    stored.insert(name, group);
                }
                Err(why) => {
                    let last = before.get(&name).cloned();
                    if self.told.get(&name) != Some(&document.json) {
                        let kept = match &last {
                            Some(_) => "its last good document is kept",
                            None => "there is none before it, so it is not served",
                        };
                        problems.push(format!(
                            "group {name:?} cannot be read, and {kept}: {why}; divvy workload set \
                             {name} N writes it anew"
                        ));
                        self.told.insert(name.clone(), document.json.clone());
                    }
                    stored.extend(last.map(|group| (name, group)));
                }
            }
        }
        self.told
            .retain(|name, _| documents.iter().any(|document| *document.name == **name));
        let all: Vec<Group> = combined(&self.own, &stored);
        if let Err(error) = Group::check_all(&all) {
            problems.push(format!("the store's groups cannot be served: {error}"));
            self.stored = Some(before);
            return (false, problems);
        }
        self.stored = Some(stored);
        (self.combine(), problems)
    }

    fn combine(&mut self) -> bool {
        let none = BTreeMap::new();
        let served = combined(&self.own, self.stored.as_ref().unwrap_or(&none));
        let is_changed = served != self.served;
        self.served = served;
        is_changed
    }
}

/// The store's groups, and those of the settings that it does not name, without
/// those that the store stops.
fn combined(own: &[Group], stored: &BTreeMap<Box<str>, Group>) -> Vec<Group> {
    let unnamed = own
        .iter()
        .filter(|group| !stored.contains_key(group.name().as_str()));
    let all = unnamed.chain(stored.values());
    let mut all: Vec<Group> = all
        .filter(|group| group.partitions() > 0)
        .cloned()
        .collect();
    all.sort_by(|a, b| a.name().cmp(b.name()));
    all
}
