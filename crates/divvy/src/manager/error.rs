//! What can go wrong with a manager, and what to do about it.

use std::time::Duration;

use divvy_core::leader::State;
use divvy_core::store::{StoreError, Token};
use divvy_core::{Error, Invalid, Partition};

use super::settings::span::Span;

/// Why a manager could not do something. What is running is not touched by
/// any of these: that is what deadlines are for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A setting breaks a rule. Fix the field that the message names.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// Every stable id in range is claimed, and stayed so for as long as a
    /// start may take. Raise `worker_id_max`.
    #[error("all stable ids in range are claimed: {prefix}-{first} to {prefix}-{last}")]
    StableIdExhausted {
        /// What ids begin with.
        prefix: Box<str>,
        /// The first number.
        first: u32,
        /// The last number.
        last: u32,
    },

    /// The store is not reached. Nothing has to be done: work stops at its
    /// deadline, and goes on by itself when the store is back.
    #[error("connection to the store lost: {0}")]
    ConnectionLost(Box<str>),

    /// The store was never reached, for as long as a start may try. Check its
    /// address, and whether it runs.
    #[error("the store was not reached {0}")]
    Unreached(Box<str>),

    /// The lease could not be renewed in time, and work stops before it ends.
    /// Nothing has to be done: it goes on by itself when the store answers, or
    /// with another id when others have taken over.
    #[error("the lease runs out: no renewal was acknowledged for {}; work stops until one is", Span(*silent))]
    LeaseRunsOut {
        /// For how long.
        silent: Duration,
    },

    /// The store cannot be used as it is. Its message says what to change.
    #[error(transparent)]
    Store(#[from] StoreError),

    /// The grant is over: its assignment is not the one in force any more.
    /// Whoever has it now goes on with the work.
    #[error("stale assignment: the grant of '{partition}' with token {} is over", token.get())]
    StaleAssignment {
        /// Of which partition.
        partition: Partition,
        /// Its token.
        token: Token,
    },

    /// The election agent failed or did not answer in time. It is asked again.
    #[error("leader election failed: {0}")]
    ElectionFailed(Box<str>),

    /// A hook failed, panicked or took too long.
    #[error("hook {hook}{}: {message}", of_partition(partition.as_ref()))]
    Hook {
        /// Which.
        hook: &'static str,
        /// The partition that it was called for, if it was for one.
        partition: Option<Partition>,
        /// What happened.
        message: Box<str>,
    },

    /// The first assignment was not in within `startup_timeout`, open windows
    /// not counted. Nothing was left behind.
    #[error("start was not done within {limit:?}, and ended {}{}", state_name(*state), because(last.as_deref()))]
    StartTimedOut {
        /// How long it may take.
        limit: Duration,
        /// How far it came.
        state: State,
        /// What was last seen to be wrong.
        last: Option<Box<str>>,
    },

    /// Leaving was not done within `shutdown_timeout`: the id was not given
    /// back, and others wait for the lease to end.
    #[error("stop was not done within {limit:?}; others take over when the lease is over")]
    StopTimedOut {
        /// How long it may take.
        limit: Duration,
    },

    /// Something that needs a person, or mends itself.
    #[error("{0}")]
    Problem(Box<str>),

    /// The manager has ended.
    #[error("the manager has ended: {0}")]
    Ended(Box<str>),
}

impl ManagerError {
    /// Which of these it is, in the words of events and logs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::StableIdExhausted { .. } => "stable_id_exhausted",
            Self::ConnectionLost(_) => "connection_lost",
            Self::Unreached(_) => "unreached",
            Self::LeaseRunsOut { .. } => "lease_runs_out",
            Self::Store(_) => "store",
            Self::StaleAssignment { .. } => "stale_assignment",
            Self::ElectionFailed(_) => "election_failed",
            Self::Hook { .. } => "hook",
            Self::StartTimedOut { .. } => "start_timed_out",
            Self::StopTimedOut { .. } => "stop_timed_out",
            Self::Problem(_) => "problem",
            Self::Ended(_) => "ended",
        }
    }
}

impl From<Error> for ManagerError {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(invalid) => Self::Invalid(invalid),
            other => Self::Problem(other.to_string().into()),
        }
    }
}

/// A state in the words of settings, metrics and messages.
pub fn state_name(state: State) -> &'static str {
    match state {
        State::Init => "init",
        State::ClaimingId => "claiming_id",
        State::Election => "election",
        State::WaitingAssignment => "waiting_assignment",
        State::Stable => "stable",
        State::Scaling => "scaling",
        State::Rebalancing => "rebalancing",
        State::Emergency => "emergency",
        State::Shutdown => "shutdown",
    }
}

fn of_partition(partition: Option<&Partition>) -> String {
    partition.map_or_else(String::new, |partition| format!(" of '{partition}'"))
}

fn because(last: Option<&str>) -> String {
    last.map_or_else(String::new, |last| format!(": {last}"))
}
