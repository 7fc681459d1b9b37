//! A cluster shared with a client of another make: one that knows only the
//! layout of keys, byte for byte, and nothing of tokens, sessions or notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, until};
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;

use crate::bed::{SOON, at, settings, start};
use crate::ledger::Ledger;

const CLUSTER: &str = "tests";
const GROUP: &str = "orders";
const UNITS: u32 = 24;

/// The other client: beats, ranks, takes what nobody holds, renews and gives
/// back, each as plain commands.
struct Other {
    node: String,
    connection: MultiplexedConnection,
}

impl Other {
    fn id(&self) -> String {
        format!("{CLUSTER}:{}", self.node)
    }

    async fn beat(&mut self) {
        let key = format!("node:{CLUSTER}:{}", self.node);
        let value = format!("{CLUSTER}|{}", self.id());
        let () = self.connection.set_ex(key, value, 3).await.unwrap();
        let () = self.connection.sadd("nodes:all", self.id()).await.unwrap();
        let set = format!("nodes:{CLUSTER}");
        let () = self.connection.sadd(set, self.id()).await.unwrap();
    }

    async fn alive(&mut self) -> Vec<String> {
        let all: Vec<String> = self.connection.smembers("nodes:all").await.unwrap();
        let mut alive = Vec::new();
        for id in all {
            let key = format!("node:{id}");
            if id.starts_with("tests:") && self.connection.exists(key).await.unwrap() {
                alive.push(id);
            }
        }
        alive.sort();
        alive
    }

    /// One round: what it should have, it takes; what it should not, it gives
    /// back; what it has, it renews.
    async fn round(&mut self) {
        self.beat().await;
        let alive = self.alive().await;
        for unit in 0..UNITS {
            let lease = format!("lease:{GROUP}:{unit}");
            let holder: Option<String> = self.connection.get(&lease).await.unwrap();
            let is_mine = holder.as_ref() == Some(&self.id());
            let wanted = owner(unit, &alive) == self.id();
            if holder.is_none() && wanted {
                let _taken: Option<String> = redis::cmd("SET")
                    .arg(&[&lease, &self.id(), "NX", "PX", "3000"])
                    .query_async(&mut self.connection)
                    .await
                    .unwrap();
            } else if is_mine && wanted {
                let () = self.connection.pexpire(&lease, 3000).await.unwrap();
            } else if is_mine {
                let () = self.connection.del(&lease).await.unwrap();
            }
        }
    }

    async fn held(&mut self) -> usize {
        let mut held = 0;
        for unit in 0..UNITS {
            let lease = format!("lease:{GROUP}:{unit}");
            let holder: Option<String> = self.connection.get(lease).await.unwrap();
            held += usize::from(holder == Some(self.id()));
        }
        held
    }
}

/// Highest random weight, of equal weights: the largest hash.
fn owner(unit: u32, alive: &[String]) -> String {
    let score = |id: &&String| {
        let text = format!("{GROUP}|{unit}::{id}");
        (
            divvy::hash::xxh64(text.as_bytes()),
            std::cmp::Reverse((*id).clone()),
        )
    };
    alive.iter().max_by_key(score).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_another_make_shares_a_cluster_and_both_agree_on_owners() {
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let client = redis::Client::open(server.url()).unwrap();
    let connect = async || client.get_multiplexed_async_connection().await.unwrap();
    let ledger = Ledger::new();
    let ours = start(at(&server.url()), "ours", settings(UNITS), &ledger).await;
    until(SOON, "ours has all", async || {
        ledger.running() == UNITS as usize
    })
    .await;
    let over = Arc::new(AtomicBool::new(false));
    let mut other = Other {
        node: "other".to_owned(),
        connection: connect().await,
    };
    let rounds = tokio::spawn({
        let over = Arc::clone(&over);
        async move {
            let mut pace = tokio::time::interval(Duration::from_millis(200));
            while !over.load(Ordering::SeqCst) {
                pace.tick().await;
                other.round().await;
            }
            other
        }
    });
    let observing = connect().await;
    let alive = ["tests:other".to_owned(), "tests:ours".to_owned()];
    let theirs = (0..UNITS)
        .filter(|unit| owner(*unit, &alive) == alive[0])
        .count();
    assert!(theirs > 0 && theirs < UNITS as usize);
    until(SOON, "both hold what the scores say", async || {
        let mut observer = Other {
            node: "other".to_owned(),
            connection: observing.clone(),
        };
        let held = observer.held().await;
        held == theirs && ledger.running() == UNITS as usize - theirs
    })
    .await;
    over.store(true, Ordering::SeqCst);
    rounds.await.unwrap();
    // It is gone without a word: its leases and its heartbeat run out.
    until(SOON, "ours has all again", async || {
        ledger.running() == UNITS as usize
    })
    .await;
    ledger.check();
    ours.stop().await.unwrap();
}
