//! Crashes, pauses and restarts, the same on every store.

use std::collections::{BTreeMap, BTreeSet};

use divvy_testbed::until;

use crate::bed::{Bed, LEASE, SOON};
use crate::fleet::{Fleet, Worker};
use crate::ledger::Ledger;

/// Its partitions start elsewhere, and nothing else moves.
pub(crate) async fn a_killed_follower_is_replaced(bed: Bed) {
    killed(bed, Fleet::follower).await;
}

/// The same for the leader: another leads, and running work is not touched.
pub(crate) async fn a_killed_leader_is_replaced(bed: Bed) {
    let fleet = killed(bed, Fleet::leader).await;
    until(SOON, "another leads", async || {
        fleet.workers.iter().any(Worker::leads)
    })
    .await;
}

async fn killed(bed: Bed, choose: fn(&Fleet) -> usize) -> Fleet {
    let mut fleet = Fleet::settled(bed, 3, 12).await;
    let victim = choose(&fleet);
    let before = fleet.owners();
    let name = fleet.workers[victim].instance.clone();
    fleet.kill(victim);
    fleet.owned().await;
    let after = fleet.owners();
    for (partition, owners) in &before {
        let was_its = owners[0] == name;
        assert_eq!(after[partition] != *owners, was_its, "{partition}");
    }
    fleet.check().await;
    fleet
}

/// Stopped for longer than its lease and then resumed, it does nothing with
/// what it had; it comes back as a new session.
pub(crate) async fn a_paused_worker_finds_out_before_it_acts(bed: Bed) {
    paused(bed, Fleet::follower).await;
}

/// The same for the leader: another leads by then, and it does not.
pub(crate) async fn a_paused_leader_finds_out_before_it_acts(bed: Bed) {
    let (fleet, victim) = paused(bed, Fleet::leader).await;
    until(SOON, "one leads, and it is another", async || {
        let leads = |number: &usize| fleet.workers[*number].leads();
        let leaders: Vec<_> = (0..3).filter(leads).collect();
        leaders.len() == 1 && leaders[0] != victim
    })
    .await;
}

async fn paused(bed: Bed, choose: fn(&Fleet) -> usize) -> (Fleet, usize) {
    let fleet = Fleet::settled(bed, 3, 12).await;
    let victim = choose(&fleet);
    let id = fleet.workers[victim].id();
    let had = fleet.owners();
    let name = &fleet.workers[victim].instance;
    let had: BTreeSet<_> = had.iter().filter(|(_, by)| by[0] == *name).collect();
    let before = fleet.grants();
    fleet.pause(victim);
    until(SOON, "its partitions are started elsewhere", async || {
        let new: BTreeSet<_> = fleet.grants().difference(&before).cloned().collect();
        had.iter()
            .all(|(name, _)| new.iter().any(|(partition, _)| partition == *name))
    })
    .await;
    fleet.resume(victim);
    until(SOON, "it learns that its session is over", async || {
        fleet.workers[victim].has("session_ended")
    })
    .await;
    fleet.balanced().await;
    let (now, others) = (fleet.workers[victim].id(), fleet.workers.iter());
    let same = others.filter(|worker| worker.id() == now).count();
    assert_eq!((same, now), (1, id), "it has its own id again, alone");
    fleet.check().await;
    (fleet, victim)
}

