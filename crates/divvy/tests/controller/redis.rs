//! What only a server can do to controllers: being cut off, forgetting,
//! restarting, standing still.

use std::sync::Arc;
use std::time::Duration;

use divvy::controller::Controller;
use divvy_testbed::{Proxy, RedisFlavour, RedisOptions, RedisServer, until};

use crate::bed::{SOON, at, settings, settled, start};
use crate::ledger::Ledger;

async fn connection(server: &RedisServer) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(server.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn two(server: &RedisServer, ledger: &Arc<Ledger>) -> (Controller, Controller) {
    let one = start(at(&server.url()), "one", settings(24), ledger).await;
    let two = start(at(&server.url()), "two", settings(24), ledger).await;
    settled(&[&one, &two], 24).await;
    (one, two)
}

async fn redis(options: RedisOptions) -> RedisServer {
    RedisServer::start(RedisFlavour::Redis7, options).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_cut_off_stops_before_its_partitions_start_elsewhere() {
    let server = redis(RedisOptions::new()).await;
    let proxy = Proxy::start(server.address()).await;
    let ledger = Ledger::new();
    let address = format!("redis://127.0.0.1:{}", proxy.port());
    let one = start(at(&address), "one", settings(24), &ledger).await;
    let two = start(at(&server.url()), "two", settings(24), &ledger).await;
    settled(&[&one, &two], 24).await;
    // Nothing passes, and nobody is told: the worst way to be cut off.
    proxy.hold();
    until(SOON, "all runs at two", async || {
        ledger.running_at("two") == 24 && ledger.running_at("one") == 0
    })
    .await;
    assert!(one.backoff_active());
    // What was held comes late, all at once.
    proxy.release();
    proxy.pass();
    settled(&[&one, &two], 24).await;
    ledger.check();
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_of_scripts_interrupts_nothing() {
    let server = redis(RedisOptions::new()).await;
    let ledger = Ledger::new();
    let (one, two) = two(&server, &ledger).await;
    let starts = ledger.starts();
    let mut connection = connection(&server).await;
    let begun = tokio::time::Instant::now();
    until(
        SOON,
        "scripts were flushed for two leases' time",
        async || {
            let flushed: () = redis::cmd("SCRIPT")
                .arg("FLUSH")
                .query_async(&mut connection.clone())
                .await
                .unwrap();
            let () = flushed;
            begun.elapsed() > Duration::from_secs(6)
        },
    )
    .await;
    settled(&[&one, &two], 24).await;
    assert_eq!(ledger.starts(), starts);
    let _: () = redis::cmd("PING")
        .query_async(&mut connection)
        .await
        .unwrap();
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_runs_again_after_the_server_forgot_everything() {
    let server = redis(RedisOptions::new()).await;
    let ledger = Ledger::new();
    let (one, two) = two(&server, &ledger).await;
    let starts = ledger.starts();
    let mut connection = connection(&server).await;
    let () = redis::cmd("FLUSHALL")
        .query_async(&mut connection)
        .await
        .unwrap();
    until(SOON, "all was started again", async || {
        ledger.starts() >= starts + 24 && ledger.running() == 24
    })
    .await;
    settled(&[&one, &two], 24).await;
    ledger.check();
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_whose_session_key_is_overwritten_goes_on() {
    let server = redis(RedisOptions::new()).await;
    let ledger = Ledger::new();
    let (one, two) = two(&server, &ledger).await;
    let (starts, mut connection) = (ledger.starts(), connection(&server).await);
    let key = "divvy:session:tests:one";
    let session: String = redis::cmd("GET")
        .arg(key)
        .query_async(&mut connection)
        .await
        .unwrap();
    for (value, expires) in [("garbage", "100000"), (&*"f".repeat(32), "4000")] {
        let () = redis::cmd("SET")
            .arg(&[key, value, "PX", expires])
            .query_async(&mut connection)
            .await
            .unwrap();
        until(SOON, "it has its name again", async || {
            let held: Option<String> = redis::cmd("GET")
                .arg(key)
                .query_async(&mut connection.clone())
                .await
                .unwrap();
            let is_its_own = held.is_some_and(|held| held != value && held != session);
            is_its_own && one.is_joined()
        })
        .await;
    }
    settled(&[&one, &two], 24).await;
    assert_eq!(ledger.starts(), starts, "its leases are its own all along");
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_with_or_without_its_data_leaves_one_owner_for_each() {
    for keeps in [true, false] {
        let options = match keeps {
            true => RedisOptions::new().append_only(),
            false => RedisOptions::new(),
        };
        let mut server = redis(options).await;
        let ledger = Ledger::new();
        let (one, two) = two(&server, &ledger).await;
        server.kill();
        match keeps {
            true => server.start_again().await,
            false => server.start_empty().await,
        }
        settled(&[&one, &two], 24).await;
        assert_eq!(ledger.running(), 24);
        ledger.check();
        one.stop().await.unwrap();
        two.stop().await.unwrap();
    }
}

/// Two workers, of which one has leases of ten times the other's length. That
/// one is cut off when the server loses everything, and cannot know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_lease_is_waited_for_after_a_restart_without_data() {
    let mut server = redis(RedisOptions::new()).await;
    let proxy = Proxy::start(server.address()).await;
    let ledger = Ledger::new();
    let leasing = |lease| {
        let mut settings = settings(24);
        settings.lease.lease_ttl = lease;
        settings
    };
    let (short, long) = (Duration::from_millis(1_500), Duration::from_secs(15));
    let one = start(at(&server.url()), "one", leasing(short), &ledger).await;
    let address = format!("redis://127.0.0.1:{}", proxy.port());
    let two = start(at(&address), "two", leasing(long), &ledger).await;
    settled(&[&one, &two], 24).await;
    proxy.hold();
    server.kill();
    server.start_empty().await;
    until(SOON, "all runs at one", async || {
        ledger.running_at("one") == 24
    })
    .await;
    ledger.check();
    proxy.release();
    proxy.pass();
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

/// Another program overwrites keys that all workers read, and those of one
/// worker. Everything that runs goes on, and a newcomer gets its share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overwritten_keys_stop_nobody() {
    let server = redis(RedisOptions::new()).await;
    let ledger = Ledger::new();
    let (one, two) = two(&server, &ledger).await;
    let starts = ledger.starts();
    let mut connection = connection(&server).await;
    for key in [
        "nodes:all",
        "divvy:wishes:tests",
        "divvy:moves:tests",
        "divvy:session:tests:one",
        "divvy:info:tests:two",
        "node:tests:two",
    ] {
        let mut pipeline = redis::pipe();
        pipeline.cmd("DEL").arg(key).ignore();
        pipeline.cmd("RPUSH").arg(key).arg("a list").ignore();
        let () = pipeline.query_async(&mut connection).await.unwrap();
    }
    let begun = tokio::time::Instant::now();
    until(SOON, "two leases' time has passed", async || {
        assert_eq!((ledger.running(), ledger.starts()), (24, starts));
        begun.elapsed() > Duration::from_secs(6)
    })
    .await;
    let three = start(at(&server.url()), "three", settings(24), &ledger).await;
    settled(&[&one, &two, &three], 24).await;
    ledger.check();
    one.stop().await.unwrap();
    two.stop().await.unwrap();
    three.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_for_longer_than_a_lease_stops_all_and_all_goes_on() {
    let server = redis(RedisOptions::new()).await;
    let ledger = Ledger::new();
    let (one, two) = two(&server, &ledger).await;
    server.pause();
    until(SOON, "nothing runs", async || ledger.running() == 0).await;
    server.resume();
    settled(&[&one, &two], 24).await;
    ledger.check();
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backoff_is_shown_without_a_gap_until_the_store_works_again() {
    let mut server = redis(RedisOptions::new()).await;
    let ledger = Ledger::new();
    let mut settings = settings(4);
    settings.lease.backoff = Duration::from_millis(50);
    settings.lease.backoff_max = Duration::from_millis(100);
    let one = start(at(&server.url()), "one", settings, &ledger).await;
    settled(&[&one], 4).await;
    assert!(!one.backoff_active());
    server.kill();
    until(SOON, "the store fails", async || one.backoff_active()).await;
    let begun = tokio::time::Instant::now();
    until(SOON, "many pauses have passed", async || {
        assert!(one.backoff_active(), "after {:?}", begun.elapsed());
        begun.elapsed() > Duration::from_secs(3)
    })
    .await;
    server.start_again().await;
    until(SOON, "the store works again", async || {
        !one.backoff_active()
    })
    .await;
    settled(&[&one], 4).await;
    one.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_memory_left_keeps_what_runs_and_grants_nothing_new() {
    let server = redis(RedisOptions::new()).await;
    let ledger = Ledger::new();
    let (one, two) = two(&server, &ledger).await;
    let mut connection = connection(&server).await;
    let () = redis::cmd("CONFIG")
        .arg(&["SET", "maxmemory", "1"])
        .query_async(&mut connection)
        .await
        .unwrap();
    let (starts, begun) = (ledger.starts(), tokio::time::Instant::now());
    until(SOON, "two leases' time has passed", async || {
        assert_eq!((ledger.running(), ledger.starts()), (24, starts));
        begun.elapsed() > Duration::from_secs(6)
    })
    .await;
    two.stop().await.unwrap();
    let kept = ledger.running();
    until(SOON, "the store fails", async || one.backoff_active()).await;
    assert_eq!(ledger.running(), kept, "what two had is granted to nobody");
    let () = redis::cmd("CONFIG")
        .arg(&["SET", "maxmemory", "0"])
        .query_async(&mut connection)
        .await
        .unwrap();
    settled(&[&one], 24).await;
    ledger.check();
    one.stop().await.unwrap();
}
