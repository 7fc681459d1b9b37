//! What agents and workers answer.

use std::net::SocketAddr;

use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::ask;
use crate::member::{Member, SOON};

const LISTEN: &str = "--preset fast --listen 127.0.0.1:0";

fn agent(directory: &TempDir, name: &str) -> Member {
    let store = directory.path().join("agents.db");
    let store = store.display();
    let words = format!("agent --store file:{store} --node {name} --workloads demo:8 {LISTEN}");
    Member::start_with(&words, &["--exec", "sleep 1000"])
}

fn worker(directory: &TempDir, name: &str) -> Member {
    let store = directory.path().join("workers.db");
    let store = store.display();
    let words = format!("worker --store file:{store} --instance {name} --partitions demo:8");
    Member::start(&format!("{words} --strategy balanced {LISTEN}"))
}

/// How many partitions it has.
async fn owned(address: SocketAddr) -> usize {
    let owned = ask(address, "GET", "/v1/owned").await.json();
    owned["partitions"].as_array().unwrap().len()
}

async fn owns(address: SocketAddr, count: usize) {
    until(SOON, "it has its share", async || {
        owned(address).await == count
    })
    .await;
}

#[tokio::test]
async fn an_agent_says_what_it_has_and_why() {
    let directory = TempDir::new().unwrap();
    let agent = agent(&directory, "a");
    let address = agent.ready().await;
    assert_eq!(
        ask(address, "GET", "/healthz").await.body,
        r#"{"healthy":true}"#
    );
    owns(address, 8).await;
    let all = ask(address, "GET", "/v1/owned").await.json();
    assert_eq!(all["worker"], "a");
    for one in all["partitions"].as_array().unwrap() {
        let token: i64 = one["token"].as_str().unwrap().parse().unwrap();
        assert!(token > 0 && one["since_ms"].as_u64().unwrap() > 1_700_000_000_000);
        assert_eq!(one["stopping"], false);
    }
    let page = ask(address, "GET", "/metrics").await;
    assert!(page.head.contains("text/plain; version=0.0.4"), "{page:?}");
    let line = "divvy_lease_owned_partitions{worker=\"a\",cluster=\"default\"} 8\n";
    assert!(page.body.contains(line), "{}", page.body);
    let why = ask(address, "GET", "/v1/explain/demo:3").await.json();
    assert_eq!(
        (&why["owned_here"], &why["holder"]),
        (&true.into(), &"a".into())
    );
    assert_eq!(
        (&why["desired"], &why["misaligned"]),
        (&"a".into(), &Value::Null)
    );
    assert!(why["token"].is_string(), "{why}");
    assert!(why["ranking"][0]["score"].as_f64().is_some(), "{why}");
    for path in [
        "/v1/explain/demo:8",
        "/v1/explain/demo",
        "/v1/explain/x:03",
        "/x",
        "/v1/explain/",
    ] {
        assert_eq!(ask(address, "GET", path).await.status, 404, "{path}");
    }
    let odd = ask(address, "GET", "/v1/explain/%ff:1").await;
    assert!(
        odd.status == 400 && odd.json()["error"].is_string(),
        "{odd:?}"
    );
    assert_eq!(ask(address, "POST", "/v1/owned").await.status, 405);
}

#[tokio::test]
async fn an_agent_that_does_not_take_part_is_healthy_and_not_ready() {
    let words = format!("agent --store redis://127.0.0.1:1 --workloads demo:8 {LISTEN}");
    let agent = Member::start_with(&words, &["--exec", "sleep 1000"]);
    let address = agent.address().await;
    assert_eq!(ask(address, "GET", "/healthz").await.status, 200);
    let answer = ask(address, "GET", "/readyz").await;
    assert_eq!(
        (answer.status, &answer.json()["ready"]),
        (503, &false.into())
    );
    let why = answer.json()["why"].as_str().unwrap().to_owned();
    assert!(why.contains("does not take part yet"), "{why}");
    assert_eq!(ask(address, "GET", "/v1/explain/demo:1").await.status, 503);
}

#[tokio::test]
async fn a_drained_agent_hands_everything_on_and_takes_it_again() {
    let directory = TempDir::new().unwrap();
    let (one, two) = (agent(&directory, "a"), agent(&directory, "b"));
    let (first, second) = (one.ready().await, two.ready().await);
    until(SOON, "both have some", async || {
        let (a, b) = (owned(first).await, owned(second).await);
        a > 0 && b > 0 && a + b == 8
    })
    .await;
    let answer = ask(first, "POST", "/v1/drain").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, r#"{"draining":true}"#)
    );
    owns(second, 8).await;
    // What is given back is shown a moment later.
    owns(first, 0).await;
    assert_eq!(ask(first, "GET", "/healthz").await.status, 200);
    let unready = ask(first, "GET", "/readyz").await;
    assert!(
        unready.status == 503 && unready.body.contains("/v1/drain"),
        "{unready:?}"
    );
    let why = ask(second, "GET", "/v1/explain/demo:1").await.json();
    assert_eq!(why["holder_known"], true, "{why}");
    let why_not = ask(first, "GET", "/v1/explain/demo:1").await.json();
    // What it does not look at is not said to be nobody's.
    assert!(
        why_not["holder"] == "b" || why_not["holder_known"] == false,
        "{why_not}"
    );
    let mut ranking = why["ranking"].as_array().unwrap().iter();
    let vetoed = ranking
        .find(|ranked| ranked["rejected"].is_string())
        .unwrap();
    assert_eq!(
        (&vetoed["worker"], &vetoed["rejected"]),
        (&"a".into(), &"is drained".into())
    );
    assert_eq!(
        ask(first, "DELETE", "/v1/drain").await.body,
        r#"{"draining":false}"#
    );
    until(SOON, "it has some again", async || owned(first).await > 0).await;
    one.ready().await;
}

