//! Leader mode over a store that others write to: garbage, records of nobody,
//! numbers at their ends. A bad record isolates its own worker only.

mod cluster;

use std::time::Duration;

use cluster::{Cluster, stranger};
use divvy_core::leader::{
    EPOCH_MAX, Event, Holding, LeaderRecord, LeaderSettings, Life, Lifecycle, MemberSetup, Root,
    RootHead, SelfDescription, SessionEntry, SessionId, Shutdown, VERSION_NUMBER_MAX, Version,
    WorkerRecord, encode_root,
};
use divvy_core::store::{Entry, Incarnation, Key, Revision, Token};
use divvy_core::{Health, Partitions};

fn fast() -> LeaderSettings {
    LeaderSettings::fast()
}

fn worker_key(id: &str) -> Key {
    Key::new(["w", id]).unwrap()
}

fn key(name: &str) -> Key {
    Key::new([name]).unwrap()
}

/// Runs for so long while a stranger renews what it wrote.
fn run_beside(cluster: &mut Cluster, id: &str, record: &mut WorkerRecord, beats: u32) {
    for _ in 0..beats {
        record.beat += 1;
        cluster.write(&worker_key(id), &record.encode());
        cluster.run(fast().heartbeat_interval);
    }
}

fn sorted(mut counts: Vec<usize>) -> Vec<usize> {
    counts.sort_unstable();
    counts
}

fn root_version(cluster: &Cluster) -> Version {
    let root = cluster.table.get(&key("root")).expect("there is a root");
    RootHead::decode(&root.value).unwrap().version()
}

#[test]
fn a_root_that_names_a_worker_without_a_name_is_refused() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let partitions = Partitions::shards([("p", 1)]).unwrap();
    let version = Version {
        epoch: root_version(&cluster).epoch + 5,
        number: 0,
    };
    let root = Root {
        incarnation: Incarnation::new("first"),
        version,
        lifecycle: Lifecycle::Stable,
        quarantine: false,
        answered: 0,
        lease: fast().heartbeat_ttl,
        sessions: vec![SessionEntry {
            session: SessionId(1),
            worker: "".into(),
            seen: Revision::new(1).unwrap(),
        }],
        holdings: vec![Holding::Held {
            session: 0,
            token: version.token().unwrap(),
        }],
    };
    let encoded = encode_root(root, &partitions, None, 1, 1 << 20).unwrap();
    cluster.write(&key("root"), &encoded.head);
    cluster.run(Duration::from_secs(3));
    let told = |node: &cluster::Node| node.problems.iter().any(|text| text.contains("worker id"));
    assert!(cluster.nodes.iter().all(told));
}

#[test]
fn a_record_under_a_name_that_no_worker_can_have_does_not_spoil_the_root() {
    let long = "w".repeat(600);
    for id in [long.as_str(), "white space ", "bell\u{7}"] {
        let mut cluster = Cluster::settled(fast(), 2, 4);
        let mut record = stranger(7);
        run_beside(&mut cluster, id, &mut record, 4);
        cluster.join("host-2");
        run_beside(&mut cluster, id, &mut record, 20);
        cluster.settle();
        assert_eq!(cluster.nodes[2].runs.len(), 1, "{id:?}");
    }
}

#[test]
fn a_worker_that_reports_the_highest_numbers_there_are_is_alone_with_that() {
    type Change = fn(&mut WorkerRecord);
    let changes: [(&str, Change); 6] = [
        ("alarm", |record| record.alarm = u64::MAX),
        ("alarm that fits", |record| record.alarm = (1 << 43) - 1),
        ("token", |record| record.token_max = Token::new(i64::MAX)),
        ("adopted", |record| record.adopted.epoch = u64::MAX),
        ("number", |record| record.adopted.number = u32::MAX),
        ("lease", |record| {
            record.lease = Duration::from_nanos(u64::MAX);
        }),
    ];
    for (name, change) in changes {
        let mut cluster = Cluster::settled(fast(), 2, 4);
        let (version, starts) = (root_version(&cluster), cluster.history.len());
        let mut record = stranger(7);
        record.weight = 0.0;
        change(&mut record);
        run_beside(&mut cluster, "worker-77", &mut record, 20);
        assert!(cluster.is_owned(), "{name}");
        assert_eq!(cluster.history.len(), starts, "{name}");
        assert_eq!(root_version(&cluster), version, "{name}");
    }
}

