//! Leader mode when what it stands on fails: store, source, strategy, hooks.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use std::sync::Arc;
use std::time::Duration;

use cluster::Cluster;
use divvy_core::leader::{
    Event, LeaderSettings, Overdue, SelfDescription, SessionId, Shutdown, WorkerRecord,
};
use divvy_core::store::{Change, Entry, Key, Prefix};
use divvy_core::{
    Assignment, Balanced, Control, Error, Health, MoveEntry, Partitions, Strategy, Workers,
};

fn fast() -> LeaderSettings {
    LeaderSettings::fast()
}

fn key(name: &str) -> Key {
    Key::new([name]).unwrap()
}

fn described(health: Health) -> Event {
    Event::Described(SelfDescription {
        health,
        weight: 1.0,
        zone: None,
    })
}

#[test]
fn a_store_that_forgot_everything_costs_a_lease_and_no_overlap() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let highest = cluster
        .history
        .iter()
        .map(|(_, token, _)| *token)
        .max()
        .unwrap();
    let before = cluster.history.len();
    cluster.forget("second");
    cluster.settle();
    assert_eq!(cluster.counts(), [4, 4, 4]);
    let after = &cluster.history[before..];
    assert!(
        after.iter().all(|(_, token, _)| *token > highest),
        "tokens only rise"
    );
}

#[test]
fn a_store_that_went_back_unannounced_is_found_out() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let old = cluster.table.clone();
    cluster.kill(2);
    cluster.run(Duration::from_secs(2));
    assert!(cluster.is_owned());
    let highest = cluster
        .history
        .iter()
        .map(|(_, token, _)| *token)
        .max()
        .unwrap();
    let before = cluster.history.len();
    cluster.table = old;
    cluster.run(Duration::from_secs(4));
    cluster.settle();
    let after = &cluster.history[before..];
    assert!(
        after.iter().all(|(_, token, _)| *token > highest),
        "tokens only rise"
    );
}

/// The leader is shown a value of `key` as another write of the same revision.
fn show_twice(cluster: &mut Cluster, key: &Key, change: impl Fn(&Entry) -> Arc<[u8]>) -> String {
    let leader = cluster.leader().unwrap();
    let entry = cluster.table.get(key).unwrap();
    let twice = Entry {
        value: change(&entry),
        ..entry
    };
    let before = cluster.nodes[leader].problems.len();
    cluster.tell(leader, Event::Seen(Change::Put(twice)));
    cluster.nodes[leader].problems[before..].join("; ")
}

#[test]
fn a_revision_that_stands_for_two_writes_is_a_sign_of_a_store_that_forgot() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let told = show_twice(&mut cluster, &key("root"), |entry| {
        let mut value = entry.value.to_vec();
        value.reverse();
        value.into()
    });
    assert!(told.contains("a revision of the root came twice"), "{told}");
    cluster.run(Duration::from_secs(4));
    cluster.settle();

    let leader = cluster.leader().unwrap();
    let own = cluster.nodes[leader].member.worker_id().unwrap().to_owned();
    let workers = Prefix::below(key("w"));
    let listed = cluster.table.list(&workers).into_iter();
    let mut other = listed.map(|entry| entry.key);
    let other = other.find(|key| !key.as_str().ends_with(&own));
    let told = show_twice(&mut cluster, &other.unwrap(), |entry| {
        let mut record = WorkerRecord::decode(&entry.value).unwrap();
        record.session = SessionId(7);
        record.encode().into()
    });
    assert!(told.contains("a revision of a record came twice"), "{told}");
    cluster.run(Duration::from_secs(4));
    cluster.settle();
}

#[test]
fn a_source_that_fails_or_goes_empty_once_changes_nothing() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    for answer in [
        Err("down".to_owned()),
        Ok(Partitions::new([]).unwrap()),
        Ok(Partitions::shards([("p", 5)]).unwrap()),
    ] {
        let starts = cluster.history.len();
        cluster.nodes[leader].source = answer;
        cluster.tell(leader, Event::RefreshRequested);
        cluster.run(fast().heartbeat_interval / 2);
        cluster.nodes[leader].source = Ok(cluster.partitions.clone());
        cluster.run(Duration::from_secs(2));
        assert!(cluster.is_owned());
        assert_eq!(cluster.history.len(), starts);
    }
}

#[test]
fn a_source_that_says_twice_that_most_are_gone_is_believed() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let fewer = Partitions::shards([("p", 3)]).unwrap();
    cluster.nodes[leader].source = Ok(fewer.clone());
    cluster.tell(leader, Event::RefreshRequested);
    cluster.run(Duration::from_secs(2));
    assert_eq!(cluster.counts().iter().sum::<usize>(), 3);
    cluster.partitions = fewer;
    assert!(cluster.is_owned());
}

