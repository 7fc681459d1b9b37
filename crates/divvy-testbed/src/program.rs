//! Which servers there are, and where `scripts/servers` has put them.

use std::env;
use std::path::{Path, PathBuf};

/// The versions of the NATS server that the tests run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NatsVersion {
    /// 2.9.10, Debian's: too old, and only here to be refused.
    Refused,
    /// 2.10.26, the lowest that is supported as a single server.
    Lowest,
    /// 2.11.11, the lowest that is supported as a cluster.
    LowestReplicated,
    /// 2.15.1, the newest.
    Newest,
}

impl NatsVersion {
    /// Those that are supported as a single server.
    pub const SUPPORTED: [Self; 3] = [Self::Lowest, Self::LowestReplicated, Self::Newest];

    /// The version's number.
    pub fn number(self) -> &'static str {
        match self {
            Self::Refused => "2.9.10",
            Self::Lowest => "2.10.26",
            Self::LowestReplicated => "2.11.11",
            Self::Newest => "2.15.1",
        }
    }

    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Refused => debian("nats-server"),
            newer => installed(&format!("nats-{}", newer.number()), "nats-server"),
        }
    }
}

/// The servers that speak the Redis protocol that the tests run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedisFlavour {
    /// Redis 7.0.15, Debian's.
    Redis7,
    /// Valkey 9.1.2, built without TLS.
    Valkey9,
}

impl RedisFlavour {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Redis7, Self::Valkey9];

    /// The version's number.
    pub fn number(self) -> &'static str {
        match self {
            Self::Redis7 => "7.0.15",
            Self::Valkey9 => "9.1.2",
        }
    }

    /// Whether it can be started with TLS.
    pub fn has_tls(self) -> bool {
        self == Self::Redis7
    }

    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Redis7 => debian("redis-server"),
            Self::Valkey9 => installed(&format!("valkey-{}", self.number()), "valkey-server"),
        }
    }
}

/// Where the program of a Debian package is.
///
/// # Panics
///
/// When it is missing.
pub(crate) fn debian(name: &str) -> PathBuf {
    let places = ["/usr/sbin", "/usr/bin"].map(|place| Path::new(place).join(name));
    match places.iter().find(|place| place.is_file()) {
        Some(place) => place.clone(),
        None => missing(&places[1]),
    }
}

/// A program of the newest PostgreSQL that Debian has installed.
///
/// # Panics
///
/// When there is none.
pub(crate) fn postgres(name: &str) -> PathBuf {
    let root = Path::new("/usr/lib/postgresql");
    let versions = root.read_dir().into_iter().flatten().flatten();
    let number = |path: &PathBuf| -> Option<u32> { path.file_name()?.to_str()?.parse().ok() };
    let programs = versions.map(|version| version.path());
    let newest = programs
        .filter(|version| version.join("bin").join(name).is_file())
        .max_by_key(number);
    match newest {
        Some(version) => version.join("bin").join(name),
        None => missing(&root.join("*/bin").join(name)),
    }
}

fn installed(directory: &str, name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let chosen = env::var_os("DIVVY_SERVERS").filter(|chosen| !chosen.is_empty());
    let servers = chosen.map_or_else(|| root.join("target/servers"), |chosen| root.join(chosen));
    let program = servers.join(directory).join("bin").join(name);
    if !program.is_file() {
        missing(&program);
    }
    program
}

fn missing(program: &Path) -> ! {
    panic!("{} is missing: run scripts/servers", program.display());
}
