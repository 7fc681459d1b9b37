//! Every way to log in, and what happens when it is wrong.

use divvy::store::{Credentials, Secret, SecretSource, StoreErrorKind, StoreSettings};
use divvy_testbed::{NatsOperator, NatsOptions, NatsServer, NatsVersion, Nkey, Server};

use crate::bed::{assert_refused, create, refusal, settings, try_open, value};

fn given(secret: &str) -> Option<SecretSource> {
    Some(SecretSource::Given(Secret::new(secret)))
}

fn logged_in(credentials: Credentials) -> StoreSettings {
    StoreSettings {
        credentials,
        ..settings()
    }
}

fn with_login(server: &Server, login: &str) -> String {
    server.url().replace("://", &format!("://{login}@"))
}

async fn start(options: NatsOptions) -> NatsServer {
    NatsServer::start(NatsVersion::Newest, options).await
}

async fn assert_let_in(url: &str, settings: &StoreSettings) {
    let store = try_open(url, settings).await.unwrap();
    if value(&store, "a").await.is_none() {
        create(&store, "a", b"1").await;
    }
}

async fn assert_kept_out(url: &str, settings: &StoreSettings) {
    let error = refusal(url, settings).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["refuses these credentials"],
    );
}

#[tokio::test]
async fn a_user_and_password_from_settings_or_address_let_in() {
    let server = start(NatsOptions::new().user("ada", "p@ss")).await;
    let ada = |password| {
        logged_in(Credentials {
            user: Some("ada".to_owned()),
            password: given(password),
            ..Credentials::default()
        })
    };
    assert_let_in(&server.url(), &ada("p@ss")).await;
    assert_let_in(&with_login(&server, "ada:p%40ss"), &settings()).await;
    assert_kept_out(&server.url(), &ada("wrong")).await;
    assert_kept_out(&with_login(&server, "ada:wrong"), &settings()).await;
    assert_kept_out(&server.url(), &settings()).await;
}

#[tokio::test]
async fn a_token_from_settings_or_address_lets_in() {
    let server = start(NatsOptions::new().token("t0ken")).await;
    let token = |token| {
        logged_in(Credentials {
            token: given(token),
            ..Credentials::default()
        })
    };
    assert_let_in(&server.url(), &token("t0ken")).await;
    assert_let_in(&with_login(&server, "t0ken"), &settings()).await;
    assert_kept_out(&server.url(), &token("wrong")).await;
}

#[tokio::test]
async fn an_nkey_lets_in() {
    let (right, wrong) = (Nkey::new(), Nkey::new());
    let server = start(NatsOptions::new().nkey(&right.public())).await;
    let nkey = |seed: &str| {
        logged_in(Credentials {
            nkey_seed: given(seed),
            ..Credentials::default()
        })
    };
    assert_let_in(&server.url(), &nkey(&right.seed())).await;
    assert_kept_out(&server.url(), &nkey(&wrong.seed())).await;
}

#[tokio::test]
async fn a_creds_file_lets_in() {
    let (right, wrong) = (NatsOperator::new(), NatsOperator::new());
    let server = start(NatsOptions::new().operator(&right)).await;
    let creds = |source| {
        logged_in(Credentials {
            creds: Some(source),
            ..Credentials::default()
        })
    };
    let file = right.user("ada");
    assert_let_in(&server.url(), &creds(SecretSource::File(file.clone()))).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert_let_in(
        &server.url(),
        &creds(SecretSource::Given(Secret::new(text))),
    )
    .await;
    assert_kept_out(&server.url(), &creds(SecretSource::File(wrong.user("eve")))).await;
}
