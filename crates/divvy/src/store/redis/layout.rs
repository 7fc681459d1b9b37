//! The names of keys and channels, and how times to live are written.
//!
//! Those without `divvy:` are shared with other agents, to the byte.

use std::time::Duration;

use divvy_core::store::{Key, LeaseKey, LeaseName, WorkerId};

/// The set of all workers of all clusters.
pub(super) const NODES_ALL: &str = "nodes:all";
/// The set of groups.
pub(super) const GROUPS: &str = "cfg:workloads";
/// Where a changed group is announced, by its bare name.
pub(super) const GROUP_CHANNEL: &str = "cfg:updates";
/// What tells this life of the data from another.
pub(super) const CREATED: &str = "divvy:created";

/// Whether leases are granted, since when the server may have forgotten some.
pub(super) const QUARANTINE: &str = "divvy:quarantine";

pub(super) fn lease(key: &LeaseKey) -> String {
    format!("lease:{key}")
}

/// Token and nonce of a lease's last tenure.
pub(super) fn fence(key: &LeaseKey) -> String {
    format!("divvy:t:{{lease:{key}}}")
}

pub(super) fn moved(key: &LeaseKey) -> String {
    format!("moved:{key}")
}

pub(super) fn node(id: &str) -> String {
    format!("node:{id}")
}

/// The value of a worker's own key.
pub(super) fn node_value(id: &WorkerId) -> String {
    format!("{}|{id}", id.cluster)
}

pub(super) fn nodes(cluster: &LeaseName) -> String {
    format!("nodes:{cluster}")
}

pub(super) fn session(id: &WorkerId) -> String {
    format!("divvy:session:{id}")
}

/// What a worker says of itself.
pub(super) fn info(id: &str) -> String {
    format!("divvy:info:{id}")
}

/// What operators wish of a cluster.
pub(super) fn wishes(cluster: &LeaseName) -> String {
    format!("divvy:wishes:{cluster}")
}

/// A cluster's log of moves.
pub(super) fn move_log(cluster: &LeaseName) -> String {
    format!("divvy:moves:{cluster}")
}

pub(super) fn group(name: &str) -> String {
    format!("cfg:workload:{name}")
}

/// Where releases are announced. Channels know no databases, so the number is
/// in their names.
pub(super) fn release_channel(database: u32) -> String {
    format!("divvy:released:{database}")
}

/// Where joins and leaves are announced.
pub(super) fn member_channel(database: u32, cluster: &LeaseName) -> String {
    format!("divvy:members:{database}:{cluster}")
}

/// The keys of one cluster's key-value store.
#[derive(Debug, Clone)]
pub(super) struct KeyValueLayout {
    cluster: LeaseName,
}

impl KeyValueLayout {
    pub(super) const fn new(cluster: LeaseName) -> Self {
        Self { cluster }
    }

    /// The key of a value, which is `<revision> <value>`.
    pub(super) fn value(&self, key: &Key) -> String {
        format!("{}{key}", self.values())
    }

    /// What the key of every value begins with.
    pub(super) fn values(&self) -> String {
        format!("divvy:kv:{}:v:", self.cluster)
    }

    /// The last revision.
    pub(super) fn revision(&self) -> String {
        format!("divvy:kv:{}:revision", self.cluster)
    }

    /// The sorted set of all keys, by which they are listed.
    pub(super) fn index(&self) -> String {
        format!("divvy:kv:{}:index", self.cluster)
    }

    /// Where changes are announced.
    pub(super) fn channel(&self, database: u32) -> String {
        format!("divvy:kv:{database}:{}", self.cluster)
    }
}

/// A time to live as the words of a SET: whole seconds by `EX`, else `PX`.
pub(super) fn expiry(ttl: Duration) -> (&'static str, u64) {
    match ttl.subsec_nanos() {
        0 => ("EX", ttl.as_secs()),
        _ => ("PX", milliseconds(ttl)),
    }
}

/// A time to live in milliseconds, never less than it was.
pub(super) fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_shared_layout() {
        let key = LeaseKey::new("orders", 7).unwrap();
        let id = WorkerId::new("default", "a").unwrap();
        assert_eq!(lease(&key), "lease:orders:7");
        assert_eq!(fence(&key), "divvy:t:{lease:orders:7}");
        assert_eq!(moved(&key), "moved:orders:7");
        assert_eq!(node(&id.to_string()), "node:default:a");
        assert_eq!(node_value(&id), "default|default:a");
        assert_eq!(nodes(&id.cluster), "nodes:default");
        assert_eq!(session(&id), "divvy:session:default:a");
        assert_eq!(info(&id.to_string()), "divvy:info:default:a");
        assert_eq!(group("orders"), "cfg:workload:orders");
    }

    #[test]
    fn whole_seconds_are_written_as_such_and_nothing_is_shortened() {
        assert_eq!(expiry(Duration::from_secs(10)), ("EX", 10));
        assert_eq!(expiry(Duration::from_millis(1500)), ("PX", 1500));
        assert_eq!(expiry(Duration::from_micros(10_001)), ("PX", 11));
        assert_eq!(milliseconds(Duration::from_secs(2)), 2000);
    }
}
