//! A cluster in lease mode, seen from outside.

use std::collections::BTreeMap;

use divvy_core::lease::{Group, Misalignment, Outlook};
use divvy_core::store::{GivingUp, Holder, LeaseKey, LeaseName, Member, StoreError, WorkerInfo};
use divvy_core::{Considered, Control, MoveEntry, WORKER_WEIGHT_DEFAULT};

use super::keeping;
use super::mode::Mode;
use super::snapshot::{PartitionStatus, Snapshot, WorkerLife, WorkerStatus};
use crate::store::Leases;

/// Leases of one question.
const HOLDERS_PER_CALL: usize = 5_000;
/// Of many leases that never expire, so many are named.
const ENDLESS_NAMED_MAX: usize = 8;

/// What is in the store beside leases.
struct Setting {
    members: Vec<Member>,
    keys: Vec<LeaseKey>,
    cluster: LeaseName,
    outlook: Outlook,
    problems: Vec<String>,
}

async fn setting(store: &dyn Leases) -> Result<Setting, StoreError> {
    let (members, wishes) = tokio::try_join!(store.members(), store.wishes())?;
    let mut problems = Vec::new();
    let groups = groups(store, &members, &mut problems).await?;
    let keys = groups.iter().flat_map(|group| {
        let name = group.name().clone();
        (0..group.partitions()).map(move |number| LeaseKey {
            group: name.clone(),
            number,
        })
    });
    let keys = keys.collect();
    let cluster = LeaseName::new("cluster", store.cluster())?;
    let weight = WORKER_WEIGHT_DEFAULT;
    let wishes = match decoded(wishes.as_deref(), store) {
        Ok(_control) => wishes,
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    };
    let outlook = Outlook::new(&cluster, &members, wishes.as_deref(), weight, groups);
    problems.extend(outlook.problems().iter().cloned());
    Ok(Setting {
        members,
        keys,
        cluster,
        outlook,
        problems,
    })
}

pub(super) async fn look(store: &dyn Leases) -> Result<Snapshot, StoreError> {
    let Setting {
        members,
        keys,
        cluster,
        outlook,
        mut problems,
    } = setting(store).await?;
    let mut holders = Vec::with_capacity(keys.len());
    for some in keys.chunks(HOLDERS_PER_CALL) {
        holders.extend(store.holders(some).await?);
    }
    for (key, holder) in keys.iter().zip(&mut holders) {
        // A worker has a name. Nobody can take the lease, and nobody works on it.
        if holder.as_ref().is_some_and(|it| it.worker.is_empty()) {
            *holder = None;
            problems.push(format!(
                "key 'lease:{key}' does not hold a lease: another program wrote it; delete the key"
            ));
        }
    }
    problems.extend(endless(&keys, &holders));
    let quarantine = members.iter().any(|member| said(member).quarantined);
    let held = keys.iter().zip(holders);
    let partitions = held.map(|(key, holder)| {
        let mut partition = partition(&outlook, &cluster, key, holder);
        if quarantine && partition.owner.is_none() {
            partition.misaligned = Some(Misalignment::Quarantine.as_str());
        }
        partition
    });
    let mut partitions: Vec<PartitionStatus> = partitions.collect();
    keeping::explain(store, &members, &keys, &mut partitions).await?;
    problems.extend(keeping::unconfirmed(&members, &mut partitions));
    let snapshot = Snapshot {
        mode: Mode::Lease,
        store: store.describe(),
        version: None,
        lifecycle: None,
        quarantine,
        workers: members
            .iter()
            .map(|member| worker(member, outlook.control()))
            .collect(),
        partitions,
        wishes: outlook.control().clone(),
        problems,
        took: std::time::Duration::ZERO,
    };
    Ok(snapshot.counted())
}

/// Leases that never expire, so that nobody can take them.
fn endless(keys: &[LeaseKey], holders: &[Option<Holder>]) -> Option<String> {
    let is_endless = |holder: &Option<Holder>| holder.as_ref().is_some_and(Holder::is_endless);
    let found = keys.iter().zip(holders);
    let found: Vec<String> = found
        .filter(|(_, holder)| is_endless(holder))
        .map(|(key, _)| key.to_string())
        .collect();
    let (named, rest) = found.split_at(found.len().min(ENDLESS_NAMED_MAX));
    let more = match rest.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    (!found.is_empty()).then(|| {
        format!(
            "leases that never expire: {}{more}; another program wrote them, so delete their keys \
             (in Redis: DEL lease:{})",
            named.join(", "),
            found[0]
        )
    })
}

