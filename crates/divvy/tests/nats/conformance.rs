//! The suite that every store must pass.

use std::sync::Arc;

use divvy::store::conformance::{self, Interruption, KeyValueSubject, Options, Spoilt, Vandal};
use divvy::store::nats::NatsStore;
use divvy::store::{
    Credentials, Key, KeyValue, Secret, SecretSource, StoreError, StoreSettings, Tls, encode_part,
};
use divvy_testbed::{
    Certificates, NatsCluster, NatsOptions, NatsServer, NatsVersion, Proxy, announce,
};

use crate::bed::settings;
use crate::permissions::least_privilege;

/// A server, and clients that reach it through a proxy.
struct Subject {
    url: String,
    url_aside: String,
    settings: StoreSettings,
    proxy: Option<Proxy>,
    /// Whether another program can write there without a login.
    has_vandal: bool,
}

#[async_trait::async_trait]
impl KeyValueSubject for Subject {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError> {
        self.open_at(&self.url, cluster).await
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        self.proxy.as_ref().map(|_| self as &dyn Interruption)
    }

    async fn open_aside(&self, cluster: &str) -> Result<Option<Arc<dyn KeyValue>>, StoreError> {
        Ok(Some(self.open_at(&self.url_aside, cluster).await?))
    }

    fn vandal(&self) -> Option<&dyn Vandal> {
        self.has_vandal.then_some(self)
    }
}

#[async_trait::async_trait]
impl Vandal for Subject {
    async fn spoil(&self, cluster: &str, key: &Key, with: Spoilt) -> bool {
        if with == Spoilt::OtherType {
            // A message is bytes.
            return false;
        }
        let client = async_nats::connect(&self.url_aside).await.unwrap();
        let bucket = &self.settings.bucket;
        let subject = format!("$KV.{bucket}.{}.{key}", encode_part(cluster));
        let published = client.request(subject, with.bytes().into()).await.unwrap();
        let answer = String::from_utf8_lossy(&published.payload).into_owned();
        assert!(answer.contains("\"seq\""), "{answer}");
        true
    }
}

impl Subject {
    async fn open_at(&self, url: &str, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError> {
        let settings = StoreSettings {
            cluster: cluster.to_owned(),
            ..self.settings.clone()
        };
        let store = NatsStore::open(&url.parse().unwrap(), &settings).await?;
        Ok(Arc::new(store))
    }

    async fn through_proxy(server: &NatsServer, settings: StoreSettings) -> Self {
        let proxy = Proxy::start(server.address()).await;
        let scheme = server.url();
        let (scheme, _) = scheme.split_once("://").unwrap();
        Self {
            url: format!("{scheme}://{}", proxy.address()),
            url_aside: server.url(),
            settings,
            proxy: Some(proxy),
            has_vandal: false,
        }
    }
}

#[async_trait::async_trait]
impl Interruption for Subject {
    async fn interrupt(&self) {
        self.proxy.as_ref().unwrap().cut();
    }

    async fn resume(&self) {
        self.proxy.as_ref().unwrap().pass();
    }
}

async fn pass(subject: &Subject, operations: usize) {
    let options = Options {
        operations,
        ..Options::default()
    };
    let report = conformance::key_value(subject, &options).await;
    let report = report.expect("the store conforms");
    println!("{report}");
    announce(&report.summary());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lowest_server_passes_the_suite() {
    let server = NatsServer::start(NatsVersion::Lowest, NatsOptions::new()).await;
    let mut subject = Subject::through_proxy(&server, settings()).await;
    subject.has_vandal = true;
    pass(&subject, 400).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newest_server_passes_the_suite() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let mut subject = Subject::through_proxy(&server, settings()).await;
    subject.has_vandal = true;
    pass(&subject, 400).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suite_passes_encrypted_with_client_certificates_and_least_privilege() {
    let certificates = Certificates::new();
    let options = NatsOptions::new()
        .tls(certificates.server())
        .client_authority(certificates.authority())
        .extra(&least_privilege("divvy", "*", "s3cret"));
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let client = certificates.client();
    let settings = StoreSettings {
        tls: Tls {
            required: true,
            ca_file: Some(certificates.authority().to_owned()),
            cert_file: Some(client.certificate.clone()),
            key_file: Some(client.key.clone()),
        },
        credentials: Credentials {
            user: Some("divvy".to_owned()),
            password: Some(SecretSource::Given(Secret::new("s3cret"))),
            ..Credentials::default()
        },
        ..settings()
    };
    pass(&Subject::through_proxy(&server, settings).await, 200).await;
    let log = server.log();
    assert!(!log.contains("Violation"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicated_bucket_passes_the_suite() {
    let cluster = NatsCluster::start(NatsVersion::LowestReplicated, 3).await;
    let settings = StoreSettings {
        replicas: 3,
        ..settings()
    };
    let subject = Subject {
        url: cluster.url(),
        url_aside: cluster.url(),
        settings,
        proxy: None,
        has_vandal: false,
    };
    pass(&subject, 200).await;
}
