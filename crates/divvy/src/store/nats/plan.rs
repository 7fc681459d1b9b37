//! How to connect: addresses, credentials, encryption and delays.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use divvy_core::Invalid;
use divvy_core::store::{StoreError, encode_part};

use super::events::Events;
use super::tls;
use crate::store::secret::Secret;
use crate::store::settings::{Credentials, StoreSettings};
use crate::store::url::StoreUrl;

/// The first ceiling of the delay before connecting again.
const DELAY_FIRST: Duration = Duration::from_millis(50);
/// How long one server may take to greet, at most.
const GREETING_LONGEST: Duration = Duration::from_secs(2);
const GREETING_SHORTEST: Duration = Duration::from_millis(100);

/// Everything that is needed to connect, read and checked.
pub(crate) struct Plan {
    addresses: Vec<ServerAddr>,
    options: ConnectOptions,
    delay_max: Duration,
    /// What the subjects of all answers begin with.
    pub(crate) inbox: String,
}

/// Who the client is.
enum Identity {
    Nobody,
    User(String, Secret),
    Token(Secret),
    Nkey(Secret),
    Creds(Secret),
}

impl Plan {
    /// Reads secrets and certificates from where the settings say: it blocks.
    pub(crate) fn new(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, StoreError> {
        let parsed = url.addresses().iter().map(|address| address.parse());
        let addresses: Result<Vec<ServerAddr>, _> = parsed.collect();
        let addresses = addresses.map_err(|_error| {
            StoreError::from(Invalid::new("store", url, "is not a NATS server's address"))
        })?;
        let tls = &settings.tls;
        // Whoever gives certificates does not mean to talk in the clear.
        let is_encrypted =
            url.tls() || tls.required || tls.ca_file.is_some() || tls.cert_file.is_some();
        let greeting = (settings.connect_timeout / 3).clamp(GREETING_SHORTEST, GREETING_LONGEST);
        let options = ConnectOptions::new()
            .name("divvy")
            .require_tls(is_encrypted)
            .tls_client_config(tls::client_config(tls)?)
            .connection_timeout(greeting)
            .ping_interval(settings.ping_interval);
        let options = Identity::find(url, &settings.credentials)?.apply(options)?;
        // Nonce and names make answers unreadable to those who may not.
        let cluster = encode_part(&settings.cluster);
        let nonce = fastrand::u128(..);
        Ok(Self {
            addresses,
            options,
            delay_max: settings.reconnect_delay_max,
            inbox: format!("_INBOX.{}.{cluster}.{nonce:032x}", settings.bucket),
        })
    }

    /// How many servers the address names.
    pub(crate) fn servers(&self) -> usize {
        self.addresses.len()
    }

    pub(crate) fn addresses(&self) -> &[ServerAddr] {
        &self.addresses
    }

    /// The client's options, with `events` told of all that happens.
    pub(crate) fn options(&self, events: &Arc<Events>) -> ConnectOptions {
        let (told, asked) = (Arc::clone(events), Arc::clone(events));
        let delay_max = self.delay_max;
        self.options
            .clone()
            .event_callback(move |event| {
                let told = Arc::clone(&told);
                async move { told.see(event) }
            })
            .reconnect_delay_callback(move |attempt| {
                // Opening has delays of its own.
                if asked.was_connected() {
                    jittered(attempt, delay_max)
                } else {
                    Duration::ZERO
                }
            })
    }
}

impl Identity {
    /// The one way to log in that the settings and the address name.
    fn find(url: &StoreUrl, credentials: &Credentials) -> Result<Self, StoreError> {
        let (url_user, url_password) = url.login();
        let user = credentials.user.as_deref().or(url_user);
        let password = match &credentials.password {
            Some(source) => Some(source.read("credentials password")?),
            None => url_password.cloned(),
        };
        let mut found = Vec::new();
        match (user, password) {
            (Some(user), Some(password)) => found.push(Self::User(user.to_owned(), password)),
            (None, Some(token)) if credentials.password.is_none() => {
                found.push(Self::Token(token));
            }
            (None, Some(_)) => {
                let rule = "needs a user beside it";
                return Err(Invalid::new("credentials password", "***", rule).into());
            }
            (Some(user), None) => {
                let rule = "needs a password beside it";
                return Err(Invalid::new("credentials user", user, rule).into());
            }
            (None, None) => {}
        }
        if let Some(source) = &credentials.token {
            found.push(Self::Token(source.read("credentials token")?));
        }
        if let Some(source) = &credentials.nkey_seed {
            found.push(Self::Nkey(source.read("credentials nkey_seed")?));
        }
        if let Some(source) = &credentials.creds {
            found.push(Self::Creds(source.read("credentials creds")?));
        }
        if found.len() > 1 {
            let names: Vec<_> = found.iter().map(Self::name).collect();
            let rule = "must be only one of user and password, token, nkey_seed and creds";
            return Err(Invalid::new("credentials", names.join(", "), rule).into());
        }
        Ok(found.pop().unwrap_or(Self::Nobody))
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Nobody => "none",
            Self::User(..) => "user and password",
            Self::Token(_) => "token",
            Self::Nkey(_) => "nkey_seed",
            Self::Creds(_) => "creds",
        }
    }