pub(super) async fn ranking(store: &dyn Leases, name: &str) -> Result<Vec<Considered>, StoreError> {
    let setting = setting(store).await?;
    let key = setting.keys.iter().find(|key| key.to_string() == name);
    let Some(key) = key else {
        return Ok(Vec::new());
    };
    let holder = store.holders(std::slice::from_ref(key)).await?.pop();
    let known = partition(&setting.outlook, &setting.cluster, key, holder.flatten());
    Ok(setting.outlook.ranking(key, known.owner.as_deref()))
}

/// How a live worker gives up what another should have, if it says so.
pub(super) async fn gives_up(
    store: &dyn Leases,
    worker: &str,
) -> Result<Option<GivingUp>, StoreError> {
    let members = store.members().await?;
    let member = members.iter().find(|member| member.name == worker);
    Ok(member.and_then(|member| said(member).gives_up))
}

/// The groups that live workers serve, as they say; where one does not say,
/// those of the store besides.
async fn groups(
    store: &dyn Leases,
    members: &[Member],
    problems: &mut Vec<String>,
) -> Result<Vec<Group>, StoreError> {
    let mut sizes: BTreeMap<String, u32> = BTreeMap::new();
    let mut limits: BTreeMap<String, u32> = BTreeMap::new();
    let mut is_said = !members.is_empty();
    for member in members {
        let info = said(member);
        is_said &= !info.partitions.is_empty();
        for (group, size) in info.partitions {
            let known = *sizes.entry(group.clone()).or_insert(size);
            if known != size {
                problems.push(format!(
                    "workers do not agree on how many partitions '{group}' has: {known}, and \
                     {size} by {}",
                    member.name
                ));
                sizes.insert(group, known.max(size));
            }
        }
    }
    for document in store.groups().await? {
        let name = document.name;
        if is_said && !sizes.contains_key(&name) {
            // Of another cluster, or of nobody.
            continue;
        }
        let Some(json) = document.json else {
            problems.push(format!("workload '{name}' is listed and has no document"));
            continue;
        };
        match Group::from_json(&name, &json) {
            Ok(group) => {
                let size = group.partitions();
                sizes.entry(name.clone()).or_insert(size);
                limits.extend(group.max_per_worker().map(|most| (name, most)));
            }
            Err(error) => problems.push(format!(
                "workload '{name}' cannot be read: {error}; divvy workload set {name} N writes it \
                 anew, divvy workload remove {name} deletes it"
            )),
        }
    }
    let group = |(name, size): (&String, &u32)| {
        let group = Group::new(name, *size).ok()?;
        let most = limits.get(name).copied().unwrap_or(0);
        Some(group.with_max_per_worker(most))
    };
    Ok(sizes.iter().filter_map(group).collect())
}

/// What a worker says of itself, as far as it can be read.
pub(super) fn said(member: &Member) -> WorkerInfo {
    let info = member
        .info
        .as_deref()
        .map(WorkerInfo::from_json)
        .and_then(Result::ok);
    info.unwrap_or_default()
}

fn worker(member: &Member, control: &Control) -> WorkerStatus {
    let info = said(member);
    let is_drained = info.drained || control.drained.contains(&member.name);
    WorkerStatus {
        name: member.name.clone(),
        // The store forgets whoever is not.
        life: WorkerLife::Live,
        healthy: info.healthy,
        weight: info.weight,
        zone: None,
        instance: None,
        leads: false,
        cordoned: control.cordoned.contains(&member.name),
        drained: is_drained,
        owned: 0,
        lease: None,
        renewed: None,
        serves: info.groups,
        max_partitions: info.max_partitions,
    }
}

fn partition(
    outlook: &Outlook,
    cluster: &LeaseName,
    key: &LeaseKey,
    holder: Option<Holder>,
) -> PartitionStatus {
    let name = key.to_string();
    let prefix = format!("{cluster}:");
    let is_ours = |holder: &Holder| holder.worker.starts_with(&prefix);
    let foreign = holder.as_ref().is_some_and(|holder| !is_ours(holder));
    // A holder of another cluster is told with its whole id.
    let owner = holder.as_ref().map(|holder| {
        let name = holder.worker.strip_prefix(&prefix);
        name.unwrap_or(&holder.worker).to_owned()
    });
    // A cordoned worker keeps what it has, whoever would get it otherwise.
    let control = outlook.control();
    let is_kept = owner
        .as_ref()
        .is_some_and(|owner| control.cordoned.contains(owner) && !control.drained.contains(owner));
    let desired = outlook.desired(key).filter(|_| !is_kept);
    let is_capped = holder.is_none() && outlook.is_capped(key);
    PartitionStatus {
        owner,
        token: holder
            .as_ref()
            .and_then(|holder| holder.fence)
            .map(|(token, _)| token),
        asked_back: false,
        orphaned: false,
        foreign,
        lease_left: holder.map(|holder| holder.left),
        desired: desired.map(str::to_owned),
        misaligned: is_capped.then(|| Misalignment::Cap.as_str()),
        weight: 1.0,
        pinned: outlook.control().pinned.get(&name).cloned(),
        name,
    }
}

