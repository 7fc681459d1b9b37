//! Which store, and how it is reached: the flags that all commands on a live
//! cluster share.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

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

/// How a store is reached.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reaching the store")]
pub(crate) struct StoreArgs {
    /// The cluster whose keys these are; workloads of agents belong to all clusters of a store
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cluster: String,
    /// The user to log in as
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// A file with the password
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// NATS: a file with a token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// NATS: a file with the seed of an nkey
    #[arg(long, value_name = "FILE")]
    pub(crate) nkey_file: Option<PathBuf>,
    /// NATS: a .creds file
    #[arg(long, value_name = "FILE")]
    pub(crate) creds_file: Option<PathBuf>,
    /// Certificates to trust (PEM), in place of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// A certificate of our own (PEM), where the server asks for one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Refuse to talk in the clear
    #[arg(long)]
    pub(crate) require_tls: bool,
    /// How long one operation may take, such as 500ms or 2s
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span)]
    pub(crate) operation_timeout: Duration,
    /// NATS: the bucket
    #[arg(long, value_name = "NAME", default_value = "divvy")]
    pub(crate) bucket: String,
    /// NATS: copies of the bucket, where it has to be made
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = replicas)]
    pub(crate) replicas: u8,
}

impl StoreArgs {
    /// What every line of metrics is labelled with.
    pub(crate) fn labels(&self) -> Result<MetricLabels, Failure> {
        let labels = MetricLabels::default().with("cluster", &self.cluster);
        labels.map_err(|error| Failure::Usage(error.to_string()))
    }

    /// What was typed, as the library takes it.
    pub(crate) fn settings(&self) -> Result<StoreSettings, Failure> {
        let file = |path: &Option<PathBuf>| path.clone().map(SecretSource::File);
        let settings = StoreSettings {
            cluster: self.cluster.clone(),
            operation_timeout: self.operation_timeout,
            credentials: Credentials {
                user: self.user.clone(),
                password: file(&self.password_file),
                token: file(&self.token_file),
                nkey_seed: file(&self.nkey_file),
                creds: file(&self.creds_file),
            },
            tls: Tls {
                required: self.require_tls,
                ca_file: self.tls_ca.clone(),
                cert_file: self.tls_cert.clone(),
                key_file: self.tls_key.clone(),
            },
            bucket: self.bucket.clone(),
            replicas: self.replicas,
            ..StoreSettings::default()
        };
        settings
            .check()
            .map_err(|error| Failure::Usage(error.to_string()))?;
        self.warn_of_secrets();
        Ok(settings)
    }

    /// Warns of secrets that everybody can read: those that are mounted often
    /// can be, so they are not refused.
    fn warn_of_secrets(&self) {
        let files = [
            ("password", &self.password_file),
            ("token", &self.token_file),
            ("nkey", &self.nkey_file),
            ("creds", &self.creds_file),
        ];
        for (name, path) in files {
            let Some(path) = path else { continue };
            // One that is not there is told when it is read.
            let is_everybodys = path
                .metadata()
                .is_ok_and(|file| file.is_file() && file.mode() & EVERYBODY != 0);
            if is_everybodys {
                let path = path.display();
                tracing::warn!(
                    "--{name}-file {path}: everybody on this machine may read or change it: \
                     chmod o-rw it"
                );
            }
        }
    }
}

impl StoreArgs {
    /// The flags for another process that is to be the same client.
    pub(crate) fn login_flags(&self) -> Vec<String> {
        let paths = [
            ("--password-file", &self.password_file),
            ("--token-file", &self.token_file),
            ("--nkey-file", &self.nkey_file),
            ("--creds-file", &self.creds_file),
            ("--tls-ca", &self.tls_ca),
            ("--tls-cert", &self.tls_cert),
            ("--tls-key", &self.tls_key),
        ];
        let mut flags = Vec::new();
        for (flag, path) in paths {
            if let Some(path) = path {
                flags.extend([flag.to_owned(), path.display().to_string()]);
            }
        }
        if let Some(user) = &self.user {
            flags.extend(["--user".to_owned(), user.clone()]);
        }
        if self.require_tls {
            flags.push("--require-tls".to_owned());
        }
        flags
    }

    /// All flags for another process that is to reach the same store, in this
    /// cluster.
    pub(crate) fn flags(&self, cluster: &str) -> Vec<String> {
        let timeout = format!("{}ms", self.operation_timeout.as_millis());
        let settings = [
            ("--cluster", cluster.to_owned()),
            ("--operation-timeout", timeout),
            ("--bucket", self.bucket.clone()),
            ("--replicas", self.replicas.to_string()),
        ];
        let settings = settings.map(|(flag, value)| [flag.to_owned(), value]);
        let mut flags = settings.concat();
        flags.extend(self.login_flags());
        flags
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
