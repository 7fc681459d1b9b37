//! What is done to the store and in it by others than its members: restarts,
//! clocks that are set, keys that are thrown away, and strangers that know of
//! nothing but the shared layout.

use std::time::Duration;

use divvy_core::store::{LeaseKey, WorkerId};

use super::{CLUSTER, LeaseWorld};
use crate::coverage::Mishap;
use crate::fact::{Disturbed, Fact};
use crate::invariants::Broken;
use crate::world::Happening;

/// What strangers say of themselves: nothing, too much, or what cannot be read.
const WORDS: [&str; 4] = [
    "{}",
    r#"{"weight": 3.0, "colour": "blue"}"#,
    "not JSON",
    r#"{"weight": -1}"#,
];

impl LeaseWorld {
    /// The store has begun another life after a while: all connections are
    /// gone. What it grants, it grants after a quarantine.
    pub(super) fn restarted(&mut self, down: Duration) -> Result<(), Broken> {
        self.reach.restart(self.now + down);
        for member in 0..self.processes.len() {
            self.disconnect(member);
            let interval = self.profile.settings.heartbeat_interval;
            let after = self.dice.span(Duration::from_millis(1), interval);
            self.reconnect(member, down + after);
        }
        self.after(down, Happening::Errand(Self::write_groups));
        self.after(down, Happening::Errand(Self::write_wishes));
        // Names are given out without one.
        self.disturb_names()
    }

    /// The store throws everything away; whoever keeps the groups notices. What
    /// it grants, it grants after a quarantine.
    pub(super) fn empty(&mut self, noticed_after: Duration) -> Result<(), Broken> {
        self.count(Mishap::StoreEmptied);
        self.store.empty();
        self.after(noticed_after, Happening::Errand(Self::write_groups));
        self.after(noticed_after, Happening::Errand(Self::write_wishes));
        self.disturb_names()
    }

    pub(super) fn step_clock(&mut self, ms: i64) -> Result<(), Broken> {
        self.count(match ms < 0 {
            true => Mishap::ClockBack,
            false => Mishap::ClockForward,
        });
        self.store.step_clock(ms);
        if ms < 0 {
            // Nothing ends early, and everything late.
            let back = Duration::from_millis(ms.unsigned_abs());
            let linger = self.now + back + self.profile.lease_at_most() * 4;
            self.own.names_linger = self.own.names_linger.max(linger);
            return Ok(());
        }
        self.disturb_all()
    }

    /// The store throws keys away, of whatever kind.
    pub(super) fn evict(&mut self, count: usize) -> Result<(), Broken> {
        self.count(Mishap::Eviction);
        for _ in 0..count {
            let member = self.dice.below(self.processes.len());
            let worker = self.processes[member].host.worker.clone();
            let (kind, key) = (self.dice.below(10), self.any_key());
            let table = &mut self.store.table;
            let what = match kind {
                0..5 if table.drop_lease(&key) => {
                    self.disturb_lease(&key)?;
                    format!("the lease of {key}")
                }
                5 if table.drop_fence(&key) => format!("the tenure of {key}"),
                6 if table.drop_moved(&key) => format!("the mark of {key}"),
                7 if table.drop_session(&worker) => {
                    self.disturb_names()?;
                    format!("the session of {worker}")
                }
                8.. if table.drop_member(&worker) => format!("the heartbeat of {worker}"),
                _ => continue,
            };
            self.note(|| format!("store: {what} is thrown away"));
        }
        Ok(())
    }

    /// A stranger takes a lease that nobody has.
    pub(super) fn foreign_take(&mut self, which: usize) {
        let time = self.store.time(self.now);
        let keys: Vec<LeaseKey> = self.keys();
        let free = keys
            .iter()
            .cycle()
            .skip(which % keys.len().max(1))
            .take(keys.len())
            .find(|key| self.store.table.holder(time, key).is_none());
        let Some(key) = free.cloned() else {
            return;
        };
        self.count(Mishap::ForeignTake);
        self.write_stranger(&key, which);
    }

    /// A stranger deletes a lease that somebody has.
    pub(super) fn foreign_delete(&mut self, which: usize) -> Result<(), Broken> {
        let Some(key) = self.held_key(which) else {
            return Ok(());
        };
        self.count(Mishap::ForeignDelete);
        self.store.table.drop_lease(&key);
        self.note(|| format!("a stranger deletes the lease of {key}"));
        self.disturb_lease(&key)
    }

    /// A stranger writes itself, or a name that a member has, over the holder
    /// of a lease.
    pub(super) fn foreign_overwrite(&mut self, which: usize) -> Result<(), Broken> {
        let Some(key) = self.held_key(which) else {
            return Ok(());
        };
        self.count(Mishap::ForeignOverwrite);
        self.write_stranger(&key, which);
        self.disturb_lease(&key)
    }

    fn write_stranger(&mut self, key: &LeaseKey, which: usize) {
        let (time, ttl) = (self.store.time(self.now), self.profile.settings.lease_ttl);
        // Those that share the layout may have one name with a member.
        let worker = match which % 3 {
            0 => self.processes[which % self.processes.len()]
                .host
                .worker
                .clone(),
            _ => stranger(which),
        };
        self.store.table.overwrite(time, key, &worker, ttl);
        self.note(|| format!("a stranger writes {worker} into the lease of {key}"));
    }

    /// A stranger says that it is a live worker.
    pub(super) fn foreign_member(&mut self, which: usize) {
        let settings = &self.profile.settings;
        let spans = (settings.heartbeat_ttl, settings.lease_ttl);
        let (worker, words) = (stranger(which), WORDS[which % WORDS.len()]);
        if self.store.pretend(self.now, &worker, words, spans) {
            self.count(Mishap::ForeignMember);
            self.note(|| format!("a stranger says that {worker} is alive: {words}"));
            self.spread(&divvy_core::store::LeaseNotice::Members);
        }
    }

    pub(super) fn disturb_lease(&mut self, key: &LeaseKey) -> Result<(), Broken> {
        let partition = self.partition_of(key);
        let until = self.now + self.profile.longest_lease();
        self.tell(&Fact::Disturbed {
            whose: Disturbed::Lease(partition),
            until,
        })
    }

    pub(super) fn keys(&self) -> Vec<LeaseKey> {
        let wanted = self.own.groups.wanted();
        wanted
            .map(|partition| self.own.groups.key_of(partition))
            .collect()
    }

    fn any_key(&mut self) -> LeaseKey {
        let keys = self.keys();
        match keys.len() {
            0 => self.own.groups.key_of(0),
            count => keys[self.dice.below(count)].clone(),
        }
    }

    fn held_key(&self, which: usize) -> Option<LeaseKey> {
        let time = self.store.time(self.now);
        let mut keys = self.keys();
        keys.retain(|key| self.store.table.holder(time, key).is_some());
        match keys.len() {
            0 => None,
            count => Some(keys.swap_remove(which % count)),
        }
    }
}

/// A worker that is not there.
pub(super) fn ghost(which: usize) -> WorkerId {
    let name = format!("ghost-{}", which % 2);
    WorkerId::new(CLUSTER, &name).expect("a valid name")
}

fn stranger(which: usize) -> WorkerId {
    let name = format!("stranger-{}", which % 2);
    WorkerId::new(CLUSTER, &name).expect("a valid name")
}
