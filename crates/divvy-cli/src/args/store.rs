//! Which store, and how it is reached: the flags that all commands on a live
//! cluster share.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as _;
use divvy::Invalid;
use divvy::manager::{MetricLabels, parse_span};
use divvy::store::{Credentials, SecretSource, StoreSettings, StoreUrl, Tls};

use crate::failure::Failure;

/// The variable that names a store where no flag does.
pub(crate) const STORE_VARIABLE: &str = "DIVVY_STORE";

/// The longest span of time that can be typed.
const SPAN_MAX: Duration = Duration::from_mins(60);

/// The bits of a file's mode that let everybody read or change it.
const EVERYBODY: u32 = 0o006;

/// Which cluster, and how its store is reached, whichever that is.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reaching the store")]
pub(crate) struct StoreArgs {
    /// The cluster; a store can hold several
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cluster: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    nats: NatsArgs,
}

/// The same where the store has leases.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reaching the store")]
pub(crate) struct LeaseStoreArgs {
    /// The cluster; a store can hold several, which share its workloads
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cluster: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// What all servers have.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reaching the store")]
pub(crate) struct ServerArgs {
    /// The user to log in as
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file with the password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Certificates to trust (PEM), in place of the system's
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// A certificate of our own (PEM), where the server asks for one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Refuse to talk in the clear
    #[arg(long)]
    require_tls: bool,
    /// How long one operation may take, such as 500ms or 2s
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span)]
    operation_timeout: Duration,
}

/// What only NATS has.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "NATS only")]
pub(crate) struct NatsArgs {
    /// A file with the token to log in with
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A file with the seed of the nkey to log in with
    #[arg(long, value_name = "FILE")]
    nkey_file: Option<PathBuf>,
    /// A .creds file to log in with
    #[arg(long, value_name = "FILE")]
    creds_file: Option<PathBuf>,
    /// The bucket of the keys
    #[arg(long, value_name = "NAME", default_value = "divvy")]
    bucket: String,
    /// Copies of the bucket, 1, 3 or 5, where it has to be made
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = replicas)]
    replicas: u8,
}

impl StoreArgs {
    /// What every line of metrics is labelled with.
    pub(crate) fn labels(&self) -> Result<MetricLabels, Failure> {
        labels(&self.cluster)
    }

    /// What was typed, as the library takes it.
    pub(crate) fn settings(&self) -> Result<StoreSettings, Failure> {
        let mut settings = self.server.unchecked(&self.cluster);
        self.nats.add_to(&mut settings);
        checked(settings)
    }

    /// The flags for another process that is to be the same client.
    pub(crate) fn login_flags(&self) -> Vec<String> {
        let (server, nats) = (&self.server, &self.nats);
        let paths = [
            ("--password-file", &server.password_file),
            ("--token-file", &nats.token_file),
            ("--nkey-file", &nats.nkey_file),
            ("--creds-file", &nats.creds_file),
            ("--tls-ca", &server.tls_ca),
            ("--tls-cert", &server.tls_cert),
            ("--tls-key", &server.tls_key),
        ];
        let mut flags = Vec::new();
        for (flag, path) in paths {
            if let Some(path) = path {
                flags.extend([flag.to_owned(), path.display().to_string()]);
            }
        }
        if let Some(user) = &server.user {
            flags.extend(["--user".to_owned(), user.clone()]);
        }
        if server.require_tls {
            flags.push("--require-tls".to_owned());
        }
        flags
    }

    /// The first flag that was typed, unless it says what would be so without.
    pub(crate) fn first_flag(&self) -> Option<String> {
        let unset = StoreSettings::default();
        let settings = [
            ("--cluster", self.cluster != unset.cluster),
            ("--bucket", self.nats.bucket != unset.bucket),
            ("--replicas", self.nats.replicas != unset.replicas),
        ];
        let set = settings.into_iter().find(|(_, is_set)| *is_set);
        let set = set.map(|(flag, _)| flag.to_owned());
        set.or_else(|| self.login_flags().into_iter().next())
    }

    /// All flags for another process that is to reach the same store, in this
    /// cluster.
    pub(crate) fn flags(&self, cluster: &str) -> Vec<String> {
        let timeout = format!("{}ms", self.server.operation_timeout.as_millis());
        let settings = [
            ("--cluster", cluster.to_owned()),
            ("--operation-timeout", timeout),
            ("--bucket", self.nats.bucket.clone()),
            ("--replicas", self.nats.replicas.to_string()),
        ];
        let settings = settings.map(|(flag, value)| [flag.to_owned(), value]);
        let mut flags = settings.concat();
        flags.extend(self.login_flags());
        flags
    }
}

impl LeaseStoreArgs {
    /// What every line of metrics is labelled with.
    pub(crate) fn labels(&self) -> Result<MetricLabels, Failure> {
        labels(&self.cluster)
    }

    /// What was typed, as the library takes it.
    pub(crate) fn settings(&self) -> Result<StoreSettings, Failure> {
        checked(self.server.unchecked(&self.cluster))
    }
}

