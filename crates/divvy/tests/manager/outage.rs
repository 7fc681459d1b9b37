//! Workers and stores that do not reach each other, the same on every store.

use std::time::{Duration, Instant};

use divvy::manager::{
    EventKind, LeaderSettings, Manager, ManagerError, Settings, Shutdown, StaticSource, View,
};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, until};

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// A worker that is cut off stops by its own clock, others take over when that
/// is known, and it comes back.
pub(crate) async fn who_is_cut_off_is_replaced_and_comes_back(bed: Bed) {
    let fleet = Fleet::settled(bed, 3, 12).await;
    fleet.balanced().await;
    let leader = fleet.leader().await;
    let victim = (0..3).find(|number| *number != leader).unwrap();
    let leads = fleet.workers[leader].as_ref().unwrap().view();
    let before = crashes(&leads);
    cut_off(&fleet, victim).await;
    assert_eq!(crashes(&leads) - before, 4, "each of its partitions counts");
    fleet.cut(victim, false);
    fleet.balanced().await;
    fleet.end().await;
}

/// The same for the leader: another leads.
pub(crate) async fn a_leader_that_is_cut_off_is_replaced(bed: Bed) {
    let fleet = Fleet::settled(bed, 3, 12).await;
    fleet.balanced().await;
    let leader = fleet.leader().await;
    cut_off(&fleet, leader).await;
    fleet.cut(leader, false);
    fleet.balanced().await;
    assert_ne!(fleet.leader().await, leader);
    fleet.end().await;
}

async fn cut_off(fleet: &Fleet, victim: usize) {
    fleet.cut(victim, true);
    let numbers = (0..fleet.workers.len()).filter(|number| *number != victim);
    let others: Vec<_> = numbers
        .map(|number| fleet.workers[number].as_ref().unwrap().view())
        .collect();
    until(SOON, "the others have everything", async || {
        let counts = others
            .iter()
            .map(|view| view.current_assignment().partitions.len());
        counts.sum::<usize>() == 12
    })
    .await;
    fleet.owned().await;
}

/// Hand-overs after a crash that a leader has counted.
fn crashes(leader: &View) -> usize {
    let page = leader.metrics().render("w");
    let start = "divvy_handover_seconds_count{worker=\"w\",cause=\"crashed\"} ";
    let found = page.lines().find_map(|line| line.strip_prefix(start));
    found.map_or(0, |count| count.parse().unwrap())
}

/// A server that does not answer for longer than a lease: work stops, goes on
/// by itself, and what was written meanwhile or not is as it should be.
pub(crate) async fn a_server_that_hangs_is_outlasted(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 3, 12).await;
    fleet.balanced().await;
    fleet.bed.server().unwrap().pause();
    until(SOON, "all work is stopped", async || {
        fleet.counts() == [0; 3]
    })
    .await;
    fleet.bed.server().unwrap().resume();
    fleet.balanced().await;
    for number in 0..3 {
        told_of_the_lease(&mut fleet, number).await;
    }
    fleet.end().await;
}

/// Whoever could not renew its lease has said so once, before it stopped
/// anything, and says when that is over.
async fn told_of_the_lease(fleet: &mut Fleet, number: usize) {
    let is_over = |kind: &EventKind| match kind {
        // One that was fenced meanwhile has begun anew.
        EventKind::LeaseRegained { .. } | EventKind::SessionEnded { .. } => true,
        _ => false,
    };
    until(SOON, "it is told to be over", async || {
        let mut events = fleet.events(number).iter();
        events.any(|event| is_over(&event.kind))
    })
    .await;
    let events = fleet.events(number);
    let runs_out = |kind: &EventKind| matches!(kind, EventKind::Error(error) if error.kind() == "lease_runs_out");
    let told = events.iter().position(|event| runs_out(&event.kind));
    let told = told.expect("it is told");
    let over = events
        .iter()
        .position(|event| is_over(&event.kind))
        .unwrap();
    let is_stop = |kind: &EventKind| matches!(kind, EventKind::Stopped { .. });
    let stopped = events.iter().position(|event| is_stop(&event.kind));
    assert!(told < stopped.expect("it has stopped") && told < over);
    let episode = events[..over].iter();
    assert_eq!(episode.filter(|event| runs_out(&event.kind)).count(), 1);
}

