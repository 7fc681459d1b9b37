//! How a store is reached.

use std::path::PathBuf;
use std::time::Duration;

use divvy_core::Invalid;
use divvy_core::store::LeaseName;

use super::secret::SecretSource;

/// How a store is reached: everything beside its address.
///
/// ```
/// use divvy::store::StoreSettings;
/// use std::time::Duration;
///
/// let settings = StoreSettings {
///     cluster: "payments".into(),
///     operation_timeout: Duration::from_millis(500),
///     ..StoreSettings::default()
/// };
/// settings.check()?;
/// # Ok::<(), divvy::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// Whose keys these are. Members see each other only in one cluster.
    pub cluster: String,
    /// How long opening may take, retries included. Too short fails a start
    /// while the server is being restarted; 0.1 s to 10 minutes.
    pub connect_timeout: Duration,
    /// How long one operation may take before it fails; what it wrote may
    /// still be applied. At most a third of the lease length is sensible: two
    /// tries then fit before work has to stop. 10 ms to 1 minute.
    pub operation_timeout: Duration,
    /// The longest delay between two tries to reach a lost server. They grow
    /// from 50 ms with full jitter. 50 ms to 1 minute.
    pub reconnect_delay_max: Duration,
    /// How often a silent connection is checked. A server that stopped
    /// answering is noticed after two of them. 0.1 s to 1 minute.
    pub ping_interval: Duration,
    /// Who this client is. None of it is needed where the server asks nothing.
    pub credentials: Credentials,
    /// How the connection is encrypted.
    pub tls: Tls,
    /// Whether a file or bucket that is missing is made. Without it, opening
    /// fails: for those who only look.
    pub create: bool,
    /// NATS: the bucket, made at start if it is missing. Letters, digits, `_`
    /// and `-`.
    pub bucket: String,
    /// NATS: copies of the bucket: 1, 3 or 5. More than 1 needs a cluster, and
    /// survives the loss of a minority of its servers.
    pub replicas: u8,
    /// Redis, file: whether nobody gets a lease from a store that is new, has
    /// restarted or lost its data, until the longest lease that any worker has
    /// known of has expired. Without it, such a store can grant what an old
    /// owner still uses. Off for throw-away servers only.
    pub restart_quarantine: bool,
}

/// Who a client is, to a server that asks. Secrets come from files or the
/// environment; those in an address are taken too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Credentials {
    /// The user; beside `password`.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<SecretSource>,
    /// NATS: a token.
    pub token: Option<SecretSource>,
    /// NATS: the seed of an nkey.
    pub nkey_seed: Option<SecretSource>,
    /// NATS: a `.creds` file's text: a JWT and the seed of its nkey.
    pub creds: Option<SecretSource>,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Refuse to talk in the clear, whatever the address says.
    pub required: bool,
    /// Certificates (PEM) to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The client's own certificate (PEM), where the server asks for one.
    pub cert_file: Option<PathBuf>,
    /// The private key (PEM) of that certificate.
    pub key_file: Option<PathBuf>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            cluster: "default".to_owned(),
            connect_timeout: Duration::from_secs(5),
            operation_timeout: Duration::from_secs(2),
            reconnect_delay_max: Duration::from_secs(2),
            ping_interval: Duration::from_secs(2),
            credentials: Credentials::default(),
            tls: Tls::default(),
            create: true,
            bucket: "divvy".to_owned(),
            replicas: 1,
            restart_quarantine: true,
        }
    }
}

impl StoreSettings {
    /// Whether every field keeps its bounds.
    pub fn check(&self) -> Result<(), Invalid> {
        let minute = Duration::from_mins(1);
        let (ms_10, ms_50, ms_100) = (10, 50, 100);
        LeaseName::new("cluster", &self.cluster)?;
        let spans = [
            ("connect_timeout", self.connect_timeout, ms_100, minute * 10),
            ("operation_timeout", self.operation_timeout, ms_10, minute),
            (
                "reconnect_delay_max",
                self.reconnect_delay_max,
                ms_50,
                minute,
            ),
            ("ping_interval", self.ping_interval, ms_100, minute),
        ];
        for (field, span, ms_min, longest) in spans {
            let shortest = Duration::from_millis(ms_min);
            if !(shortest..=longest).contains(&span) {
                let rule = format!("must be in {shortest:?}..={longest:?}");
                return Err(Invalid::new(field, format!("{span:?}"), rule));
            }
        }
        if !matches!(self.replicas, 1 | 3 | 5) {
            return Err(Invalid::new("replicas", self.replicas, "must be 1, 3 or 5"));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if self.bucket.is_empty() || self.bucket.len() > 128 || !self.bucket.chars().all(allowed) {
            let rule = "must be 1 to 128 letters, digits, '_' or '-'";
            return Err(Invalid::new("bucket", &self.bucket, rule));
        }
        if self.tls.cert_file.is_some() != self.tls.key_file.is_some() {
            let found = if self.tls.cert_file.is_some() {
                "cert_file"
            } else {
                "key_file"
            };
            return Err(Invalid::new(
                "tls",
                found,
                "needs both cert_file and key_file",
            ));
        }
        Ok(())
    }
}
