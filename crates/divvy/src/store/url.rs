//! Addresses of stores.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use divvy_core::Invalid;

use super::secret::Secret;

/// What a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// In this process.
    Memory,
    /// In a file, for all processes of this machine.
    File,
    /// A NATS server with JetStream.
    Nats,
    /// A Redis or Valkey server.
    Redis,
}

/// The address of a store: `memory`, `file:PATH`, `nats://HOST:PORT`,
/// `tls://HOST:PORT` (NATS), `redis://HOST:PORT/DB`, `rediss://HOST:PORT/DB`
/// or `redis+unix://PATH?db=DB`. Several NATS servers are separated by commas.
///
/// User and password may stand before the host, but neither `Debug` nor
/// `Display` shows them.
///
/// ```
/// use divvy::store::{StoreKind, StoreUrl};
///
/// let url: StoreUrl = "redis://ada:canary@localhost:6379/2".parse()?;
/// assert_eq!(url.kind(), StoreKind::Redis);
/// assert_eq!(url.to_string(), "redis://localhost:6379/2");
/// assert!(url.has_secret() && !format!("{url:?}").contains("canary"));
/// # Ok::<(), divvy::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUrl {
    kind: StoreKind,
    /// Whether the address asks for encryption.
    tls: bool,
    /// What is behind the scheme, without user and password.
    addresses: Vec<String>,
    user: Option<String>,
    password: Option<Secret>,
}

impl StoreUrl {
    /// What kind of store it is the address of.
    pub const fn kind(&self) -> StoreKind {
        self.kind
    }

    /// Whether a password or token stands in it: such an address belongs into
    /// the environment or a file, not into an argument, which every user of
    /// the machine can read.
    pub const fn has_secret(&self) -> bool {
        self.password.is_some()
    }

    /// Whether it asks for encryption.
    pub(crate) const fn tls(&self) -> bool {
        self.tls
    }

    /// The file of a file store.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(&self.addresses[0])
    }

    /// `scheme://host:port/…` of each server, without user and password.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The user and password that stood in it. NATS takes a user without a
    /// password for a token, so that is a password without a user.
    pub(crate) fn login(&self) -> (Option<&str>, Option<&Secret>) {
        (self.user.as_deref(), self.password.as_ref())
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            StoreKind::Memory => f.write_str("memory"),
            StoreKind::File => write!(f, "file:{}", self.addresses[0]),
            StoreKind::Nats | StoreKind::Redis => f.write_str(&self.addresses.join(",")),
        }
    }
}

impl FromStr for StoreUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == "memory" {
            return Ok(Self::local(StoreKind::Memory, String::new()));
        }
        if let Some(path) = text.strip_prefix("file:") {
            // `file:///var/x` and `file:/var/x` are the same file.
            let path = match path.strip_prefix("//") {
                Some(absolute) if absolute.starts_with('/') => absolute,
                _ => path,
            };
            return match path.is_empty() || path.contains('\0') {
                true => Err(refused(text, "needs a path after file:")),
                false => Ok(Self::local(StoreKind::File, path.to_owned())),
            };
        }
        Self::remote(text)
    }
}

impl StoreUrl {
    fn local(kind: StoreKind, address: String) -> Self {
        Self {
            kind,
            tls: false,
            addresses: vec![address],
            user: None,
            password: None,
        }
    }

    fn remote(text: &str) -> Result<Self, Invalid> {
        let mut found: Option<Self> = None;
        for server in text.split(',') {
            let one = Self::one_server(server)?;
            let Some(all) = &mut found else {
                found = Some(one);
                continue;
            };
            if all.kind != StoreKind::Nats || one.kind != StoreKind::Nats || all.tls != one.tls {
                let rule = "lists several servers, which only NATS has, all with one scheme";
                return Err(refused(text, rule));
            }
            if one.password.is_some() && (one.user != all.user || one.password != all.password) {
                return Err(refused(text, "has a login that is not the first server's"));
            }
            all.addresses.extend(one.addresses);
        }
        found.ok_or_else(|| refused(text, "is empty"))
    }

    fn one_server(text: &str) -> Result<Self, Invalid> {
        let mut url = match ::url::Url::parse(text) {
            Ok(url) if url.port() != Some(0) => url,
            Ok(_) | Err(::url::ParseError::InvalidPort) => return Err(bad_port(text)),
            Err(_) => return Err(refused(text, KNOWN)),
        };
        let (kind, tls) = match url.scheme() {
            "nats" => (StoreKind::Nats, false),
            "tls" => (StoreKind::Nats, true),
            "redis" | "valkey" | "redis+unix" => (StoreKind::Redis, false),
            "rediss" | "valkeys" => (StoreKind::Redis, true),
            _ => return Err(refused(text, KNOWN)),
        };
        check_parts(&url, text, kind)?;
        let decoded = |part: &str| {
            let plain = percent_encoding::percent_decode_str(part).decode_utf8();
            plain
                .map(|plain| plain.into_owned())
                .map_err(|_error| refused(text, "has a login that is not UTF-8"))
        };
        let mut user = Some(decoded(url.username())?).filter(|user| !user.is_empty());
        let mut password = url.password().map(decoded).transpose()?.map(Secret::new);
        if kind == StoreKind::Nats && password.is_none() {
            password = user.take().map(Secret::new);
        }
        let cleared = url.set_username("").is_ok() && url.set_password(None).is_ok();
        if !cleared && (user.is_some() || password.is_some()) {
            return Err(refused(text, "must not have a login"));
        }
        Ok(Self {
            kind,
            tls,
            addresses: vec![url.to_string()],
            user,
            password,
        })
    }
}

