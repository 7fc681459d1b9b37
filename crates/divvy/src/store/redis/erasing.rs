//! Removal of all that a cluster has written.

use divvy_core::store::{LeaseKey, LeaseName, Prefix, StoreError, WorkerId};

use super::failure::Nature;
use super::key_value::RedisKeyValue;
use super::leases::RedisLeases;
use super::link::Link;
use super::{layout, set};
use crate::store::KeyValue as _;

/// Keys of one command: few enough that no other client waits long.
const CALL_KEYS: usize = 250;

impl RedisKeyValue {
    /// Removes all keys of the cluster, and what counts their revisions.
    pub(in crate::store) async fn erase(&self) -> Result<(), StoreError> {
        let names = self.layout();
        let values = self.list(&Prefix::ALL).await?.into_iter();
        let values = values.map(|entry| names.value(&entry.key));
        let keys = values.chain([names.index(), names.revision()]);
        delete(self.link(), keys.collect()).await
    }
}

impl RedisLeases {
    /// Removes leases with their tokens, and their marks.
    pub(in crate::store) async fn erase_leases(&self, keys: &[LeaseKey]) -> Result<(), StoreError> {
        let each = |key: &LeaseKey| [layout::lease(key), layout::fence(key), layout::moved(key)];
        delete(self.link(), keys.iter().flat_map(each).collect()).await
    }

    /// Removes all workers of the cluster, what is wished of them, and its log
    /// of moves.
    pub(in crate::store) async fn erase_members(&self) -> Result<(), StoreError> {
        let cluster = self.cluster_name();
        let call = self.link().call(Nature::Write)?;
        let beginning = format!("{cluster}:");
        let listed = set::members(&call, layout::NODES_ALL, &beginning).await?;
        let mut keys = vec![
            layout::nodes(cluster),
            layout::wishes(cluster),
            layout::move_log(cluster),
        ];
        for id in &listed {
            // The rest of one of a cluster with a longer name is no name.
            let name = id.strip_prefix(&beginning).unwrap_or_default();
            let Ok(name) = LeaseName::new("worker", name) else {
                continue;
            };
            let worker = WorkerId {
                cluster: cluster.clone(),
                name,
            };
            keys.extend([layout::session(&worker), layout::node(id), layout::info(id)]);
            let mut command = ::redis::cmd("SREM");
            command.arg(layout::NODES_ALL).arg(id);
            call.ask(command).await?;
        }
        delete(self.link(), keys).await
    }
}

async fn delete(link: &Link, keys: Vec<String>) -> Result<(), StoreError> {
    for some in keys.chunks(CALL_KEYS) {
        let mut command = ::redis::cmd("DEL");
        command.arg(some);
        link.call(Nature::Write)?.ask(command).await?;
    }
    Ok(())
}
