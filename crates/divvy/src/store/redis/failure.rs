//! What a server's refusal or a lost connection means for the caller.

use ::redis::{ErrorKind, RedisError, ServerError};
use divvy_core::store::{StoreError, StoreErrorKind};

use super::server::VERSION_MIN;

/// What a failed request may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// Nothing, whatever became of it.
    Read,
    /// Perhaps everything.
    Write,
}

impl Nature {
    /// The error of a request that was sent and never answered.
    pub(super) fn unanswered(self, why: impl std::fmt::Display) -> StoreError {
        match self {
            Self::Read => StoreError::unavailable(why),
            Self::Write => StoreError::unknown(why),
        }
    }
}

/// Codes after which this very connection, or this server, will not do: the
/// link connects anew, which finds out more.
const DISQUALIFYING: [&str; 5] = ["READONLY", "LOADING", "MASTERDOWN", "NOAUTH", "CLUSTERDOWN"];

/// The code of a refusal. Servers before 7.0 wrap what a script ran into, and
/// later ones have other words for what a script may not do.
pub(super) fn code(error: &ServerError) -> &str {
    const WRAPPED: [&str; 6] = [
        "OOM",
        "READONLY",
        "MISCONF",
        "NOPERM",
        "WRONGTYPE",
        "NOREPLICAS",
    ];
    let details = error.details().unwrap_or_default();
    if error.code() != "ERR" {
        return error.code();
    }
    if SCRIPT_FORBIDDEN
        .iter()
        .any(|words| details.starts_with(words))
    {
        return "NOPERM";
    }
    if details.starts_with("Error running script") {
        let inner = |code: &&&str| details.contains(&format!(" -{code} "));
        return WRAPPED.iter().find(inner).unwrap_or(&"ERR");
    }
    error.code()
}

/// How a script begins to say that access rules forbid it.
const SCRIPT_FORBIDDEN: [&str; 2] = [
    "The user executing the script can't",
    "ACL failure in script",
];

/// Whether the link should connect anew.
pub(super) fn disqualifies(error: &ServerError) -> bool {
    DISQUALIFYING.contains(&code(error))
}

/// Keys that a refusal names at most.
const KEYS_NAMED_MAX: usize = 6;

/// The error of a request on these keys that the server refused: it did
/// nothing.
pub(super) fn refused_on(error: &ServerError, keys: &[String]) -> StoreError {
    if code(error) != "WRONGTYPE" || keys.is_empty() {
        return refused(error);
    }
    let named: Vec<_> = keys
        .iter()
        .take(KEYS_NAMED_MAX)
        .map(|key| format!("'{key}'"))
        .collect();
    let which = if keys.len() == 1 {
        "key"
    } else {
        "one of the keys"
    };
    let more = if keys.len() > KEYS_NAMED_MAX {
        ", …"
    } else {
        ""
    };
    StoreError::unfit(format_args!(
        "{which} {}{more} holds another type: somebody else wrote it, so remove it",
        named.join(", ")
    ))
}

/// The error of a request that the server refused: it did nothing.
pub(super) fn refused(error: &ServerError) -> StoreError {
    let said = error.details().unwrap_or_default();
    match code(error) {
        "OOM" => StoreError::unfit(format_args!(
            "the server's memory is full (maxmemory), nothing was written: {said}"
        )),
        "MISCONF" => StoreError::unfit(format_args!(
            "the server cannot save to its disk and takes no writes: {said}"
        )),
        "NOPERM" => StoreError::unfit(format_args!(
            "the server's access rules forbid it, see the templates in docs/operating.md: {said}"
        )),
        "WRONGTYPE" => {
            StoreError::unfit("a key of the store holds another type: somebody else wrote it")
        }
        "MOVED" | "ASK" | "CLUSTERDOWN" | "CROSSSLOT" => {
            StoreError::unfit("the server is a Redis Cluster, which is not supported")
        }
        "READONLY" => StoreError::unavailable("the server is a read-only replica"),
        "NOAUTH" => StoreError::unavailable("the server has forgotten who this connection is"),
        code @ ("LOADING" | "MASTERDOWN" | "BUSY" | "TRYAGAIN" | "NOREPLICAS") => {
            StoreError::unavailable(format_args!(
                "the server is not ready ({}): {said}",
                code.to_lowercase()
            ))
        }
        code => StoreError::unfit(format_args!("the server refused: {code} {said}")),
    }
}

/// A server that lets nobody in without a login.
pub(crate) const NO_LOGIN: &str = "the server asks for a login, and none is given";

