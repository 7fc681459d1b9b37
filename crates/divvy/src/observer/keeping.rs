//! What keeps a partition with an owner that should not have it, as far as a
//! store of leases shows it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use divvy_core::lease::Misalignment;
use divvy_core::store::{LeaseKey, Member, StoreError, WorkerInfo};

use super::lease::said;
use super::snapshot::PartitionStatus;
use crate::store::Leases;

/// Partitions of one question.
const KEYS_PER_CALL: usize = 1_000;

/// Says of all that are not where they should be what keeps them.
pub(super) async fn explain(
    store: &dyn Leases,
    members: &[Member],
    keys: &[LeaseKey],
    partitions: &mut [PartitionStatus],
) -> Result<(), StoreError> {
    let infos = members.iter().map(|member| (&*member.name, said(member)));
    let infos: BTreeMap<&str, WorkerInfo> = infos.collect();
    let mut kept: Vec<usize> = Vec::new();
    for (index, partition) in partitions.iter_mut().enumerate() {
        let owner = partition.owner.as_deref().and_then(|name| infos.get(name));
        let is_elsewhere = partition.desired.is_some() && partition.desired != partition.owner;
        if let Some(owner) = owner.filter(|_| is_elsewhere) {
            partition.misaligned = known(owner, partition).map(|why| why.as_str());
            if partition.misaligned.is_none() && owner.gives_up.is_some() {
                kept.push(index);
            }
        }
    }
    for some in kept.chunks(KEYS_PER_CALL) {
        let asked: Vec<LeaseKey> = some.iter().map(|index| keys[*index].clone()).collect();
        let cooling = store.cooling(&asked).await?;
        for (index, is_cooling) in some.iter().zip(cooling) {
            let why = match is_cooling {
                true => Misalignment::Cooldown,
                false => Misalignment::Pace,
            };
            partitions[*index].misaligned = Some(why.as_str());
        }
    }
    Ok(())
}

/// Says of partitions whose stop was not confirmed that this keeps them, unless
/// another has them by now; and says so of each worker.
pub(super) fn unconfirmed(members: &[Member], partitions: &mut [PartitionStatus]) -> Vec<String> {
    let mut problems = Vec::new();
    for member in members {
        let names = said(member).unconfirmed;
        if names.is_empty() {
            continue;
        }
        for partition in partitions.iter_mut() {
            let is_elsewhere = |owner: &String| *owner != member.name;
            if names.contains(&partition.name)
                && !partition.owner.as_ref().is_some_and(is_elsewhere)
            {
                partition.misaligned = Some(Misalignment::StopNotConfirmed.as_str());
            }
        }
        problems.push(format!(
            "stop not confirmed by the service of {}: {}; it may still work on them, although \
             their leases are left to expire",
            member.name,
            names.join(", ")
        ));
    }
    problems
}

