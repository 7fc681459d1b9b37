//! What a NATS server is started with.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::certificates::Identity;
use crate::nats_operator::NatsOperator;

/// Of JetStream's storage, unless a test wants less: more than any test writes.
const STORAGE_BYTES: u64 = 1 << 30;

/// The configuration of a [`NatsServer`](crate::NatsServer): JetStream, and no authentication,
/// unless said otherwise.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    jetstream: bool,
    storage_bytes: u64,
    sync_always: bool,
    max_payload: Option<usize>,
    identity: Option<Identity>,
    client_authority: Option<PathBuf>,
    authorization: Option<String>,
    extra: String,
}

/// What a server must know besides: where it listens and writes, and the rest of its cluster.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) client: SocketAddr,
    pub(crate) monitor: SocketAddr,
    pub(crate) data: &'a Path,
    pub(crate) route: Option<SocketAddr>,
    /// The routes of all servers of its cluster.
    pub(crate) routes: &'a [SocketAddr],
}

impl Default for NatsOptions {
    fn default() -> Self {
        Self {
            jetstream: true,
            storage_bytes: STORAGE_BYTES,
            sync_always: false,
            max_payload: None,
            identity: None,
            client_authority: None,
            authorization: None,
            extra: String::new(),
        }
    }
}

impl NatsOptions {
    /// JetStream, and everyone may do everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts the server without JetStream.
    pub fn without_jetstream(mut self) -> Self {
        self.jetstream = false;
        self
    }

    /// The most bytes that JetStream may store: a disk that gets full.
    pub fn storage_bytes(mut self, bytes: u64) -> Self {
        self.storage_bytes = bytes;
        self
    }

    /// Has every write synced to disk before it is acknowledged; from 2.10 on.
    pub fn sync_always(mut self) -> Self {
        self.sync_always = true;
        self
    }

    /// The most bytes that a message may have; 1 MiB otherwise.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = Some(bytes);
        self
    }

    /// Demands TLS, the server showing this certificate, whose files must outlive the server.
    pub fn tls(mut self, identity: &Identity) -> Self {
        self.identity = Some(identity.clone());
        self
    }

    /// Demands of clients a certificate that this authority has signed; needs [`tls`](Self::tls).
    pub fn client_authority(mut self, certificate: &Path) -> Self {
        self.client_authority = Some(certificate.to_owned());
        self
    }

    /// Demands this name and password.
    pub fn user(self, name: &str, password: &str) -> Self {
        self.authorization(&format!("user: {name:?}, password: {password:?}"))
    }

    /// Demands this token.
    pub fn token(self, token: &str) -> Self {
        self.authorization(&format!("token: {token:?}"))
    }

    /// Demands a signature by the nkey with this public part, such as `UDXU4R…`.
    pub fn nkey(self, public: &str) -> Self {
        self.authorization(&format!("users: [ {{ nkey: {public:?} }} ]"))
    }

    /// The inside of the configuration's block `authorization`, as it is: users, permissions.
    pub fn authorization(mut self, text: &str) -> Self {
        self.authorization = Some(text.to_owned());
        self
    }

    /// Lets in only users to whom this operator's account has given credentials.
    pub fn operator(self, operator: &NatsOperator) -> Self {
        self.extra(&operator.configuration())
    }

    /// Lines that are added to the configuration as they are.
    pub fn extra(mut self, lines: &str) -> Self {
        self.extra.push_str(lines);
        self.extra.push('\n');
        self
    }

    pub(crate) fn has_jetstream(&self) -> bool {
        self.jetstream
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.identity.is_some()
    }

    /// The text of the configuration file.
    pub(crate) fn configuration(&self, around: &Surroundings<'_>) -> String {
        let mut text = format!(
            "server_name: {:?}\nlisten: \"{}\"\nhttp: \"{}\"\n",
            name(around.client),
            around.client,
            around.monitor
        );
        if self.jetstream {
            let sync = if self.sync_always {
                "sync_interval: always"
            } else {
                ""
            };
            text += &format!(
                "jetstream {{ store_dir: {:?}, max_file_store: {}, {sync} }}\n",
                around.data, self.storage_bytes
            );
        }
        if let Some(bytes) = self.max_payload {
            text += &format!("max_payload: {bytes}\n");
        }
        if let Some(authorization) = &self.authorization {
            text += &format!("authorization {{\n{authorization}\n}}\n");
        }
        self.write_tls(&mut text);
        write_cluster(&mut text, around);
        text + &self.extra
    }

    fn write_tls(&self, text: &mut String) {
        let Some(identity) = &self.identity else {
            let alone = self.client_authority.is_some();
            assert!(!alone, "clients have no certificates without TLS");
            return;
        };
        let Identity { certificate, key } = identity;
        *text += &format!("tls {{ cert_file: {certificate:?}, key_file: {key:?}");
        if let Some(authority) = &self.client_authority {
            *text += &format!(", ca_file: {authority:?}, verify: true");
        }
        *text += " }\n";
    }
}

/// The name of the server that clients reach at this address.
pub(crate) fn name(client: SocketAddr) -> String {
    format!("nats-{}", client.port())
}

fn write_cluster(text: &mut String, around: &Surroundings<'_>) {
    let Some(route) = around.route else {
        return;
    };
    let routes: Vec<_> = around
        .routes
        .iter()
        .map(|other| format!("\"nats-route://{other}\""))
        .collect();
    // Clients are not told of the other servers: that would lead them past a proxy.
    writeln!(
        text,
        "cluster {{ name: testbed, listen: \"{route}\", no_advertise: true, routes: [{}] }}",
        routes.join(", ")
    )
    .expect("a string takes all text");
}