#[test]
fn a_refresh_asked_of_a_follower_reaches_the_leader() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let more = Partitions::shards([("p", 15)]).unwrap();
    for node in &mut cluster.nodes {
        node.source = Ok(more.clone());
    }
    let follower = (cluster.leader().unwrap() + 1) % 3;
    cluster.tell(follower, Event::RefreshRequested);
    cluster.partitions = more;
    cluster.run(Duration::from_millis(50));
    assert!(cluster.is_owned(), "new partitions wait for no window");
    assert_eq!(cluster.counts(), [5, 5, 5]);
}

#[test]
fn an_unhealthy_worker_is_drained_unless_all_are() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    cluster.tell(1, described(Health::Unhealthy));
    cluster.run(Duration::from_millis(100));
    assert_eq!(cluster.counts()[1], 0);
    assert!(cluster.is_owned());
    for node in [0, 2] {
        cluster.tell(node, described(Health::Unhealthy));
        cluster.run(Duration::from_secs(2));
    }
    assert!(
        cluster.is_owned(),
        "nobody is healthy, so nobody is drained"
    );
}

#[test]
fn operators_cordon_drain_and_pin() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let id =
        |cluster: &Cluster, node: usize| cluster.nodes[node].member.worker_id().unwrap().to_owned();
    let mut control = Control::default();
    control.drained.insert(id(&cluster, 0));
    control.pinned.insert("p:0".into(), id(&cluster, 1));
    control.pinned.insert("p:1".into(), id(&cluster, 1));
    cluster.write(&key("ctl"), &control.encode());
    cluster.run(Duration::from_secs(2));
    assert!(cluster.is_owned());
    assert_eq!(cluster.counts()[0], 0);
    assert!(cluster.nodes[1].runs.contains_key("p:0"));
    assert!(cluster.nodes[1].runs.contains_key("p:1"));
    let mut control = Control::default();
    control.cordoned.insert(id(&cluster, 0));
    cluster.write(&key("ctl"), &control.encode());
    cluster.run(Duration::from_secs(2));
    assert_eq!(cluster.counts()[0], 0, "a cordoned worker gets nothing");
    cluster.write(&key("ctl"), &Control::default().encode());
    cluster.run(Duration::from_secs(2));
    assert_eq!(cluster.counts(), [4, 4, 4]);
}

#[test]
fn a_refresh_that_operators_wish_reads_the_source_once() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let more = Partitions::shards([("p", 15)]).unwrap();
    for node in &mut cluster.nodes {
        node.source = Ok(more.clone());
    }
    cluster.partitions = more;
    let mut control = Control::default();
    cluster.write(&key("ctl"), &control.encode());
    cluster.run(Duration::from_millis(50));
    assert_eq!(cluster.counts(), [4, 4, 4], "nobody asked for it");
    control.refresh += 1;
    cluster.write(&key("ctl"), &control.encode());
    cluster.run(Duration::from_millis(50));
    assert_eq!(cluster.counts(), [5, 5, 5]);
}

#[test]
fn wishes_that_are_deleted_are_no_longer_honoured() {
    for is_seen in [true, false] {
        let mut cluster = Cluster::settled(fast(), 2, 8);
        let mut control = Control::default();
        let drained = cluster.nodes[0].member.worker_id().unwrap();
        control.drained.insert(drained.to_owned());
        cluster.write(&key("ctl"), &control.encode());
        cluster.run(Duration::from_secs(2));
        assert_eq!(cluster.counts(), [0, 8]);
        cluster.delete(&key("ctl"), is_seen);
        cluster.run(Duration::from_secs(3));
        assert_eq!(cluster.counts(), [4, 4], "seen by watches: {is_seen}");
    }
}

#[test]
fn a_part_of_the_root_that_somebody_deleted_is_told_of() {
    let mut cluster = Cluster::settled(fast(), 2, 20_000);
    let chunks = cluster.table.list(&Prefix::below(key("c")));
    cluster.delete(&chunks[0].key, true);
    let late = cluster.join("late");
    cluster.run(Duration::from_secs(6));
    let told = &cluster.nodes[late].problems;
    let about = |text: &&String| text.contains(chunks[0].key.as_str());
    let told: Vec<_> = told.iter().filter(about).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("the root names c."), "{told:?}");
}

/// What the log says of moves to other workers since it had this many entries.
fn causes_since(cluster: &Cluster, count: usize) -> Vec<String> {
    let log = cluster.table.get(&key("moves")).unwrap();
    let moves = MoveEntry::decode_log(&log.value).unwrap();
    let mut causes: Vec<String> = moves.into_iter().skip(count).map(|m| m.cause).collect();
    causes.dedup();
    causes
}

fn logged(cluster: &Cluster) -> usize {
    let log = cluster.table.get(&key("moves")).unwrap();
    MoveEntry::decode_log(&log.value).unwrap().len()
}

