//! Workers that do not agree on how many units a group has: told, once it has
//! lasted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::roster::Roster;
use crate::lease::group::Group;
use crate::moment::Moment;

/// Most disagreements that are remembered, and so told.
const REMEMBERED_MAX: usize = 64;

/// A group, who takes it to have another number of units, and that number.
type Different = (Box<str>, Box<str>, u32);

/// Who takes which group to have how many units, unlike this worker: since
/// when, and whether that was told.
#[derive(Debug, Clone, Default)]
pub(super) struct Disagreements {
    since: BTreeMap<Different, (Moment, bool)>,
}

impl Disagreements {
    /// Compares what all say with what this worker serves. Gives what has
    /// differed for so long and was not told: a number that is changed differs
    /// for the moment that it takes all to read it.
    pub(super) fn look(
        &mut self,
        (now, lasting): (Moment, Duration),
        groups: &[Group],
        roster: &Roster,
    ) -> Vec<String> {
        let before = std::mem::take(&mut self.since);
        let mut told = Vec::new();
        let others = (0_u32..).zip(roster.peers());
        for (_, peer) in others.filter(|(number, _)| *number != roster.me()) {
            for (name, &units) in &peer.info.partitions {
                let own = groups.iter().find(|group| group.name().as_str() == name);
                let Some(own) = own.map(Group::partitions).filter(|own| *own != units) else {
                    continue;
                };
                let key = (Box::from(name.as_str()), peer.name.clone(), units);
                let (since, mut is_told) = before.get(&key).copied().unwrap_or((now, false));
                if !is_told && now.since(since) >= lasting {
                    is_told = true;
                    told.push(format!(
                        "workers do not agree on how many units {name:?} has: {own} here, {units} \
                         with {}; those beyond are left to whoever knows of them",
                        peer.name
                    ));
                }
                if self.since.len() < REMEMBERED_MAX {
                    self.since.insert(key, (since, is_told));
                }
            }
        }
        told
    }
}