/// Operations on a server that hangs end by their own limit, long before the
/// lease does; nothing is interrupted when it goes on in time.
pub(crate) async fn operations_on_a_server_that_hangs_end_in_time(bed: Bed) {
    let mut fleet = Fleet::unrecorded(bed, 8);
    fleet.settings.leader.operation_timeout = Duration::from_millis(300);
    fleet.settings.leader.heartbeat_ttl = Duration::from_secs(15);
    let number = fleet.join("one").await;
    fleet.owned().await;
    let view = fleet.views().remove(0);
    let before = view.metrics().heartbeat_failures();
    fleet.bed.server().unwrap().pause();
    until(SOON, "a heartbeat fails", async || {
        view.metrics().heartbeat_failures() > before
    })
    .await;
    fleet.bed.server().unwrap().resume();
    let heard = fleet.events(number).len();
    until(SOON, "it renews again", async || {
        let mut new = fleet.events(number)[heard..].iter();
        new.any(|event| matches!(event.kind, EventKind::Deadline { until: Some(_), .. }))
    })
    .await;
    let is_stop = |kind: &EventKind| matches!(kind, EventKind::Revoked { .. });
    assert!(
        !fleet
            .events(number)
            .iter()
            .any(|event| is_stop(&event.kind))
    );
    fleet.end().await;
}

/// A start on a server that accepts connections and never answers ends in
/// time, and says what it waited for.
pub(crate) async fn a_start_on_a_server_that_hangs_ends_in_time(mut bed: Bed) {
    bed.server().unwrap().pause();
    let mut settings = bed.settings();
    settings.leader.startup_timeout = Duration::from_secs(2);
    let source = StaticSource::shards(["p"], 4).unwrap();
    let builder = Manager::builder(bed.store(), source).settings(settings);
    let told = match builder.start().await {
        Err(told) => told,
        Ok(started) => panic!("{:?}", started.stop(Shutdown::Leave).await),
    };
    assert!(matches!(told, ManagerError::Unreached(_)), "{told:?}");
    bed.server().unwrap().resume();
}

/// A server that restarts, with its data or without, pauses work for as long as
/// it is away, a lease as others wait for it, and two seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_redis_pauses_work_for_its_outage_a_lease_and_two_seconds() {
    let mut fleet = before_a_restart(Fleet::unrecorded).await;
    for keeps_data in [true, false] {
        let most = LeaderSettings::observed(fleet.settings.leader.heartbeat_ttl);
        let pause = pause_of_a_restart(&mut fleet, keeps_data, &[0, 1, 2]).await;
        pause.check(most, keeps_data);
    }
    fleet.end().await;
}

/// Where the leader dies with the server, until another leads besides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_redis_whose_leader_died_pauses_work_for_a_leaders_lease_more() {
    for keeps_data in [true, false] {
        // Only what is recorded can be cut.
        let mut fleet = before_a_restart(Fleet::new).await;
        let leader = fleet.leader().await;
        // It is heard by nobody any more.
        fleet.cut(leader, true);
        let settings = &fleet.settings.leader;
        let most = LeaderSettings::observed(settings.heartbeat_ttl)
            + LeaderSettings::observed(settings.leader_lease);
        let others: Vec<usize> = (0..3).filter(|number| *number != leader).collect();
        let pause = pause_of_a_restart(&mut fleet, keeps_data, &others).await;
        pause.check(most, keeps_data);
    }
}

/// Three workers with the default settings on a server that will be killed.
async fn before_a_restart(make: impl Fn(Bed, u32) -> Fleet) -> Fleet {
    let options = RedisOptions::new().append_only();
    let server = RedisServer::start(RedisFlavour::Redis7, options).await;
    let mut fleet = make(Bed::Redis(server), 12);
    fleet.settings = Settings::default();
    fleet.settings.leader.startup_timeout = SOON;
    fleet.settings.leader.expected_workers = Some(3);
    fleet.join_many(3).await;
    fleet.owned().await;
    fleet
}

/// What a machine that does much else may add to what is documented; far less
/// than another lease.
const SLACK: Duration = Duration::from_secs(3);

/// Counted from when the server was killed.
#[derive(Debug)]
struct Pause {
    /// Until the server answered again.
    restarted: Duration,
    /// Until the last worker heard it again.
    away: Duration,
    /// Until everything was owned again.
    lasted: Duration,
}

impl Pause {
    /// Exactly, from when the last worker has heard of the new life; with slack
    /// for a loaded machine, from when the server answered.
    fn check(&self, most: Duration, keeps_data: bool) {
        let most = most + Duration::from_secs(2);
        assert!(
            self.lasted <= self.away + most && self.lasted <= self.restarted + most + SLACK,
            "data kept: {keeps_data}, {self:?}, at most {most:?}"
        );
    }
}

/// Kills the server and starts it again. It is away for less than a lease, so
/// that these workers stop their work when they hear that it is another.
async fn pause_of_a_restart(fleet: &mut Fleet, keeps_data: bool, workers: &[usize]) -> Pause {
    let begun = Instant::now();
    let server = fleet.bed.server().unwrap();
    server.kill();
    if keeps_data {
        server.start_again().await;
    } else {
        server.start_empty().await;
    }
    let restarted = begun.elapsed();
    until(SOON, "all work is stopped", async || {
        let counts = fleet.counts();
        workers.iter().all(|number| counts[*number] == 0)
    })
    .await;
    let away = begun.elapsed();
    fleet.owned().await;
    let lasted = begun.elapsed();
    Pause {
        restarted,
        away,
        lasted,
    }
}
