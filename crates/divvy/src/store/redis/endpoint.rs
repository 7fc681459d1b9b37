//! Where a server is, who we are to it, and a connection to it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use ::redis::{AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo};
use divvy_core::Invalid;
use divvy_core::store::StoreError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, Error as TlsError};

use super::{failure, tls};
use crate::store::secret::Secret;
use crate::store::settings::{Credentials, StoreSettings};
use crate::store::url::StoreUrl;

const PORT: u16 = 6379;
/// How long an address of a name is tried alone before the next one is tried
/// beside it, as in RFC 8305.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);
/// Most databases of a server that anybody has asked for.
const DATABASE_MAX: u32 = 65_535;

/// A server, as an address and settings name it.
pub(super) struct Endpoint {
    place: Place,
    database: u32,
    user: Option<String>,
    password: Option<Secret>,
    shown: String,
}

enum Place {
    Tcp {
        host: String,
        port: u16,
        tls: Option<(ServerName<'static>, Arc<ClientConfig>)>,
    },
    Socket(PathBuf),
}

/// A connection that is logged in.
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    /// What carries it, and ends when it has ended.
    pub(super) driver: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// How many bytes have come from the server.
    pub(super) heard: Arc<AtomicU64>,
}

/// A stream that counts what comes in.
struct Counted {
    stream: Box<dyn Duplex>,
    heard: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        self.heard.fetch_add(count as u64, Ordering::Release);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.shown).finish()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Endpoint {
    /// Reads address, secrets and certificates.
    pub(super) fn new(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, StoreError> {
        let address = &url.addresses()[0];
        let refused = |rule: &str| StoreError::from(Invalid::new("store", address, rule));
        let parsed = ::url::Url::parse(address).map_err(|_error| refused("is not an address"))?;
        let is_socket = parsed.scheme() == "redis+unix";
        let database = database(&parsed, is_socket).ok_or_else(|| {
            let rule = format!(
                "must name its database by a number up to {DATABASE_MAX}, as in {}",
                if is_socket { "?db=2" } else { "/2" }
            );
            refused(&rule)
        })?;
        let wants_tls = settings.tls.ca_file.is_some() || settings.tls.cert_file.is_some();
        if !url.tls() && (settings.tls.required || wants_tls) {
            return Err(refused("is not encrypted, but tls is set: use rediss://"));
        }
        let place = if is_socket {
            let path = percent_encoding::percent_decode_str(parsed.path()).decode_utf8();
            let path = path.map_err(|_error| refused("has a path that is not UTF-8"))?;
            Place::Socket(PathBuf::from(path.as_ref()))
        } else {
            let host = parsed.host_str().unwrap_or_default();
            let host = host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned();
            let tls = match url.tls() {
                true => {
                    let name = ServerName::try_from(host.clone())
                        .map_err(|_error| refused("has a host that no certificate can name"))?;
                    Some((name, tls::client_config(&settings.tls)?))
                }
                false => None,
            };
            let port = parsed.port().unwrap_or(PORT);
            Place::Tcp { host, port, tls }
        };
        let (user, password) = login(url, &settings.credentials)?;
        Ok(Self {
            place,
            database,
            user,
            password,
            shown: address.clone(),
        })
    }

    pub(super) const fn database(&self) -> u32 {
        self.database
    }

    /// Who logs in.
    pub(super) fn user(&self) -> &str {
        self.user.as_deref().unwrap_or("default")
    }

    /// Connects and logs in. What the server sends unasked goes to `pushes`.
    pub(super) async fn connect(
        &self,
        pushes: Option<Arc<dyn AsyncPushSender>>,
    ) -> Result<Connected, StoreError> {
        let stream = self.stream().await.map_err(|error| self.place_it(&error))?;
        let heard = Arc::new(AtomicU64::new(0));
        let stream = Counted {
            stream,
            heard: Arc::clone(&heard),
        };
        let mut info = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_db(i64::from(self.database))
            .set_skip_set_lib_name();
        if let Some(user) = &self.user {
            // A user without a password is one that needs none.
            info = info.set_username(user).set_password("");
        }
        if let Some(password) = &self.password {
            info = info.set_password(password.reveal());
        }
        // Whoever asks bounds the time.
        let mut config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None);
        if let Some(pushes) = pushes {
            config = config.set_push_sender(pushes);
        }
        match MultiplexedConnection::new_with_config(&info, stream, config).await {
            Ok((connection, driver)) => Ok(Connected {
                connection,
                driver: Box::pin(driver),
                heard,
            }),
            Err(error) => Err(self.place_it(&failure::of_setup(&error))),
        }
    }

    async fn stream(&self) -> Result<Box<dyn Duplex>, StoreError> {
        match &self.place {
            Place::Socket(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(unreached(&error)),
            },
            Place::Tcp { host, port, tls } => {
                let resolved = lookup_host((host.as_str(), *port)).await;
                let addresses = resolved.map_err(|error| unreached(&error))?;
                let connected = connect_any(addresses.collect()).await;
                let stream = connected.map_err(|error| unreached(&error))?;
                // A delayed renewal costs more than a small packet.
                stream
                    .set_nodelay(true)
                    .map_err(|error| unreached(&error))?;
                let Some((name, config)) = tls else {
                    return Ok(Box::new(stream));
                };
                let connector = TlsConnector::from(Arc::clone(config));
                match connector.connect(name.clone(), stream).await {
                    Ok(stream) => Ok(Box::new(stream)),
                    Err(error) => Err(untrusted(&error)),
                }
            }
        }
    }

    /// The error of a connection that nobody answers.
    pub(super) fn unanswered(&self) -> StoreError {
        let hint = match &self.place {
            Place::Tcp { tls: Some(_), .. } => "; does it speak TLS on this port?",
            _ => "",
        };
        StoreError::unavailable(format_args!(
            "{}: no answer to the connection{hint}",
            self.shown
        ))
    }

    /// The same error, with the address in front.
    pub(super) fn place_it(&self, error: &StoreError) -> StoreError {
        StoreError::new(error.kind(), format_args!("{}: {error}", self.shown))
    }
}

