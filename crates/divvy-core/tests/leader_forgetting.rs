//! Leader mode over a store that loses single keys, whole records of a past,
//! or everything: whoever may still work is waited for.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use std::time::Duration;

use cluster::{Cluster, stranger};
use divvy_core::leader::{
    Event, HookEnd, LeaderRecord, LeaderSettings, Life, RootHead, STOPPING_MAX, STRUCK_OUT,
    SessionId, Shutdown, Watched, WorkerRecord,
};
use divvy_core::store::{Change, Entry, Key, Revision};
use divvy_core::{Health, Moment};

fn fast() -> LeaderSettings {
    LeaderSettings::fast()
}

/// Six seconds of lease, and short windows.
fn slow() -> LeaderSettings {
    LeaderSettings {
        cold_start_window: Duration::from_secs(2),
        planned_scale_window: Duration::from_millis(500),
        rebalance_cooldown: Duration::from_millis(500),
        ..LeaderSettings::default()
    }
}

fn worker_key(id: &str) -> Key {
    Key::new(["w", id]).unwrap()
}

fn root_key() -> Key {
    Key::new(["root"]).unwrap()
}

fn leader_key() -> Key {
    Key::new(["leader"]).unwrap()
}

fn id_of(cluster: &Cluster, node: usize) -> String {
    cluster.nodes[node].member.worker_id().unwrap().to_owned()
}

fn record_of(cluster: &Cluster, id: &str) -> WorkerRecord {
    let entry = cluster.table.get(&worker_key(id)).unwrap();
    WorkerRecord::decode(&entry.value).unwrap()
}

fn root_of(cluster: &Cluster) -> RootHead {
    let entry = cluster.table.get(&root_key()).unwrap();
    RootHead::decode(&entry.value).unwrap()
}

/// Runs until just after a renewal of this node's lease.
fn run_to_renewal(cluster: &mut Cluster, node: usize) {
    let end = cluster.nodes[node].member.deadline();
    while cluster.nodes[node].member.deadline() == end {
        cluster.run(Duration::from_millis(1));
    }
}

/// Runs until the condition holds, or fails after `limit`.
fn run_until(cluster: &mut Cluster, limit: Duration, mut holds: impl FnMut(&Cluster) -> bool) {
    let end = cluster.now + limit;
    while !holds(cluster) {
        assert!(cluster.now < end, "it does not come to pass in {limit:?}");
        cluster.run(Duration::from_millis(5));
    }
}

/// Those who watch workers' records, and those who do not.
fn observers(cluster: &Cluster) -> (Vec<usize>, Vec<usize>) {
    (0..cluster.nodes.len()).partition(|&node| {
        let watched = &cluster.nodes[node].watched;
        watched
            .iter()
            .any(|watched| matches!(watched, Watched::Below(_)))
    })
}

/// The record of a worker that is there, holds nothing and says this alarm.
fn alarmed(alarm: u64) -> WorkerRecord {
    WorkerRecord {
        weight: 0.0,
        alarm,
        ..stranger(7)
    }
}

/// Three members, of whom an agent says that the first leads.
fn elected(settings: LeaderSettings) -> Cluster {
    let mut cluster = Cluster::new(settings, 12);
    for host in ["a", "b", "c"] {
        let mut setup = cluster.setup(host);
        setup.external_election = true;
        cluster.join_with(setup);
    }
    cluster.tell(0, Event::Elected(true));
    cluster.settle();
    cluster
}

/// Shows a node a write that nobody else has seen, so many revisions ahead: the
/// store has lost it since.
fn show_lost(cluster: &mut Cluster, node: usize, key: &Key, ahead: u64, value: Vec<u8>) {
    let revision = cluster.table.get(key).unwrap().revision.get() + ahead;
    let lost = Entry {
        key: key.clone(),
        value: value.into(),
        revision: Revision::new(revision).unwrap(),
    };
    cluster.tell(node, Event::Seen(Change::Put(lost)));
}

/// Shows a node another root than the one that was written: the store has
/// forgotten.
fn show_wrong_root(cluster: &mut Cluster, node: usize) {
    let root = cluster.table.get(&root_key()).unwrap();
    let mut value = root.value.to_vec();
    value.reverse();
    let wrong = Entry {
        value: value.into(),
        ..root
    };
    cluster.tell(node, Event::Seen(Change::Put(wrong)));
}

