//! Secrets that must appear nowhere.

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use divvy::store::{Credentials, KeyValue, Prefix, Secret, SecretSource, Store, StoreSettings};
use divvy_testbed::{NatsOperator, NatsOptions, NatsServer, NatsVersion, Nkey, until};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use crate::bed::{SOON, create, key, refusal, settings, try_open};

const CANARY: &str = "canary-4711";

/// Everything that is logged, of whatever level and crate.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// From now on on this thread, where a test's tasks run, too.
    fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(log.clone())
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        (log, guard)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// One way to log in, with what must not be shown.
struct Login {
    options: NatsOptions,
    url_login: String,
    credentials: Credentials,
    secrets: Vec<String>,
}

fn given(secret: &str) -> Option<SecretSource> {
    Some(SecretSource::Given(Secret::new(secret)))
}

fn logins(operator: &NatsOperator) -> Vec<Login> {
    let nkey = Nkey::new();
    let creds = std::fs::read_to_string(operator.user("ada")).unwrap();
    let creds_secrets = creds
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('-'));
    let creds_secrets = creds_secrets.map(str::to_owned).collect();
    let password = NatsOptions::new().user("ada", CANARY);
    let token = NatsOptions::new().token(CANARY);
    let none = Credentials::default;
    let login = |options: &NatsOptions, url_login: &str, credentials, secrets| Login {
        options: options.clone(),
        url_login: url_login.to_owned(),
        credentials,
        secrets,
    };
    let canary = || vec![CANARY.to_owned()];
    vec![
        login(&password, &format!("ada:{CANARY}@"), none(), canary()),
        login(&token, &format!("{CANARY}@"), none(), canary()),
        login(
            &password,
            "",
            Credentials {
                user: Some("ada".to_owned()),
                password: given(CANARY),
                ..none()
            },
            canary(),
        ),
        login(
            &token,
            "",
            Credentials {
                token: given(CANARY),
                ..none()
            },
            canary(),
        ),
        login(
            &NatsOptions::new().nkey(&nkey.public()),
            "",
            Credentials {
                nkey_seed: given(&nkey.seed()),
                ..none()
            },
            vec![nkey.seed()],
        ),
        login(
            &NatsOptions::new().operator(operator),
            "",
            Credentials {
                creds: given(&creds),
                ..none()
            },
            creds_secrets,
        ),
    ]
}

/// Uses a store in every way, and gives all that it shows of itself.
async fn shown_in_use(login: &Login) -> String {
    let mut server = NatsServer::start(NatsVersion::Newest, login.options.clone()).await;
    let url = server
        .url()
        .replace("://", &format!("://{}", login.url_login));
    let settings = StoreSettings {
        credentials: login.credentials.clone(),
        ..settings()
    };
    let url_shown: divvy::store::StoreUrl = url.parse().unwrap();
    let store = try_open(&url, &settings).await.unwrap();
    let revision = create(&store, "a", b"1").await;
    let watch = store.watch(&Prefix::ALL).await.unwrap();
    let mut shown =
        format!("{store:?} {settings:?} {url_shown} {url_shown:?} {revision:?} {watch:?}");
    server.kill();
    let error = store.get(&key("a")).await.unwrap_err();
    shown += &format!("{error} {error:?}");
    let connection = store.connection();
    until(SOON, "the loss", async || !connection.borrow().up).await;
    shown += &format!("{:?}", connection.borrow());
    server.start_again().await;
    until(SOON, "the server again", async || {
        store.get(&key("a")).await.is_ok()
    })
    .await;
    // As somebody whom the server does not let in.
    let strict = NatsOptions::new().user("eve", "other");
    let strict = NatsServer::start(NatsVersion::Newest, strict).await;
    let url = strict
        .url()
        .replace("://", &format!("://{}", login.url_login));
    let error = refusal(&url, &settings).await;
    shown += &format!("{error} {error:?}");
    // And as the last words of a program that ends with all of that at hand.
    let last = || panic!("{url_shown:?} {settings:?} {error:?}");
    let caught: Result<(), _> = std::panic::catch_unwind(AssertUnwindSafe(last));
    shown + &*caught.unwrap_err().downcast::<String>().unwrap()
}

#[tokio::test]
async fn no_secret_appears_in_any_log_error_or_description() {
    let (log, _guard) = Log::start();
    let operator = NatsOperator::new();
    let mut checked = 0;
    for login in logins(&operator) {
        let shown = shown_in_use(&login).await;
        let logged = log.text();
        assert!(
            logged.contains("async_nats") && logged.contains("divvy"),
            "{logged}"
        );
        for secret in &login.secrets {
            assert!(secret.len() > 8);
            assert!(!shown.contains(secret), "shown: {shown}");
            let place = logged.find(secret.as_str());
            let around = place.map(|at| &logged[at.saturating_sub(300)..at]);
            assert!(place.is_none(), "logged after: {around:?}");
            checked += 1;
        }
    }
    assert!(checked >= 7, "{checked}");
}