    fn apply(self, options: ConnectOptions) -> Result<ConnectOptions, Invalid> {
        Ok(match self {
            Self::Nobody => options,
            Self::User(user, password) => {
                options.user_and_password(user, password.reveal().to_owned())
            }
            Self::Token(token) => options.token(token.reveal().to_owned()),
            Self::Nkey(seed) => {
                check_seed(seed.reveal())?;
                options.nkey(seed.reveal().to_owned())
            }
            Self::Creds(creds) => {
                // Reading it has dropped the line's end, which the parser wants.
                let text = format!("{}\n", creds.reveal());
                options.credentials(&text).map_err(|_error| {
                    let rule = "must be the text of a .creds file: a JWT and a seed";
                    Invalid::new("credentials creds", "***", rule)
                })?
            }
        })
    }
}

/// A seed of a user's nkey, by its looks; the client finds out only when it
/// connects, and then says nothing of it.
fn check_seed(seed: &str) -> Result<(), Invalid> {
    let fits = seed.starts_with("SU")
        && seed.len() == 58
        && data_encoding::BASE32_NOPAD.decode(seed.as_bytes()).is_ok();
    match fits {
        true => Ok(()),
        false => {
            let rule = "must be the seed of a user's nkey, SU and 56 characters more";
            Err(Invalid::new("credentials nkey_seed", "***", rule))
        }
    }
}

/// Full jitter, from the first attempt on: all clients of a server lose it in
/// the same moment.
fn jittered(attempt: usize, longest: Duration) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    let ceiling = DELAY_FIRST.saturating_mul(2_u32.saturating_pow(doublings));
    ceiling.min(longest).mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::secret::SecretSource;

    fn plan(url: &str, credentials: Credentials) -> Result<Plan, StoreError> {
        let settings = StoreSettings {
            credentials,
            ..StoreSettings::default()
        };
        Plan::new(&url.parse().unwrap(), &settings)
    }

    fn given(text: &str) -> Option<SecretSource> {
        Some(SecretSource::Given(Secret::new(text)))
    }

    #[test]
    fn delays_are_jittered_from_the_first_and_bounded() {
        let longest = Duration::from_millis(300);
        for attempt in [0, 1, 2, 5, 100, usize::MAX] {
            let delays: Vec<_> = (0..50).map(|_| jittered(attempt, longest)).collect();
            assert!(delays.iter().all(|delay| *delay <= longest));
            assert!(delays.iter().any(|delay| *delay != delays[0]));
        }
        assert!((0..50).all(|_| jittered(1, longest) <= DELAY_FIRST));
    }

    #[test]
    fn credentials_that_cannot_work_are_refused_without_being_shown() {
        let wrong = [
            Credentials {
                user: Some("ada".to_owned()),
                ..Credentials::default()
            },
            Credentials {
                password: given("canary"),
                ..Credentials::default()
            },
            Credentials {
                token: given("canary"),
                creds: given("canary"),
                ..Credentials::default()
            },
            Credentials {
                nkey_seed: given("SUcanary"),
                ..Credentials::default()
            },
            Credentials {
                creds: given("canary"),
                ..Credentials::default()
            },
            Credentials {
                token: Some(SecretSource::File("/nonexistent/canary-free".into())),
                ..Credentials::default()
            },
        ];
        for credentials in wrong {
            let shown = format!("{credentials:?}");
            let Err(error) = plan("nats://localhost", credentials) else {
                panic!("accepted: {shown}");
            };
            assert_eq!(error.kind().advice(), "fix the input");
            let text = format!("{error} {error:?}");
            assert!(
                !text.contains("canary") || shown.contains("canary-free"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_second_way_to_log_in_is_refused_also_in_the_address() {
        let both = Credentials {
            token: given("t"),
            ..Credentials::default()
        };
        assert!(plan("nats://ada:pw@localhost", both.clone()).is_err());
        assert!(plan("nats://localhost", both).is_ok());
    }
}