/// Why a connection could not be set up. The words of the server are not
/// repeated: an old or a foreign one echoes what it was sent, which is the
/// password.
pub(super) fn of_setup(error: &RedisError) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        ErrorKind::AuthenticationFailed => wrong_login(),
        ErrorKind::Parse => foreign_protocol(),
        ErrorKind::RESP3NotSupported => too_old(),
        ErrorKind::Io => of_io(error),
        _ => match error.code().unwrap_or_default() {
            "WRONGPASS" => wrong_login(),
            "NOAUTH" => StoreError::unfit(NO_LOGIN),
            "DENIED" => StoreError::unfit(
                "the server is in protected mode: it needs a login or an address to bind to",
            ),
            "NOPERM" => StoreError::unfit("the user may not select this database"),
            "LOADING" => StoreError::unavailable("the server is loading its data"),
            "ERR" if detail.starts_with("max number of clients") => {
                StoreError::unavailable("the server has no room for another connection")
            }
            "ERR" if detail.starts_with("unknown command") => too_old(),
            "ERR" if detail.starts_with("AUTH <password> called without") => {
                StoreError::unfit("a password is given, but the server's default user has none")
            }
            _ if error.to_string().contains("switch database") => {
                StoreError::unfit("the server has no database of that number")
            }
            "ERR" => StoreError::unfit("the server refused the login or the protocol"),
            code => StoreError::unfit(format_args!("the server refused the connection: {code}")),
        },
    }
}

/// Why a connection was lost, in words without secrets.
pub(super) fn of_loss(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::Io if error.is_connection_dropped() => "the connection was lost".to_owned(),
        ErrorKind::Io => format!("the connection failed: {error}"),
        ErrorKind::Parse => "the server sent what is not the Redis protocol".to_owned(),
        kind => format!("the connection failed: {kind:?}"),
    }
}

pub(super) fn foreign_protocol() -> StoreError {
    StoreError::unfit("the server does not speak the Redis protocol: is it the right port?")
}

fn too_old() -> StoreError {
    let (major, minor) = VERSION_MIN;
    StoreError::unfit(format_args!(
        "the server is too old: Redis {major}.{minor} or newer is needed"
    ))
}

fn wrong_login() -> StoreError {
    StoreError::unfit("the server refused the login: wrong user or password, or a disabled user")
}

fn of_io(error: &RedisError) -> StoreError {
    let text = error.to_string();
    // What a server says that wants a certificate, or another one.
    if text.contains("fatal alert") {
        return StoreError::unfit(format_args!(
            "the server refused the TLS connection: {text}"
        ));
    }
    match error.is_connection_dropped() {
        true => StoreError::unavailable("the server closed the connection at once"),
        false => StoreError::unavailable(format_args!("the connection failed: {text}")),
    }
}

/// The error of a batch of which something was done and something refused.
pub(super) fn partly_done(refusal: &StoreError) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unknown,
        format_args!("only a part of it was done: {refusal}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(reply: &str) -> ServerError {
        let reply = format!("-{reply}\r\n");
        match ::redis::parse_redis_value(reply.as_bytes()).unwrap() {
            ::redis::Value::ServerError(error) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_script_ran_into_is_known_by_every_generation_s_words() {
        let wrapped = |inner: &str| {
            format!(
                "ERR Error running script (call to f_ab): @user_script:1: @user_script: 7: -{inner} not now"
            )
        };
        for (reply, expected) in [
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                "OOM",
            ),
            (&wrapped("OOM"), "OOM"),
            (&wrapped("READONLY"), "READONLY"),
            (&wrapped("MISCONF"), "MISCONF"),
            (&wrapped("WRONGTYPE"), "WRONGTYPE"),
            (&wrapped("OTHER"), "ERR"),
            (
                "ERR The user executing the script can't run this command",
                "NOPERM",
            ),
            (
                "ERR ACL failure in script: User u has no permissions",
                "NOPERM",
            ),
            ("NOPERM this user has no permissions", "NOPERM"),
            ("ERR anything", "ERR"),
        ] {
            assert_eq!(code(&refusal(reply)), expected, "{reply}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (reply, kind) in [
            ("OOM x", StoreErrorKind::Unfit),
            ("MISCONF x", StoreErrorKind::Unfit),
            ("NOPERM x", StoreErrorKind::Unfit),
            ("MOVED 1 a:1", StoreErrorKind::Unfit),
            ("ERR x", StoreErrorKind::Unfit),
            ("READONLY x", StoreErrorKind::Unavailable),
            ("LOADING x", StoreErrorKind::Unavailable),
            ("MASTERDOWN x", StoreErrorKind::Unavailable),
            ("BUSY x", StoreErrorKind::Unavailable),
            ("NOREPLICAS x", StoreErrorKind::Unavailable),
        ] {
            assert_eq!(refused(&refusal(reply)).kind(), kind, "{reply}");
        }
        assert!(disqualifies(&refusal("READONLY x")));
        assert!(!disqualifies(&refusal("OOM x")));
    }
}
