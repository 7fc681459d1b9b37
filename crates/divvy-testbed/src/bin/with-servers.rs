//! Runs a command beside real servers, and ends them with it.
//!
//! ```text
//! cargo run -p divvy-testbed --bin with-servers -- divvy bench stores --store {nats} --store {redis}
//! ```
//!
//! `{nats}`, `{redis}`, `{valkey}` and `{postgres}` in the command's arguments
//! become the addresses of servers on free ports of this machine, started for
//! it: the newest NATS, Redis 7 with an append-only file, Valkey 9, and
//! PostgreSQL, which has a socket in place of a port.

use std::env;
use std::process::{Command, ExitCode};

use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, PostgresServer, RedisFlavour, RedisOptions, RedisServer,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let wanted = |name: &str| arguments.iter().any(|argument| argument.contains(name));
    if arguments.is_empty() {
        eprintln!(
            "with-servers: give a command; {{nats}}, {{redis}}, {{valkey}} and {{postgres}} in it \
             become addresses"
        );
        return ExitCode::from(2);
    }
    let (mut nats, mut redis, mut valkey, mut postgres) = (None, None, None, None);
    if wanted("{nats}") {
        nats = Some(NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await);
    }
    if wanted("{redis}") {
        let options = RedisOptions::new().append_only_synced("everysec");
        redis = Some(RedisServer::start(RedisFlavour::Redis7, options).await);
    }
    if wanted("{valkey}") {
        let options = RedisOptions::new().append_only_synced("everysec");
        valkey = Some(RedisServer::start(RedisFlavour::Valkey9, options).await);
    }
    if wanted("{postgres}") {
        postgres = Some(PostgresServer::start().await);
    }
    let addresses = [
        ("{nats}", nats.as_ref().map(|server| server.url())),
        ("{redis}", redis.as_ref().map(|server| server.url())),
        ("{valkey}", valkey.as_ref().map(|server| server.url())),
        ("{postgres}", postgres.as_ref().map(|server| server.url())),
    ];
    let arguments = arguments.iter().map(|argument| {
        let known = addresses
            .iter()
            .filter_map(|(name, url)| Some((name, url.as_ref()?)));
        known.fold(argument.clone(), |text, (name, url)| {
            text.replace(name, url)
        })
    });
    let arguments: Vec<String> = arguments.collect();
    match Command::new(&arguments[0]).args(&arguments[1..]).status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("with-servers: {}: {error}", arguments[0]);
            ExitCode::FAILURE
        }
    }
}