/// The first connection that stands to one of these addresses. One that nobody
/// answers at does not use up the time of the others.
async fn connect_any(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut tries = JoinSet::new();
    let mut addresses = addresses.into_iter();
    loop {
        let next = addresses.next();
        let is_next = next.is_some();
        if let Some(address) = next {
            tries.spawn(TcpStream::connect(address));
        }
        let ended = if is_next {
            timeout(NEXT_ADDRESS_AFTER, tries.join_next()).await
        } else {
            Ok(tries.join_next().await)
        };
        match ended {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(error)))) => last = error,
            Ok(Some(Err(panicked))) => last = io::Error::other(panicked),
            Ok(None) => return Err(last),
            // It goes on beside the next one.
            Err(_elapsed) => {}
        }
    }
}

/// The number of the database, 0 unless named.
fn database(address: &::url::Url, is_socket: bool) -> Option<u32> {
    let named = if is_socket {
        let mut pairs = address.query_pairs();
        match (pairs.next(), pairs.next()) {
            (None, _) => return Some(0),
            (Some((name, number)), None) if name == "db" => number.into_owned(),
            _ => return None,
        }
    } else if address.query().is_some() {
        return None;
    } else {
        match address.path().trim_start_matches('/') {
            "" => return Some(0),
            number => number.to_owned(),
        }
    };
    let number: u32 = named.parse().ok()?;
    (number <= DATABASE_MAX).then_some(number)
}

/// The settings' login, else the one in the address.
fn login(
    url: &StoreUrl,
    credentials: &Credentials,
) -> Result<(Option<String>, Option<Secret>), StoreError> {
    let foreign = [
        ("credentials.token", &credentials.token),
        ("credentials.nkey_seed", &credentials.nkey_seed),
        ("credentials.creds", &credentials.creds),
    ];
    for (field, given) in foreign {
        if given.is_some() {
            return Err(Invalid::new(field, "***", "is for NATS, not for Redis").into());
        }
    }
    let (url_user, url_password) = url.login();
    let given = credentials.password.as_ref();
    let password = match given.map(|source| source.read("credentials.password")) {
        Some(read) => Some(read?),
        None => url_password.cloned(),
    };
    let user = credentials.user.as_deref().or(url_user);
    Ok((user.map(str::to_owned), password))
}

fn unreached(error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => StoreError::unfit("permission denied by this system"),
        _ => StoreError::unavailable(format_args!("cannot be reached: {error}")),
    }
}

fn untrusted(error: &io::Error) -> StoreError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(TlsError::InvalidCertificate(why)) => StoreError::unfit(format_args!(
            "the server's certificate is not accepted: {why}"
        )),
        Some(TlsError::InvalidMessage(_)) => {
            StoreError::unfit("the server does not speak TLS: is it the right port?")
        }
        Some(why) => StoreError::unfit(format_args!("tls failed: {why}")),
        None => StoreError::unavailable(format_args!("tls failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// An address that answers nobody: its queue is full, and nobody accepts.
    async fn black_hole() -> (TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let mut queued = Vec::new();
        loop {
            let connecting = TcpStream::connect(listener.local_addr().unwrap());
            match timeout(Duration::from_millis(500), connecting).await {
                Ok(connected) => queued.push(connected.unwrap()),
                Err(_elapsed) => return (listener, queued),
            }
        }
    }

    #[tokio::test]
    async fn an_address_that_nobody_answers_at_does_not_keep_from_the_next_one() {
        let (hole, _queued) = black_hole().await;
        let good = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refused = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let [hole, good, closed] = [&hole, &good, &refused].map(|it| it.local_addr().unwrap());
        drop(refused);
        // A silent address keeps its first try for minutes.
        for addresses in [
            vec![hole, good],
            vec![closed, hole, good],
            vec![hole, closed, good],
        ] {
            let connected = timeout(Duration::from_secs(20), connect_any(addresses)).await;
            let stream = connected.expect("the next one is tried").unwrap();
            assert_eq!(stream.peer_addr().unwrap(), good);
        }
        let error = connect_any(vec![closed]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = connect_any(Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
