//! What is said when a server can't be had.

use std::net::Ipv4Addr;
use std::time::Duration;

use divvy::store::{StoreErrorKind, StoreSettings, Tls};
use divvy_testbed::{
    Certificates, Identity, NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions,
    RedisServer,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::bed::{assert_refused, newest, refusal, settings, try_open};

/// As short as the errors of unreachable servers take.
fn hasty() -> StoreSettings {
    StoreSettings {
        connect_timeout: Duration::from_millis(600),
        ..settings()
    }
}

async fn with_certificate(
    identity: &Identity,
    client_authority: Option<&Certificates>,
) -> NatsServer {
    let mut options = NatsOptions::new().tls(identity);
    if let Some(certificates) = client_authority {
        options = options.client_authority(certificates.authority());
    }
    NatsServer::start(NatsVersion::Newest, options).await
}

fn trusting(path: &std::path::Path) -> StoreSettings {
    StoreSettings {
        tls: Tls {
            ca_file: Some(path.to_owned()),
            ..Tls::default()
        },
        ..settings()
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_within_the_bound() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("nats://{address}");
    let error = refusal(&url, &hasty()).await;
    assert_refused(
        &error,
        StoreErrorKind::Unavailable,
        &[&url, "600ms", "connection refused"],
    );
}

#[tokio::test]
async fn a_server_that_starts_within_the_bound_is_found() {
    let mut server = newest().await;
    server.kill();
    let url = server.url();
    let opening = tokio::spawn(async move { try_open(&url, &settings()).await });
    server.start_again().await;
    opening.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_accepts_and_says_nothing_is_unavailable_within_the_bound() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let error = refusal(&url, &hasty()).await;
    assert_refused(&error, StoreErrorKind::Unavailable, &["does not greet"]);
}

#[tokio::test]
async fn a_redis_server_is_no_nats_server() {
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let error = refusal(&format!("nats://{}", server.address()), &hasty()).await;
    assert_refused(
        &error,
        StoreErrorKind::Unavailable,
        &["does not greet as a NATS server"],
    );
}

#[tokio::test]
async fn a_server_that_speaks_another_protocol_is_refused() {
    for greeting in [
        "220 mail.example ESMTP\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\0\x01\r\n",
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let speaking = tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                client.write_all(greeting.as_bytes()).await.unwrap();
                let mut heard = Vec::new();
                // Until the client has had enough.
                let _ended = client.read_to_end(&mut heard).await;
            }
        });
        let error = refusal(&url, &settings()).await;
        assert_refused(&error, StoreErrorKind::Unfit, &["is no NATS server"]);
        speaking.abort();
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_unavailable() {
    let error = refusal("nats://no-such-host.invalid:4222", &hasty()).await;
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn an_address_of_another_kind_is_invalid() {
    for url in ["memory", "redis://localhost"] {
        let error = refusal(url, &settings()).await;
        assert_refused(&error, StoreErrorKind::Invalid, &["NATS"]);
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let certificates = Certificates::new();
    let server = with_certificate(certificates.server(), None).await;
    for settings in [trusting(certificates.other_authority()), settings()] {
        let error = refusal(&server.url(), &settings).await;
        assert_refused(
            &error,
            StoreErrorKind::Unfit,
            &["certificate is not trusted"],
        );
    }
    let good = trusting(certificates.authority());
    try_open(&server.url(), &good).await.unwrap();
    // A server that wants encryption gets it, whatever the address says.
    let plain = server.url().replace("tls://", "nats://");
    try_open(&plain, &good).await.unwrap();
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let certificates = Certificates::new();
    let server = with_certificate(certificates.expired_server(), None).await;
    let error = refusal(&server.url(), &trusting(certificates.authority())).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["not trusted", "expired"]);
}

#[tokio::test]
async fn a_client_without_the_certificate_that_is_asked_for_is_refused() {
    let certificates = Certificates::new();
    let server = with_certificate(certificates.server(), Some(&certificates)).await;
    let error = refusal(&server.url(), &trusting(certificates.authority())).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["refuses our certificate"]);
}

#[tokio::test]
async fn encryption_that_is_required_is_never_left_out() {
    let server = newest().await;
    let required = StoreSettings {
        tls: Tls {
            required: true,
            ..Tls::default()
        },
        ..settings()
    };
    let encrypted = server.url().replace("nats://", "tls://");
    let certificates = Certificates::new();
    for (url, settings) in [
        (server.url(), required),
        (encrypted, settings()),
        (server.url(), trusting(certificates.authority())),
    ] {
        let error = refusal(&url, &settings).await;
        assert_refused(&error, StoreErrorKind::Unfit, &["does not encrypt"]);
    }
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_invalid() {
    let certificates = Certificates::new();
    let (client, server) = (certificates.client(), certificates.server());
    let missing = std::path::PathBuf::from("/nonexistent/ca.pem");
    let tls = |ca_file, cert_file, key_file| StoreSettings {
        tls: Tls {
            required: true,
            ca_file,
            cert_file,
            key_file,
        },
        ..settings()
    };
    for (settings, words) in [
        (
            tls(Some(missing), None, None),
            "tls ca_file '/nonexistent/ca.pem'",
        ),
        (
            tls(Some(client.key.clone()), None, None),
            "must hold certificates",
        ),
        (
            tls(
                None,
                Some(client.certificate.clone()),
                Some(client.certificate.clone()),
            ),
            "must hold a private key",
        ),
        (
            tls(
                None,
                Some(client.certificate.clone()),
                Some(server.key.clone()),
            ),
            "does not fit cert_file",
        ),
        (
            tls(None, Some(client.certificate.clone()), None),
            "needs both",
        ),
    ] {
        let error = refusal("tls://127.0.0.1:1", &settings).await;
        assert_refused(&error, StoreErrorKind::Invalid, &[words]);
    }
}

/// Greets as a NATS server does, and sends back the line by which a client logs
/// in.
async fn echo(listener: TcpListener) {
    const GREETING: &str = r#"INFO {"server_id":"e","server_name":"e","version":"2.11.7","go":"",
        "host":"","port":1,"headers":true,"max_payload":1048576,"proto":1,"auth_required":true}"#;
    while let Ok((mut stream, _)) = listener.accept().await {
        let greeting = format!("{}\r\n", GREETING.replace('\n', " "));
        if stream.write_all(greeting.as_bytes()).await.is_err() {
            continue;
        }
        let mut line = String::new();
        let mut stream = BufReader::new(stream);
        if stream.read_line(&mut line).await.is_ok() {
            let answer = format!("-ERR '{}'\r\n", line.trim_end());
            // The client may have gone.
            let _sent = stream.get_mut().write_all(answer.as_bytes()).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_sends_back_the_login_is_not_repeated() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(echo(listener));
    let error = refusal(&format!("nats://ada:canary@{address}"), &settings()).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["refuses the connection"]);
    assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
    server.abort();
}