const KNOWN: &str = "must be memory, file:PATH, nats://HOST, tls://HOST, redis://HOST, \
                     rediss://HOST or redis+unix://PATH";

/// Refuses what is missing in an address, and what nobody would read.
fn check_parts(url: &::url::Url, text: &str, kind: StoreKind) -> Result<(), Invalid> {
    let is_socket = url.scheme() == "redis+unix";
    // A slash in a password ends the host, and the rest of it would be shown
    // as a path.
    if !is_socket && url[::url::Position::AfterPort..].contains('@') {
        let rule = "has an '@' behind its host: in a login, write / as %2F, ? as %3F and # as %23";
        return Err(refused(text, rule));
    }
    let has_path = !matches!(url.path(), "" | "/");
    let has_host = !url.host_str().unwrap_or_default().is_empty();
    if has_host == is_socket || (is_socket && !has_path) {
        let rule = if is_socket {
            "needs a path, as in redis+unix:///run/redis.sock"
        } else {
            "needs a host"
        };
        return Err(refused(text, rule));
    }
    if url.fragment().is_some() {
        return Err(refused(text, "must not have a fragment"));
    }
    // Some write passwords into parameters, so they are not repeated.
    let bare = text.split_once('?').map_or(text, |(bare, _)| bare);
    if kind == StoreKind::Nats && url.query().is_some() {
        return Err(refused(bare, "must not have parameters"));
    }
    if url.query_pairs().any(|(name, _)| name != "db") {
        return Err(refused(bare, "must not have parameters beside ?db="));
    }
    if kind == StoreKind::Nats && has_path {
        let server = &url[..::url::Position::BeforePath];
        return Err(refused(server, "must not have a path"));
    }
    Ok(())
}

/// An error that shows only the host: where a host was forgotten, what is taken
/// for a port is a password.
fn bad_port(text: &str) -> Invalid {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
    let host = match server.find(']') {
        Some(end) => &server[..=end],
        None => server.split(':').next().unwrap_or_default(),
    };
    let rule = "must have a port of 1 to 65535, or none";
    Invalid::new("store", format_args!("{scheme}://{host}:***"), rule)
}

/// An error that shows the address without what may be a login.
fn refused(text: &str, rule: &str) -> Invalid {
    let shown = match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://***{}", &text[..scheme], &text[at..])
        }
        (None, Some(at)) => format!("***{}", &text[at..]),
        _ => text.to_owned(),
    };
    Invalid::new("store", shown, rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> StoreUrl {
        text.parse().unwrap()
    }

    #[test]
    fn every_form_is_known_by_its_scheme() {
        let forms = [
            ("memory", StoreKind::Memory, "memory"),
            ("file:./divvy.db", StoreKind::File, "file:./divvy.db"),
            (
                "file:///tmp/divvy.db",
                StoreKind::File,
                "file:/tmp/divvy.db",
            ),
            (
                "nats://localhost:4222",
                StoreKind::Nats,
                "nats://localhost:4222",
            ),
            (
                "nats://a:1,nats://b:2",
                StoreKind::Nats,
                "nats://a:1,nats://b:2",
            ),
            ("tls://localhost", StoreKind::Nats, "tls://localhost"),
            (
                "redis://[::1]:6379/3",
                StoreKind::Redis,
                "redis://[::1]:6379/3",
            ),
            ("rediss://h/0", StoreKind::Redis, "rediss://h/0"),
            (
                "redis+unix:///run/r.sock?db=2",
                StoreKind::Redis,
                "redis+unix:///run/r.sock?db=2",
            ),
        ];
        for (text, kind, shown) in forms {
            let url = parsed(text);
            assert_eq!((url.kind(), url.to_string().as_str()), (kind, shown));
        }
    }

    #[test]
    fn what_cannot_be_reached_is_refused_by_what_is_wrong_with_it() {
        for (text, words) in [
            ("nats://h:99999", "'nats://h:***': must have a port"),
            ("redis://[::1]:x", "'redis://[::1]:***': must have a port"),
            ("redis://h:0", "must have a port"),
            ("redis://", "needs a host"),
            ("redis+unix://", "needs a path"),
            ("redis+unix:///", "needs a path"),
            ("redis+unix://h/run/r.sock", "needs a path"),
            ("nats://h/path", "'nats://h': must not have a path"),
            ("nats://h?db=2", "'nats://h': must not have parameters"),
            ("nats://a b", "must be memory"),
            ("", "must be memory"),
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_login_is_kept_apart_and_decoded() {
        let url = parsed("redis://ada:p%40ss@h:1");
        assert_eq!(url.login(), (Some("ada"), Some(&Secret::new("p@ss"))));
        let url = parsed("nats://t0ken@h:1");
        assert_eq!(url.login(), (None, Some(&Secret::new("t0ken"))));
        let url = parsed("redis://:pw@h");
        assert_eq!(url.login(), (None, Some(&Secret::new("pw"))));
    }

    #[test]
    fn no_error_repeats_a_login() {
        for text in [
            "http://u:canary@h",
            "redis://u:canary@",
            "redis://u:canary@h:99999",
            "redis://u:canary@h#x",
            "nats://u:canary@h,redis://u:canary@h",
            "nats://u:canary@h,nats://u:canary2@h",
            "u:canary@h",
            "canary@",
            "redis://u:canary@h:1@h:2:3",
            "redis://u:canary",
            "redis://u:can:canary",
            "nats://u:canary,x@h",
            "nats://u:x,canary:y",
            "redis://u:12/canary@h",
            "redis://u:12/canary?x@h",
            "rediss://canary/x@h:6379/2",
            "nats://u:9/canary@h",
            "nats://canary/x@h:4222",
            "nats://u:9/canary,x@h",
            "nats://h?token=canary",
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }
}
