//! The clusters of a database, and removal of all that one has written.

use std::collections::BTreeSet;

use divvy_core::store::{LeaseKey, LeaseName, Prefix, StoreError, WorkerId};

use super::endpoint::Endpoint;
use super::failure::Nature;
use super::key_value::RedisKeyValue;
use super::leases::RedisLeases;
use super::link::{Eviction, Link};
use super::{layout, set};
use crate::store::KeyValue as _;
use crate::store::settings::StoreSettings;
use crate::store::url::StoreUrl;

/// Keys of one command: few enough that no other client waits long.
const CALL_KEYS: usize = 250;

/// The clusters of a database: those in leader mode only where its user may
/// look at all keys.
pub(in crate::store) async fn clusters(
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<BTreeSet<String>, StoreError> {
    let endpoint = Endpoint::new(url, settings)?;
    let link = Link::open(endpoint, settings.into(), Eviction::GoOn).await?;
    let call = link.call(Nature::Read)?;
    let listed = set::members(&call, layout::NODES_ALL, "").await;
    let workers = listed.unwrap_or_default().into_iter();
    let leased = workers.filter_map(|id| id.rsplit_once(':').map(|(cluster, _)| cluster.into()));
    let mut clusters: BTreeSet<String> = leased.collect();
    let (begin, end) = ("divvy:kv:", ":revision");
    let listed = set::keys(&call, &format!("{begin}*{end}")).await;
    clusters.extend(listed.unwrap_or_default().iter().filter_map(|key| {
        let cluster = key.strip_prefix(begin)?.strip_suffix(end)?;
        Some(cluster.to_owned())
    }));
    Ok(clusters)
}

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
