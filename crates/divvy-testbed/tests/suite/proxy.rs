//! The proxy, in front of a Redis server.

use std::time::{Duration, Instant};

use divvy_testbed::{Proxy, RedisFlavour, RedisOptions, RedisServer, until};

use crate::wire::{SOON, Wire, redis_request};

async fn proxied() -> (RedisServer, Proxy) {
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let proxy = Proxy::start(server.address()).await;
    (server, proxy)
}

#[tokio::test]
async fn what_passes_is_what_was_sent_and_is_counted() {
    let (_server, proxy) = proxied().await;
    let mut wire = Wire::connect(proxy.address()).await;
    let long = "x".repeat(1_000_000);
    let set = format!("SET k {long}");
    assert_eq!(wire.redis(&set).await, "+OK");
    assert!(wire.redis("GET k").await == long);
    assert_eq!((proxy.connections(), proxy.open()), (1, 1));
    let sent = redis_request(&set).len() + redis_request("GET k").len();
    let replied = "+OK\r\n$1000000\r\n".len() + long.len() + "\r\n".len();
    let passed = (proxy.requests_passed(), proxy.replies_passed());
    assert_eq!(passed, (sent as u64, replied as u64));
    drop(wire);
    until(SOON, "the connection ends", async || proxy.open() == 0).await;
}

#[tokio::test]
async fn delay_is_taken_once_each_way() {
    let (_server, proxy) = proxied().await;
    let mut wire = Wire::connect(proxy.address()).await;
    proxy.delay(Duration::from_millis(40));
    let asked = Instant::now();
    assert_eq!(wire.redis("PING").await, "+PONG");
    let took = asked.elapsed();
    // Never less; how much more is the machine's affair.
    assert!(took >= Duration::from_millis(80), "{took:?}");
}

#[tokio::test]
async fn cut_resets_old_and_new_connections_until_it_passes_again() {
    let (_server, proxy) = proxied().await;
    let mut old = Wire::connect(proxy.address()).await;
    assert_eq!(old.redis("PING").await, "+PONG");
    proxy.cut();
    assert!(old.try_line().await.is_err(), "reset, not closed");
    let mut new = Wire::connect(proxy.address()).await;
    assert!(new.try_line().await.is_err(), "reset, not closed");
    until(SOON, "none is open", async || proxy.open() == 0).await;
    proxy.pass();
    let mut newest = Wire::connect(proxy.address()).await;
    assert_eq!(newest.redis("PING").await, "+PONG");
    assert_eq!(proxy.connections(), 3);
}

#[tokio::test]
async fn reset_ends_the_open_connections_only() {
    let (_server, proxy) = proxied().await;
    let mut old = Wire::connect(proxy.address()).await;
    assert_eq!(old.redis("PING").await, "+PONG");
    proxy.reset();
    assert!(old.try_line().await.is_err());
    let mut new = Wire::connect(proxy.address()).await;
    assert_eq!(new.redis("PING").await, "+PONG");
}

#[tokio::test]
async fn held_request_is_late_even_if_its_client_is_gone() {
    let (server, proxy) = proxied().await;
    let mut direct = Wire::connect(server.address()).await;
    let mut wire = Wire::connect(proxy.address()).await;
    assert_eq!(wire.redis("PING").await, "+PONG");
    proxy.hold();
    wire.send("SET late 1\r\n").await;
    until(SOON, "held", async || proxy.requests_held() == 12).await;
    drop(wire);
    assert_eq!(direct.redis("GET late").await, "$-1");
    proxy.release();
    until(SOON, "applied", async || {
        direct.redis("GET late").await == "1"
    })
    .await;
    until(SOON, "closed", async || proxy.open() == 0).await;
    assert_eq!(proxy.requests_held(), 0);
}

