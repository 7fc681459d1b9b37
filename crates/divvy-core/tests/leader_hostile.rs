//! Leader mode over a store that others write to: garbage, records of nobody,
//! numbers at their ends. A bad record isolates its own worker only.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use cluster::Cluster;
use std::time::Duration;

use divvy_core::Health;
use divvy_core::leader::{
    LeaderRecord, LeaderSettings, Life, RootHead, SessionId, Version, WorkerRecord,
};
use divvy_core::store::Key;

fn fast() -> LeaderSettings {
    LeaderSettings::fast()
}

fn worker_key(id: &str) -> Key {
    Key::new(["w", id]).unwrap()
}

fn key(name: &str) -> Key {
    Key::new([name]).unwrap()
}

/// The record of a worker that is there and does nothing else.
fn stranger(session: u128) -> WorkerRecord {
    WorkerRecord {
        instance: "stranger".into(),
        session: SessionId(session),
        beat: 2,
        lease: fast().heartbeat_ttl,
        life: Life::Live,
        acked: Version::default(),
        stopping: Vec::new(),
        adopted: Version::default(),
        token_max: None,
        health: Health::Healthy,
        weight: 1.0,
        zone: None,
        refresh: 0,
        alarm: 0,
    }
}

fn root_version(cluster: &Cluster) -> Version {
    let root = cluster.table.get(&key("root")).expect("there is a root");
    RootHead::decode(&root.value).unwrap().version()
}

#[test]
fn a_leader_with_another_lease_waits_for_those_who_still_work_by_the_first() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let mut other = fast();
    other.heartbeat_ttl *= 2;
    let mut setup = cluster.setup("other");
    setup.settings = other;
    cluster.join_with(setup);
    cluster.run(Duration::from_secs(2));
    // Whoever leads from now on has another lease than those who work.
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
    assert_eq!(cluster.counts(), [0, 0, 4]);
}