#[test]
fn the_log_of_moves_names_what_made_them() {
    let id =
        |cluster: &Cluster, node: usize| cluster.nodes[node].member.worker_id().unwrap().to_owned();
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let follower = (cluster.leader().unwrap() + 1) % 3;

    let before = logged(&cluster);
    let mut control = Control::default();
    control.drained.insert(id(&cluster, follower));
    cluster.write(&key("ctl"), &control.encode());
    cluster.run(Duration::from_secs(2));
    let drained = causes_since(&cluster, before);
    assert_eq!(drained, ["an operator drained its worker"]);

    let before = logged(&cluster);
    cluster.write(&key("ctl"), &Control::default().encode());
    cluster.run(Duration::from_secs(2));
    assert_eq!(cluster.counts(), [4, 4, 4]);
    let balanced = causes_since(&cluster, before);
    assert!(
        !balanced.is_empty() && balanced.iter().all(|cause| cause.contains("the band")),
        "{balanced:?}"
    );

    let before = logged(&cluster);
    let pinned = cluster.nodes[follower].runs.keys().next().unwrap().clone();
    let mut control = Control::default();
    let to = id(&cluster, (follower + 1) % 3);
    control.pinned.insert(pinned, to);
    cluster.write(&key("ctl"), &control.encode());
    cluster.run(Duration::from_millis(300));
    let causes = causes_since(&cluster, before);
    assert!(
        causes.contains(&"an operator pinned it elsewhere".to_owned()),
        "{causes:?}"
    );

    let before = logged(&cluster);
    cluster.tell(follower, Event::Stop(Shutdown::Leave));
    cluster.run(Duration::from_secs(1));
    assert_eq!(causes_since(&cluster, before)[0], "its worker left");
}

#[test]
fn the_log_of_moves_tells_who_got_what_and_why() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let crashed = cluster.nodes[1].member.worker_id().unwrap().to_owned();
    cluster.kill(1);
    cluster.run(Duration::from_secs(2));
    let log = cluster.table.get(&key("moves")).expect("it is written");
    let moves = MoveEntry::decode_log(&log.value).unwrap();
    assert_eq!(moves.len(), 16);
    let last = &moves[12..];
    assert!(
        last.iter()
            .all(|entry| entry.from.as_deref() == Some(&*crashed))
    );
    assert!(
        last.iter().all(|entry| entry.cause == "its worker crashed"),
        "{last:?}"
    );
}

/// Fails in the way that is asked for once there are three workers.
#[derive(Debug)]
struct Broken(&'static str);

impl Strategy for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        if workers.len() < 3 {
            return Balanced::new().assign(workers, partitions, previous);
        }
        match self.0 {
            "panics" => panic!("on purpose"),
            "forgets" => {
                let fewer = Partitions::new(partitions.iter().skip(1).cloned())?;
                Balanced::new().assign(workers, &fewer, previous)
            }
            _ => Err(Error::Strategy {
                strategy: "broken".into(),
                message: "on purpose".into(),
            }),
        }
    }
}

#[test]
fn a_strategy_that_fails_keeps_the_last_root_and_is_reported() {
    for how in ["panics", "forgets", "fails"] {
        let mut cluster = Cluster::new(fast(), 12);
        cluster.strategy = Arc::new(Broken(how));
        cluster.join("host-0");
        cluster.join("host-1");
        cluster.settle();
        let starts = cluster.history.len();
        cluster.join("host-2");
        cluster.run(Duration::from_secs(3));
        assert!(cluster.is_owned(), "{how}");
        assert_eq!(cluster.history.len(), starts, "{how}");
        let leader = cluster.leader().unwrap();
        let problems = &cluster.nodes[leader].problems;
        assert!(
            problems.iter().any(|text| text.contains("strategy")),
            "{problems:?}"
        );
    }
}

#[test]
fn a_hook_that_never_ends_ends_the_process() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    cluster.nodes[1].hook_time = None;
    cluster.join("host-3");
    cluster.run(fast().stop_deadline * 3);
    assert!(cluster.nodes[1].aborted.is_some());
    cluster.settle();
}

#[test]
fn the_time_of_a_hook_that_waits_for_its_turn_counts_from_when_it_begins() {
    let mut cluster = Cluster::new(fast(), 12);
    let mut setup = cluster.setup("waiting");
    setup.hooks_wait = true;
    let waiting = cluster.join_with(setup);
    cluster.nodes[waiting].hook_time = None;
    cluster.nodes[waiting].yields = false;
    cluster.run(fast().start_deadline * 10);
    assert_eq!(cluster.nodes[waiting].unended.len(), 12);
    assert_eq!(cluster.nodes[waiting].problems, [] as [&str; 0]);
    let first = cluster.nodes[waiting].unended[0];
    cluster.tell(waiting, Event::HookBegun(first));
    cluster.run(fast().start_deadline * 3 / 2);
    let told = &cluster.nodes[waiting].problems;
    let given_up = "p:0 does not start here: others may have it for 2s";
    assert_eq!(told, &["the start hook of p:0 is overdue", given_up]);
    cluster.run(fast().start_deadline);
    assert!(cluster.nodes[waiting].aborted.is_none());
    cluster.run(fast().start_deadline);
    assert!(cluster.nodes[waiting].aborted.is_some());
}