// The cluster checks at every start that nobody else has authority over the
// partition: tests that only run rely on that.

#[test]
fn a_lost_record_is_waited_for_by_a_leader_that_never_saw_it() {
    let mut cluster = Cluster::settled(slow(), 6, 24);
    let (known, others) = observers(&cluster);
    let victim = others[0];
    run_to_renewal(&mut cluster, victim);
    let id = id_of(&cluster, victim);
    cluster.nodes[victim].is_cut = true;
    cluster.delete(&worker_key(&id), false);
    for node in known {
        cluster.kill(node);
    }
    cluster.run(Duration::from_secs(40));
    assert!(cluster.is_owned());
}

#[test]
fn a_record_that_is_lost_while_leaders_change_is_waited_for() {
    for wait in (0..4000).step_by(100) {
        let mut cluster = Cluster::settled(slow(), 6, 24);
        let (known, others) = observers(&cluster);
        let id = id_of(&cluster, others[0]);
        for node in known {
            cluster.kill(node);
        }
        cluster.run(Duration::from_millis(wait));
        cluster.delete(&worker_key(&id), false);
        cluster.run(Duration::from_secs(20));
    }
}

#[test]
fn a_lost_record_is_a_sign_of_a_store_that_forgot_and_a_quarantine_follows() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let victim = (leader + 1) % 3;
    let id = id_of(&cluster, victim);
    cluster.nodes[victim].is_cut = true;
    cluster.delete(&worker_key(&id), false);
    // It knows the record from its watch, and lists what is there again.
    cluster.kill(leader);
    run_until(&mut cluster, Duration::from_secs(5), |cluster| {
        root_of(cluster).quarantine()
    });
    let is_told = |node: &cluster::Node| {
        let mut told = node.problems.iter();
        told.any(|text| text.contains(&id) && text.contains("was missing"))
    };
    assert!(cluster.nodes.iter().any(is_told));
}

/// A newcomer with shorter leases sees garbage in place of the record of a
/// worker with long ones, this long after it began.
fn beside_garbage(after: Duration) {
    let mut cluster = Cluster::settled(LeaderSettings::calm(), 2, 8);
    let leader = cluster.leader().unwrap();
    let victim = 1 - leader;
    run_to_renewal(&mut cluster, victim);
    let id = id_of(&cluster, victim);
    cluster.nodes[victim].is_cut = true;
    let mut setup = cluster.setup("newcomer");
    setup.settings = LeaderSettings::default();
    cluster.join_with(setup);
    cluster.run(after);
    cluster.write(&worker_key(&id), b"garbage");
    cluster.run(Duration::from_millis(100));
    cluster.kill(leader);
    run_until(&mut cluster, Duration::from_secs(120), |cluster| {
        cluster.nodes[2].runs.len() == 8
    });
}

#[test]
fn an_unreadable_record_is_waited_for_as_long_as_the_longest_lease() {
    for after in [0, 1, 2, 3, 50] {
        beside_garbage(Duration::from_millis(after));
    }
}

#[test]
fn a_quarantine_that_the_store_lost_is_set_again() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let alarm = alarmed(root_of(&cluster).version().epoch);
    cluster.write(&worker_key("worker-77"), &alarm.encode());
    let mut before = cluster.table.clone();
    while !root_of(&cluster).quarantine() {
        before = cluster.table.clone();
        cluster.run(Duration::from_micros(250));
    }
    // The root that sets the quarantine is lost before anybody but its writer
    // has seen it.
    cluster.table = before;
    for node in (0..3).filter(|node| *node != leader) {
        cluster.nodes[node].is_cut = true;
    }
    cluster.run(Duration::from_millis(2));
    for node in &mut cluster.nodes {
        node.is_cut = false;
    }
    cluster.run(Duration::from_secs(5));
    cluster.kill((leader + 1) % 3);
    cluster.run(Duration::from_secs(10));
    assert!(cluster.is_owned());
}

#[test]
fn versions_rise_although_the_leader_built_on_a_root_that_was_lost() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let old = cluster.table.clone();
    cluster.join("host-3");
    cluster.run(Duration::from_secs(3));
    let lost = root_of(&cluster).version();
    cluster.table = old;
    let mut last = root_of(&cluster).version();
    assert!(last < lost);
    run_until(&mut cluster, Duration::from_secs(8), |cluster| {
        let version = root_of(cluster).version();
        assert!(version >= last, "{version} after {last}");
        assert!(version == last || version > lost, "{version} after {lost}");
        last = version;
        version > lost && !root_of(cluster).quarantine()
    });
    cluster.settle();
}

