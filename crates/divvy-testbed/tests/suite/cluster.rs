//! Clusters of NATS servers.

use std::time::Duration;

use divvy_testbed::{NatsCluster, NatsVersion, until, until_some};
use tokio::time::timeout;

use crate::wire::nats;

/// Elections take seconds.
const SOON: Duration = Duration::from_secs(60);

/// How long an answer to one request is waited for.
const ANSWER_TAKES_MAX: Duration = Duration::from_secs(5);

const STREAM: &str = r#"{"name":"S","subjects":["s.*"],"storage":"file","num_replicas":3}"#;

/// JetStream's code for too few servers to place a stream on.
const NO_PEERS: &str = "\"err_code\":10005";

async fn replicates_and_survives_its_leader(version: NatsVersion) {
    let mut cluster = NatsCluster::start(version, 3).await;
    assert_eq!(cluster.url().matches("nats://127.0.0.1:").count(), 3);
    let mut wire = nats(cluster.servers()[0].address()).await;
    // Servers that follow may still count as offline where streams are placed.
    until(SOON, "a stream is placed", async || {
        let created = wire.nats_request("$JS.API.STREAM.CREATE.S", STREAM).await;
        let is_early = created.contains(NO_PEERS);
        assert!(is_early || created.contains("\"created\""), "{created}");
        !is_early
    })
    .await;
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

    // A server that has just come back may drop a request without a word, as
    // its clients know: it is asked again.
    let address = cluster.servers()[leader].address();
    let kept = async || {
        let mut wire = nats(address).await;
        let last = r#"{"last_by_subj":"s.1"}"#;
        let answer = wire.nats_request("$JS.API.STREAM.MSG.GET.S", last);
        timeout(ANSWER_TAKES_MAX, answer).await.ok()
    };
    let found = until_some(SOON, "an answer of the server that came back", kept).await;
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
