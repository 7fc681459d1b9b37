//! NATS servers.

use std::time::Duration;

use divvy_testbed::{NatsOptions, NatsServer, NatsVersion};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::wire::{Wire, nats};

const STREAM: &str = r#"{"name":"S","subjects":["s.*"],"storage":"file","num_replicas":1}"#;

async fn streams(server: &NatsServer) -> usize {
    let mut wire = nats(server.address()).await;
    let names = wire.nats_request("$JS.API.STREAM.NAMES", "").await;
    names.matches("\"S\"").count()
}

async fn create_stream(server: &NatsServer) -> String {
    let mut wire = nats(server.address()).await;
    wire.nats_request("$JS.API.STREAM.CREATE.S", STREAM).await
}

async fn starts_and_restarts(version: NatsVersion) {
    let mut server = NatsServer::start(version, NatsOptions::new()).await;
    assert_eq!(server.version(), version.number());
    let (port, first) = (server.port(), server.pid());
    let created = create_stream(&server).await;
    assert!(created.contains("\"created\""), "{created}");

    server.kill();
    assert!(TcpStream::connect(server.address()).await.is_err());
    server.start_again().await;
    assert_eq!((server.port(), streams(&server).await), (port, 1));
    assert_ne!(server.pid(), first);

    server.stop().await;
    server.start_empty().await;
    assert_eq!((server.port(), streams(&server).await), (port, 0));
}

#[tokio::test]
async fn refused_version_starts_and_restarts_with_and_without_its_data() {
    starts_and_restarts(NatsVersion::Refused).await;
}

#[tokio::test]
async fn lowest_version_starts_and_restarts_with_and_without_its_data() {
    starts_and_restarts(NatsVersion::Lowest).await;
}

#[tokio::test]
async fn lowest_replicated_version_starts_and_restarts_with_and_without_its_data() {
    starts_and_restarts(NatsVersion::LowestReplicated).await;
}

#[tokio::test]
async fn newest_version_starts_and_restarts_with_and_without_its_data() {
    starts_and_restarts(NatsVersion::Newest).await;
}

#[tokio::test]
async fn paused_server_is_silent_until_it_is_resumed() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let mut wire = nats(server.address()).await;
    server.pause();
    server.pause();
    wire.send("PING\r\n").await;
    let silence = timeout(Duration::from_millis(50), wire.line()).await;
    assert!(silence.is_err(), "{silence:?}");
    server.resume();
    assert_eq!(wire.line().await, "PONG");
}

#[tokio::test]
async fn paused_server_can_be_stopped_and_started_again() {
    let mut server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    server.pause();
    server.stop().await;
    assert!(!server.is_running());
    server.start_again().await;
    nats(server.address()).await;
}

#[tokio::test]
async fn message_over_the_maximum_is_refused() {
    let options = NatsOptions::new().max_payload(100);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let mut wire = nats(server.address()).await;
    let answer = wire.nats_request("subject", &"x".repeat(101)).await;
    assert!(answer.contains("Maximum Payload Violation"), "{answer}");
}

#[tokio::test]
async fn full_storage_refuses_more() {
    for version in NatsVersion::SUPPORTED {
        let options = NatsOptions::new().storage_bytes(50_000).sync_always();
        let server = NatsServer::start(version, options).await;
        create_stream(&server).await;
        let mut wire = nats(server.address()).await;
        let message = "x".repeat(20_000);
        // The one that fills it is still stored.
        for _ in 0..3 {
            let stored = wire.nats_request("s.1", &message).await;
            assert!(!stored.contains("\"error\""), "{version:?}: {stored}");
        }
        let refused = wire.nats_request("s.1", &message).await;
        assert!(
            refused.contains("insufficient resources"),
            "{version:?}: {refused}"
        );
    }
}

#[tokio::test]
async fn server_may_have_no_jetstream() {
    let options = NatsOptions::new().without_jetstream();
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let mut wire = Wire::connect(server.address()).await;
    assert!(!wire.line().await.contains("\"jetstream\":true"));
}

#[tokio::test]
async fn monitoring_answers_until_the_server_is_killed() {
    let mut server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let about = server.monitor("/varz").await.unwrap();
    assert_eq!(about["server_name"], server.name());
    assert_eq!(about["port"], server.port());
    server.kill();
    assert_eq!(server.monitor("/varz").await, None);
}

#[tokio::test]
#[should_panic(expected = "unknown field \"no_such_thing\"")]
async fn server_that_does_not_start_fails_with_its_log() {
    let options = NatsOptions::new().extra("no_such_thing: 1");
    NatsServer::start(NatsVersion::Newest, options).await;
}