#[test]
fn what_a_lost_holder_was_asked_for_leaves_a_quarantine_only_when_it_is_gone() {
    let mut cluster = Cluster::settled(slow(), 3, 12);
    let leader = cluster.leader().unwrap();
    let victim = (leader + 1) % 3;
    let id = id_of(&cluster, victim);
    let alarm = alarmed(root_of(&cluster).version().epoch);
    cluster.write(&worker_key("worker-77"), &alarm.encode());
    run_until(&mut cluster, Duration::from_secs(2), |cluster| {
        root_of(cluster).quarantine()
    });
    // It renews until shortly before the quarantine ends, and then its record
    // is gone, and it with it, as far as anybody can see.
    cluster.run(Duration::from_secs(5));
    run_to_renewal(&mut cluster, victim);
    cluster.nodes[victim].is_cut = true;
    cluster.delete(&worker_key(&id), true);
    cluster.run(Duration::from_secs(30));
    let runs: usize = cluster
        .nodes
        .iter()
        .filter(|node| !node.is_cut)
        .map(|node| node.runs.len())
        .sum();
    assert_eq!(runs, 12);
}

#[test]
fn a_late_finder_of_a_rollback_that_was_answered_stops_nobody() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let known = root_of(&cluster).version().epoch;
    cluster.write(&worker_key("worker-77"), &alarmed(known).encode());
    run_until(&mut cluster, Duration::from_secs(2), |cluster| {
        root_of(cluster).quarantine()
    });
    run_until(&mut cluster, Duration::from_secs(10), Cluster::is_owned);
    cluster.run(Duration::from_secs(3));
    let (version, starts) = (root_of(&cluster).version(), cluster.history.len());
    let mut late = alarmed(known);
    for beat in 3..20 {
        late.session = SessionId(8);
        late.beat = beat;
        cluster.write(&worker_key("worker-78"), &late.encode());
        cluster.run(fast().heartbeat_interval);
    }
    assert_eq!(cluster.history.len(), starts);
    assert_eq!(root_of(&cluster).version().epoch, version.epoch);
    // One that knew of a later root has found something else.
    late.alarm = root_of(&cluster).version().epoch;
    cluster.write(&worker_key("worker-78"), &late.encode());
    run_until(&mut cluster, Duration::from_secs(2), |cluster| {
        root_of(cluster).quarantine()
    });
}

#[test]
fn an_alarm_lasts_until_a_quarantine_answers_it() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let finder = (leader + 1) % 3;
    // It finds out while it does not reach the store, so nobody knows yet.
    cluster.nodes[finder].is_cut = true;
    show_wrong_root(&mut cluster, finder);
    // Meanwhile another leads, with a later epoch.
    cluster.kill(leader);
    cluster.run(Duration::from_secs(3));
    let before = root_of(&cluster);
    assert!(!before.quarantine());
    cluster.nodes[finder].is_cut = false;
    cluster.tell(finder, Event::Connected(cluster.incarnation.clone()));
    run_until(&mut cluster, Duration::from_secs(3), |cluster| {
        let root = root_of(cluster);
        root.quarantine() && root.version().epoch > before.version().epoch
    });
}

#[test]
fn an_alarm_is_told_while_stop_hooks_of_the_ended_session_run() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let finder = (cluster.leader().unwrap() + 1) % 3;
    let id = id_of(&cluster, finder);
    cluster.nodes[finder].hook_time = None;
    show_wrong_root(&mut cluster, finder);
    cluster.run(fast().heartbeat_interval);
    assert!(!cluster.nodes[finder].unended.is_empty());
    assert!(record_of(&cluster, &id).alarm > 0);
}

/// A worker that was cut off and fenced, and whose fence was lost. It does not
/// know of the root that gave away what it had, and the store has this record of
/// its session.
fn unfenced(restored: impl Fn(WorkerRecord) -> WorkerRecord) -> (Cluster, String, SessionId) {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let victim = (cluster.leader().unwrap() + 1) % 3;
    let id = id_of(&cluster, victim);
    let before = record_of(&cluster, &id);
    cluster.nodes[victim].is_cut = true;
    run_until(&mut cluster, Duration::from_secs(3), |cluster| {
        record_of(cluster, &id).life == Life::Fenced && cluster.is_owned()
    });
    let session = before.session;
    cluster.write(&worker_key(&id), &restored(before).encode());
    cluster.nodes[victim].is_cut = false;
    (cluster, id, session)
}