impl ServerArgs {
    /// What was typed, as the library takes it, in no cluster in particular.
    pub(crate) fn settings(&self) -> Result<StoreSettings, Failure> {
        checked(self.unchecked(&StoreSettings::default().cluster))
    }

    fn unchecked(&self, cluster: &str) -> StoreSettings {
        StoreSettings {
            cluster: cluster.to_owned(),
            operation_timeout: self.operation_timeout,
            credentials: Credentials {
                user: self.user.clone(),
                password: in_file(self.password_file.as_deref()),
                ..Credentials::default()
            },
            tls: Tls {
                required: self.require_tls,
                ca_file: self.tls_ca.clone(),
                cert_file: self.tls_cert.clone(),
                key_file: self.tls_key.clone(),
            },
            ..StoreSettings::default()
        }
    }
}

impl NatsArgs {
    /// Whether a flag is one of these.
    pub(crate) fn has(flag: &str) -> bool {
        let command = Self::augment_args(clap::Command::new("nats"));
        let name = flag.trim_start_matches("--").replace('_', "-");
        command
            .get_arguments()
            .any(|arg| arg.get_long() == Some(&name))
    }

    fn add_to(&self, settings: &mut StoreSettings) {
        let credentials = &mut settings.credentials;
        credentials.token = in_file(self.token_file.as_deref());
        credentials.nkey_seed = in_file(self.nkey_file.as_deref());
        credentials.creds = in_file(self.creds_file.as_deref());
        settings.bucket.clone_from(&self.bucket);
        settings.replicas = self.replicas;
    }
}

fn labels(cluster: &str) -> Result<MetricLabels, Failure> {
    let labels = MetricLabels::default().with("cluster", cluster);
    labels.map_err(|error| Failure::Usage(error.to_string()))
}

fn in_file(path: Option<&Path>) -> Option<SecretSource> {
    path.map(|path| SecretSource::File(path.to_owned()))
}

/// Settings that can be; warns of secrets in them that everybody can read.
fn checked(settings: StoreSettings) -> Result<StoreSettings, Failure> {
    settings
        .check()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let credentials = &settings.credentials;
    let secrets = [
        ("password", &credentials.password),
        ("token", &credentials.token),
        ("nkey", &credentials.nkey_seed),
        ("creds", &credentials.creds),
    ];
    for (name, secret) in secrets {
        if let Some(SecretSource::File(path)) = secret {
            warn_of(name, path);
        }
    }
    Ok(settings)
}

/// Warns of a secret that everybody can read: those that are mounted often can
/// be, so they are not refused.
fn warn_of(name: &str, path: &Path) {
    // One that is not there is told when it is read.
    let is_everybodys = path
        .metadata()
        .is_ok_and(|file| file.is_file() && file.mode() & EVERYBODY != 0);
    if is_everybodys {
        let path = path.display();
        tracing::warn!(
            "--{name}-file {path}: everybody on this machine may read or change it: chmod o-rw it"
        );
    }
}

/// A store that was typed. Arguments are there for every user of the machine to
/// read, so one with a password in it is refused.
pub(crate) fn typed_store(text: &str) -> Result<StoreUrl, Invalid> {
    let url: StoreUrl = text.parse()?;
    if url.has_secret() {
        let rule = format!(
            "holds a password or token, which everyone on this machine could read here; \
             put the address into {STORE_VARIABLE}, or the secret into a file"
        );
        return Err(Invalid::new("store", url, rule));
    }
    Ok(url)
}

fn replicas(text: &str) -> Result<u8, Invalid> {
    let number = text.parse().ok().filter(|n| matches!(n, 1 | 3 | 5));
    number.ok_or_else(|| Invalid::new("replicas", text, "must be 1, 3 or 5"))
}

/// A span of time as in settings, such as `1m30s`, up to an hour.
pub(crate) fn span(text: &str) -> Result<Duration, Invalid> {
    let refused = |rule: &str| Invalid::new("span", text, rule);
    match parse_span("span", text)? {
        Duration::ZERO => Err(refused("must be at least 1ms")),
        span if span > SPAN_MAX => Err(refused("must be at most 1h")),
        span => Ok(span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_settings_up_to_an_hour() {
        assert_eq!(span("150ms").unwrap(), Duration::from_millis(150));
        assert_eq!(span("2s").unwrap(), Duration::from_secs(2));
        assert_eq!(span("3m").unwrap(), Duration::from_secs(180));
        assert_eq!(span("60m").unwrap(), SPAN_MAX);
        assert_eq!(span("1h").unwrap(), SPAN_MAX);
        assert_eq!(span("1m30s").unwrap(), Duration::from_secs(90));
        for wrong in [
            "",
            "s",
            "3",
            "-1s",
            "1.5s",
            "1h1ms",
            "0ms",
            "0s",
            "61m",
            "99999999999999999999s",
        ] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_repeating_it() {
        let error = typed_store("redis://ada:canary@localhost")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(STORE_VARIABLE) && !error.contains("canary"),
            "{error}"
        );
        assert!(typed_store("redis://ada@localhost").is_ok());
    }
}
