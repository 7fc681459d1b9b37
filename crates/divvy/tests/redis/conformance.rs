//! The suite that every store must pass.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use divvy::store::conformance::{
    self, Forgetting, Interruption, KeyValueSubject, LeaseSubject, Options, Spoilt, Vandal,
};
use divvy::store::redis::{RedisKeyValue, RedisLeases};
use divvy::store::{Key, KeyValue, Leases, StoreError, StoreSettings, StoreUrl, Tls};
use divvy_testbed::{Certificates, Proxy, RedisFlavour, RedisOptions, RedisServer, announce};

use crate::access::{KEY_VALUE_RULE, LEASE_RULE};
use crate::bed::{LONG, end_quarantine, settings, with_login};
use crate::raw::Raw;

/// A server, and clients that reach it through a proxy.
struct Subject {
    url: StoreUrl,
    url_aside: StoreUrl,
    settings: StoreSettings,
    proxy: Proxy,
    forgetful: Option<Forgetful>,
    /// Where a vandal gets in, if one can.
    socket: Option<PathBuf>,
}

/// A server that can be restarted and emptied.
struct Forgetful {
    server: tokio::sync::Mutex<RedisServer>,
    settings: StoreSettings,
}

#[async_trait::async_trait]
impl Forgetting for Forgetful {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        let settings = StoreSettings {
            cluster: cluster.to_owned(),
            restart_quarantine: true,
            ..self.settings.clone()
        };
        let url = self.server.lock().await.url().parse().unwrap();
        Ok(Arc::new(RedisLeases::open(&url, &settings).await?))
    }

    async fn restart(&self) {
        let mut server = self.server.lock().await;
        server.stop().await;
        server.start_again().await;
    }

    async fn empty(&self) {
        let server = self.server.lock().await;
        Raw::of(&server).say(&["FLUSHALL"]);
    }
}

#[async_trait::async_trait]
impl Vandal for Subject {
    async fn spoil(&self, cluster: &str, key: &Key, with: Spoilt) -> bool {
        let mut raw = Raw::at(self.socket.as_ref().unwrap());
        let stored = format!("divvy:kv:{cluster}:v:{key}");
        match with {
            Spoilt::Garbage | Spoilt::Empty => {
                raw.say_bytes(&[b"SET", stored.as_bytes(), with.bytes()]);
            }
            Spoilt::OtherType => {
                raw.say(&["DEL", &stored]);
                raw.say(&["RPUSH", &stored, "a list"]);
            }
        }
        true
    }
}

impl Subject {
    async fn of(server: &RedisServer, settings: StoreSettings) -> Self {
        let proxy = Proxy::start(server.address()).await;
        let url = server.url();
        let (scheme, _) = url.split_once("://").unwrap();
        Self {
            url: format!("{scheme}://{}", proxy.address()).parse().unwrap(),
            url_aside: url.parse().unwrap(),
            settings,
            proxy,
            forgetful: None,
            socket: None,
        }
    }

    fn settings(&self, cluster: &str) -> StoreSettings {
        StoreSettings {
            cluster: cluster.to_owned(),
            ..self.settings.clone()
        }
    }
}

#[async_trait::async_trait]
impl KeyValueSubject for Subject {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError> {
        let store = RedisKeyValue::open(&self.url, &self.settings(cluster)).await?;
        Ok(Arc::new(store))
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        Some(self)
    }

    fn vandal(&self) -> Option<&dyn Vandal> {
        self.socket.as_ref().map(|_| self as &dyn Vandal)
    }

    async fn open_aside(&self, cluster: &str) -> Result<Option<Arc<dyn KeyValue>>, StoreError> {
        let store = RedisKeyValue::open(&self.url_aside, &self.settings(cluster)).await?;
        Ok(Some(Arc::new(store)))
    }
}

