//! What a store's clients do not do, and servers and strangers do: throw keys
//! away, write to them with no regard to tenures, and look at one alone. For
//! those who try out whether lease mode survives it.

use std::time::Duration;

use super::{Expiring, HolderText, LeaseTable, StoreTime, live};
use crate::store::lease::{LeaseKey, WorkerId};

#[doc(hidden)]
impl LeaseTable {
    /// Writes a worker over whoever holds a lease. No token is minted: that of
    /// the last tenure stays.
    pub fn overwrite(&mut self, time: StoreTime, key: &LeaseKey, worker: &WorkerId, ttl: Duration) {
        let lease = Expiring::new(HolderText::Worker(worker.clone()), time.now, ttl);
        self.leases.insert(key.clone(), lease);
    }

    /// Throws a lease away, and says whether it was there.
    pub fn drop_lease(&mut self, key: &LeaseKey) -> bool {
        self.leases.remove(key).is_some()
    }

    /// Throws the last tenure of a lease away, and says whether it was there.
    pub fn drop_fence(&mut self, key: &LeaseKey) -> bool {
        self.fences.remove(key).is_some()
    }

    /// Throws a session away, and says whether it was there.
    pub fn drop_session(&mut self, worker: &WorkerId) -> bool {
        self.sessions.remove(worker).is_some()
    }

    /// Throws a membership away, and says whether it was there.
    pub fn drop_member(&mut self, worker: &WorkerId) -> bool {
        self.members.remove(worker).is_some()
    }

    /// What a live worker says of itself, if it is one.
    pub fn words_of(&self, time: StoreTime, worker: &WorkerId) -> Option<&str> {
        let member = live(&self.members, worker, time.now)?;
        Some(&member.value)
    }

    /// Throws the mark of a move away, and says whether it was there.
    pub fn drop_moved(&mut self, key: &LeaseKey) -> bool {
        self.moved.remove(key).is_some()
    }
}