#[test]
fn a_wall_clock_of_the_far_future_leaves_epochs_for_those_after_it() {
    let mut cluster = Cluster::new(fast(), 4);
    cluster.unix_ms = u64::MAX;
    for host in ["a", "b", "c"] {
        cluster.join(host);
    }
    cluster.settle();
    let mut last = root_version(&cluster);
    cluster.unix_ms = 1_700_000_000_000;
    for _ in 0..2 {
        let leader = cluster.leader().unwrap();
        cluster.kill(leader);
        cluster.run(Duration::from_secs(3));
        assert!(cluster.is_owned());
        let next = root_version(&cluster);
        assert!(next.epoch > last.epoch, "{last} then {next}");
        last = next;
    }
}

#[test]
fn a_session_that_is_named_under_two_ids_does_not_make_a_leader_write_for_ever() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let mut record = stranger(7);
    cluster.write(&worker_key("worker-77"), &record.encode());
    let mut version = root_version(&cluster);
    version.number += 1;
    let root = Root {
        incarnation: Incarnation::new("first"),
        version,
        lifecycle: Lifecycle::Stable,
        quarantine: false,
        answered: 0,
        lease: fast().heartbeat_ttl,
        sessions: vec![SessionEntry {
            session: SessionId(7),
            worker: cluster.nodes[0].member.worker_id().unwrap().into(),
            seen: Revision::new(1).unwrap(),
        }],
        holdings: vec![Holding::None; 4],
    };
    let partitions = cluster.partitions.clone();
    let encoded = encode_root(root, &partitions, None, 1, 1 << 20).unwrap();
    cluster.write(&key("root"), &encoded.head);
    run_beside(&mut cluster, "worker-77", &mut record, 10);
    let number = root_version(&cluster).number;
    assert!(number < version.number + 20, "{number}");
}

#[test]
fn after_the_last_version_there_is_no_earlier_one() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let partitions = Partitions::shards([("p", 4)]).unwrap();
    let last = Version {
        epoch: EPOCH_MAX,
        number: VERSION_NUMBER_MAX,
    };
    let root = Root {
        incarnation: Incarnation::new("first"),
        version: last,
        lifecycle: Lifecycle::Stable,
        quarantine: false,
        answered: 0,
        lease: fast().heartbeat_ttl,
        sessions: Vec::new(),
        holdings: vec![Holding::None; 4],
    };
    let encoded = encode_root(root, &partitions, None, 1, 1 << 20).unwrap();
    cluster.write(&key("root"), &encoded.head);
    cluster.run(Duration::from_secs(5));
    assert_eq!(root_version(&cluster), last);
    let told = |node: &cluster::Node| node.problems.iter().any(|text| text.contains("used up"));
    assert!(cluster.nodes.iter().any(told));
}

#[test]
fn ids_whose_records_are_garbage_are_passed_over() {
    let mut settings = fast();
    settings.worker_id_max = 19;
    let mut cluster = Cluster::new(settings, 4);
    for number in 0..19 {
        cluster.write(&worker_key(&format!("worker-{number}")), b"garbage");
    }
    cluster.join("host");
    cluster.run(Duration::from_secs(3));
    assert_eq!(cluster.nodes[0].member.worker_id(), Some("worker-19"));
}

#[test]
fn what_the_owner_of_an_overwritten_record_held_runs_elsewhere_after_its_lease() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let victim = (cluster.leader().unwrap() + 1) % 3;
    let id = cluster.nodes[victim].member.worker_id().unwrap().to_owned();
    cluster.write(&worker_key(&id), b"garbage");
    cluster.run(fast().heartbeat_ttl * 3);
    assert!(cluster.is_owned());
    let victim = &cluster.nodes[victim];
    assert!(victim.member.worker_id().is_some(), "it claims an id again");
    let why = format!("the own record w.{id} is not readable");
    assert_eq!(victim.sessions_ended, [why]);
}

#[test]
fn garbage_where_the_leader_stands_is_told_and_replaced() {
    for garbage in [&b"garbage"[..], b""] {
        let mut cluster = Cluster::new(fast(), 4);
        cluster.write(&key("leader"), garbage);
        cluster.join("host");
        cluster.settle();
        let problems = &cluster.nodes[0].problems;
        let told = problems
            .iter()
            .filter(|text| text.contains("the key leader"));
        assert_eq!(told.count(), 1, "{problems:?}");
    }
}

