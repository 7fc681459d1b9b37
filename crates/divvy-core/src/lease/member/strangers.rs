//! Holders of leases that are no workers of this cluster, each told once.

use std::collections::BTreeSet;

use crate::store::{LeaseKey, LeaseName, WorkerId};

/// Most that are told.
const TOLD_MAX: usize = 100;

/// Whom was met, and with which group.
#[derive(Debug, Clone, Default)]
pub(super) struct Strangers {
    told: BTreeSet<(LeaseName, Box<str>)>,
}

impl Strangers {
    /// What is to be told of a holder: nothing, if it is one of this worker's
    /// cluster, or was told before.
    pub(super) fn meet(
        &mut self,
        worker: &WorkerId,
        key: &LeaseKey,
        holder: &str,
    ) -> Option<String> {
        let cluster = worker.cluster.as_str();
        let rest = holder.strip_prefix(cluster);
        let is_ours = rest.is_some_and(|rest| rest.starts_with(':'));
        if is_ours || self.told.len() >= TOLD_MAX {
            return None;
        }
        let is_new = self.told.insert((key.group.clone(), holder.into()));
        let group = &key.group;
        is_new.then(|| {
            format!(
                "units of workload '{group}' are held by {holder:?}, which is no worker of \
                 cluster '{cluster}': all clusters of a store share workloads of one name, so \
                 give them other names or other stores"
            )
        })
    }
}