#[test]
fn a_session_whose_fence_was_lost_does_not_go_on() {
    // As a leader creates it that found none.
    let (mut cluster, id, session) = unfenced(|before| WorkerRecord { beat: 0, ..before });
    cluster.run(Duration::from_secs(2));
    assert_ne!(record_of(&cluster, &id).session, session);
}

#[test]
fn work_is_taken_up_again_by_the_root_that_is_there() {
    let (mut cluster, id, session) = unfenced(|before| before);
    cluster.run(Duration::from_secs(2));
    assert_eq!(record_of(&cluster, &id).session, session);
    assert!(cluster.is_owned());
}

#[test]
fn the_id_of_a_lost_record_is_not_given_to_a_newcomer() {
    let mut settings = fast();
    (settings.worker_id_min, settings.worker_id_max) = (0, 1);
    let mut cluster = Cluster::settled(settings, 2, 12);
    let victim = (cluster.leader().unwrap() + 1) % 2;
    let key = worker_key(&id_of(&cluster, victim));
    cluster.nodes[victim].is_cut = true;
    cluster.delete(&key, false);
    let newcomer = cluster.join("newcomer");
    // That nobody else has what starts there is checked at every start.
    cluster.run(fast().heartbeat_ttl / 2);
    assert_eq!(cluster.nodes[newcomer].member.worker_id(), None);
}

#[test]
fn what_has_nothing_is_not_missed() {
    let mut cluster = Cluster::settled(fast(), 4, 12);
    let leader = cluster.leader().unwrap();
    // Its place in the root stays, because it is before others.
    let others = (0..4).filter(|node| *node != leader);
    let victim = others.min_by_key(|node| id_of(&cluster, *node)).unwrap();
    let key = worker_key(&id_of(&cluster, victim));
    cluster.stop(victim, Shutdown::Leave);
    cluster.run(Duration::from_secs(3));
    cluster.delete(&key, false);
    cluster.kill(leader);
    cluster.run(Duration::from_secs(5));
    assert!(cluster.table.get(&key).is_none());
    assert!(cluster.is_owned());
    let instance = format!("host-{victim}");
    let back = cluster.join(&instance);
    cluster.settle();
    assert_eq!(worker_key(&id_of(&cluster, back)), key, "its id is free");
}

#[test]
fn an_epoch_that_only_a_replaced_record_knows_is_passed_on() {
    let mut cluster = Cluster::settled(fast(), 1, 4);
    let before = root_of(&cluster).version();
    cluster.kill(0);
    cluster.delete(&root_key(), true);
    cluster.delete(&leader_key(), true);
    cluster.unix_ms -= 60_000;
    cluster.join("host-0");
    cluster.settle();
    let after = root_of(&cluster).version();
    assert!(after > before, "{after} after {before}");
}

/// Work of a worker that could not renew for longer than its lease, a moment
/// after its renewal was accepted: whether there is any.
fn is_taken_up(cluster: &mut Cluster, victim: usize) -> bool {
    let key = worker_key(&id_of(cluster, victim));
    let before = cluster.table.get(&key).unwrap().revision;
    cluster.nodes[victim].is_cut = false;
    run_until(cluster, fast().heartbeat_ttl, |cluster| {
        cluster.table.get(&key).unwrap().revision > before
    });
    cluster.run(Duration::from_millis(20));
    let now = Moment::from_origin(cluster.now);
    let member = &cluster.nodes[victim].member;
    let mut partitions = cluster.partitions.iter();
    let has_authority = partitions.any(|partition| member.holds_authority(partition.as_str(), now));
    assert_eq!(has_authority, !cluster.nodes[victim].runs.is_empty());
    has_authority
}

#[test]
fn an_ended_lease_is_not_taken_up_while_a_live_worker_says_that_the_store_forgot() {
    for (says, life, expected) in [
        (0, Life::Live, true),
        (1, Life::Fenced, true),
        (1, Life::Live, false),
    ] {
        let mut cluster = Cluster::settled(fast(), 3, 12);
        let victim = (cluster.leader().unwrap() + 1) % 3;
        for node in &mut cluster.nodes {
            node.is_cut = true;
        }
        cluster.run(fast().heartbeat_ttl * 2);
        assert!(cluster.nodes[victim].runs.is_empty());
        let mut record = alarmed(says * root_of(&cluster).version().epoch);
        record.life = life;
        cluster.write(&worker_key("worker-77"), &record.encode());
        assert_eq!(is_taken_up(&mut cluster, victim), expected, "{record:?}");
    }
}

