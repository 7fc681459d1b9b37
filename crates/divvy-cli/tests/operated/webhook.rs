//! Webhooks: what is sent, and what becomes of the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use divvy_testbed::{Certificates, until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::client::ask;
use crate::member::{Member, SOON};
use crate::service::{Manner, SECRET, Service};

fn secret(directory: &Path) -> String {
    let path = directory.join("secret");
    std::fs::write(&path, format!("{SECRET}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn words(kind: &str, directory: &Path, url: &str) -> String {
    let what = match kind {
        "agent" => "--node a --workloads demo:3",
        _ => "--instance a --partitions demo:3",
    };
    let file = secret(directory);
    let hook = format!("--webhook {url} --webhook-secret-file {file}");
    format!("{kind} --store memory --preset fast --listen 127.0.0.1:0 {what} {hook}")
}

async fn owned(member: &Member) -> usize {
    let address = member.address().await;
    let owned = ask(address, "GET", "/v1/owned").await.json();
    owned["partitions"].as_array().unwrap().len()
}

#[tokio::test]
async fn an_address_with_a_secret_comes_from_the_environment_and_is_not_repeated() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        let service = Service::start(None).await;
        let url = format!("http://ada:s3cret%40@{}/divvy?key=s3cret", service.address);
        let words = words(kind, directory.path(), "URL").replace("--webhook URL ", "");
        let mut member = Member::start_in(&words, ("DIVVY_WEBHOOK", &url));
        until(SOON, "all are started", async || {
            service.heard("start").len() == 3
        })
        .await;
        let start = &service.heard("start")[0];
        assert!(start.path.ends_with("?key=s3cret"), "{start:?}");
        // RFC 7617: the base64 of `ada:s3cret@`.
        let login = start.authorization.as_deref();
        assert_eq!(login, Some("Basic YWRhOnMzY3JldEA="));
        assert_eq!(start.host, service.address.to_string());
        member.signal(Signal::TERM);
        assert!(member.ended().await.success(), "{}", member.told());
        let wrong = ("DIVVY_WEBHOOK", "ftp://host/?key=s3cret");
        let mut refused = Member::start_in(&words, wrong);
        assert!(!refused.ended().await.success());
        let told = member.told() + &refused.told();
        assert!(!told.contains("s3cret") && !told.contains("YWRh"), "{told}");
    }
}

#[tokio::test]
async fn what_a_service_has_not_accepted_yet_is_not_owned() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        let service = Service::start(None).await;
        service.answers("start", Manner::Hang);
        let url = format!("http://{}/divvy", service.address);
        let member = Member::start(&words(kind, directory.path(), &url));
        until(SOON, "all are to be started", async || {
            service.heard("start").len() >= 3
        })
        .await;
        assert_eq!(owned(&member).await, 0, "{kind}");
        let address = member.address().await;
        let page = ask(address, "GET", "/metrics").await.body;
        let name = match kind {
            "agent" => "divvy_lease_owned_partitions",
            _ => "divvy_assigned_partitions",
        };
        let mut lines = page.lines();
        let line = lines.find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with(" 0"), "{line}");
        service.answers("start", Manner::Status(200, ""));
        until(SOON, "all are owned", async || owned(&member).await == 3).await;
    }
}

