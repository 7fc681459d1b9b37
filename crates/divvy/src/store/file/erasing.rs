//! The clusters of a file, and removal of all that one has written.

use std::collections::BTreeSet;

use divvy_core::store::{LeaseKey, StoreError};
use rusqlite::params;

use super::FileStore;

/// What is there of a cluster beside its keys and leases.
const OF_CLUSTER: [&str; 4] = [
    "DELETE FROM session WHERE cluster = ?",
    "DELETE FROM member WHERE cluster = ?",
    "DELETE FROM wish WHERE cluster = ?",
    "DELETE FROM move_log WHERE cluster = ?",
];

impl FileStore {
    /// The clusters that have written anything.
    pub(in crate::store) async fn clusters(&self) -> Result<BTreeSet<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT cluster FROM entry UNION SELECT cluster FROM member";
            let mut found = connection.prepare_cached(sql)?;
            found.query_map([], |row| row.get(0))?.collect()
        })
        .await
    }

    /// Removes all keys of the cluster.
    pub(in crate::store) async fn erase_keys(&self) -> Result<(), StoreError> {
        let cluster = self.cluster();
        self.write(move |writing| {
            let sql = "DELETE FROM entry WHERE cluster = ?";
            writing.prepare_cached(sql)?.execute([&cluster]).map(drop)
        })
        .await
    }

    /// Removes leases with their tokens, and their marks.
    pub(in crate::store) async fn erase_leases(&self, keys: &[LeaseKey]) -> Result<(), StoreError> {
        let keys = keys.to_vec();
        self.write(move |writing| {
            for key in &keys {
                for sql in [
                    "DELETE FROM lease WHERE name = ? AND number = ?",
                    "DELETE FROM moved WHERE name = ? AND number = ?",
                ] {
                    let row = params![key.group.as_str(), key.number];
                    writing.prepare_cached(sql)?.execute(row)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Removes all workers of the cluster, what is wished of them, and its log
    /// of moves.
    pub(in crate::store) async fn erase_members(&self) -> Result<(), StoreError> {
        let cluster = self.cluster();
        self.write(move |writing| {
            for sql in OF_CLUSTER {
                writing.prepare_cached(sql)?.execute([&cluster])?;
            }
            Ok(())
        })
        .await
    }
}