#[test]
fn a_second_quarantine_is_waited_for_from_its_own_beginning() {
    let mut cluster = elected(slow());
    let (leader, late) = (0, 2);
    let longest = LeaderSettings::observed(slow().heartbeat_ttl);
    let flagged = |cluster: &Cluster| root_of(cluster).quarantine();
    // Whoever finds that the store forgot leaves at once: nobody waits for it.
    let alarm = |cluster: &mut Cluster| {
        let mut alarm = alarmed(root_of(cluster).version().epoch);
        cluster.write(&worker_key("worker-77"), &alarm.encode());
        run_until(cluster, Duration::from_secs(2), flagged);
        alarm.life = Life::Left {
            keep_for: Duration::ZERO,
        };
        cluster.write(&worker_key("worker-77"), &alarm.encode());
    };
    alarm(&mut cluster);
    cluster.run(Duration::from_millis(100));
    // It sees the first quarantine, and nothing of its end.
    cluster.nodes[late].is_cut = true;
    run_until(&mut cluster, Duration::from_secs(60), |cluster| {
        !flagged(cluster)
    });
    cluster.run(Duration::from_secs(2));
    alarm(&mut cluster);
    let begun = cluster.now;
    cluster.nodes[late].is_cut = false;
    cluster.tell(late, Event::Connected(cluster.incarnation.clone()));
    cluster.tell(leader, Event::Elected(false));
    cluster.tell(late, Event::Elected(true));
    run_until(&mut cluster, longest, |cluster| {
        cluster.leader() == Some(late)
    });
    assert!(flagged(&cluster), "the first leader ended it");
    run_until(&mut cluster, Duration::from_secs(120), |cluster| {
        !flagged(cluster)
    });
    assert_eq!(cluster.leader(), Some(late));
    assert!(cluster.now - begun >= longest, "{:?}", cluster.now - begun);
}

#[test]
fn a_worker_that_renews_and_cannot_read_the_root_does_not_hold_up_a_quarantine() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let mut mute = alarmed(0);
    mute.beat = 2;
    cluster.write(&worker_key("worker-76"), &mute.encode());
    cluster.write(
        &worker_key("worker-77"),
        &alarmed(root_of(&cluster).version().epoch).encode(),
    );
    let mut struck_out = false;
    for beat in 3..200 {
        let entry = cluster.table.get(&worker_key("worker-76")).unwrap();
        struck_out |= *entry.value == *STRUCK_OUT;
        if !struck_out {
            mute.beat = beat;
            cluster.write(&worker_key("worker-76"), &mute.encode());
        }
        cluster.run(fast().heartbeat_interval);
    }
    assert!(struck_out && cluster.is_owned());
    let told = cluster.nodes[leader].problems.join("; ");
    assert!(told.contains("worker-76"), "{told}");
}

#[test]
fn a_root_that_is_deleted_on_a_store_that_never_forgets_is_followed_by_a_quarantine() {
    let settings = LeaderSettings {
        store_forgets: false,
        ..slow()
    };
    let mut cluster = Cluster::settled(settings, 3, 12);
    let leader = cluster.leader().unwrap();
    let victim = (leader + 1) % 3;
    run_to_renewal(&mut cluster, victim);
    cluster.nodes[victim].is_cut = true;
    cluster.delete(&root_key(), false);
    cluster.kill(leader);
    // A member that remembers nothing leads from now on.
    cluster.kill((leader + 2) % 3);
    cluster.join("newcomer");
    cluster.run(Duration::from_secs(60));
    assert_eq!(cluster.nodes[3].runs.len(), 12);
}

#[test]
fn a_foreign_record_at_the_own_revision_ends_the_session() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let victim = 1 - cluster.leader().unwrap();
    let id = id_of(&cluster, victim);
    let session = cluster.nodes[victim].member.session();
    let entry = cluster.table.get(&worker_key(&id)).unwrap();
    // The store went back, and another session wrote at that very revision.
    let mut record = record_of(&cluster, &id);
    record.session = SessionId(9);
    cluster.replaced = Some(Entry {
        value: record.encode().into(),
        ..entry
    });
    cluster.run(fast().heartbeat_interval * 2);
    assert_ne!(cluster.nodes[victim].member.session(), session);
    let told = cluster.nodes[victim].problems.join("; ");
    assert!(told.contains("came twice"), "{told}");
}