/// The start that the guide has as an example.
fn shown_in_the_guide() -> Value {
    let guide = include_str!("../../../../docs/operating.md");
    let (_, rest) = guide.split_once("```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    serde_json::from_str(example).unwrap()
}

#[tokio::test]
async fn starts_and_stops_are_sent_signed_and_whole() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        let service = Service::start(None).await;
        let url = format!("http://{}/divvy", service.address);
        let mut member = Member::start(&words(kind, directory.path(), &url));
        until(SOON, "all are started", async || {
            service.heard("start").len() == 3
        })
        .await;
        until(SOON, "all are owned", async || owned(&member).await == 3).await;
        member.signal(Signal::TERM);
        assert!(member.ended().await.success(), "{}", member.told());
        let (starts, stops) = (service.heard("start"), service.heard("stop"));
        assert_eq!(stops.len(), 3, "{kind}");
        let fields = |body: &Value| -> BTreeSet<String> {
            let fields = body.as_object().unwrap().keys();
            fields.cloned().collect()
        };
        assert_eq!(fields(&starts[0].body), fields(&shown_in_the_guide()));
        for heard in starts.iter().chain(&stops) {
            let body = &heard.body;
            assert!(heard.is_signed && heard.path == "/divvy", "{heard:?}");
            let (workload, unit) = (body["workload"].as_str(), body["unit"].as_str());
            let partition = format!("{}:{}", workload.unwrap(), unit.unwrap());
            assert_eq!(body["partition"], partition);
            assert_eq!(
                (&body["cluster"], &body["attempt"]),
                (&"default".into(), &1.into())
            );
            assert!(body["token"].as_str().unwrap().parse::<i64>().unwrap() > 0);
            assert!(body["deadline_ms"].as_u64().unwrap() > 0 && body["worker"].is_string());
        }
        for stop in &stops {
            let started = starts
                .iter()
                .find(|start| start.body["partition"] == stop.body["partition"]);
            assert_eq!(started.unwrap().body["token"], stop.body["token"]);
        }
        assert!(!member.told().contains("canary"), "{}", member.told());
    }
}

#[tokio::test]
async fn a_start_that_is_not_accepted_is_not_owned() {
    for (kind, manner, words_told, is_doubtful) in [
        (
            "agent",
            Manner::Status(403, ""),
            "the answer was 403",
            false,
        ),
        (
            "worker",
            Manner::Status(403, ""),
            "the answer was 403",
            false,
        ),
        (
            "agent",
            Manner::Status(302, "Location: /other\r\n"),
            "redirects are not followed",
            false,
        ),
        ("agent", Manner::Status(500, ""), "the answer was 500", true),
        ("agent", Manner::Close, "not accepted in", true),
        ("agent", Manner::Hang, "no answer in time", true),
    ] {
        let directory = TempDir::new().unwrap();
        let service = Service::start(None).await;
        service.answers("start", manner.clone());
        let url = format!("http://{}/", service.address);
        let member = Member::start(&words(kind, directory.path(), &url));
        member.tells(words_told).await;
        if kind == "agent" {
            member.tells("could not be started").await;
        }
        assert!(service.heard("start").iter().all(|heard| heard.path == "/"));
        // What may have been accepted is taken back; what was refused need not be.
        if is_doubtful {
            until(SOON, "it is taken back", async || {
                let mut stops = service.heard("stop").into_iter();
                stops.any(|stop| stop.body["reason"] == "start_failed")
            })
            .await;
        } else {
            assert!(service.heard("stop").is_empty(), "{manner:?}");
        }
        // As soon as it is accepted, it is owned.
        service.answers("start", Manner::Status(200, ""));
        until(SOON, "all are owned", async || owned(&member).await == 3).await;
    }
}

#[tokio::test]
async fn what_passes_is_tried_again_within_the_deadline() {
    let directory = TempDir::new().unwrap();
    let service = Service::start(None).await;
    service.answers("start", Manner::Status(503, ""));
    let url = format!("http://{}/", service.address);
    let member = Member::start(&words("agent", directory.path(), &url));
    until(SOON, "it is tried again", async || {
        let starts = service.heard("start");
        starts
            .iter()
            .any(|start| start.body["attempt"].as_u64().unwrap() > 1)
    })
    .await;
    service.answers("start", Manner::Endless);
    until(SOON, "all are owned", async || owned(&member).await == 3).await;
}