#[async_trait::async_trait]
impl LeaseSubject for Subject {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        let store = RedisLeases::open(&self.url, &self.settings(cluster)).await?;
        Ok(Arc::new(store))
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        Some(self)
    }

    fn forgetting(&self) -> Option<&dyn Forgetting> {
        let forgetful = self.forgetful.as_ref();
        forgetful.map(|forgetful| forgetful as &dyn Forgetting)
    }

    async fn open_aside(&self, cluster: &str) -> Result<Option<Arc<dyn Leases>>, StoreError> {
        let store = RedisLeases::open(&self.url_aside, &self.settings(cluster)).await?;
        Ok(Some(Arc::new(store)))
    }
}

#[async_trait::async_trait]
impl Interruption for Subject {
    async fn interrupt(&self) {
        self.proxy.cut();
    }

    async fn resume(&self) {
        self.proxy.pass();
    }
}

/// Patient, for all tests share the machine with each other and with servers.
fn options() -> Options {
    Options {
        wait: LONG,
        late: Duration::from_secs(5),
        ..Options::default()
    }
}

async fn key_values_pass(subject: &Subject) {
    let report = conformance::key_value(subject, &options()).await;
    let report = report.expect("the store conforms");
    println!("{report}");
    announce(&report.summary());
}

async fn leases_pass(subject: &Subject) {
    let report = conformance::leases(subject, &options()).await;
    let report = report.expect("the store conforms");
    println!("{report}");
    announce(&report.summary());
}

async fn plain(flavour: RedisFlavour) -> (RedisServer, Subject) {
    let server = RedisServer::start(flavour, RedisOptions::new()).await;
    let mut subject = Subject::of(&server, settings()).await;
    let options = RedisOptions::new().append_only();
    subject.forgetful = Some(Forgetful {
        server: RedisServer::start(flavour, options).await.into(),
        settings: settings(),
    });
    subject.socket = Some(server.socket().clone());
    (server, subject)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_values_on_redis_pass_the_suite() {
    let (_server, subject) = plain(RedisFlavour::Redis7).await;
    key_values_pass(&subject).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_on_redis_pass_the_suite() {
    let (_server, subject) = plain(RedisFlavour::Redis7).await;
    leases_pass(&subject).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_values_on_valkey_pass_the_suite() {
    let (_server, subject) = plain(RedisFlavour::Valkey9).await;
    key_values_pass(&subject).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_on_valkey_pass_the_suite() {
    let (_server, subject) = plain(RedisFlavour::Valkey9).await;
    leases_pass(&subject).await;
}

/// The settings of a client with a certificate, a login, and no rights beyond
/// the template's.
fn guarded(certificates: &Certificates, user: &str) -> StoreSettings {
    let client = certificates.client();
    StoreSettings {
        tls: Tls {
            required: true,
            ca_file: Some(certificates.authority().to_owned()),
            cert_file: Some(client.certificate.clone()),
            key_file: Some(client.key.clone()),
        },
        ..with_login(user, "s3cret")
    }
}

async fn guarded_server(certificates: &Certificates) -> RedisServer {
    let options = RedisOptions::new()
        .tls(certificates.server())
        .client_authority(certificates.authority())
        .user("default off")
        .user(&LEASE_RULE.replace("PASSWORD", "s3cret"))
        .user(&KEY_VALUE_RULE.replace("PASSWORD", "s3cret"));
    RedisServer::start(RedisFlavour::Redis7, options).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_values_pass_encrypted_with_certificates_and_least_privilege() {
    let certificates = Certificates::new();
    let server = guarded_server(&certificates).await;
    let settings = guarded(&certificates, "divvy-records");
    key_values_pass(&Subject::of(&server, settings).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_pass_encrypted_with_certificates_and_least_privilege() {
    let certificates = Certificates::new();
    let server = guarded_server(&certificates).await;
    let settings = guarded(&certificates, "divvy-leases");
    let mut subject = Subject::of(&server, settings.clone()).await;
    // With a quarantine: its key is among those of the template.
    subject.settings.restart_quarantine = true;
    let store = RedisLeases::open(&subject.url_aside, &subject.settings).await;
    end_quarantine(&store.unwrap(), LONG).await;
    leases_pass(&subject).await;
}