#[test]
fn a_session_that_an_adopted_root_does_not_name_stops_its_work() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let victim = (leader + 1) % 3;
    let held = cluster.nodes[victim].runs.len();
    assert!(held > 0);
    // The first root after a lost one names no session at all.
    cluster.delete(&root_key(), true);
    run_until(&mut cluster, Duration::from_secs(3), |cluster| {
        cluster.table.get(&root_key()).is_some()
    });
    cluster.run(fast().heartbeat_interval);
    assert!(root_of(&cluster).quarantine());
    let now = Moment::from_origin(cluster.now);
    let member = &cluster.nodes[victim].member;
    let mut partitions = cluster.partitions.iter();
    assert!(!partitions.any(|partition| member.holds_authority(partition.as_str(), now)));
    assert_eq!(cluster.nodes[victim].runs.len(), 0);
}

#[test]
fn an_id_is_not_claimed_again_while_stop_hooks_of_its_session_run() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let victim = (leader + 1) % 3;
    cluster.nodes[victim].hook_time = None;
    let id = id_of(&cluster, victim);
    let session = record_of(&cluster, &id).session;
    cluster.tell(victim, Event::Suspended);
    // Shorter than a lease, so that nobody else could have claimed it.
    cluster.run(fast().heartbeat_ttl / 2);
    assert_eq!(record_of(&cluster, &id).session, session);
    assert!(cluster.nodes[victim].member.session().is_none());
}

#[test]
fn a_start_that_outlives_its_session_is_not_the_start_of_the_next_grant() {
    let settings = LeaderSettings {
        start_deadline: Duration::from_secs(60),
        ..fast()
    };
    let mut cluster = Cluster::settled(settings, 1, 4);
    let victim = cluster.join("host-1");
    let partitions = cluster.partitions.iter().map(ToString::to_string);
    cluster.nodes[victim].stuck = partitions.collect();
    cluster.nodes[victim].yields = false;
    run_until(&mut cluster, Duration::from_secs(10), |cluster| {
        !cluster.nodes[victim].unended.is_empty()
    });
    // Its session ends while these start hooks run, and they run on.
    let id = id_of(&cluster, victim);
    cluster.tell(victim, Event::Suspended);
    cluster.nodes[victim].stuck.clear();
    let unended = std::mem::take(&mut cluster.nodes[victim].unended);
    let starting = cluster.nodes[victim].runs.clone();
    // The leader gives the same partitions to its next session.
    run_until(&mut cluster, Duration::from_secs(5), |cluster| {
        record_of(cluster, &id).life == Life::Fenced
    });
    run_until(&mut cluster, Duration::from_secs(10), |cluster| {
        let now = Moment::from_origin(cluster.now);
        let member = &cluster.nodes[victim].member;
        let mut partitions = starting.keys();
        partitions.all(|partition| member.holds_authority(partition, now))
    });
    assert_eq!(
        starting, cluster.nodes[victim].runs,
        "nothing starts while an earlier hook of it runs"
    );
    for hook in unended {
        cluster.tell(victim, Event::HookEnded(hook, HookEnd::Done));
    }
    cluster.settle();
    let runs = &cluster.nodes[victim].runs;
    for (partition, token) in &starting {
        let next = runs.get(partition);
        assert!(
            next.is_none_or(|next| next > token),
            "{partition} runs with the token of the ended session"
        );
    }
    assert!(
        starting
            .keys()
            .any(|partition| runs.contains_key(partition))
    );
}

