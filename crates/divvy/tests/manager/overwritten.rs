//! Records that another program has overwritten.

use divvy::store::{Key, Outcome, Prefix};
use tokio::runtime::Handle;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// What is no record: a text, and nothing at all.
const VALUES: [&[u8]; 2] = [b"garbage", b""];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_record_harms_its_own_worker_only_on_redis() {
    // As no store writes it, and as another type.
    let ways: [&[&str]; 3] = [&["SET", "garbage"], &["SET", ""], &["RPUSH", "a list"]];
    let overwrite = async |bed: &Bed, worker: &Key, round: usize| {
        let Bed::Redis(server) = bed else {
            unreachable!("it is on Redis");
        };
        let client = redis::Client::open(server.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let key = format!("divvy:kv:tests:v:{worker}");
        let deleted: usize = redis::cmd("DEL")
            .arg(&key)
            .query_async(&mut connection)
            .await
            .unwrap();
        assert_eq!(deleted, 1, "{key}");
        let _written: redis::Value = redis::cmd(ways[round][0])
            .arg(&key)
            .arg(ways[round][1])
            .query_async(&mut connection)
            .await
            .unwrap();
    };
    harms_its_own_worker_only(Bed::redis().await, ways.len(), overwrite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_record_harms_its_own_worker_only_on_a_file() {
    harms_its_own_worker_only(Bed::file(), VALUES.len(), write_over).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_record_harms_its_own_worker_only_on_nats() {
    harms_its_own_worker_only(Bed::nats().await, VALUES.len(), write_over).await;
}

/// Writes one of the values over this key, at whatever revision it has by then.
async fn write_over(bed: &Bed, key: &Key, round: usize) {
    let store = bed.open(&Handle::current(), SOON).await;
    loop {
        let expected = store.get(key).await.unwrap().map(|entry| entry.revision);
        let written = store.compare_and_set(key, expected.into(), VALUES[round]);
        if let Outcome::Done(_) = written.await.unwrap() {
            return;
        }
    }
}

/// One worker's record is overwritten, in each way that there is. Others join
/// and get their share, and the worker comes back.
async fn harms_its_own_worker_only(
    bed: Bed,
    ways: usize,
    overwrite: impl AsyncFn(&Bed, &Key, usize),
) {
    let mut fleet = Fleet::unrecorded(bed, 12);
    fleet.join_many(2).await;
    fleet.balanced().await;
    for round in 0..ways {
        let victim = record_of_a_worker(&fleet.bed).await;
        overwrite(&fleet.bed, &victim, round).await;
        fleet.join(&format!("newcomer-{round}")).await;
        fleet.balanced().await;
    }
    fleet.end().await;
}

async fn record_of_a_worker(bed: &Bed) -> Key {
    let store = bed.open(&Handle::current(), SOON).await;
    let records = store
        .list(&Prefix::below(Key::new(["w"]).unwrap()))
        .await
        .unwrap();
    let keys = records.into_iter().map(|entry| entry.key);
    keys.min().expect("there are workers")
}
