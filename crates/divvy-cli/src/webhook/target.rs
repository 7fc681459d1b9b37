//! Where webhooks go: one request on one connection, and whether it was
//! accepted. Redirects are not followed, and bodies of answers not read.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use axum::http::uri::{PathAndQuery, Scheme};
use axum::http::{Method, Request, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::{authorization, place};
use super::signature::HEADER;
use crate::failure::{Failure, plain};

/// Largest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Answers below 500 that may be another one later.
const PASSING: [StatusCode; 3] = [
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_EARLY,
    StatusCode::TOO_MANY_REQUESTS,
];

/// What became of a request.
pub(super) enum Answered {
    /// It was accepted: an answer of 200 to 299.
    Accepted,
    /// It was refused, and will be.
    Refused(String),
    /// Nobody has heard it.
    Unheard(String),
    /// It may have been accepted.
    Unclear(String),
}

/// A service that takes webhooks.
pub(super) struct Target {
    host: String,
    port: u16,
    /// Host and port, as they are written.
    authority: HeaderValue,
    /// Who logs in there.
    authorization: Option<HeaderValue>,
    path: PathAndQuery,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        // What is wrong may be a secret.
        let refused = |rule: &str| Failure::Usage(format!("webhook: {rule}"));
        let form = "must be an address such as https://host:port/path";
        let uri: Uri = text.parse().map_err(|_error| refused(form))?;
        let authority = uri.authority().ok_or_else(|| refused(form))?;
        let is_secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(refused("must begin with http:// or https://")),
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let path = uri.path_and_query().cloned();
        let tls = match is_secure {
            true => {
                let named = ServerName::try_from(host.clone());
                let rule = "has a host that is no name or address";
                Some((connector(), named.map_err(|_error| refused(rule))?))
            }
            false => None,
        };
        let place = HeaderValue::from_str(place(authority));
        Ok(Self {
            host,
            authorization: authorization(authority),
            port: uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            authority: place.map_err(|_error| refused(form))?,
            path: path.unwrap_or_else(|| PathAndQuery::from_static("/")),
            tls,
        })
    }

    /// Sends a body. Dropping the future ends the connection; `is_written` says
    /// then whether the service may have heard it.
    pub(super) async fn post(
        &self,
        body: String,
        signature: &str,
        is_written: &AtomicBool,
    ) -> Answered {
        let address = (self.host.as_str(), self.port);
        let stream = match TcpStream::connect(address).await {
            Ok(stream) => stream,
            Err(error) => return Answered::Unheard(plain(&error)),
        };
        match &self.tls {
            None => self.post_over(stream, body, signature, is_written).await,
            Some((connector, name)) => match connector.connect(name.clone(), stream).await {
                Ok(stream) => self.post_over(stream, body, signature, is_written).await,
                Err(error) => Answered::Unheard(format!("TLS: {error}")),
            },
        }
    }

    async fn post_over<S>(
        &self,
        stream: S,
        body: String,
        signature: &str,
        is_written: &AtomicBool,
    ) -> Answered
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut client = http1::Builder::new();
        client.max_buf_size(HEAD_BYTES_MAX);
        let (mut sender, connection) = match client.handshake(TokioIo::new(stream)).await {
            Ok(opened) => opened,
            Err(error) => return Answered::Unheard(error.to_string()),
        };
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.path.as_str())
            .header(HOST, self.authority.clone())
            .header(USER_AGENT, concat!("divvy/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .header(HEADER, signature);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let request = request.body(Body::from(body));
        let request = request.expect("what it is made of was checked");
        is_written.store(true, Ordering::Relaxed);
        let answer = sender.send_request(request);
        tokio::pin!(answer);
        let answer = tokio::select! {
            answer = &mut answer => answer,
            // With its last words, which may be the answer.
            _ended = connection => answer.await,
        };
        match answer {
            Ok(answer) => judged(answer.status()),
            Err(error) => Answered::Unclear(told(&error)),
        }
    }
}

/// A client that trusts whom the system trusts.
fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

fn told(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

fn judged(status: StatusCode) -> Answered {
    let told = format!("the answer was {}", status.as_u16());
    match status {
        status if status.is_success() => Answered::Accepted,
        status if status.is_redirection() => {
            Answered::Refused(format!("{told}, and redirects are not followed"))
        }
        status if status.is_client_error() && !PASSING.contains(&status) => Answered::Refused(told),
        _ => Answered::Unclear(told),
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A path may hold what nobody else should know.
        write!(f, "{}:{}", self.host, self.port)
    }
}
