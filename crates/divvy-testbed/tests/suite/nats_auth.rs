//! Whom NATS servers let in, and to what.

use divvy_testbed::{NatsOperator, NatsOptions, NatsServer, NatsVersion, Nkey};

use crate::wire::Wire;

/// A connection that has been greeted, and the nonce that is to be signed, if there is one.
async fn greeted(server: &NatsServer) -> (Wire, String) {
    let mut wire = Wire::connect(server.address()).await;
    let greeting = wire.line().await;
    let nonce = greeting.split_once("\"nonce\":\"").map(|(_, rest)| rest);
    let nonce = nonce.and_then(|rest| rest.split('"').next());
    (wire, nonce.unwrap_or_default().to_owned())
}

async fn opening(server: &NatsServer, login: &str) -> String {
    let (mut wire, _) = greeted(server).await;
    wire.nats_opening(login).await
}

#[tokio::test]
async fn password_is_demanded() {
    let options = NatsOptions::new().user("worker", "s3\"cret");
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let right = r#","user":"worker","pass":"s3\"cret""#;
    assert_eq!(opening(&server, right).await, "PONG");
    for wrong in ["", r#","user":"worker","pass":"secret""#] {
        assert!(
            opening(&server, wrong)
                .await
                .contains("Authorization Violation")
        );
    }
}

#[tokio::test]
async fn token_is_demanded() {
    let options = NatsOptions::new().token("t0ken");
    let server = NatsServer::start(NatsVersion::Lowest, options).await;
    assert_eq!(opening(&server, r#","auth_token":"t0ken""#).await, "PONG");
    assert!(
        opening(&server, "")
            .await
            .contains("Authorization Violation")
    );
}

#[tokio::test]
async fn nkey_is_demanded() {
    let (key, other) = (Nkey::new(), Nkey::new());
    let options = NatsOptions::new().nkey(&key.public());
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    for (signer, expected) in [(&key, "PONG"), (&other, "-ERR 'Authorization Violation'")] {
        let (mut wire, nonce) = greeted(&server).await;
        let (public, signature) = (key.public(), signer.sign(&nonce));
        let login = format!(r#","nkey":"{public}","sig":"{signature}""#);
        assert_eq!(wire.nats_opening(&login).await, expected);
    }
}

#[tokio::test]
async fn permissions_are_kept() {
    let users = r#"users: [ { user: w, password: p, permissions: {
        publish: ["allowed.>"], subscribe: ["_INBOX.>"] } } ]"#;
    let options = NatsOptions::new().authorization(users);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let (mut wire, _) = greeted(&server).await;
    assert_eq!(wire.nats_opening(r#","user":"w","pass":"p""#).await, "PONG");
    let answer = wire.nats_request("$JS.API.INFO", "").await;
    assert!(
        answer.contains("Permissions Violation for Publish"),
        "{answer}"
    );
}

/// What a client makes of a credentials file: its token and a signature.
fn login(credentials: &str, nonce: &str) -> String {
    let lines: Vec<_> = credentials.lines().collect();
    let pair = nkeys::KeyPair::from_seed(lines[5]).unwrap();
    let signature = pair.sign(nonce.as_bytes()).unwrap();
    let signature = data_encoding::BASE64URL_NOPAD.encode(&signature);
    format!(r#","jwt":"{}","sig":"{signature}""#, lines[1])
}

#[tokio::test]
async fn credentials_are_demanded_and_have_jetstream() {
    let operator = NatsOperator::new();
    let options = NatsOptions::new().operator(&operator);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    assert!(
        opening(&server, "")
            .await
            .contains("Authorization Violation")
    );

    let credentials = std::fs::read_to_string(operator.user("worker")).unwrap();
    let (mut wire, nonce) = greeted(&server).await;
    assert_eq!(
        wire.nats_opening(&login(&credentials, &nonce)).await,
        "PONG"
    );
    let stream = r#"{"name":"S","subjects":["s.*"],"storage":"file","num_replicas":1}"#;
    let created = wire.nats_request("$JS.API.STREAM.CREATE.S", stream).await;
    assert!(created.contains("\"created\""), "{created}");

    let stranger = NatsOperator::new().user("worker");
    assert!(!stranger.exists(), "removed with its operator");
    let of_another = NatsOperator::new();
    let stranger = std::fs::read_to_string(of_another.user("worker")).unwrap();
    let (mut wire, nonce) = greeted(&server).await;
    let answer = wire.nats_opening(&login(&stranger, &nonce)).await;
    assert!(answer.contains("Authorization Violation"), "{answer}");
}

#[tokio::test]
async fn credentials_may_be_limited_to_subjects() {
    let operator = NatsOperator::new();
    let options = NatsOptions::new().operator(&operator);
    let server = NatsServer::start(NatsVersion::Lowest, options).await;
    let file = operator.user_with("reader", &["allowed.>"], &["_INBOX.>"]);
    let credentials = std::fs::read_to_string(file).unwrap();
    let (mut wire, nonce) = greeted(&server).await;
    assert_eq!(
        wire.nats_opening(&login(&credentials, &nonce)).await,
        "PONG"
    );
    let answer = wire.nats_request("$JS.API.INFO", "").await;
    assert!(
        answer.contains("Permissions Violation for Publish"),
        "{answer}"
    );
}
