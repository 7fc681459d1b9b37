//! TLS, as a client that checks certificates sees it.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use divvy_testbed::{
    Certificates, Identity, NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions,
    RedisServer,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::wire::Wire;

/// Whom a client trusts, and who it says it is.
struct Client<'a> {
    authority: &'a Path,
    identity: Option<&'a Identity>,
}

impl<'a> Client<'a> {
    fn trusting(authority: &'a Path) -> Self {
        Self {
            authority,
            identity: None,
        }
    }

    fn known_by(self, identity: &'a Identity) -> Self {
        Self {
            identity: Some(identity),
            ..self
        }
    }

    async fn wrap(&self, stream: TcpStream) -> io::Result<Wire> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(self.authority).unwrap();
        roots.add(authority).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match self.identity {
            None => config.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let certificate = CertificateDer::from_pem_file(certificate).unwrap();
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                config
                    .with_client_auth_cert(vec![certificate], key)
                    .unwrap()
            }
        };
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Wire::over(connector.connect(name, stream).await?))
    }

    /// What a NATS server answers to this client's opening, or why there is no answer.
    async fn nats(&self, address: SocketAddr) -> io::Result<String> {
        let stream = TcpStream::connect(address).await?;
        let greeted = read_greeting(&stream).await?;
        assert!(greeted.contains("\"tls_required\":true"), "{greeted}");
        let mut wire = self.wrap(stream).await?;
        Ok(wire.nats_opening("").await)
    }

    /// What a Redis server answers to this client's ping, or why there is no answer.
    async fn redis(&self, address: SocketAddr) -> io::Result<String> {
        let stream = TcpStream::connect(address).await?;
        let mut wire = self.wrap(stream).await?;
        wire.try_send("PING\r\n").await?;
        wire.try_line().await
    }
}

/// Not a byte more than the line: what follows belongs to TLS.
async fn read_greeting(stream: &TcpStream) -> io::Result<String> {
    let mut greeting = Vec::new();
    while !greeting.ends_with(b"\n") {
        stream.readable().await?;
        let mut byte = [0];
        match stream.try_read(&mut byte) {
            Ok(0) => break,
            Ok(_) => greeting.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8(greeting).unwrap())
}

#[tokio::test]
async fn nats_demands_tls_and_shows_its_certificate() {
    let certificates = Certificates::new();
    let options = NatsOptions::new().tls(certificates.server());
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    assert!(server.url().starts_with("tls://127.0.0.1:"));

    let mut plain = Wire::connect(server.address()).await;
    assert!(plain.line().await.contains("\"tls_required\":true"));
    assert_ne!(plain.nats_opening("").await, "PONG");

    let client = Client::trusting(certificates.authority());
    let answer = client.nats(server.address()).await;
    assert_eq!(answer.unwrap(), "PONG");
    let client = Client::trusting(certificates.other_authority());
    let answer = client.nats(server.address()).await;
    assert!(answer.unwrap_err().to_string().contains("UnknownIssuer"));
}

#[tokio::test]
async fn nats_demands_a_client_certificate() {
    let certificates = Certificates::new();
    let authority = certificates.authority();
    let options = NatsOptions::new()
        .tls(certificates.server())
        .client_authority(authority);
    let server = NatsServer::start(NatsVersion::Lowest, options).await;
    let client = Client::trusting(authority).known_by(certificates.client());
    let answer = client.nats(server.address()).await;
    assert_eq!(answer.unwrap(), "PONG");
    let answer = Client::trusting(authority).nats(server.address()).await;
    assert_ne!(answer.unwrap_or_default(), "PONG");
}

#[tokio::test]
async fn expired_certificate_is_seen_as_expired() {
    let certificates = Certificates::new();
    let options = NatsOptions::new().tls(certificates.expired_server());
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let client = Client::trusting(certificates.authority());
    let answer = client.nats(server.address()).await;
    assert!(answer.unwrap_err().to_string().contains("xpired"));
}

#[tokio::test]
async fn redis_demands_tls_and_shows_its_certificate() {
    let certificates = Certificates::new();
    let options = RedisOptions::new().tls(certificates.server());
    let server = RedisServer::start(RedisFlavour::Redis7, options).await;
    assert!(server.url().starts_with("rediss://127.0.0.1:"));

    let mut plain = Wire::connect(server.address()).await;
    plain.send("PING\r\n").await;
    assert!(!plain.try_line().await.unwrap_or_default().contains("PONG"));

    let client = Client::trusting(certificates.authority());
    let answer = client.redis(server.address()).await;
    assert_eq!(answer.unwrap(), "+PONG");
    let client = Client::trusting(certificates.other_authority());
    let answer = client.redis(server.address()).await;
    assert!(answer.unwrap_err().to_string().contains("UnknownIssuer"));
}

#[tokio::test]
async fn redis_demands_a_client_certificate() {
    let certificates = Certificates::new();
    let authority = certificates.authority();
    let options = RedisOptions::new()
        .tls(certificates.server())
        .client_authority(authority);
    let server = RedisServer::start(RedisFlavour::Redis7, options).await;
    let client = Client::trusting(authority).known_by(certificates.client());
    let answer = client.redis(server.address()).await;
    assert_eq!(answer.unwrap(), "+PONG");
    let answer = Client::trusting(authority).redis(server.address()).await;
    assert_ne!(answer.unwrap_or_default(), "+PONG");
}

#[tokio::test]
#[should_panic(expected = "Valkey9 is built without TLS")]
async fn valkey_says_that_it_has_no_tls() {
    let certificates = Certificates::new();
    let options = RedisOptions::new().tls(certificates.server());
    RedisServer::start(RedisFlavour::Valkey9, options).await;
}