#[tokio::test]
async fn a_worker_says_what_it_has_and_why_and_can_be_drained() {
    let directory = TempDir::new().unwrap();
    let (one, two) = (worker(&directory, "a"), worker(&directory, "b"));
    let (first, second) = (one.ready().await, two.ready().await);
    owns(first, 4).await;
    owns(second, 4).await;
    let told = one.lines();
    let told = told
        .iter()
        .find(|line| line["event"] == "listening")
        .unwrap();
    assert_eq!(told["address"], first.to_string());
    let mine = ask(first, "GET", "/v1/owned").await.json();
    let partition = mine["partitions"][0]["partition"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/explain/{partition}");
    let (here, there) = (
        ask(first, "GET", &path).await,
        ask(second, "GET", &path).await,
    );
    let (here, there) = (here.json(), there.json());
    assert_eq!(here["owned_here"], true);
    assert_eq!(here["token"], mine["partitions"][0]["token"]);
    assert_eq!(
        (&there["owned_here"], &there["state"]),
        (&false.into(), &"granted".into())
    );
    assert_eq!(there["holder"], mine["worker"]);
    assert_eq!(ask(first, "GET", "/v1/explain/demo:8").await.status, 404);
    let page = ask(first, "GET", "/metrics").await.body;
    assert!(page.contains("divvy_assigned_partitions"), "{page}");
    ask(first, "POST", "/v1/drain").await;
    owns(second, 8).await;
    assert_eq!(ask(first, "GET", "/readyz").await.status, 503);
    ask(first, "DELETE", "/v1/drain").await;
    owns(first, 4).await;
}

#[tokio::test]
async fn a_worker_whose_lease_cannot_be_renewed_is_not_ready_until_it_can() {
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let words = format!(
        "worker --store {} --partitions demo:2 {LISTEN}",
        server.url()
    );
    let worker = Member::start(&words);
    let address = worker.ready().await;
    owns(address, 2).await;
    server.pause();
    until(SOON, "it says what it lacks", async || {
        let answer = ask(address, "GET", "/readyz").await;
        answer.status == 503 && answer.body.contains("no renewal of its lease")
    })
    .await;
    assert_eq!(ask(address, "GET", "/healthz").await.status, 200);
    server.resume();
    worker.ready().await;
    owns(address, 2).await;
}

#[tokio::test]
async fn an_agent_that_an_operator_drains_is_not_ready() {
    let directory = TempDir::new().unwrap();
    let (one, two) = (agent(&directory, "a"), agent(&directory, "b"));
    let (first, second) = (one.ready().await, two.ready().await);
    until(SOON, "all are owned", async || {
        owned(first).await + owned(second).await == 8
    })
    .await;
    let store = directory.path().join("agents.db");
    let wish = |verb: &str| format!("{verb} a --store file:{}", store.display());
    assert!(Member::start(&wish("drain")).ended().await.success());
    until(SOON, "it says so", async || {
        let answer = ask(first, "GET", "/readyz").await;
        answer.status == 503 && answer.body.contains("divvy uncordon")
    })
    .await;
    assert!(Member::start(&wish("uncordon")).ended().await.success());
    one.ready().await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_one_line_before_anything_is_taken() {
    let directory = TempDir::new().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let store = directory.path().join("never.db");
    let words = format!("--store file:{} --listen {port}", store.display());
    for (words, more) in [
        (
            format!("agent --workloads demo:8 {words}"),
            &["--exec", "sleep 1"][..],
        ),
        (format!("worker --partitions 8 {words}"), &[]),
    ] {
        let mut member = Member::start_with(&words, more);
        assert_eq!(member.ended().await.code(), Some(1), "{words}");
        let line = format!("error: --listen {port}: Address already in use");
        member.tells(&line).await;
        assert_eq!(member.told().lines().count(), 1, "{}", member.told());
        assert!(!store.exists(), "{words}");
    }
}

#[tokio::test]
async fn an_agent_that_stops_is_not_ready_but_answers() {
    let words = format!("agent --store memory --workloads demo:1 --grace 20s {LISTEN}");
    let slow = "sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'";
    let agent = Member::start_with(&words, &["--exec", slow]);
    let address = agent.ready().await;
    owns(address, 1).await;
    agent.signal(Signal::TERM);
    until(SOON, "it says that it stops", async || {
        let answer = ask(address, "GET", "/readyz").await;
        answer.status == 503 && answer.body.contains("it stops")
    })
    .await;
    until(SOON, "its partition is being stopped", async || {
        let all = ask(address, "GET", "/v1/owned").await.json();
        all["partitions"][0]["stopping"] == true
    })
    .await;
}