#[tokio::test]
async fn end_of_a_connection_is_held_too() {
    let (server, proxy) = proxied().await;
    let mut direct = Wire::connect(server.address()).await;
    let mut wire = Wire::connect(proxy.address()).await;
    assert_eq!(wire.redis("PING").await, "+PONG");
    proxy.hold();
    drop(wire);
    let mut other = Wire::connect(proxy.address()).await;
    other.send("PING\r\n").await;
    until(SOON, "held", async || proxy.requests_held() == 6).await;
    let clients = async |direct: &mut Wire| direct.redis("CLIENT LIST").await.lines().count();
    assert_eq!(clients(&mut direct).await, 3);
    proxy.release();
    until(SOON, "one left", async || clients(&mut direct).await == 2).await;
}

#[tokio::test]
async fn connection_made_while_held_is_served_when_released() {
    let (_server, proxy) = proxied().await;
    proxy.hold();
    let mut wire = Wire::connect(proxy.address()).await;
    wire.send("PING\r\n").await;
    until(SOON, "held", async || proxy.requests_held() == 6).await;
    assert_eq!(proxy.requests_passed(), 0);
    proxy.release();
    assert_eq!(wire.line().await, "+PONG");
}

#[tokio::test]
async fn held_reply_is_of_a_request_that_was_applied() {
    let (server, proxy) = proxied().await;
    let mut direct = Wire::connect(server.address()).await;
    let mut wire = Wire::connect(proxy.address()).await;
    proxy.hold_replies();
    wire.send("INCR n\r\n").await;
    until(SOON, "held", async || proxy.replies_held() == 4).await;
    assert_eq!(direct.redis("GET n").await, "1");
    assert_eq!(proxy.replies_passed(), 0);
    proxy.release();
    assert_eq!(wire.line().await, ":1");
}

#[tokio::test]
async fn dropped_reply_is_lost_with_its_connection_and_no_other() {
    let (server, proxy) = proxied().await;
    let mut direct = Wire::connect(server.address()).await;
    let mut unlucky = Wire::connect(proxy.address()).await;
    let mut idle = Wire::connect(proxy.address()).await;
    assert_eq!(idle.redis("PING").await, "+PONG");
    proxy.hold_replies();
    unlucky.send("INCR n\r\n").await;
    until(SOON, "held", async || proxy.replies_held() == 4).await;
    proxy.drop_held();
    assert!(unlucky.try_line().await.is_err());
    assert_eq!(idle.redis("PING").await, "+PONG");
    assert_eq!(direct.redis("GET n").await, "1");
    until(SOON, "forgotten", async || proxy.replies_held() == 0).await;
}

#[tokio::test]
async fn dropped_request_is_never_applied() {
    let (server, proxy) = proxied().await;
    let mut direct = Wire::connect(server.address()).await;
    let mut wire = Wire::connect(proxy.address()).await;
    proxy.hold_requests();
    wire.send("INCR n\r\n").await;
    until(SOON, "held", async || proxy.requests_held() == 8).await;
    proxy.drop_held();
    assert!(wire.try_line().await.is_err());
    assert_eq!(direct.redis("GET n").await, "$-1");
}

#[tokio::test]
async fn what_is_held_is_bounded() {
    let (_server, proxy) = proxied().await;
    let mut wire = Wire::connect(proxy.address()).await;
    proxy.hold();
    let much = "x".repeat(1 << 20);
    let sending = async {
        loop {
            wire.try_send(&much).await.unwrap();
        }
    };
    let full = Proxy::HELD_BYTES_MAX as u64 - (1 << 16);
    tokio::select! {
        () = sending => {}
        () = until(SOON, "full", async || proxy.requests_held() > full) => {}
    }
    assert!(proxy.requests_held() <= Proxy::HELD_BYTES_MAX as u64);
}

#[tokio::test]
async fn nothing_is_reached_through_a_proxy_of_a_dead_server() {
    let (mut server, proxy) = proxied().await;
    let mut old = Wire::connect(proxy.address()).await;
    assert_eq!(old.redis("PING").await, "+PONG");
    server.kill();
    assert_eq!(old.try_line().await.unwrap_or_default(), "");
    let mut new = Wire::connect(proxy.address()).await;
    assert!(new.try_line().await.is_err());
    server.start_again().await;
    let mut again = Wire::connect(proxy.address()).await;
    assert_eq!(again.redis("PING").await, "+PONG");
}
