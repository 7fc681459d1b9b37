//! Who is answered, and what clients can cost.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use divvy_testbed::until;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::{ask, ask_with, read, send};
use crate::member::{Member, SOON};

const TOKEN: &str = "canary-token-of-the-tests";

fn agent(listen: &str) -> Member {
    let words = format!("agent --store memory --preset fast --workloads demo:2 {listen}");
    Member::start_with(&words, &["--exec", "sleep 1000"])
}

fn secret(directory: &Path, text: &str, mode: u32) -> String {
    let path = directory.join("token");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn on_loopback_only_this_machine_is_answered_and_no_page_changes_anything() {
    let agent = agent("--listen 127.0.0.1:0");
    let address = agent.ready().await;
    let port = address.port();
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let line = format!("Host: {host}:{port}");
        let answer = ask_with(address, "GET", "/v1/owned", &[&line]).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1", ""] {
        let line = format!("Host: {host}");
        for path in ["/v1/owned", "/metrics", "/healthz"] {
            let answer = ask_with(address, "GET", path, &[&line]).await;
            assert_eq!(answer.status, 403, "{host} {path}");
        }
    }
    let absolute =
        "GET http://evil.example/v1/owned HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(send(address, absolute.as_bytes()).await.status, 403);
    let nameless = b"GET /v1/owned HTTP/1.0\r\n\r\n";
    assert_eq!(send(address, nameless).await.status, 403);
    for line in [
        "Origin: http://evil.example",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
    ] {
        for method in ["POST", "DELETE"] {
            let answer = ask_with(address, method, "/v1/drain", &[line]).await;
            assert_eq!(answer.status, 403, "{method} {line}");
        }
    }
    assert_eq!(
        ask(address, "GET", "/v1/drain").await.body,
        r#"{"draining":false}"#
    );
    let own = format!("Origin: http://{address}");
    assert_eq!(
        ask_with(address, "POST", "/v1/drain", &[&own]).await.status,
        200
    );
}

#[tokio::test]
async fn beyond_loopback_whoever_has_the_token_is_answered_and_probes_hear_yes_or_no() {
    let directory = TempDir::new().unwrap();
    let file = secret(directory.path(), &format!("{TOKEN}\n"), 0o600);
    let agent = agent(&format!("--listen 0.0.0.0:0 --listen-token-file {file}"));
    let address = agent.address().await;
    let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
    until(SOON, "it is ready", async || {
        ask(address, "GET", "/readyz").await.status == 200
    })
    .await;
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let answer = ask_with(address, "GET", "/v1/owned", &[&bearer, "Host: node-1:80"]).await;
    assert_eq!(answer.status, 200);
    for line in [
        "X-Nothing: here".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer canary".to_owned(),
        format!("Authorization: Bearer {TOKEN}x"),
        format!("Authorization: Basic {TOKEN}"),
        format!("{bearer}\r\n{bearer}"),
    ] {
        for (method, path) in [
            ("GET", "/v1/owned"),
            ("GET", "/metrics"),
            ("POST", "/v1/drain"),
        ] {
            let answer = ask_with(address, method, path, &[&line]).await;
            assert_eq!(answer.status, 401, "{line} {path}");
            assert!(
                answer
                    .head
                    .to_lowercase()
                    .contains("www-authenticate: bearer")
            );
        }
    }
    assert_eq!(
        ask_with(address, "POST", "/v1/drain", &[&bearer])
            .await
            .status,
        200
    );
    let answer = ask(address, "GET", "/readyz").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (503, r#"{"ready":false}"#)
    );
    let answer = ask_with(address, "GET", "/readyz", &[&bearer]).await;
    assert!(
        answer.status == 503 && answer.body.contains("why"),
        "{answer:?}"
    );
    assert!(!agent.told().contains("canary"), "{}", agent.told());
}

#[tokio::test]
async fn a_door_that_is_left_open_is_refused() {
    let directory = TempDir::new().unwrap();
    let refused = async |listen: &str, code: i32, words: &str| {
        for mut member in [
            agent(listen),
            Member::start(&format!("worker --store memory --partitions 2 {listen}")),
        ] {
            assert_eq!(member.ended().await.code(), Some(code), "{listen}");
            member.tells(words).await;
            let told = member.told();
            assert!(
                told.lines().count() == 1 && !told.contains("canary"),
                "{told}"
            );
        }
    };
    refused("--listen 0.0.0.0:0", 2, "--listen-token-file").await;
    refused("--listen 192.0.2.1:80", 2, "--listen-token-file").await;
    refused("--listen 9470", 2, "must be an address and a port").await;
    refused("--listen localhost:x", 2, "must be an address and a port").await;
    let with = |file: &str| format!("--listen 127.0.0.1:0 --listen-token-file {file}");
    refused(&with("/nowhere"), 2, "No such file").await;
    let readable = secret(directory.path(), TOKEN, 0o644);
    refused(&with(&readable), 2, "everybody on this machine").await;
    let short = secret(directory.path(), "canary\n", 0o600);
    refused(&with(&short), 2, "must hold 16..=4096 bytes").await;
}

#[tokio::test]
async fn clients_are_bounded_in_size_time_and_number() {
    let agent = agent("--listen 127.0.0.1:0");
    let address = agent.ready().await;
    let long = format!("X-Long: {}", "x".repeat(100_000));
    let answer = ask_with(address, "GET", "/healthz", &[&long]).await;
    assert!(matches!(answer.status, 0 | 431), "{}", answer.status);
    let many: Vec<String> = (0..100).map(|number| format!("X-{number}: y")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let answer = ask_with(address, "GET", "/healthz", &many).await;
    assert!(matches!(answer.status, 0 | 431), "{}", answer.status);
    let answer = ask_with(address, "POST", "/v1/drain", &["Content-Length: 99999999"]).await;
    assert_eq!(answer.status, 413);
    assert_eq!(
        ask(address, "GET", "/v1/drain").await.body,
        r#"{"draining":false}"#
    );
    let odd = send(address, b"\x16\x03\x01 no HTTP at all\r\n\r\n").await;
    assert!(matches!(odd.status, 0 | 400), "{odd:?}");
    // More than there are places for, none of which ever says all: they are
    // put out, and whoever asks properly is answered after them.
    let mut slow = Vec::new();
    for _ in 0..140 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
            .await
            .unwrap();
        slow.push(stream);
    }
    assert_eq!(ask(address, "GET", "/healthz").await.status, 200);
    let put_out = read(&mut slow[0]).await;
    assert!(matches!(put_out.status, 0 | 408), "{put_out:?}");
}
