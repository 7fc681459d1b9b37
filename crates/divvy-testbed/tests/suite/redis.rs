//! Redis and Valkey servers.

use std::time::Duration;

use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, until};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::wire::{SOON, Wire};

async fn starts_and_restarts(flavour: RedisFlavour) {
    let mut server = RedisServer::start(flavour, RedisOptions::new().append_only()).await;
    assert_eq!(server.version(), flavour.number());
    let (port, first) = (server.port(), server.pid());
    let mut wire = Wire::connect(server.address()).await;
    assert_eq!(wire.redis("SET k kept").await, "+OK");

    server.kill();
    assert!(TcpStream::connect(server.address()).await.is_err());
    server.start_again().await;
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), first);
    let mut wire = Wire::connect(server.address()).await;
    assert_eq!(wire.redis("GET k").await, "kept");

    server.stop().await;
    server.start_empty().await;
    assert_eq!(server.port(), port);
    let mut wire = Wire::connect(server.address()).await;
    assert_eq!(wire.redis("GET k").await, "$-1");
}

#[tokio::test]
async fn redis_starts_and_restarts_with_and_without_its_data() {
    starts_and_restarts(RedisFlavour::Redis7).await;
}

#[tokio::test]
async fn valkey_starts_and_restarts_with_and_without_its_data() {
    starts_and_restarts(RedisFlavour::Valkey9).await;
}

#[tokio::test]
async fn paused_server_is_silent_until_it_is_resumed() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let mut wire = Wire::connect(server.address()).await;
        server.pause();
        wire.send("PING\r\n").await;
        let silence = timeout(Duration::from_millis(50), wire.line()).await;
        assert!(silence.is_err(), "{silence:?}");
        server.resume();
        assert_eq!(wire.line().await, "+PONG");
    }
}

#[tokio::test]
async fn access_rules_are_kept() {
    for flavour in RedisFlavour::ALL {
        let options = RedisOptions::new()
            .user("default off")
            .user("worker on >secret ~divvy:* +get +set");
        let server = RedisServer::start(flavour, options).await;
        assert_eq!(server.version(), flavour.number());
        let mut wire = Wire::connect(server.address()).await;
        assert!(wire.redis("GET divvy:a").await.starts_with("-NOAUTH"));
        assert!(
            wire.redis("AUTH worker wrong")
                .await
                .starts_with("-WRONGPASS")
        );
        assert_eq!(wire.redis("AUTH worker secret").await, "+OK");
        assert_eq!(wire.redis("SET divvy:a 1").await, "+OK");
        assert!(wire.redis("SET other 1").await.starts_with("-NOPERM"));
        assert!(wire.redis("FLUSHALL").await.starts_with("-NOPERM"));
    }
}

#[tokio::test]
async fn full_memory_refuses_more() {
    for flavour in RedisFlavour::ALL {
        let options = RedisOptions::new().max_memory(1, "noeviction");
        let server = RedisServer::start(flavour, options).await;
        let mut wire = Wire::connect(server.address()).await;
        let answer = wire.redis("SET k v").await;
        assert!(answer.starts_with("-OOM"), "{answer}");
    }
}

#[tokio::test]
async fn replica_has_what_its_primary_has() {
    for flavour in RedisFlavour::ALL {
        let primary = RedisServer::start(flavour, RedisOptions::new()).await;
        let mut wire = Wire::connect(primary.address()).await;
        assert_eq!(wire.redis("SET k v").await, "+OK");
        let options = RedisOptions::new().replica_of(primary.address());
        let replica = RedisServer::start(flavour, options).await;
        let mut wire = Wire::connect(replica.address()).await;
        until(SOON, "the value", async || wire.redis("GET k").await == "v").await;
    }
}

#[tokio::test]
async fn socket_answers_besides_the_port() {
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let stream = UnixStream::connect(server.socket()).await.unwrap();
    assert_eq!(Wire::over(stream).redis("PING").await, "+PONG");
}

#[tokio::test]
#[should_panic(expected = "no-such-thing")]
async fn server_that_does_not_start_fails_with_its_log() {
    let options = RedisOptions::new().extra("no-such-thing yes");
    RedisServer::start(RedisFlavour::Redis7, options).await;
}

#[tokio::test]
async fn a_disk_that_is_filled_takes_no_more_until_there_is_room() {
    let options = RedisOptions::new().append_only_synced("everysec");
    let server = RedisServer::start(RedisFlavour::Redis7, options).await;
    let mut wire = Wire::connect(server.address()).await;
    server.fill_disk(Some(100_000));
    let value = "x".repeat(10_000);
    until(SOON, "a write is refused", async || {
        wire.redis(&format!("SET k {value}"))
            .await
            .starts_with("-MISCONF")
    })
    .await;
    server.fill_disk(None);
    until(SOON, "there is room", async || {
        wire.redis("SET k v").await == "+OK"
    })
    .await;
}
