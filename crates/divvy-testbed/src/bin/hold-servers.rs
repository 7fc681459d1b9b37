//! Starts one server of each kind, prints their process ids, and holds them until its input ends.
//!
//! The tests kill it, to see that no server is left.

use std::io::Read;
use std::thread;

use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer,
};

fn main() {
    // From a thread that ends: the servers must not.
    let starting = thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be built");
        runtime.block_on(async {
            (
                NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await,
                RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await,
                RedisServer::start(RedisFlavour::Valkey9, RedisOptions::new()).await,
            )
        })
    });
    let Ok((nats, redis, valkey)) = starting.join() else {
        std::process::exit(1);
    };
    println!("{} {} {}", nats.pid(), redis.pid(), valkey.pid());
    let mut ignored = Vec::new();
    // Fails only if there is no input at all.
    let _ = std::io::stdin().read_to_end(&mut ignored);
}
