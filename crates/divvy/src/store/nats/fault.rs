//! What can become of a request, and what that means for reads and writes.

use std::fmt;

use divvy_core::store::{StoreError, StoreErrorKind};
use serde::Deserialize;

/// JetStream's error codes that are more than an error here.
pub(crate) mod code {
    /// Not enough servers are there to keep the copies.
    pub(crate) const NO_PEERS: u64 = 10005;
    pub(crate) const CLUSTER_NOT_AVAILABLE: u64 = 10008;
    pub(crate) const CLUSTER_NOT_LEADER: u64 = 10009;
    /// A stream takes no more consumers.
    pub(crate) const CONSUMERS_FULL: u64 = 10026;
    pub(crate) const NO_MESSAGE: u64 = 10037;
    pub(crate) const NO_CONSUMER: u64 = 10014;
    pub(crate) const NAME_IN_USE: u64 = 10058;
    pub(crate) const NO_STREAM: u64 = 10059;
    /// The expected sequence was not the last one of the subject.
    pub(crate) const WRONG_SEQUENCE: u64 = 10071;
    /// The same, in a replicated stream that has such a write under way.
    pub(crate) const WRONG_SEQUENCE_UNDER_WAY: u64 = 10164;
    /// Resources, memory, storage, and a limit of the stream.
    pub(crate) const NO_SPACE: [u64; 4] = [10023, 10028, 10047, 10077];
    /// JetStream is not enabled for the account, or not at all; a stream's
    /// settings that the server does not take, or only in a cluster.
    pub(crate) const NOT_OFFERED: [u64; 4] = [10039, 10052, 10074, 10076];
}

/// Why a request has no good answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It was surely not sent, most likely because there is no connection.
    NotSent(String),
    /// No answer in time.
    TimedOut,
    /// The connection was lost before an answer came.
    Cut,
    /// Nobody serves the subject: nothing was done.
    NoResponders,
    /// The server forbids it: nothing was done.
    Denied(String),
    /// JetStream refused it.
    Api(ApiError),
    /// The answer makes no sense.
    Garbled(&'static str),
    /// Of a write: this happened before anything was written.
    BeforeWriting(Box<Self>),
}

/// An error as JetStream's answers hold it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ApiError {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Fault {
    /// Whether JetStream answered with this code.
    pub(crate) fn is_api(&self, code: u64) -> bool {
        matches!(self, Self::Api(error) if error.err_code == code)
    }

    /// Whether a conditional write was refused because the condition failed.
    pub(crate) fn is_conflict(&self) -> bool {
        self.is_api(code::WRONG_SEQUENCE) || self.is_api(code::WRONG_SEQUENCE_UNDER_WAY)
    }

    /// Whether the bucket may have gone.
    pub(crate) fn is_no_bucket(&self) -> bool {
        matches!(self, Self::NoResponders) || self.is_api(code::NO_STREAM)
    }

    /// The error of a read that met this.
    pub(crate) fn of_read(self, what: impl fmt::Display) -> StoreError {
        let kind = self.kind();
        StoreError::new(kind, format_args!("{what}: {self}"))
    }

    /// The error of a write that met this. Its fate is unknown, unless it was
    /// surely not sent or refused.
    pub(crate) fn of_write(self, what: impl fmt::Display) -> StoreError {
        let kind = match (&self, self.kind()) {
            (Self::TimedOut | Self::Cut | Self::Garbled(_), _) => StoreErrorKind::Unknown,
            // An error that is not known to come before anything was stored.
            (Self::Api(error), StoreErrorKind::Unavailable) if !error.is_before_storing() => {
                StoreErrorKind::Unknown
            }
            (_, kind) => kind,
        };
        StoreError::new(kind, format_args!("{what}: {self}"))
    }

    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::NotSent(_) | Self::TimedOut | Self::Cut | Self::NoResponders => {
                StoreErrorKind::Unavailable
            }
            Self::Denied(_) => StoreErrorKind::Unfit,
            Self::Garbled(_) => StoreErrorKind::Unavailable,
            Self::Api(error) => error.kind(),
            Self::BeforeWriting(fault) => fault.kind(),
        }
    }
}

impl ApiError {
    fn kind(&self) -> StoreErrorKind {
        let unfit =
            code::NO_SPACE.contains(&self.err_code) || code::NOT_OFFERED.contains(&self.err_code);
        match self.code {
            _ if unfit => StoreErrorKind::Unfit,
            // The bucket was there when it was opened, and will be made anew.
            _ if self.err_code == code::NO_STREAM => StoreErrorKind::Unavailable,
            _ if self.err_code == code::NO_PEERS => StoreErrorKind::Unavailable,
            400..500 if self.code != 408 => StoreErrorKind::Unfit,
            _ => StoreErrorKind::Unavailable,
        }
    }

    fn is_before_storing(&self) -> bool {
        matches!(
            self.err_code,
            code::NO_STREAM | code::CLUSTER_NOT_AVAILABLE | code::CLUSTER_NOT_LEADER
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "not sent: {why}"),
            Self::TimedOut => f.write_str("no answer within the operation timeout"),
            Self::Cut => f.write_str("the connection was lost before an answer came"),
            Self::NoResponders => f.write_str("nobody serves it: the bucket or its leader is gone"),
            Self::Denied(what) => write!(f, "the server forbids it: {what}"),
            Self::Api(error) => {
                let ApiError {
                    description,
                    err_code,
                    ..
                } = error;
                write!(f, "the server says: {description} (error {err_code})")?;
                match *err_code {
                    code::CONSUMERS_FULL => f.write_str("; raise max_consumers of the stream"),
                    _ => Ok(()),
                }
            }
            Self::BeforeWriting(fault) => fault.fmt(f),
            Self::Garbled(what) => write!(f, "the server's answer makes no sense: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, err_code: u64) -> Fault {
        Fault::Api(ApiError {
            code,
            err_code,
            description: "words".to_owned(),
        })
    }

    #[test]
    fn a_write_is_unknown_unless_it_was_surely_not_done() {
        use StoreErrorKind::{Unavailable, Unfit, Unknown};
        for (fault, kind) in [
            (Fault::TimedOut, Unknown),
            (Fault::Cut, Unknown),
            (Fault::Garbled("ack"), Unknown),
            (Fault::NotSent("down".to_owned()), Unavailable),
            (Fault::NoResponders, Unavailable),
            (Fault::BeforeWriting(Box::new(Fault::TimedOut)), Unavailable),
            (Fault::Denied("publish".to_owned()), Unfit),
            (api(503, 10047), Unfit),
            (api(503, 10077), Unfit),
            (api(503, 10008), Unavailable),
            (api(404, 10059), Unavailable),
            (api(500, 12345), Unknown),
            (api(400, 10003), Unfit),
        ] {
            let text = format!("{fault:?}");
            assert_eq!(fault.of_write("write").kind(), kind, "{text}");
        }
    }

    #[test]
    fn a_read_is_never_unknown() {
        for fault in [
            Fault::TimedOut,
            Fault::Cut,
            Fault::Garbled("x"),
            api(500, 1),
        ] {
            let error = fault.of_read("read");
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        }
    }

    #[test]
    fn both_codes_of_a_lost_compare_and_set_are_conflicts() {
        assert!(api(400, 10071).is_conflict() && api(400, 10164).is_conflict());
        assert!(!api(400, 10070).is_conflict());
    }
}
