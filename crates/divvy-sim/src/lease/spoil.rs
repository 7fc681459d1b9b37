//! Keys that another program writes over, and that somebody deletes later. A
//! bad record harms only what it belongs to: one partition, or one worker.

use std::collections::BTreeSet;

use divvy_core::store::LeaseKey;

use super::foreign::ghost;
use super::{LeaseFaultKind, LeaseWorld, SpoiltKey};
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::time::TrueTime;

/// What cannot be read, or means nothing. The empty text is what readers make
/// of a key of another type.
const TEXTS: [&str; 4] = ["", "not JSON", "\u{fffd}\0\u{fffd}", r#"{"weight": -1}"#];

/// What a spoilt key belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Victim {
    Partition(LeaseKey),
    Worker,
}

impl LeaseWorld {
    /// Another program writes over a key.
    pub(super) fn spoil(
        &mut self,
        fault: usize,
        number: usize,
        what: SpoiltKey,
    ) -> Result<(), Broken> {
        let keys = self.keys();
        let Some(key) = keys.get(number % keys.len().max(1)).cloned() else {
            return Ok(());
        };
        let member = number % self.processes.len();
        let worker = self.processes[member].host.worker.clone();
        let text = TEXTS[number / 7 % TEXTS.len()];
        let table = &mut self.store.table;
        let victim = match what {
            SpoiltKey::Lease => {
                table.spoil_lease(&key, text);
                self.disturb_lease(&key)?;
                Victim::Partition(key)
            }
            SpoiltKey::Expiry => {
                table.persist_lease(&key);
                Victim::Partition(key)
            }
            SpoiltKey::Token => {
                table.spoil_fence(&key);
                Victim::Partition(key)
            }
            SpoiltKey::Mark => {
                table.spoil_moved(&key);
                Victim::Partition(key)
            }
            SpoiltKey::Session => {
                table.spoil_session(&worker);
                self.disturb_names()?;
                Victim::Worker
            }
            SpoiltKey::Info => {
                table.spoil_info(&worker, text);
                Victim::Worker
            }
            SpoiltKey::Ghost => {
                table.spoil_member(&ghost(number), text);
                Victim::Worker
            }
        };
        self.count(Mishap::Spoilt);
        self.note(|| format!("another program spoils {what:?} of {victim:?}: {text:?}"));
        self.own.spoilt.insert(fault, victim);
        Ok(())
    }

    /// Somebody deletes what was spoilt by faults that are over.
    pub(super) fn repair(&mut self) -> Result<(), Broken> {
        let faults = &self.profile.faults;
        let (before, active) = (self.own.spoilt.len(), &self.active);
        self.own.spoilt.retain(|index, _| {
            let is_for_good = matches!(faults[*index].kind, LeaseFaultKind::SpoilForGood(..));
            is_for_good || active.contains(index)
        });
        match self.own.spoilt.len() < before {
            true => self.delete_spoilt(),
            false => Ok(()),
        }
    }

    /// Somebody deletes all that is still spoilt, and what nobody could have by
    /// it is started, as far as somebody may have it all. Gives when that must
    /// be over; nothing if nothing is spoilt.
    pub(super) fn begin_repair(&mut self) -> Result<Option<TrueTime>, Broken> {
        let wanted: Vec<usize> = self.own.groups.wanted().collect();
        let spoilt = wanted.into_iter().filter(|it| self.is_spoilt(*it));
        let alive = self.alive();
        let idle = spoilt.filter(|partition| {
            let group = self.own.groups.group_of(*partition);
            let mut members = alive.iter();
            let runs = |member: &usize| self.processes[*member].running.contains_key(partition);
            !alive.iter().any(runs) && members.any(|&member| self.is_unlimited(member, group))
        });
        let partitions: Vec<usize> = idle.collect();
        if std::mem::take(&mut self.own.spoilt).is_empty() {
            return Ok(None);
        }
        self.delete_spoilt()?;
        let by = self.now + self.profile.repaired_within();
        self.tell(&Fact::Lost {
            partitions: &partitions,
            by,
        })?;
        Ok(Some(by + self.profile.settings.heartbeat_interval))
    }

    /// Deletes the keys that cannot be read or never expire, but those of
    /// faults that last. A store that went back may have some again.
    pub(super) fn delete_spoilt(&mut self) -> Result<(), Broken> {
        let spoilt = self.own.spoilt.values();
        let kept: BTreeSet<_> = spoilt
            .filter_map(|victim| match victim {
                Victim::Partition(key) => Some(key.clone()),
                Victim::Worker => None,
            })
            .collect();
        for key in self.keys().into_iter().filter(|key| !kept.contains(key)) {
            let time = self.store.time(self.now);
            let before = self.store.table.holder(time, &key);
            self.store.table.delete_spoilt(&key);
            // Whoever holds it goes on until its next renewal.
            if before.is_some() && self.store.table.holder(time, &key).is_none() {
                self.note(|| format!("the spoilt lease of {key} is deleted"));
                self.disturb_lease(&key)?;
            }
        }
        if !self.own.spoilt.values().any(|it| *it == Victim::Worker) {
            self.store.table.delete_spoilt_workers();
        }
        Ok(())
    }

    /// Whether a partition has a key that is spoilt.
    pub(super) fn is_spoilt(&self, partition: usize) -> bool {
        let victims = self.own.spoilt.values();
        let mut keys = victims.filter_map(|victim| match victim {
            Victim::Partition(key) => Some(key),
            Victim::Worker => None,
        });
        keys.any(|key| self.partition_of(key) == partition)
    }
}
