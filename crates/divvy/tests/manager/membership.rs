//! Workers that come and go, the same on every store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use divvy::Health;
use divvy::manager::{EventKind, Shutdown, State};
use divvy_testbed::until;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// All start, everything is owned, and one version grants it after the window.
pub(crate) async fn cold_start_of_many_fails_nobody_and_grants_once(bed: Bed) {
    let mut fleet = Fleet::new(bed, 100);
    fleet.settings.leader.expected_workers = Some(20);
    // So many threads in one process take turns.
    fleet.settings.leader.heartbeat_ttl = Duration::from_secs(6);
    fleet.join_many(20).await;
    fleet.balanced().await;
    assert_eq!(fleet.counts(), [5; 20]);
    fleet.granted_once().await;
    assert_eq!(
        fleet.starts(),
        100,
        "nothing was moved after the first placement"
    );
    fleet.leader().await;
    fleet.end().await;
}

/// One alone gets everything, without waiting for the whole window.
pub(crate) async fn one_alone_owns_everything(bed: Bed) {
    let fleet = Fleet::settled(bed, 1, 32).await;
    assert_eq!(fleet.counts(), [32]);
    let view = fleet.views().remove(0);
    view.wait_for(State::Stable).await.unwrap();
    assert!(view.is_leader());
    fleet.end().await;
}

/// A joiner gets its share and nothing else moves; a leaver's goes to the
/// others, and nothing else moves.
pub(crate) async fn joining_and_leaving_move_only_what_they_must(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 3, 60).await;
    fleet.balanced().await;
    let before = fleet.starts();
    let joined = fleet.join("late").await;
    fleet.balanced().await;
    assert_eq!(fleet.starts() - before, 15, "a joiner takes its share");
    let before = fleet.starts();
    fleet.stop(joined, Shutdown::Leave).await.unwrap();
    fleet.owned().await;
    fleet.balanced().await;
    assert_eq!(fleet.starts() - before, 15, "a leaver gives its share back");
    fleet.end().await;
}

/// Each worker restarts in turn under its instance: it gets its id and its
/// partitions back, and nobody else's move.
pub(crate) async fn a_rolling_restart_moves_nothing(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 3, 30).await;
    fleet.balanced().await;
    let owners = fleet.owners();
    let within = Duration::from_secs(30);
    for number in 0..3 {
        let how = Shutdown::Return { within };
        let before = fleet.starts();
        fleet.stop(number, how).await.unwrap();
        fleet.join(&format!("host-{number}")).await;
        fleet.owned().await;
        assert_eq!(fleet.owners(), owners, "after the restart of {number}");
        assert_eq!(fleet.starts() - before, 10, "only its own were started");
    }
    fleet.end().await;
}

/// An unhealthy worker is drained, and gets its share again when it is well.
pub(crate) async fn an_unhealthy_worker_is_drained(bed: Bed) {
    let fleet = Fleet::settled(bed, 3, 30).await;
    fleet.balanced().await;
    let views = fleet.views();
    views[1].report_health(Health::Unhealthy);
    until(SOON, "it owns nothing", async || {
        views[1].current_assignment().partitions.is_empty()
    })
    .await;
    fleet.owned().await;
    views[1].report_health(Health::Healthy);
    fleet.balanced().await;
    fleet.end().await;
}

/// A worker that says that it can take more gets more, and less again.
pub(crate) async fn shares_follow_the_weights_of_workers(bed: Bed) {
    let fleet = Fleet::settled(bed, 2, 40).await;
    fleet.balanced().await;
    for (weight, shares) in [(3.0, [30, 10]), (1.0, [20, 20])] {
        fleet.views()[0].report_weight(weight).unwrap();
        until(SOON, "shares follow", async || fleet.counts() == shares).await;
    }
    fleet.end().await;
}

/// The leader leaves: somebody else leads, and only its partitions move.
pub(crate) async fn a_leaving_leader_takes_nothing_with_it(bed: Bed) {
    let mut fleet = Fleet::settled(bed, 4, 40).await;
    fleet.balanced().await;
    for left in (2..=3).rev() {
        let leader = fleet.leader().await;
        let (before, kept) = (fleet.starts(), others(&fleet, leader));
        let share = fleet.counts()[0].max(40 / (left + 1));
        fleet.stop(leader, Shutdown::Leave).await.unwrap();
        fleet.owned().await;
        fleet.leader().await;
        let owners = fleet.owners();
        let still = kept.iter().filter(|(name, owner)| owners[*name] == **owner);
        assert_eq!(still.count(), kept.len(), "what others owned stays");
        assert!(fleet.starts() - before <= share + 1);
    }
    fleet.end().await;
}

fn others(fleet: &Fleet, number: usize) -> BTreeMap<String, Vec<Arc<str>>> {
    let id = fleet.workers[number].as_ref().unwrap().worker_id().unwrap();
    let owners = fleet.owners().into_iter();
    owners.filter(|(_, by)| by[0] != id).collect()
}

/// Several join within one window: one rebalance.
pub(crate) async fn several_joins_make_one_rebalance(bed: Bed) {
    let mut fleet = Fleet::new(bed, 60);
    fleet.settings.leader.planned_scale_window = Duration::from_secs(2);
    fleet.settings.leader.expected_workers = Some(2);
    fleet.join_many(2).await;
    fleet.owned().await;
    let before = (fleet.starts(), revoking(&mut fleet));
    let first = fleet.workers.len();
    let mut recruits = Vec::new();
    for number in 0..4 {
        let name = format!("late-{number}");
        recruits.push(fleet.recruit(&name, divvy::manager::NoHooks).await);
    }
    let mut starting = tokio::task::JoinSet::new();
    for (number, recruit) in recruits.into_iter().enumerate() {
        starting.spawn(async move { (number, recruit.builder.start().await) });
    }
    while let Some(started) = starting.join_next().await {
        let (number, started) = started.unwrap();
        fleet.workers[first + number] = Some(started.unwrap());
    }
    fleet.balanced().await;
    assert_eq!(fleet.starts() - before.0, 40, "each move is made once");
    assert_eq!(
        revoking(&mut fleet) - before.1,
        1,
        "one root asks everything back"
    );
    fleet.end().await;
}

fn revoking(fleet: &mut Fleet) -> usize {
    let workers = 0..fleet.workers.len();
    let is_revoking = |kind: &EventKind| matches!(kind, EventKind::Committed { revoked: 1.., .. });
    workers
        .map(|number| {
            let events = fleet.events(number).iter();
            events.filter(|event| is_revoking(&event.kind)).count()
        })
        .sum()
}
