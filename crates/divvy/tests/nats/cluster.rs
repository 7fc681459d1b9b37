//! A bucket with copies, whose leader dies.

use std::time::Duration;

use divvy::store::{Expected, KeyValue, Store, StoreSettings};
use divvy_testbed::{NatsCluster, NatsVersion, until_some};

use crate::bed::{SOON, key, settings, try_open};
use crate::counting::Counting;

fn replicated() -> StoreSettings {
    StoreSettings {
        replicas: 3,
        operation_timeout: Duration::from_secs(1),
        ..settings()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_writer_wins_each_round_while_the_leader_is_killed() {
    let mut cluster = NatsCluster::start(NatsVersion::LowestReplicated, 3).await;
    let first = try_open(&cluster.url(), &replicated()).await.unwrap();
    let incarnation = first.incarnation().await.unwrap();
    let mut stores = Vec::new();
    for _ in 0..6 {
        stores.push(try_open(&cluster.url(), &replicated()).await.unwrap());
    }
    let counting = Counting::start(stores).await;
    counting.until_more(40).await;
    let leader = until_some(SOON, "a leader", async || {
        cluster.leader_of("KV_divvy").await
    })
    .await;
    cluster.server(leader).kill();
    counting.until_more(40).await;
    counting.assert_exact(&first).await;
    assert_eq!(first.incarnation().await.unwrap(), incarnation);
    cluster.server(leader).start_again().await;
    cluster.until_settled().await;
    assert_eq!(first.incarnation().await.unwrap(), incarnation);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_on_different_servers_of_a_cluster_see_one_incarnation_and_one_bucket() {
    let cluster = NatsCluster::start(NatsVersion::Newest, 3).await;
    let mut seen = Vec::new();
    let mut stores = Vec::new();
    for server in cluster.servers() {
        let store = try_open(&server.url(), &replicated()).await.unwrap();
        seen.push(store.incarnation().await.unwrap());
        stores.push(store);
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    let written = stores.iter().map(|store| {
        let store = store.clone();
        tokio::spawn(async move {
            let written = store
                .compare_and_set(&key("a"), Expected::Absent, b"1")
                .await;
            written.unwrap().done().is_some()
        })
    });
    let mut winners = 0;
    for won in written.collect::<Vec<_>>() {
        winners += usize::from(won.await.unwrap());
    }
    assert_eq!(winners, 1);
}