/// What its owner says of itself tells enough.
fn known(owner: &WorkerInfo, partition: &PartitionStatus) -> Option<Misalignment> {
    let gives_up = owner.gives_up?;
    if gives_up.never {
        return Some(Misalignment::Off);
    }
    // A token is a time of the store's clock, which may not be ours.
    let granted_ms = partition.token.map(|token| token.get() / 1024)?;
    let granted = Duration::from_millis(u64::try_from(granted_ms).ok()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let has_run = now.saturating_sub(granted);
    let is_young = has_run < Duration::from_millis(gives_up.min_runtime_ms);
    is_young.then_some(Misalignment::MinRuntime)
}

#[cfg(test)]
mod tests {
    use divvy_core::store::{Claim, GivingUp, Heartbeat, LeaseName, Nonce, Tenure};

    use super::super::lease::look;
    use super::*;
    use crate::store::MemoryLeases;

    const TTL: Duration = Duration::from_secs(60);

    /// A store in which `a` has all units, and `b` has just come.
    async fn crowded(gives_up: GivingUp) -> (MemoryLeases, Vec<LeaseKey>) {
        let store = MemoryLeases::new("c").unwrap();
        let keys: Vec<_> = (0..16)
            .map(|n| LeaseKey::new("orders", n).unwrap())
            .collect();
        for (number, name) in [(1, "a"), (2, "b")] {
            let worker = LeaseName::new("worker", name).unwrap();
            let session = Nonce::new(number);
            let info = WorkerInfo {
                partitions: [("orders".to_owned(), 16)].into(),
                gives_up: Some(gives_up),
                ..WorkerInfo::default()
            };
            store.open_session(&worker, session, TTL).await.unwrap();
            let heartbeat = Heartbeat::new(session, info, TTL, TTL);
            let beaten = store.beat(&worker, &heartbeat).await.unwrap();
            assert_eq!(beaten.tenure, Tenure::Current);
            let claim = |key: &LeaseKey| Claim {
                key: key.clone(),
                nonce: session,
            };
            let claims: Vec<Claim> = keys.iter().map(claim).collect();
            store.acquire(&worker, &claims, TTL).await.unwrap();
        }
        (store, keys)
    }

    #[tokio::test]
    async fn partitions_whose_stop_is_not_confirmed_are_named_unless_another_has_them() {
        let (store, keys) = crowded(GivingUp::default()).await;
        let a = LeaseName::new("worker", "a").unwrap();
        let unconfirmed: Vec<String> = keys[..3].iter().map(ToString::to_string).collect();
        let info = WorkerInfo {
            partitions: [("orders".to_owned(), 16)].into(),
            unconfirmed: unconfirmed.clone(),
            ..WorkerInfo::default()
        };
        let heartbeat = Heartbeat::new(Nonce::new(1), info, TTL, TTL);
        let beaten = store.beat(&a, &heartbeat).await.unwrap();
        assert_eq!(beaten.tenure, Tenure::Current);
        // The first still has its lease, the second's has expired, and the third
        // has another owner.
        for (worker, key) in [("a", &keys[1]), ("a", &keys[2])] {
            let worker = LeaseName::new("worker", worker).unwrap();
            let claim = Claim {
                key: key.clone(),
                nonce: Nonce::new(1),
            };
            store.release(&worker, &[claim]).await.unwrap();
        }
        let b = LeaseName::new("worker", "b").unwrap();
        let claim = Claim {
            key: keys[2].clone(),
            nonce: Nonce::new(2),
        };
        store.acquire(&b, &[claim], TTL).await.unwrap();
        let snapshot = look(&store).await.unwrap();
        let found: Vec<bool> = unconfirmed
            .iter()
            .map(|name| {
                let why = snapshot.partition(name).unwrap().misaligned;
                why == Some("stop_not_confirmed")
            })
            .collect();
        assert_eq!(found, [true, true, false]);
        let told = "stop not confirmed by the service of a: orders:0, orders:1, orders:2";
        assert!(
            snapshot.problems.iter().any(|it| it.starts_with(told)),
            "{:?}",
            snapshot.problems
        );
    }

    #[tokio::test]
    async fn what_keeps_a_unit_with_its_owner_is_told_as_far_as_the_store_shows_it() {
        let slow = GivingUp {
            min_runtime_ms: 3_600_000,
            ..GivingUp::default()
        };
        let never = GivingUp {
            never: true,
            ..GivingUp::default()
        };
        let quick = GivingUp::default();
        for (gives_up, is_moved, expected) in [
            (slow, false, "min_runtime"),
            (never, false, "off"),
            (quick, true, "cooldown"),
            (quick, false, "pace"),
        ] {
            let (store, keys) = crowded(gives_up).await;
            if is_moved {
                store.mark_moved(&keys, TTL).await.unwrap();
            }
            let snapshot = look(&store).await.unwrap();
            let partitions = snapshot.partitions.iter();
            let of = |name| move |it: &&PartitionStatus| it.desired.as_deref() == Some(name);
            let kept: Vec<_> = partitions.clone().filter(of("b")).collect();
            assert!(!kept.is_empty());
            assert!(kept.iter().all(|it| it.misaligned == Some(expected)));
            assert!(partitions.filter(of("a")).all(|it| it.misaligned.is_none()));
        }
    }
}