/// The starts that a service has heard of, in order: partitions and tokens.
fn starts(service: &Service) -> Vec<(String, i64)> {
    let text = |field: &Value| field.as_str().unwrap().to_owned();
    let heard = service.heard("start").into_iter();
    heard
        .map(|start| {
            let token = text(&start.body["token"]).parse().unwrap();
            (text(&start.body["partition"]), token)
        })
        .collect()
}

#[tokio::test]
async fn a_start_is_not_sent_again_after_its_lease_has_ended() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        let service = Service::start(None).await;
        service.answers("start", Manner::Status(503, ""));
        let url = format!("http://{}/", service.address);
        let store = format!("--store file:{}/store.db", directory.path().display());
        let config = directory.path().join("member.yaml");
        std::fs::write(&config, "preset: fast\nstart_deadline: 60s\n").unwrap();
        let start = |name: &str| {
            let words = words(kind, directory.path(), &url)
                .replace("--store memory", &store)
                .replace("--preset fast", "")
                .replace("--node a", &format!("--node {name}"))
                .replace("--instance a", &format!("--instance {name}"));
            Member::start_with(&words, &["--config", config.to_str().unwrap()])
        };
        let first = start("first");
        until(SOON, "starts are tried again", async || {
            starts(&service).len() > 6
        })
        .await;
        first.signal(Signal::STOP);
        let before: BTreeMap<String, i64> = starts(&service).into_iter().collect();
        let _second = start("second");
        until(SOON, "another has them", async || {
            let now: BTreeMap<String, i64> = starts(&service).into_iter().collect();
            now.len() == 3
                && now
                    .iter()
                    .all(|(name, token)| before.get(name) < Some(token))
        })
        .await;
        first.signal(Signal::CONT);
        let resumed = Instant::now();
        until(SOON, "it would have tried again", async || {
            resumed.elapsed() > Duration::from_secs(3)
        })
        .await;
        let mut highest = BTreeMap::new();
        for (partition, token) in starts(&service) {
            let last = highest.insert(partition.clone(), token).unwrap_or_default();
            assert!(
                token >= last,
                "{kind}: {partition} starts with {token} after {last}"
            );
        }
    }
}

#[tokio::test]
async fn a_start_that_is_unanswered_when_its_lease_ends_is_followed_by_a_stop() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        let service = Service::start(None).await;
        service.answers("start", Manner::Hang);
        let url = format!("http://{}/", service.address);
        let config = directory.path().join("member.yaml");
        // Its end is what ends the request: not the deadline, nor 5 s.
        std::fs::write(&config, "preset: fast\nstart_deadline: 60s\n").unwrap();
        let config = format!("--config {}", config.display());
        let words = words(kind, directory.path(), &url).replace("--preset fast", &config);
        let member = Member::start(&words);
        until(SOON, "all are to be started", async || {
            starts(&service).len() == 3
        })
        .await;
        member.signal(Signal::STOP);
        let stopped = Instant::now();
        until(SOON, "its leases have ended", async || {
            stopped.elapsed() > Duration::from_secs(2)
        })
        .await;
        assert_eq!(service.heard("stop").len(), 0, "{kind}");
        member.signal(Signal::CONT);
        member.tells("its lease ended before it was started").await;
        until(SOON, "it is taken back", async || {
            let stops = service.heard("stop");
            let reasons = stops
                .iter()
                .filter(|stop| stop.body["reason"] == "start_failed");
            let named: BTreeSet<&str> = reasons
                .map(|stop| stop.body["partition"].as_str().unwrap())
                .collect();
            named.len() == 3
        })
        .await;
    }
}

#[tokio::test]
async fn a_stop_is_sent_until_it_is_accepted() {
    let directory = TempDir::new().unwrap();
    let service = Service::start(None).await;
    let url = format!("http://{}/", service.address);
    let mut member = Member::start(&words("agent", directory.path(), &url));
    until(SOON, "all are owned", async || owned(&member).await == 3).await;
    service.answers("stop", Manner::Status(404, ""));
    member.signal(Signal::TERM);
    until(SOON, "it is tried again", async || {
        service.heard("stop").len() > 6
    })
    .await;
    service.answers("stop", Manner::Status(200, ""));
    assert!(member.ended().await.success(), "{}", member.told());
}

