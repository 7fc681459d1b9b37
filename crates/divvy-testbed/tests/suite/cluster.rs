//! Clusters of NATS servers.

use std::time::Duration;

use divvy_testbed::{NatsCluster, NatsVersion, until, until_some};

use crate::wire::nats;

/// Elections take seconds.
const SOON: Duration = Duration::from_secs(60);

const STREAM: &str = r#"{"name":"S","subjects":["s.*"],"storage":"file","num_replicas":3}"#;

async fn replicates_and_survives_its_leader(version: NatsVersion) {
    let mut cluster = NatsCluster::start(version, 3).await;
    assert_eq!(cluster.url().matches("nats://127.0.0.1:").count(), 3);
    let mut wire = nats(cluster.servers()[0].address()).await;
    let created = wire.nats_request("$JS.API.STREAM.CREATE.S", STREAM).await;
    assert!(created.contains("\"created\""), "{created}");
    let stored = wire.nats_request("s.1", "kept").await;
    assert!(stored.contains("\"seq\":1"), "{stored}");

    let leads = async || cluster.leader_of("S").await;
    let leader = until_some(SOON, "a leader of the stream", leads).await;
    cluster.server(leader).kill();
    let other = async || {
        cluster
            .leader_of("S")
            .await
            .is_some_and(|now| now != leader)
    };
    until(SOON, "another leader of the stream", other).await;
    cluster.server(leader).start_again().await;
    cluster.until_settled().await;

    let mut wire = nats(cluster.servers()[leader].address()).await;
    let last = r#"{"last_by_subj":"s.1"}"#;
    let found = wire.nats_request("$JS.API.STREAM.MSG.GET.S", last).await;
    assert!(found.contains("\"seq\":1"), "{found}");
}

#[tokio::test]
async fn lowest_cluster_replicates_and_survives_its_leader() {
    replicates_and_survives_its_leader(NatsVersion::LowestReplicated).await;
}

#[tokio::test]
async fn newest_cluster_replicates_and_survives_its_leader() {
    replicates_and_survives_its_leader(NatsVersion::Newest).await;
}