/// What a worker has started is killed when its lease ends, although the worker
/// itself stands still: its successors' effects are never mixed with it.
pub(crate) async fn commands_of_a_paused_worker_end_before_its_successors_start(bed: Bed) {
    let mut fleet = Fleet::empty(bed, 6);
    let ledger = Ledger::open(&fleet.bed);
    let command = ledger.command();
    for number in 0..3 {
        let name = format!("host-{number}");
        fleet.join(&name, &["--exec", &command, "--grace", "1s"]);
    }
    fleet.balanced().await;
    until(SOON, "all had an effect", async || {
        ledger.highest().len() == 6
    })
    .await;
    let victim = fleet.follower();
    let had = fleet.workers[victim].owns();
    assert!(!had.is_empty());
    fleet.pause(victim);
    until(SOON, "its successors have effects", async || {
        let highest = ledger.highest();
        had.iter().all(|(name, token)| highest[name] > *token)
    })
    .await;
    let late = divvy::manager::now() + LEASE;
    until(SOON, "time has passed", async || {
        divvy::manager::now() > late
    })
    .await;
    for (name, token) in &had {
        let refused = ledger.refused(name, *token);
        assert_eq!(refused, 0, "{name} went on beside its successor");
    }
    fleet.resume(victim);
    until(SOON, "it learns that its session is over", async || {
        fleet.workers[victim].has("session_ended")
    })
    .await;
    fleet.balanced().await;
    // What a worker has given back, it may not have said yet.
    until(SOON, "nothing of an owner is refused", async || {
        let mut owned = fleet.workers.iter().flat_map(Worker::owns);
        owned.all(|(name, token)| ledger.refused(&name, token) == 0)
    })
    .await;
    fleet.check().await;
}

/// Commands of a paused worker that fail all the time are not started again with
/// the tokens of the past, not even in the moment in which it goes on.
pub(crate) async fn crash_looping_commands_of_a_paused_worker_never_start_late(bed: Bed) {
    let mut fleet = Fleet::empty(bed, 6);
    let ledger = Ledger::of_crashes(&fleet.bed);
    let command = ledger.command();
    for number in 0..3 {
        fleet.join(&format!("host-{number}"), &["--exec", &command]);
    }
    fleet.balanced().await;
    until(SOON, "all had an effect", async || {
        ledger.highest().len() == 6
    })
    .await;
    let victim = fleet.follower();
    let had = fleet.workers[victim].owns();
    fleet.pause(victim);
    until(SOON, "its successors have effects", async || {
        let highest = ledger.highest();
        had.iter().all(|(name, token)| highest[name] > *token)
    })
    .await;
    fleet.resume(victim);
    until(SOON, "it learns that its session is over", async || {
        fleet.workers[victim].has("session_ended")
    })
    .await;
    fleet.balanced().await;
    assert_eq!(ledger.all_refused(), BTreeMap::new());
    fleet.check().await;
}

/// Whatever does not end when it is asked to has ended before a worker that is
/// asked to end hands its partitions on.
pub(crate) async fn leftovers_of_a_worker_that_ends_end_before_its_partitions_move(bed: Bed) {
    let mut fleet = Fleet::empty(bed, 6);
    let ledger = Ledger::of_leftovers(&fleet.bed);
    let command = ledger.command();
    for number in 0..2 {
        let more = ["--exec", &command, "--grace", "500ms"];
        fleet.join(&format!("host-{number}"), &more);
    }
    fleet.balanced().await;
    until(SOON, "all had an effect", async || {
        ledger.highest().len() == 6
    })
    .await;
    let victim = fleet.follower();
    let had = fleet.workers[victim].owns();
    assert!(!had.is_empty());
    fleet.end(victim).await;
    until(SOON, "its successors have effects", async || {
        let highest = ledger.highest();
        had.iter().all(|(name, token)| highest[name] > *token)
    })
    .await;
    let late = divvy::manager::now() + LEASE;
    until(SOON, "time has passed", async || {
        divvy::manager::now() > late
    })
    .await;
    assert_eq!(ledger.all_refused(), BTreeMap::new());
    fleet.check().await;
}

