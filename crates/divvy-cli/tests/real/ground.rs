//! Real stores to play on, and what is left there.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use divvy::store::{
    Expected, Key, KeyValue, Outcome, Prefix, StoreSettings, StoreUrl, open_key_value, open_leases,
};
pub(crate) use divvy_testbed::ClusterKind as Kind;
use divvy_testbed::{StoreServer, at_once};
use tempfile::TempDir;

pub(crate) struct Ground {
    pub(crate) kind: Kind,
    pub(crate) address: String,
    directory: TempDir,
    server: StoreServer,
}

/// Runs a test on these stores, on all at once.
pub(crate) fn on(kinds: &[Kind], scenario: impl AsyncFn(Ground) + Copy + Send + 'static) {
    at_once(kinds, async move |kind| {
        scenario(Ground::new(kind).await).await;
    });
}

impl Ground {
    async fn new(kind: Kind) -> Self {
        let directory = TempDir::new().unwrap();
        let server = StoreServer::start(kind).await;
        Self {
            kind,
            address: server.address(&directory.path().join("play.db")),
            directory,
            server,
        }
    }

    pub(crate) fn divvy(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("divvy"));
        command.current_dir(self.directory.path());
        command
    }

    /// A playground of this mode on this store.
    pub(crate) fn playground(&self) -> Command {
        let mut command = self.divvy();
        command.args(["playground", "--store", &self.address]);
        command.args(["--mode", self.kind.mode(), "--interval", "100ms"]);
        command
    }

    fn url(&self) -> StoreUrl {
        self.address.parse().unwrap()
    }

    async fn keys_of(&self, cluster: &str) -> Arc<dyn KeyValue> {
        let settings = settings(cluster);
        open_key_value(&self.url(), &settings).await.unwrap()
    }

    const fn has_leases(&self) -> bool {
        !matches!(self.server, StoreServer::Nats(_))
    }

    /// Somebody has written something to a cluster.
    pub(crate) async fn write_to(&self, cluster: &str) {
        let store = self.keys_of(cluster).await;
        let key = Key::new(["something"]).unwrap();
        let written = store.compare_and_set(&key, Expected::Absent, b"1");
        assert!(matches!(written.await.unwrap(), Outcome::Done(_)));
        if self.has_leases() {
            let leases = open_leases(&self.url(), &settings(cluster)).await.unwrap();
            assert!(leases.set_wishes(None, "{}").await.unwrap());
            assert!(leases.log_moves(&["a move".to_owned()]).await.is_ok());
        }
    }

    /// How many keys, wishes, moves and members a cluster has in the store.
    pub(crate) async fn count(&self, cluster: &str) -> usize {
        let store = self.keys_of(cluster).await;
        let mut count = store.list(&Prefix::ALL).await.unwrap().len();
        if self.has_leases() {
            let leases = open_leases(&self.url(), &settings(cluster)).await.unwrap();
            count += usize::from(leases.wishes().await.unwrap().is_some());
            count += leases.moves().await.unwrap().len();
            count += leases.members().await.unwrap().len();
        }
        count
    }

    /// All keys of a Redis, whoever wrote them; nothing of other stores.
    pub(crate) fn all_keys(&self) -> Vec<String> {
        let StoreServer::Redis(server) = &self.server else {
            return Vec::new();
        };
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"KEYS *\r\nQUIT\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        // The quarantine is of the whole server, not of a cluster: it stays.
        let lines = answer
            .lines()
            .filter(|line| !line.starts_with(['*', '$', '+']) && *line != "divvy:quarantine");
        lines.map(str::to_owned).collect()
    }
}

fn settings(cluster: &str) -> StoreSettings {
    StoreSettings {
        cluster: cluster.to_owned(),
        ..StoreSettings::default()
    }
}