#[test]
fn more_stops_than_a_record_can_name_are_not_acknowledged_before_they_end() {
    let count = STOPPING_MAX as u32 + 1;
    let mut cluster = Cluster::new(fast(), count);
    let first = cluster.join("host-0");
    cluster.settle();
    assert_eq!(cluster.nodes[first].runs.len(), count as usize);
    cluster.nodes[first].hook_time = None;
    cluster.join("host-1");
    // All of them are asked back, because it is not healthy.
    let unhealthy = divvy_core::leader::SelfDescription {
        health: Health::Unhealthy,
        weight: 1.0,
        zone: None,
    };
    cluster.tell(first, Event::Described(unhealthy));
    cluster.run(Duration::from_secs(3));
    assert_eq!(cluster.nodes[1].runs.len(), 0);
    cluster.nodes[first].hook_time = Some(Duration::from_millis(1));
    for hook in std::mem::take(&mut cluster.nodes[first].unended) {
        cluster.tell(first, Event::HookEnded(hook, HookEnd::Done));
    }
    run_until(&mut cluster, Duration::from_secs(10), |cluster| {
        cluster.nodes[1].runs.len() == count as usize
    });
}

/// The leader writes its record at a revision that one of those who follow it
/// knows from a past that the store has lost, this long after it has shown
/// that. Gives whether that was taken for a sign of a store that forgot.
fn is_alarmed_by_a_lost_leader(after: Duration) -> bool {
    let mut cluster = elected(fast());
    let (follower, sessions) = (2, cluster.nodes.iter().map(|node| node.member.session()));
    let sessions: Vec<_> = sessions.collect();
    let starts = cluster.history.len();
    let known = cluster.table.get(&leader_key()).unwrap();
    let mut record = LeaderRecord::decode(&known.value).unwrap();
    record.beat += 1_000;
    let lost = known.revision.get() + 500;
    show_lost(&mut cluster, follower, &leader_key(), 500, record.encode());
    cluster.run(after);
    // Other keys are written until that revision comes again.
    let other = Key::new(["other"]).unwrap();
    cluster.write(&other, b"");
    while cluster.table.get(&other).unwrap().revision.get() + 1 < lost {
        cluster.write(&other, b"");
    }
    let known = cluster.table.get(&leader_key()).unwrap();
    let mut record = LeaderRecord::decode(&known.value).unwrap();
    record.beat += 1;
    cluster.write(&leader_key(), &record.encode());
    let written = cluster.table.get(&leader_key()).unwrap().revision;
    assert_eq!(written.get(), lost);
    cluster.run(Duration::from_secs(5));
    let is_alarmed = !cluster.nodes[follower].problems.is_empty();
    let is_calm = cluster.history.len() == starts
        && cluster
            .nodes
            .iter()
            .zip(sessions)
            .all(|(node, session)| node.member.session() == session);
    assert_ne!(is_alarmed, is_calm);
    is_alarmed
}

#[test]
fn a_leader_record_that_was_lost_is_no_false_alarm_when_its_revision_comes_again() {
    // Before it could find out, it cannot tell.
    assert!(is_alarmed_by_a_lost_leader(Duration::ZERO));
    let polls = fast().root_poll_interval * 3;
    assert!(!is_alarmed_by_a_lost_leader(polls));
}

/// A member that begins to lead has seen another's record fenced, by a write
/// that the store lost: before it led, or after it had listed all records and
/// before it could read the root.
fn lead_with_a_lost_fence(before: bool) {
    let mut cluster = elected(slow());
    let (next, victim) = (1, 2);
    let key = worker_key(&id_of(&cluster, victim));
    let mut fenced = record_of(&cluster, &id_of(&cluster, victim));
    fenced.life = Life::Fenced;
    let starts = cluster.history.len();
    if before {
        show_lost(&mut cluster, next, &key, 1_000, fenced.encode());
    }
    let root = cluster.table.get(&root_key()).unwrap();
    cluster.replaced = Some(Entry {
        value: (*b"garbage").into(),
        revision: Revision::new(root.revision.get() + 1).unwrap(),
        ..root
    });
    cluster.tell(0, Event::Elected(false));
    cluster.tell(next, Event::Elected(true));
    cluster.run(Duration::from_millis(20));
    assert_eq!(cluster.leader(), Some(next));
    if !before {
        show_lost(&mut cluster, next, &key, 1_000, fenced.encode());
    }
    cluster.replaced = None;
    cluster.run(Duration::from_secs(20));
    assert_eq!(cluster.leader(), Some(next));
    assert_eq!(cluster.history.len(), starts, "something moved");
    assert!(cluster.is_owned());
}

#[test]
fn a_new_leader_judges_the_root_by_no_record_that_it_knew_before() {
    lead_with_a_lost_fence(true);
}

#[test]
fn a_new_leader_judges_the_root_only_by_records_listed_after_it_was_read() {
    lead_with_a_lost_fence(false);
}