/// A second process with the name of one that lives says so, and has an id of
/// its own.
pub(crate) async fn a_second_process_of_an_instance_is_told(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 2, 12).await;
    let first = fleet.workers[0].id().unwrap();
    let twin = fleet.join("host-0", &[]);
    fleet.balanced().await;
    let lines = fleet.workers[twin].lines();
    let errors = lines.iter().filter(|line| line["event"] == "error");
    let told: Vec<_> = errors.filter_map(|line| line["message"].as_str()).collect();
    let waits = format!("instance 'host-0' has {first} already: waiting until that lease is over");
    let lives = format!("instance 'host-0' also runs in another process, as {first}: ");
    assert!(told.contains(&waits.as_str()), "{told:?}");
    assert!(told.iter().any(|text| text.starts_with(&lives)), "{told:?}");
    assert_ne!(fleet.workers[twin].id(), Some(first));
    fleet.check().await;
}

/// Each is asked to end, and started again: it gets back what it had.
pub(crate) async fn a_rolling_restart_by_signals_moves_nothing(bed: Bed) {
    let mut fleet = Fleet::empty(bed, 12);
    let kept = ["--on-stop", "return", "--return-within", "60s"];
    for number in 0..3 {
        fleet.join(&format!("host-{number}"), &kept);
    }
    fleet.balanced().await;
    let owners = fleet.owners();
    for number in 0..3 {
        fleet.end(number).await;
        fleet.join(&format!("host-{number}"), &kept);
        fleet.owned().await;
        assert_eq!(fleet.owners(), owners, "after the restart of {number}");
    }
    fleet.check().await;
}

/// A server that does not answer for longer than a lease: work stops, goes on
/// by itself, and never has two owners.
pub(crate) async fn a_paused_server_is_survived(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 3, 12).await;
    fleet.bed.server.server().pause();
    until(SOON, "all work is stopped", async || {
        fleet.owners().is_empty()
    })
    .await;
    fleet.bed.server.server().resume();
    fleet.owned().await;
    fleet.balanced().await;
    fleet.check().await;
}

/// A server that is killed and started again, with its data.
pub(crate) async fn a_restarted_server_is_survived(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 3, 12).await;
    let server = fleet.bed.server.server();
    server.kill();
    server.start_again().await;
    until(SOON, "it was noticed", async || {
        fleet.workers.iter().all(|worker| worker.has("error"))
    })
    .await;
    fleet.owned().await;
    fleet.check().await;
}

/// A server that has lost everything when it is back: nobody owns anything
/// before all leases of the time before are over.
pub(crate) async fn a_server_that_forgets_everything_is_survived(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 3, 12).await;
    let before = fleet.grants();
    let server = fleet.bed.server.server();
    server.kill();
    fleet.forgot = Some(divvy::manager::now());
    server.start_again().await;
    until(
        SOON,
        "all is granted anew, with higher tokens",
        async || {
            let new: BTreeSet<_> = fleet.grants().difference(&before).cloned().collect();
            let is_higher = |(name, token): &(String, i64)| {
                let mut again = new.iter().filter(|(partition, _)| partition == name);
                again.any(|(_, other)| other > token)
            };
            before.iter().all(is_higher)
        },
    )
    .await;
    fleet.balanced().await;
    fleet.check().await;
}

/// Where that is allowed, work goes on without the server, and nothing moves
/// when it is back.
pub(crate) async fn with_overlap_work_outlasts_the_server(bed: Bed) {
    bed.set("store_outage: overlap");
    let mut fleet = Fleet::settled(bed, 3, 12).await;
    fleet.overlaps = true;
    let (owners, grants) = (fleet.owners(), fleet.grants());
    fleet.bed.server.server().pause();
    let late = divvy::manager::now() + LEASE * 2;
    until(SOON, "all is worked on after two leases", async || {
        fleet.worked_since(late) == 12
    })
    .await;
    assert_eq!(fleet.owners(), owners);
    fleet.bed.server.server().resume();
    // Who comes now gets its share from those who are still there.
    fleet.join("late", &[]);
    fleet.balanced().await;
    let again = fleet.grants();
    let new = again.difference(&grants).count();
    assert_eq!(new, 3, "only the share of the last one was granted anew");
    fleet.check().await;
}