pub(super) async fn moves(store: &dyn Leases) -> Result<Vec<MoveEntry>, StoreError> {
    let lines = store.moves().await?;
    // What somebody else wrote is passed over.
    let entries = lines.iter().map(|line| MoveEntry::from_line(line));
    let mut entries: Vec<MoveEntry> = entries.filter_map(Result::ok).collect();
    sort(&mut entries);
    Ok(entries)
}

/// In the order in which it happened. Who gives up and who takes write when
/// they come to it, and tell the time by clocks of their own; but whoever has a
/// partition by a higher token had it later.
fn sort(entries: &mut [MoveEntry]) {
    let token = |entry: &MoveEntry| entry.token.as_ref()?.parse::<i64>().ok();
    let mut taken: BTreeMap<String, BTreeMap<i64, u64>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.to.is_some()) {
        if let Some(token) = token(entry) {
            let of_partition = taken.entry(entry.partition.clone()).or_default();
            of_partition.insert(token, entry.unix_ms);
        }
    }
    for entry in entries.iter_mut().filter(|entry| entry.to.is_none()) {
        let later = taken.get(&entry.partition).zip(token(entry));
        let next = later.and_then(|(taken, token)| taken.range(token + 1..).next());
        if let Some((_, next)) = next {
            entry.unix_ms = entry.unix_ms.min(*next);
        }
    }
    entries.sort_by_key(|entry| (entry.unix_ms, token(entry), entry.to.is_none()));
}

pub(super) async fn control(store: &dyn Leases) -> Result<(Control, Option<String>), StoreError> {
    let text = store.wishes().await?;
    Ok((decoded(text.as_deref(), store)?, text))
}

fn decoded(wishes: Option<&str>, store: &dyn Leases) -> Result<Control, StoreError> {
    let Some(text) = wishes else {
        return Ok(Control::default());
    };
    Control::decode(text.as_bytes()).map_err(|_error| {
        let key = format!("key 'divvy:wishes:{}' in Redis", store.cluster());
        super::unreadable(&key)
    })
}

/// What the wishes have become, unless somebody else was faster.
pub(super) async fn change(
    store: &dyn Leases,
    change: &mut impl FnMut(&mut Control),
) -> Result<Option<Control>, StoreError> {
    let (mut control, before) = control(store).await?;
    change(&mut control);
    let text = String::from_utf8(control.encode()).expect("JSON is a text");
    let is_written = store.set_wishes(before.as_deref(), &text).await?;
    Ok(is_written.then_some(control))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn leases_that_never_expire_are_named_and_others_are_not() {
        let keys: Vec<LeaseKey> = (0..12)
            .map(|number| LeaseKey::new("orders", number).unwrap())
            .collect();
        let held = |left| {
            Some(Holder {
                worker: "default:a".to_owned(),
                left,
                fence: None,
            })
        };
        let lasting = vec![held(Duration::from_secs(9)); 12];
        assert_eq!(endless(&keys, &lasting), None);
        let mut holders = vec![held(Holder::ENDLESS); 12];
        holders[0] = None;
        let told = endless(&keys, &holders).unwrap();
        let named =
            "orders:1, orders:2, orders:3, orders:4, orders:5, orders:6, orders:7, orders:8";
        assert!(told.contains(&format!("{named} and 3 more")), "{told}");
        assert!(told.contains("DEL lease:orders:1"), "{told}");
    }

    fn entry(to: Option<&str>, token: &str, unix_ms: u64) -> MoveEntry {
        let to = to.map_or(String::new(), |to| format!(r#""to":"{to}","#));
        let line = format!(
            r#"{{"partition":"p:1",{to}"cause":"c","token":"{token}","unix_ms":{unix_ms}}}"#
        );
        MoveEntry::from_line(&line).unwrap()
    }

    #[test]
    fn who_took_a_partition_comes_after_whoever_gave_it_up_whatever_clocks_say() {
        let mut entries = [
            entry(Some("b"), "20", 7),
            entry(None, "10", 9),
            entry(Some("a"), "10", 5),
            entry(None, "20", 7),
        ];
        sort(&mut entries);
        let told = entries.map(|entry| (entry.to, entry.token.unwrap(), entry.unix_ms));
        let token = |token: &str| token.to_owned();
        let expected = [
            (Some("a".to_owned()), token("10"), 5),
            (None, token("10"), 7),
            (Some("b".to_owned()), token("20"), 7),
            (None, token("20"), 7),
        ];
        assert_eq!(told, expected);
    }
}