/// The highest attempt of a stop for each partition.
fn stops_tried(service: &Service) -> BTreeMap<String, u64> {
    let mut tried = BTreeMap::new();
    for stop in service.heard("stop") {
        let attempt = stop.body["attempt"].as_u64().unwrap();
        let partition = stop.body["partition"].as_str().unwrap().to_owned();
        let most = tried.entry(partition).or_insert(attempt);
        *most = attempt.max(*most);
    }
    tried
}

/// Words of a member with this name that shares a store with others, and waits
/// long before it leaves a partition to others or ends.
fn patient(kind: &str, directory: &Path, name: &str, url: &str) -> String {
    let config = directory.join("member.yaml");
    let lease = match kind {
        "agent" => "lease_ttl: 10s",
        _ => "heartbeat_ttl: 10s",
    };
    // No busy machine loses it: what nobody gets is not given up by accident.
    let text = format!("preset: fast\noverdue: report\n{lease}\n");
    std::fs::write(&config, text).unwrap();
    let store = format!("file:{}/store.db", directory.display());
    let patience = match kind {
        "agent" => "--webhook-stop-timeout 10m",
        _ => "",
    };
    let config = format!("--config {} {patience}", config.display());
    words(kind, directory, url)
        .replace("--store memory", &format!("--store {store}"))
        .replace("--preset fast", &config)
        .replace("--node a", &format!("--node {name}"))
        .replace("--instance a", &format!("--instance {name}"))
}

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_nobody_elses_before_its_stop_is_accepted() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        let (lossy, live) = (Service::start(None).await, Service::start(None).await);
        lossy.answers("start", Manner::Close);
        lossy.answers("stop", Manner::Close);
        let url = |service: &Service| format!("http://{}/", service.address);
        let start = |name: &str, service: &Service| {
            Member::start(&patient(kind, directory.path(), name, &url(service)))
        };
        let _first = start("first", &lossy);
        until(SOON, "all are to be started", async || {
            let named: BTreeSet<String> = starts(&lossy).into_iter().map(|it| it.0).collect();
            named.len() == 3
        })
        .await;
        let second = start("second", &live);
        second.ready().await;
        // Longer than a third of the deadline for starts, which is 2 s.
        until(SOON, "stops are sent on", async || {
            assert_eq!(starts(&live), [], "{kind}");
            let tried = stops_tried(&lossy);
            tried.len() == 3 && tried.values().all(|attempts| *attempts >= 5)
        })
        .await;
        lossy.answers("stop", Manner::Status(204, ""));
        until(SOON, "the other gets them", async || {
            starts(&live).len() == 3
        })
        .await;
    }
}

#[tokio::test]
async fn a_start_that_reached_nobody_is_given_back_without_a_stop() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        // Nobody listens there, and nobody else gets the port.
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let live = Service::start(None).await;
        let url = format!("http://{}/", closed.local_addr().unwrap());
        let first = Member::start(&patient(kind, directory.path(), "first", &url));
        first.tells("the webhook for start").await;
        let url = format!("http://{}/", live.address);
        let _second = Member::start(&patient(kind, directory.path(), "second", &url));
        until(SOON, "the other gets them", async || {
            starts(&live).len() == 3
        })
        .await;
        assert!(!first.told().contains("for stop"), "{}", first.told());
    }
}

