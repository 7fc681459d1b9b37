//! What a server says of itself, and whether it will do.

use ::redis::aio::MultiplexedConnection;
use ::redis::{Pipeline, ServerError, Value};
use divvy_core::store::StoreError;

use super::link::Call;
use super::{failure, reply};

/// The oldest version that has what the scripts use.
pub(super) const VERSION_MIN: (u32, u32) = (6, 2);

/// What is looked at of the server's policy of eviction.
const EVICTION: &str = "eviction";
const EVICTION_REMEDY: &str = "run CONFIG SET maxmemory-policy noeviction, and put \
    'maxmemory-policy noeviction' into redis.conf, so that it stays; a cache that wants eviction \
    needs a server of its own";

/// Something about a server that does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    /// What was looked at.
    pub(super) check: &'static str,
    pub(super) why: String,
    /// What mends it.
    pub(super) remedy: &'static str,
}

/// A server, as it described itself when a connection was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Server {
    /// `redis 7.0.15` or `valkey 9.1.2`.
    pub(super) title: String,
    /// Changes with every start of the server.
    pub(super) run_id: String,
    /// The id that a promotion gave it, if it was a replica before.
    promotion: Option<String>,
    version: Option<(u32, u32)>,
    mode: String,
    cluster: bool,
    replica: bool,
    loading: bool,
    eviction: String,
    append_only: bool,
    /// The points of time at which it saves, if it may be asked.
    snapshots: Option<String>,
    /// Bytes that it uses, and that it may use; 0 is any number.
    used_memory: u64,
    max_memory: u64,
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
        let number = |name: &str| field(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        let redis = field("redis_version").unwrap_or_default();
        let title = match field("valkey_version") {
            Some(version) => format!("valkey {version}"),
            None => format!("redis {redis}"),
        };
        // As in history.lua.
        let is_promoted =
            field("master_replid2").is_some_and(|id| id.bytes().any(|digit| digit != b'0'));
        let promotion = field("master_replid").filter(|_| is_promoted);
        Self {
            title,
            promotion: promotion.map(str::to_owned),
            run_id: field("run_id").unwrap_or_default().to_owned(),
            version: version(redis),
            mode: field("redis_mode").unwrap_or_default().to_owned(),
            cluster: is("cluster_enabled", "1"),
            replica: is("role", "slave") || is("role", "replica"),
            loading: is("loading", "1"),
            eviction: field("maxmemory_policy").unwrap_or_default().to_owned(),
            append_only: is("aof_enabled", "1"),
            snapshots: None,
            used_memory: number("used_memory"),
            max_memory: number("maxmemory"),
        }
    }

    /// Which history its data has, as history.lua has it.
    pub(super) fn history(&self) -> String {
        let promotion = self.promotion.as_deref().unwrap_or_default();
        format!("{}{promotion}", self.run_id)
    }

    /// Asks the server again which history its data has.
    pub(super) async fn ask_history(call: &Call) -> Result<String, StoreError> {
        let mut text = String::new();
        for section in ["server", "replication"] {
            let mut info = ::redis::cmd("INFO");
            info.arg(section);
            let told = call.ask(info).await?;
            text += &reply::text(&told).ok_or_else(|| reply::unexpected("INFO"))?;
        }
        Ok(Self::read(&text).history())
    }

    /// Whether it will do as it is, whatever it may evict.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let misfits = self.misfits().into_iter();
        let mut misfits = misfits.filter(|misfit| misfit.check != EVICTION);
        if let Some(first) = misfits.next() {
            return Err(StoreError::unfit(first.why));
        }
        if self.loading {
            return Err(StoreError::unavailable("the server is loading its data"));
        }
        Ok(())
    }

    /// All that is wrong with it, for whoever only reads as well.
    pub(super) fn misfits(&self) -> Vec<Misfit> {
        let title = &self.title;
        let mut misfits = Vec::new();
        let mut tell = |check, why, remedy| misfits.push(Misfit { check, why, remedy });
        let Some(version) = self.version.filter(|_| !self.run_id.is_empty()) else {
            let why = "the server does not say that it is a Redis or Valkey server".to_owned();
            tell("server", why, "name a Redis or Valkey server");
            return misfits;
        };
        if version < VERSION_MIN {
            let (major, minor) = VERSION_MIN;
            let why = format!("{title} is too old: {major}.{minor} or newer is needed");
            tell("server", why, "install a newer one");
        }
        if self.mode == "sentinel" {
            let why = format!("{title} is a sentinel, not a store: name the primary");
            tell("role", why, "name the primary");
        }
        if self.cluster {
            let why = format!(
                "{title} is a Redis Cluster (cluster_enabled), which is not supported: use one \
                 server"
            );
            tell(
                "role",
                why,
                "use one server, with replicas behind its address",
            );
        }
        if let Some(why) = self.eviction_risk() {
            tell(EVICTION, why, EVICTION_REMEDY);
        }
        misfits
    }

    /// Whether it evicts nothing. A policy alone does not: without a bound on
    /// its memory a server never has to.
    pub(super) fn check_eviction(&self) -> Result<(), StoreError> {
        match self.eviction_risk() {
            Some(why) if self.max_memory > 0 => Err(StoreError::unfit(why)),
            _ => Ok(()),
        }
    }

    /// What is wrong with a policy that evicts, also where nothing can be
    /// evicted as things are.
    pub(super) fn eviction_risk(&self) -> Option<String> {
        let policy = &self.eviction;
        let when = match self.max_memory {
            _ if policy == "noeviction" => return None,
            0 => "drop leases and records as soon as maxmemory is set",
            _ => "drop leases and records",
        };
        Some(format!(
            "maxmemory-policy '{policy}' would let the server {when}: it must be noeviction"
        ))
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
        if let Some(words) = self.forgetting() {
            tracing::warn!(server = self.title, "{words}");
        }
    }

    /// What a restart loses, if it loses everything.
    pub(super) fn forgetting(&self) -> Option<&'static str> {
        match self.snapshots.as_deref() {
            _ if self.append_only => None,
            Some("") => Some(
                "the server saves nothing (no append-only file, no snapshots): a restart loses \
                 everything",
            ),
            Some(_) => None,
            None => Some(
                "the server has no append-only file, and may not be asked for snapshots: a \
                 restart may lose everything",
            ),
        }
    }

    /// Whether everything that is acknowledged is written down within a second.
    pub(super) const fn is_append_only(&self) -> bool {
        self.append_only
    }

    /// How much of its memory it uses, in bytes, and how much it may; nothing
    /// where it has no bound.
    pub(super) const fn memory(&self) -> (u64, Option<u64>) {
        match self.max_memory {
            0 => (self.used_memory, None),
            most => (self.used_memory, Some(most)),
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
    fn guides_have_the_same_minimum() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md");
        let text = std::fs::read_to_string(guide).unwrap();
        let (major, minor) = VERSION_MIN;
        for words in ["Redis {} or later", "Redis or Valkey, version {} or newer"] {
            let words = words.replace("{}", &format!("{major}.{minor}"));
            assert!(text.contains(&words), "{guide} lacks '{words}'");
        }
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
        ] {
            let (kind, message) = refusal(changed, to);
            assert_eq!(kind, StoreErrorKind::Unfit, "{message}");
            assert!(message.contains(said), "{message}");
        }
        let text = GOOD.replace("noeviction", "volatile-lru");
        for (max_memory, is_refused) in [("maxmemory:0", false), ("maxmemory:1000", true)] {
            let server = Server::read(&text.replace("maxmemory:0", max_memory));
            server.check().unwrap();
            assert_eq!(server.check_eviction().is_err(), is_refused, "{max_memory}");
            let risk = server.eviction_risk().unwrap();
            assert!(risk.contains("'volatile-lru'"), "{risk}");
            assert_eq!(server.misfits().len(), 1, "for whoever examines it");
        }
        assert_eq!(Server::read(GOOD).eviction_risk(), None);
        let (kind, _) = refusal("loading:0", "loading:1");
        assert_eq!(kind, StoreErrorKind::Unavailable);
        let replica = Server::read(&GOOD.replace("master", "slave"));
        replica.check().unwrap();
        assert!(replica.check_writable().is_err());
    }
}