#[test]
fn a_member_that_stops_while_the_store_is_away_ends_in_bounded_time() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    cluster.nodes[1].is_cut = true;
    cluster.stop(1, Shutdown::Leave);
    cluster.run(fast().shutdown_timeout + Duration::from_millis(1));
    assert!(cluster.nodes[1].ended);
}

#[test]
fn after_a_restart_of_everybody_nothing_moves_twice() {
    let mut cluster = Cluster::settled(fast(), 4, 16);
    for node in 0..4 {
        cluster.kill(node);
    }
    cluster.run(Duration::from_millis(300));
    let before = cluster.history.len();
    for node in 0..4 {
        cluster.join(&format!("host-{node}"));
    }
    cluster.settle();
    assert_eq!(
        cluster.history.len(),
        before + 16,
        "each partition is started once"
    );
}

#[test]
fn two_members_of_one_instance_get_an_id_each() {
    let mut cluster = Cluster::new(fast(), 8);
    for _ in 0..2 {
        cluster.join("host");
        cluster.run(Duration::from_secs(2));
    }
    cluster.settle();
    assert_eq!(cluster.counts(), [4, 4]);
}

#[test]
fn who_finds_no_free_id_says_so_and_waits_for_one() {
    let mut settings = fast();
    settings.worker_id_max = 1;
    let mut cluster = Cluster::settled(settings, 2, 8);
    let late = cluster.join("late");
    cluster.run(Duration::from_secs(1));
    assert!(cluster.nodes[late].problems[0].contains("all stable ids"));
    cluster.stop(0, Shutdown::Leave);
    cluster.run(Duration::from_secs(1));
    assert!(cluster.nodes[late].member.worker_id().is_some());
}

#[test]
fn an_external_agent_decides_who_leads() {
    let mut cluster = Cluster::new(fast(), 8);
    for host in ["a", "b"] {
        let mut setup = cluster.setup(host);
        setup.external_election = true;
        cluster.join_with(setup);
    }
    cluster.run(Duration::from_secs(2));
    assert_eq!(cluster.leader(), None);
    cluster.tell(1, Event::Elected(true));
    cluster.settle();
    assert_eq!(cluster.leader(), Some(1));
    cluster.tell(1, Event::Elected(false));
    cluster.tell(0, Event::Elected(true));
    cluster.run(Duration::from_millis(200));
    assert_eq!(cluster.leader(), Some(0));
    assert!(cluster.is_owned());
}

#[test]
fn a_large_root_lies_in_chunks_and_old_ones_are_deleted() {
    let mut cluster = Cluster::new(fast(), 3_000);
    for host in ["a", "b", "c"] {
        let mut setup = cluster.setup(host);
        setup.value_bytes_max = 8 * 1024;
        cluster.join_with(setup);
    }
    cluster.settle();
    let chunks = Prefix::below(key("c"));
    let first = cluster.table.list(&chunks).len();
    assert!(first > 0);
    for round in 0..4 {
        cluster.kill(round);
        cluster.run(Duration::from_secs(2));
        let mut setup = cluster.setup(&format!("again-{round}"));
        setup.value_bytes_max = 8 * 1024;
        cluster.join_with(setup);
        cluster.run(Duration::from_secs(3));
    }
    cluster.settle();
    cluster.run(Duration::from_secs(3));
    let last = cluster.table.list(&chunks).len();
    assert!(last <= first * 2, "{first} chunks at first, {last} at last");
}

#[test]
fn who_holds_up_the_end_of_a_quarantine_is_named() {
    let mut settings = fast();
    settings.overdue = Overdue::Report;
    let mut cluster = Cluster::settled(settings, 3, 12);
    cluster.nodes[1].hook_time = None;
    cluster.forget("second");
    cluster.run(Duration::from_secs(5));
    assert_eq!(
        cluster.counts(),
        [0, 0, 0],
        "nobody may run what it still stops"
    );
    let leader = cluster.leader().expect("somebody leads");
    let held_up = cluster.nodes[1].member.worker_id().unwrap();
    let text = format!("nothing is granted before {held_up} has stopped");
    let told = cluster.nodes[leader].problems.iter();
    assert_eq!(told.filter(|told| told.starts_with(&text)).count(), 1);
}