#[tokio::test]
async fn partitions_of_a_dead_service_move_when_its_stops_stay_unconfirmed() {
    let directory = TempDir::new().unwrap();
    let (dead, live) = (Service::start(None).await, Service::start(None).await);
    let store = format!("--store file:{}/store.db", directory.path().display());
    let start = |name: &str, service: &Service| {
        let url = format!("http://{}/", service.address);
        let words = words("agent", directory.path(), &url)
            .replace("--store memory", &store)
            .replace("--node a", &format!("--node {name}"))
            .replace("demo:3", "demo:12");
        Member::start(&words)
    };
    let first = start("first", &dead);
    until(SOON, "all are owned", async || owned(&first).await == 12).await;
    dead.answers("stop", Manner::Status(503, ""));
    let second = start("second", &live);
    let address = first.address().await;
    ask(address, "POST", "/v1/drain").await;
    first.tells("stop not confirmed within 4s").await;
    until(SOON, "the other has all", async || {
        owned(&second).await == 12
    })
    .await;
    let page = ask(address, "GET", "/metrics").await.body;
    let mut lines = page.lines();
    let line = lines.find(|line| line.starts_with("divvy_lease_unconfirmed_stops"));
    assert!(line.unwrap().ends_with(" 12"), "{line:?}");
    let explained = ask(address, "GET", "/v1/explain/demo:0").await.json();
    assert_eq!(explained["misaligned"], "stop_not_confirmed");
    let owned = ask(address, "GET", "/v1/owned").await.json();
    assert_eq!(owned["partitions"][0]["stop_unconfirmed"], true);
    let status = crate::member::command(&format!("status {store}"));
    let mut status = Member::reading(&mut { status });
    assert!(status.ended().await.success());
    status
        .tells("stop not confirmed by the service of first")
        .await;
    // The service is back, and learns late what it has to stop.
    dead.answers("stop", Manner::Status(204, ""));
    until(SOON, "nothing is left to confirm", async || {
        ask(address, "GET", "/v1/owned").await.json()["partitions"]
            .as_array()
            .is_some_and(Vec::is_empty)
    })
    .await;
    let tokens: BTreeMap<String, i64> = starts(&dead).into_iter().collect();
    let later: BTreeMap<String, i64> = starts(&live).into_iter().collect();
    assert!(later.iter().all(|(name, token)| tokens[name] < *token));
}

#[tokio::test]
async fn https_is_spoken_with_those_whom_the_system_trusts() {
    let certificates = Certificates::new();
    let identity = certificates.server();
    let chain = vec![CertificateDer::from_pem_file(&identity.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&identity.key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let service = Service::start(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let directory = TempDir::new().unwrap();
    let url = format!("https://localhost:{}/", service.address.port());
    let words = words("agent", directory.path(), &url);
    let other = Member::start_trusting(&words, certificates.other_authority());
    other.tells("TLS: ").await;
    assert!(service.heard("start").is_empty());
    let member = Member::start_trusting(&words, certificates.authority());
    until(SOON, "all are owned", async || owned(&member).await == 3).await;
}

#[tokio::test]
async fn a_webhook_that_cannot_be_used_is_one_line() {
    let directory = TempDir::new().unwrap();
    let file = secret(directory.path());
    let with = format!("--webhook-secret-file {file}");
    for (hook, told) in [
        (
            "--webhook http://localhost/".to_owned(),
            "--webhook-secret-file is missing",
        ),
        (
            format!("--webhook ftp://localhost/ {with}"),
            "must begin with http",
        ),
        (format!("--webhook localhost {with}"), "must"),
        (
            format!("--webhook http://ada:canary@localhost/ {with}"),
            "put the address into DIVVY_WEBHOOK",
        ),
        (
            format!("--webhook http://localhost/hook?token=canary {with}"),
            "put the address into DIVVY_WEBHOOK",
        ),
        (
            "--webhook http://localhost/ --webhook-secret-file /nowhere".to_owned(),
            "No such file",
        ),
    ] {
        let words = format!("agent --store memory --workloads demo:1 {hook}");
        let mut member = Member::start(&words);
        assert_eq!(member.ended().await.code(), Some(2), "{hook}");
        member.tells(told).await;
        let told = member.told();
        assert!(
            told.lines().count() == 1 && !told.contains("canary"),
            "{told}"
        );
    }
}