#[test]
fn garbage_among_wishes_and_moves_is_no_obstacle() {
    let mut cluster = Cluster::new(fast(), 4);
    cluster.write(&key("ctl"), &[0xff; 1000]);
    cluster.write(&key("moves"), &[b'['; 100_000]);
    for host in ["a", "b"] {
        cluster.join(host);
    }
    cluster.settle();
    let leader = cluster.leader().unwrap();
    let problems = &cluster.nodes[leader].problems;
    let told = problems
        .iter()
        .filter(|text| text.contains("operators wish, the key ctl,"));
    assert_eq!(told.count(), 1, "{problems:?}");
    let log = cluster.table.get(&key("moves")).unwrap();
    assert!(log.value.starts_with(b"[{"), "the log begins anew");
}

#[test]
fn a_member_whose_record_says_that_it_left_stops_its_work() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let victim = (cluster.leader().unwrap() + 1) % 2;
    let id = cluster.nodes[victim].member.worker_id().unwrap().to_owned();
    let entry = cluster.table.get(&worker_key(&id)).unwrap();
    let mut record = WorkerRecord::decode(&entry.value).unwrap();
    record.life = Life::Left {
        keep_for: Duration::ZERO,
    };
    cluster.write(&worker_key(&id), &record.encode());
    cluster.run(Duration::from_secs(3));
    assert!(!cluster.nodes[victim].ended, "nobody told it to stop");
    cluster.settle();
    assert_eq!(cluster.counts(), [2, 2]);
}

#[test]
fn a_member_that_is_fenced_while_it_leaves_ends_without_waiting() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let leaver = (cluster.leader().unwrap() + 1) % 2;
    let id = cluster.nodes[leaver].member.worker_id().unwrap().to_owned();
    cluster.stop(leaver, Shutdown::Leave);
    let entry = cluster.table.get(&worker_key(&id)).unwrap();
    let mut record = WorkerRecord::decode(&entry.value).unwrap();
    record.life = Life::Fenced;
    cluster.write(&worker_key(&id), &record.encode());
    cluster.run(Duration::from_millis(100));
    assert!(cluster.nodes[leaver].ended);
}

#[test]
fn a_description_that_no_worker_can_have_changes_nothing_and_is_told() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let starts = cluster.history.len();
    for (weight, zone) in [(f64::NAN, None), (-1.0, None), (1.0, Some("\n".into()))] {
        let description = SelfDescription {
            health: Health::Healthy,
            weight,
            zone,
        };
        cluster.tell(1, Event::Described(description));
        cluster.run(Duration::from_secs(2));
    }
    assert!(cluster.is_owned());
    assert_eq!(cluster.history.len(), starts);
    assert_eq!(cluster.nodes[1].problems.len(), 3);
}

#[test]
fn a_member_cannot_be_made_of_names_that_no_record_holds() {
    let cluster = Cluster::new(fast(), 1);
    let setup = cluster.setup("host");
    assert_eq!(setup.check(), Ok(()));
    let told = |change: fn(&mut MemberSetup)| {
        let mut setup = setup.clone();
        change(&mut setup);
        setup.check().unwrap_err().field().to_owned()
    };
    let long = |setup: &mut MemberSetup| setup.instance = "i".repeat(257).into();
    assert_eq!(told(long), "instance");
    assert_eq!(told(|setup| setup.instance = "".into()), "instance");
    let weight = told(|setup| setup.description.weight = f64::INFINITY);
    assert_eq!(weight, "worker weight");
}

#[test]
fn members_with_other_leases_share_and_follow_a_quarantine() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let mut other = fast();
    other.heartbeat_ttl *= 2;
    let mut setup = cluster.setup("other");
    setup.settings = other;
    cluster.join_with(setup);
    cluster.run(Duration::from_secs(2));
    assert_eq!(sorted(cluster.counts()), [1, 1, 2]);
    // Whoever leads from now on has another lease than the others.
    let mut version = root_version(&cluster);
    version.epoch += 10;
    let record = LeaderRecord {
        epoch: version.epoch,
        session: cluster.nodes[2].member.session().unwrap(),
        beat: 1,
        lease: fast().leader_lease,
    };
    cluster.write(&key("leader"), &record.encode());
    cluster.run(Duration::from_millis(100));
    assert_eq!(cluster.leader(), Some(2));
    // Somebody found that the store has forgotten: a quarantine begins, and
    // the cluster checks that nothing starts where others have authority.
    let mut alarmed = stranger(9);
    alarmed.alarm = version.epoch;
    cluster.write(&worker_key("worker-77"), &alarmed.encode());
    cluster.run(fast().heartbeat_ttl * 10);
    assert_eq!(sorted(cluster.counts()), [1, 1, 2]);
}

