//! Holders of leases that are no workers of this cluster, and leases that never
//! expire, each reported once.

use std::collections::BTreeSet;

use crate::store::{Holder, LeaseKey, LeaseName, WorkerId};

/// Most that are reported, of each kind.
const REPORTED_MAX: usize = 100;
/// How much of a holder is shown: another program may have written anything.
const SHOWN_MAX: usize = 64;

/// What was reported.
#[derive(Debug, Clone, Default)]
pub(super) struct Strangers {
    holders: BTreeSet<(LeaseName, Box<str>)>,
    endless: BTreeSet<LeaseKey>,
}

impl Strangers {
    /// What is to be reported of a lease that this worker does not hold:
    /// nothing, if its holder is one of this worker's cluster and it expires, or
    /// that was reported before.
    pub(super) fn meet(
        &mut self,
        worker: &WorkerId,
        key: &LeaseKey,
        holder: &Holder,
    ) -> Option<String> {
        let shown = shown(&holder.worker);
        if holder.is_endless() {
            let is_new = self.endless.len() < REPORTED_MAX && self.endless.insert(key.clone());
            return is_new.then(|| {
                format!(
                    "the lease of {key} is held by {shown} and never expires, so nobody can take \
                     it: another program wrote it, so delete its key (in Redis: DEL lease:{key})"
                )
            });
        }
        let cluster = worker.cluster.as_str();
        let rest = holder.worker.strip_prefix(cluster);
        let is_ours = rest.is_some_and(|rest| rest.starts_with(':'));
        if is_ours || self.holders.len() >= REPORTED_MAX {
            return None;
        }
        let group = &key.group;
        let is_new = self
            .holders
            .insert((group.clone(), holder.worker.as_str().into()));
        let is_worker = holder.worker.parse::<WorkerId>().is_ok();
        is_new.then(|| {
            if is_worker {
                format!(
                    "units of workload '{group}' are held by {shown}, which is no worker of \
                     cluster '{cluster}': all clusters of a store share workloads of one name, so \
                     give them other names or other stores"
                )
            } else {
                format!(
                    "the lease of {key} is held by {shown}, which is no worker: another program \
                     wrote it, so delete its key (in Redis: DEL lease:{key})"
                )
            }
        })
    }
}

/// A holder in quotes, cut where it is long.
fn shown(holder: &str) -> String {
    match holder.char_indices().nth(SHOWN_MAX) {
        None => format!("{holder:?}"),
        Some((end, _)) => format!("{:?}…", &holder[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn held(by: &str, left: Duration) -> Holder {
        Holder {
            worker: by.to_owned(),
            left,
            fence: None,
        }
    }

    #[test]
    fn lease_that_never_expires_is_reported_once_with_its_key() {
        let me = WorkerId::new("c", "a").unwrap();
        let mut strangers = Strangers::default();
        let garbage = "x".repeat(1024);
        for (number, by) in ["c:a", "c:b", &garbage].into_iter().enumerate() {
            let key = LeaseKey::new("demo", u32::try_from(number).unwrap()).unwrap();
            let holder = held(by, Holder::ENDLESS);
            let told = strangers.meet(&me, &key, &holder).unwrap();
            let key_named = format!("DEL lease:demo:{number}");
            assert!(told.contains("never expires"), "{told}");
            assert!(told.contains(&key_named) && told.len() < 300, "{told}");
            assert_eq!(strangers.meet(&me, &key, &holder), None);
        }
    }

    #[test]
    fn garbage_in_place_of_a_holder_is_cut_and_its_key_named() {
        let me = WorkerId::new("c", "a").unwrap();
        let mut strangers = Strangers::default();
        let key = LeaseKey::new("demo", 7).unwrap();
        let soon = Duration::from_secs(1);
        assert_eq!(strangers.meet(&me, &key, &held("c:b", soon)), None);
        let told = strangers.meet(&me, &key, &held(&"\0".repeat(1024), soon));
        let told = told.unwrap();
        assert!(told.contains("DEL lease:demo:7"), "{told}");
        assert!(told.len() < 400, "{told}");
        let told = strangers.meet(&me, &key, &held("other:b", soon)).unwrap();
        assert!(told.contains("give them other names"), "{told}");
    }
}
