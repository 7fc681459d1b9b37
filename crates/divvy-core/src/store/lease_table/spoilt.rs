//! Keys that another program has written over, each with the effect that its
//! key has in a Redis server, where readers meet garbage, the empty text of a
//! key of another type, and keys that never expire. They stay until somebody
//! deletes them or a store's client writes over them.

use crate::store::lease::{LeaseKey, WorkerId};

use super::{Expiring, HolderText, LeaseTable};

#[doc(hidden)]
impl LeaseTable {
    /// Writes a text that names no worker into a lease, held or not. Nobody can
    /// renew, release or take it.
    pub fn spoil_lease(&mut self, key: &LeaseKey, text: &str) {
        let lease = Expiring::endless(HolderText::Unreadable(text.into()));
        self.leases.insert(key.clone(), lease);
    }

    /// Takes the time to live of a lease away, until its holder renews it. Says
    /// whether the lease was there.
    pub fn persist_lease(&mut self, key: &LeaseKey) -> bool {
        let lease = self.leases.get_mut(key);
        lease.map(|lease| lease.expires = None).is_some()
    }

    /// Makes the last tenure of a lease unreadable: a tenure that cannot be
    /// proved is over, and nobody gets the lease.
    pub fn spoil_fence(&mut self, key: &LeaseKey) {
        self.fences.insert(key.clone(), None);
    }

    /// Writes garbage over the session of a worker: it is nobody's, so the
    /// worker opens another.
    pub fn spoil_session(&mut self, worker: &WorkerId) {
        self.sessions
            .insert(worker.clone(), Expiring::endless(None));
    }

    /// Lets a worker be alive until somebody says otherwise, and say this of
    /// itself.
    pub fn spoil_member(&mut self, worker: &WorkerId, info: &str) {
        self.members
            .insert(worker.clone(), Expiring::endless(info.to_owned()));
    }

    /// Replaces what a live worker says of itself, until its next heartbeat.
    /// Says whether it is alive.
    pub fn spoil_info(&mut self, worker: &WorkerId, info: &str) -> bool {
        let member = self.members.get_mut(worker);
        member
            .map(|member| info.clone_into(&mut member.value))
            .is_some()
    }

    /// Writes a mark of a move that never expires.
    pub fn spoil_moved(&mut self, key: &LeaseKey) {
        self.moved.insert(key.clone(), Expiring::endless(()));
    }

    /// Deletes every key of this lease, its mark included, that cannot be read
    /// or never expires.
    pub fn delete_spoilt(&mut self, key: &LeaseKey) {
        let is_spoilt = |lease: &Expiring<HolderText>| {
            lease.expires.is_none() || matches!(lease.value, HolderText::Unreadable(_))
        };
        if self.leases.get(key).is_some_and(is_spoilt) {
            self.leases.remove(key);
        }
        if self.fences.get(key).is_some_and(Option::is_none) {
            self.fences.remove(key);
        }
        if self.moved.get(key).is_some_and(|it| it.expires.is_none()) {
            self.moved.remove(key);
        }
    }

    /// Deletes every worker that never ceases to be alive, and every session
    /// that cannot be read.
    pub fn delete_spoilt_workers(&mut self) {
        self.members.retain(|_, member| member.expires.is_some());
        self.sessions.retain(|_, session| session.value.is_some());
    }
}

impl<T> Expiring<T> {
    const fn endless(value: T) -> Self {
        Self {
            value,
            expires: None,
        }
    }
}
