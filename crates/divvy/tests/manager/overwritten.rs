//! Records that another program has overwritten.

use redis::aio::MultiplexedConnection;

use crate::bed::Bed;
use crate::fleet::Fleet;

/// One worker's record is overwritten, in each way that there is. Others join
/// and get their share, and the worker comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_record_harms_its_own_worker_only() {
    let bed = Bed::redis().await;
    let Bed::Redis(server) = &bed else {
        unreachable!("it is on Redis");
    };
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut fleet = Fleet::unrecorded(bed, 12);
    fleet.join_many(2).await;
    fleet.balanced().await;
    let ways: [&[&str]; 3] = [&["SET", "garbage"], &["SET", ""], &["RPUSH", "a list"]];
    for (round, way) in ways.into_iter().enumerate() {
        let victim = record_of_a_worker(&mut connection).await;
        let () = redis::cmd("DEL")
            .arg(&victim)
            .query_async(&mut connection)
            .await
            .unwrap();
        let _written: redis::Value = redis::cmd(way[0])
            .arg(&victim)
            .arg(way[1])
            .query_async(&mut connection)
            .await
            .unwrap();
        fleet.join(&format!("newcomer-{round}")).await;
        fleet.balanced().await;
    }
    fleet.end().await;
}

async fn record_of_a_worker(connection: &mut MultiplexedConnection) -> String {
    let mut keys: Vec<String> = redis::cmd("KEYS")
        .arg("divvy:kv:tests:v:w.*")
        .query_async(connection)
        .await
        .unwrap();
    keys.sort();
    keys.swap_remove(0)
}