#[test]
fn a_store_that_forgot_everything_is_waited_for_by_the_longest_lease_that_anybody_knew() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let mut setup = cluster.setup("longer");
    setup.settings.heartbeat_ttl *= 4;
    let longer = cluster.join_with(setup);
    cluster.run(Duration::from_secs(3));
    assert!(!cluster.nodes[longer].runs.is_empty());
    assert_ne!(cluster.leader(), Some(longer));
    // Cut off from the store it works on to the end of its lease, and nobody
    // can read any more how long that is. The cluster checks that nothing
    // starts meanwhile where it has authority.
    cluster.nodes[longer].is_cut = true;
    cluster.forget("second");
    cluster.run(fast().heartbeat_ttl * 3);
    assert!(!cluster.nodes[longer].runs.is_empty(), "its lease goes on");
    cluster.run(fast().heartbeat_ttl * 8);
    assert_eq!(cluster.counts(), [2, 2, 0]);
}

#[test]
fn a_hundred_thousand_records_of_others_do_not_stop_a_leader() {
    let mut cluster = Cluster::new(fast(), 8);
    let mut other = stranger(0);
    other.weight = 0.0;
    for number in 0..100_000_u32 {
        other.session = SessionId(u128::from(number));
        // Some of them may be alive, and have to be fenced.
        other.life = match number % 1000 {
            0 => Life::Live,
            _ => Life::Left {
                keep_for: Duration::ZERO,
            },
        };
        let id = format!("other-{number}");
        cluster.write(&worker_key(&id), &other.encode());
    }
    cluster.join("a");
    for _ in 0..60 {
        if cluster.is_owned() {
            return;
        }
        cluster.run(Duration::from_millis(100));
    }
    panic!("nothing is owned after {:?}", cluster.now);
}

#[test]
fn an_unreadable_root_is_told_once_and_stops_no_work() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let owners = cluster.owners();
    cluster.write(&key("root"), b"garbage");
    cluster.run(Duration::from_secs(30));
    for node in &cluster.nodes {
        let told = node.problems.iter();
        let told = told.filter(|text| text.contains("the root is not readable"));
        assert_eq!(told.count(), 1, "{:?}", node.problems);
        assert!(node.member.unreadable_root().is_some());
    }
    assert_eq!(cluster.owners(), owners);
}

#[test]
fn a_root_that_is_deleted_under_an_idle_leader_is_made_anew() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let before = root_version(&cluster);
    cluster.delete(&key("root"), true);
    // With the quarantine of a store that has forgotten something.
    cluster.run(Duration::from_secs(10));
    assert!(cluster.is_owned());
    assert!(root_version(&cluster) > before);
}

#[test]
fn a_leader_that_is_behind_deletes_no_chunk_of_a_newer_root() {
    let mut cluster = Cluster::new(fast(), 600);
    let join = |cluster: &mut Cluster, number: usize| {
        let mut setup = cluster.setup(&format!("host-{number}"));
        setup.value_bytes_max = 4096;
        cluster.join_with(setup);
        cluster.run(Duration::from_secs(6));
    };
    join(&mut cluster, 0);
    join(&mut cluster, 1);
    let root = key("root");
    let old = cluster.table.get(&root).unwrap();
    let chunks = |entry: &Entry| RootHead::decode(&entry.value).unwrap().chunk_keys(None);
    let before = chunks(&old);
    let mut named = before.clone();
    for number in 2..8 {
        join(&mut cluster, number);
        named = chunks(&cluster.table.get(&root).unwrap());
    }
    assert!(named.iter().any(|key| !before.contains(key)), "{named:?}");
    // Whoever leads next reads a root of before, for longer than it waits with
    // what that does not name.
    cluster.replaced = Some(old);
    cluster.kill(cluster.leader().unwrap());
    cluster.run(Duration::from_secs(10));
    assert!(cluster.leader().is_some());
    for key in named {
        assert!(cluster.table.get(&key).is_some(), "{key} is gone");
    }
}
