//! What a server says of itself, and whether it will do.

use ::redis::aio::MultiplexedConnection;
use ::redis::{Pipeline, ServerError, Value};
use divvy_core::store::StoreError;

use super::{failure, reply};

/// The oldest version that has what the scripts use.
const VERSION_MIN: (u32, u32) = (6, 2);

/// A server, as it described itself when a connection was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Server {
    /// `redis 7.0.15` or `valkey 9.1.2`.
    pub(super) title: String,
    /// Changes with every start of the server.
    pub(super) run_id: String,
    version: Option<(u32, u32)>,
    mode: String,
    cluster: bool,
    replica: bool,
    loading: bool,
    eviction: String,
    append_only: bool,
    /// The points of time at which it saves, if it may be asked.
    snapshots: Option<String>,
}

impl Server {
    /// Asks the server. The answers come from five sections, because servers
    /// before 7.0 give one at a time.
    pub(super) async fn ask(connection: &mut MultiplexedConnection) -> Result<Self, StoreError> {
        let mut pipeline = Pipeline::new();
        for section in ["server", "cluster", "replication", "memory", "persistence"] {
            pipeline.cmd("INFO").arg(section);
        }
        pipeline.cmd("CONFIG").arg("GET").arg("save");
        let count = pipeline.len();
        let mut replies = connection
            .send_packed_commands(&pipeline, 0, count)
            .await
            .map_err(|error| StoreError::unavailable(failure::of_loss(&error)))?;
        let saves = replies.pop().unwrap_or(Value::Nil);
        let mut text = String::new();
        for section in &replies {
            match section {
                Value::ServerError(error) => return Err(not_told(error)),
                told => text.push_str(&reply::text(told).unwrap_or_default()),
            }
            text.push('\n');
        }
        let mut server = Self::read(&text);
        server.snapshots = snapshots(&saves);
        Ok(server)
    }

    /// Reads the text of INFO.
    fn read(text: &str) -> Self {
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        let is = |name: &str, value: &str| field(name) == Some(value);
        let redis = field("redis_version").unwrap_or_default();
        let title = match field("valkey_version") {
            Some(version) => format!("valkey {version}"),
            None => format!("redis {redis}"),
        };
        Self {
            title,
            run_id: field("run_id").unwrap_or_default().to_owned(),
            version: version(redis),
            mode: field("redis_mode").unwrap_or_default().to_owned(),
            cluster: is("cluster_enabled", "1"),
            replica: is("role", "slave") || is("role", "replica"),
            loading: is("loading", "1"),
            eviction: field("maxmemory_policy").unwrap_or_default().to_owned(),
            append_only: is("aof_enabled", "1"),
            snapshots: None,
        }
    }

    /// Whether it will do as it is.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let unfit = |why: String| Err(StoreError::unfit(why));
        let title = &self.title;
        let Some(version) = self.version.filter(|_| !self.run_id.is_empty()) else {
            return unfit("the server does not say that it is a Redis or Valkey server".to_owned());
        };
        if version < VERSION_MIN {
            let (major, minor) = VERSION_MIN;
            return unfit(format!(
                "{title} is too old: {major}.{minor} or newer is needed"
            ));
        }
        if self.mode == "sentinel" {
            return unfit(format!(
                "{title} is a sentinel, not a store: name the primary"
            ));
        }
        if self.cluster {
            return unfit(format!(
                "{title} is a Redis Cluster (cluster_enabled), which is not supported: use one \
                 server"
            ));
        }
        if self.eviction != "noeviction" {
            return unfit(format!(
                "maxmemory-policy '{}' would let the server drop leases and records: it must be \
                 noeviction",
                self.eviction
            ));
        }
        if self.loading {
            return Err(StoreError::unavailable("the server is loading its data"));
        }
        Ok(())
    }

    /// Whether it takes writes.
    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        match self.replica {
            true => Err(StoreError::unfit(
                "the server is a read-only replica: name the primary",
            )),
            false => Ok(()),
        }
    }

    /// Says so if everything is lost with the server's process.
    pub(super) fn warn_of_forgetting(&self) {
        if self.append_only {
            return;
        }
        match self.snapshots.as_deref() {
            Some("") => tracing::warn!(
                server = self.title,
                "the server saves nothing (no append-only file, no snapshots): a restart loses \
                 everything"
            ),
            Some(_) => {}
            None => tracing::warn!(
                server = self.title,
                "the server has no append-only file, and may not be asked for snapshots: a \
                 restart may lose everything"
            ),
        }
    }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The value of `save`, which comes beside its name.
fn snapshots(reply: &Value) -> Option<String> {
    match reply {
        Value::Map(pairs) => reply::text(&pairs.first()?.1),
        Value::Array(pair) => reply::text(pair.get(1)?),
        _ => None,
    }
}

fn not_told(error: &ServerError) -> StoreError {
    match failure::code(error) {
        "NOPERM" => StoreError::unfit(
            "the server's access rules forbid INFO, which this store needs, see the templates in \
             docs/operating.md",
        ),
        _ => failure::refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use divvy_core::store::StoreErrorKind;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\
        run_id:0123456789012345678901234567890123456789\r\n\n# Cluster\r\ncluster_enabled:0\r\n\n\
        # Replication\r\nrole:master\r\n\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\n\
        loading:0\r\naof_enabled:0\r\n";

    fn refusal(changed: &str, to: &str) -> (StoreErrorKind, String) {
        let text = GOOD.replace(changed, to);
        assert_ne!(text, GOOD);
        let error = Server::read(&text).check().unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn a_good_server_will_do_and_says_its_name() {
        let server = Server::read(GOOD);
        server.check().unwrap();
        server.check_writable().unwrap();
        assert_eq!(server.title, "redis 7.0.15");
        let valkey = GOOD.replace(
            "7.0.15",
            "7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2",
        );
        let valkey = Server::read(&valkey);
        valkey.check().unwrap();
        assert_eq!(valkey.title, "valkey 9.1.2");
    }

    #[test]
    fn an_unfit_server_is_refused_by_what_is_wrong_with_it() {
        for (changed, to, said) in [
            ("7.0.15", "6.0.16", "redis 6.0.16 is too old: 6.2"),
            ("7.0.15", "5.0", "too old"),
            ("redis_version:7.0.15", "nats_version:2", "does not say"),
            ("standalone", "sentinel", "sentinel"),
            ("cluster_enabled:0", "cluster_enabled:1", "Redis Cluster"),
            ("noeviction", "volatile-lru", "'volatile-lru'"),
        ] {
            let (kind, message) = refusal(changed, to);
            assert_eq!(kind, StoreErrorKind::Unfit, "{message}");
            assert!(message.contains(said), "{message}");
        }
        let (kind, _) = refusal("loading:0", "loading:1");
        assert_eq!(kind, StoreErrorKind::Unavailable);
        let replica = Server::read(&GOOD.replace("master", "slave"));
        replica.check().unwrap();
        assert!(replica.check_writable().is_err());
    }
}
