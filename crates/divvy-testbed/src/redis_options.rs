//! What a Redis or Valkey server is started with.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::certificates::Identity;

/// The configuration of a [`RedisServer`](crate::RedisServer): nothing is written to disk, and
/// there is no authentication, unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    append_only: Option<String>,
    max_memory: Option<(u64, String)>,
    identity: Option<Identity>,
    client_authority: Option<PathBuf>,
    replica_of: Option<SocketAddr>,
    users: Vec<String>,
    extra: String,
}

impl RedisOptions {
    /// Everything in memory, and everyone may do everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps its data through [`Server::start_again`](crate::Server::start_again): every write is
    /// in the append-only file before it is answered.
    pub fn append_only(self) -> Self {
        self.append_only_synced("always")
    }

    /// An append-only file that is synced `always`, `everysec` or `no`.
    pub fn append_only_synced(mut self, when: &str) -> Self {
        self.append_only = Some(when.to_owned());
        self
    }

    /// The most memory, and what happens then: `noeviction`, `allkeys-lru` and so on.
    pub fn max_memory(mut self, bytes: u64, policy: &str) -> Self {
        self.max_memory = Some((bytes, policy.to_owned()));
        self
    }

    /// Demands TLS on the port, the server showing this certificate, whose files must outlive the
    /// server. Not every flavour [can](crate::RedisFlavour::has_tls).
    pub fn tls(mut self, identity: &Identity) -> Self {
        self.identity = Some(identity.clone());
        self
    }

    /// Demands of clients a certificate that this authority has signed; needs [`tls`](Self::tls).
    pub fn client_authority(mut self, certificate: &Path) -> Self {
        self.client_authority = Some(certificate.to_owned());
        self
    }

    /// Adds an access rule, such as `default off` or `worker on >secret ~divvy:* +@read`.
    pub fn user(mut self, rule: &str) -> Self {
        self.users.push(rule.to_owned());
        self
    }

    /// Makes it a replica of the server at this address.
    pub fn replica_of(mut self, primary: SocketAddr) -> Self {
        self.replica_of = Some(primary);
        self
    }

    /// Lines that are added to the configuration as they are.
    pub fn extra(mut self, lines: &str) -> Self {
        self.extra.push_str(lines);
        self.extra.push('\n');
        self
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.identity.is_some()
    }

    /// The text of the configuration file.
    pub(crate) fn configuration(&self, at: SocketAddr, data: &Path, socket: &Path) -> String {
        // Without the last line, a primary waits five seconds for more replicas to serve at once.
        let mut text = format!(
            "bind {}\nunixsocket {:?}\ndir {:?}\nsave \"\"\ndaemonize no\n\
             repl-diskless-sync-delay 0\n",
            at.ip(),
            socket,
            data
        );
        if let Some(when) = &self.append_only {
            text += &format!("appendonly yes\nappendfsync {when}\n");
        }
        if let Some((bytes, policy)) = &self.max_memory {
            text += &format!("maxmemory {bytes}\nmaxmemory-policy {policy}\n");
        }
        if let Some(primary) = self.replica_of {
            text += &format!("replicaof {} {}\n", primary.ip(), primary.port());
        }
        self.write_port(&mut text, at.port());
        for rule in &self.users {
            text += &format!("user {rule}\n");
        }
        text + &self.extra
    }

    fn write_port(&self, text: &mut String, port: u16) {
        let Some(Identity { certificate, key }) = &self.identity else {
            let alone = self.client_authority.is_some();
            assert!(!alone, "clients have no certificates without TLS");
            *text += &format!("port {port}\n");
            return;
        };
        *text += &format!(
            "port 0\ntls-port {port}\ntls-cert-file {certificate:?}\ntls-key-file {key:?}\n"
        );
        *text += &match &self.client_authority {
            Some(authority) => format!("tls-ca-cert-file {authority:?}\ntls-auth-clients yes\n"),
            None => "tls-auth-clients no\n".to_owned(),
        };
    }
}
