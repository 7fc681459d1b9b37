//! Scripts that a server forgets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use divvy::store::{
    Acquired, Claim, Expected, Heartbeat, KeyValue, Leases, Prefix, Tenure, WorkerInfo,
};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer};

use crate::bed::{LONG, claim, key, key_value, leases, name, nonce, plain};
use crate::raw::Raw;

/// Lets a server forget all scripts, again and again, until dropped.
struct Forgetting {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Forgetting {
    fn of(server: &RedisServer) -> Self {
        let mut raw = Raw::of(server);
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut times = 0;
            while !told.load(Ordering::Acquire) {
                raw.say(&["SCRIPT", "FLUSH"]);
                times += 1;
            }
            times
        });
        Self {
            over,
            thread: Some(thread),
        }
    }

    /// Ends it, and says how often it was.
    fn end(mut self) -> u64 {
        self.over.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap()
    }
}

#[tokio::test]
async fn leases_work_while_the_server_keeps_forgetting_scripts() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let store = leases(&server.url()).await;
        let forgetting = Forgetting::of(&server);
        let (worker, session, info) = (name("a"), nonce(), WorkerInfo::default());
        store.open_session(&worker, session, LONG).await.unwrap();
        // Several calls in one pipeline, between any two of which the server may forget.
        let claims: Vec<Claim> = (0..1100).map(claim).collect();
        let granted = store.acquire(&worker, &claims, LONG).await.unwrap();
        assert!(granted.iter().all(|it| matches!(it, Acquired::Granted(_))));
        for _ in 0..20 {
            let renewed = store.renew(&worker, &claims, LONG).await.unwrap();
            assert_eq!(renewed, vec![Tenure::Current; claims.len()]);
            let beat = store
                .beat(&worker, &Heartbeat::new(session, info.clone(), LONG, LONG))
                .await;
            assert_eq!(beat.unwrap().tenure, Tenure::Current);
        }
        let released = store.release(&worker, &claims).await.unwrap();
        assert_eq!(released, vec![Tenure::Current; claims.len()]);
        assert!(forgetting.end() > 20);
    }
}

#[tokio::test]
async fn key_values_work_while_the_server_keeps_forgetting_scripts() {
    let server = plain().await;
    let store = key_value(&server.url()).await;
    let forgetting = Forgetting::of(&server);
    let mut expected = Expected::Absent;
    for number in 0..200_u32 {
        let value = number.to_string();
        let written = store
            .compare_and_set(&key("a"), expected, value.as_bytes())
            .await;
        expected = Expected::At(written.unwrap().done().expect("nobody else writes it"));
    }
    assert_eq!(store.list(&Prefix::ALL).await.unwrap().len(), 1);
    assert!(forgetting.end() > 20);
}
