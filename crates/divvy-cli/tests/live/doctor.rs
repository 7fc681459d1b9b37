//! `divvy doctor` on real servers: what is wrong is named, with what mends it.

use std::process::Command;

use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::fleet::{Fleet, Kind, SOON, on};

struct Examined {
    code: Option<i32>,
    stderr: String,
    findings: Value,
}

impl Examined {
    /// Verdict, what was found, and advice of a check.
    fn of(&self, check: &str) -> (&str, String) {
        let findings = self.findings["findings"].as_array().unwrap();
        let mut found = findings.iter().filter(|it| it["check"] == check);
        let finding = found
            .next()
            .unwrap_or_else(|| panic!("no {check} in {findings:?}"));
        assert!(found.next().is_none(), "{check} twice in {findings:?}");
        let told = format!("{} {}", finding["found"], finding["advice"]);
        (finding["verdict"].as_str().unwrap(), told)
    }

    fn is(&self, check: &str, verdict: &str, words: &str) {
        let (judged, told) = self.of(check);
        assert_eq!(judged, verdict, "{check}: {told}");
        assert!(told.contains(words), "{check}: {words} is not in {told}");
    }
}

async fn doctor(url: &str, more: &[&str]) -> Examined {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("divvy"));
    command.args(["doctor", "--json"]).args(more);
    // Addresses may hold passwords.
    command.env("DIVVY_STORE", url);
    let said = tokio::task::spawn_blocking(move || command.output().unwrap());
    let said = tokio::time::timeout(SOON, said).await.unwrap().unwrap();
    let findings = serde_json::from_slice(&said.stdout);
    let stderr = String::from_utf8(said.stderr).unwrap();
    Examined {
        code: said.status.code(),
        findings: findings.unwrap_or_else(|error| panic!("{error}: {stderr}")),
        stderr,
    }
}

#[tokio::test]
async fn a_redis_that_may_evict_is_named_with_the_remedy() {
    let evicting = RedisOptions::new().max_memory(100 << 20, "allkeys-lru");
    let server = RedisServer::start(RedisFlavour::Redis7, evicting).await;
    let examined = doctor(&server.url(), &[]).await;
    assert_eq!(examined.code, Some(1));
    assert_eq!(examined.findings["healthy"], false);
    examined.is("eviction", "bad", "'allkeys-lru'");
    examined.is("eviction", "bad", "CONFIG SET maxmemory-policy noeviction");
    assert!(examined.stderr.contains("will not do: eviction"));
    examined.is("server", "good", "redis 7");
}

#[tokio::test]
async fn a_sound_redis_is_found_sound_and_left_as_it_was() {
    let server = RedisServer::start(RedisFlavour::Valkey9, RedisOptions::new().append_only()).await;
    let examined = doctor(&server.url(), &[]).await;
    assert_eq!(
        (examined.code, examined.stderr.as_str()),
        (Some(0), ""),
        "{}",
        examined.findings
    );
    examined.is("persistence", "good", "append-only");
    examined.is("clock", "good", "agree");
    examined.is("latency", "good", "99 of 100");
    examined.is("records (leader mode)", "good", "watch and delete");
    // A server that was started for this test gives no leases yet.
    examined.is(
        "leases (lease mode)",
        "note",
        "the store is new, has restarted or lost its data",
    );
    let again = doctor(&server.url(), &["--mode", "leader"]).await;
    let findings = again.findings["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .all(|it| it["check"] != "leases (lease mode)")
    );
}

#[tokio::test]
async fn what_a_redis_user_may_not_do_is_named() {
    let rule = "reader on >canary resetkeys ~divvy:* resetchannels &* -@all +ping +info +time +get";
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new().user(rule)).await;
    let url = server.url().replace("://", "://reader:canary@");
    let examined = doctor(&url, &[]).await;
    assert_eq!(examined.code, Some(1));
    for check in ["records (leader mode)", "leases (lease mode)"] {
        examined.is(check, "bad", "operating.md");
    }
    assert!(!format!("{}{}", examined.findings, examined.stderr).contains("canary"));
}

#[tokio::test]
async fn a_nats_server_without_streams_or_too_old_is_named() {
    let options = NatsOptions::new().without_jetstream();
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let examined = doctor(&server.url(), &[]).await;
    assert_eq!(examined.code, Some(1));
    examined.is("jetstream", "bad", "-js");
    let old = NatsServer::start(NatsVersion::Refused, NatsOptions::new()).await;
    let examined = doctor(&old.url(), &[]).await;
    assert_eq!(examined.code, Some(1));
    examined.is("server", "bad", "must be at least 2.10.26");
}

#[tokio::test]
async fn a_sound_nats_server_is_found_sound_with_its_clock() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let examined = doctor(&server.url(), &[]).await;
    assert_eq!(
        (examined.code, examined.stderr.as_str()),
        (Some(0), ""),
        "{}",
        examined.findings
    );
    examined.is("bucket", "good", "was not there");
    examined.is("persistence", "note", "sync_interval: always");
    let again = doctor(&server.url(), &[]).await;
    again.is("bucket", "good", "bucket 'divvy'");
    again.is("clock", "good", "agree");
    let copied = doctor(&server.url(), &["--replicas", "3"]).await;
    copied.is("bucket", "bad", "replicas is 1, must be 3");
}

#[tokio::test]
async fn places_where_no_file_can_be_are_named() {
    let directory = TempDir::new().unwrap();
    let url = format!("file:{}/sub/x.db", directory.path().display());
    let examined = doctor(&url, &[]).await;
    assert_eq!(examined.code, Some(1));
    examined.is("reached", "bad", "there is no directory");
    let url = format!("file:{}/x.db", directory.path().display());
    let examined = doctor(&url, &["--mode", "leader"]).await;
    assert_eq!(examined.code, Some(0), "{}", examined.findings);
    examined.is("place", "good", "x.db");
}

#[test]
fn a_live_cluster_does_not_mind_being_examined() {
    on(&Kind::ALL, async |mut fleet: Fleet| {
        fleet.started(&["one", "two"]).await;
        let before = fleet.json("status --json");
        let said = fleet.run("doctor");
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.contains("0 findings bad"), "{said:?}");
        let after = fleet.json("status --json");
        let list = |status: &Value, of: &str, field: &str| -> Vec<Value> {
            let all = status[of].as_array().unwrap();
            all.iter().map(|it| it[field].clone()).collect()
        };
        let names = |status| list(status, "workers", "name");
        assert_eq!(names(&before), names(&after));
        // Leases may still be on their way to where they belong.
        if fleet.kind.is_led() {
            let owners = |status| list(status, "partitions", "owner");
            assert_eq!(owners(&before), owners(&after));
        }
    });
}

#[tokio::test]
async fn heartbeats_are_held_against_the_lease_that_is_named() {
    let directory = TempDir::new().unwrap();
    let url = format!("file:{}", directory.path().join("leases.db").display());
    let examined = doctor(&url, &["--mode", "lease", "--lease", "60s"]).await;
    examined.is("latency (lease mode)", "good", "heartbeats take");
}

#[tokio::test]
async fn a_server_that_wants_a_login_is_told_how_to_give_one() {
    let options = RedisOptions::new().user("default on >canary ~* &* +@all");
    let server = RedisServer::start(RedisFlavour::Redis7, options).await;
    let examined = doctor(&server.url(), &[]).await;
    assert_eq!(examined.code, Some(1));
    examined.is(
        "reached",
        "bad",
        "give --user and --password-file, or DIVVY_STORE=",
    );
}
