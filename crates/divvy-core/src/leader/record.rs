//! The words of leader mode: sessions, versions, states, and what the records
//! in the store hold.

use std::fmt;
use std::time::Duration;

use crate::store::{Incarnation, Revision, Token};
use crate::worker::Health;

/// One life of a worker: a random number, drawn anew for each claim of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u128);

/// Which root this is. Epochs count leaders, versions the roots of one epoch;
/// both together only increase within an incarnation of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version {
    /// The leader's epoch: at least the milliseconds of its wall clock.
    pub epoch: u64,
    /// The root's number in it.
    pub number: u32,
}

/// Versions of one epoch; a leader seals anew before it runs out of them.
pub const VERSION_NUMBER_MAX: u32 = (1 << 20) - 1;
/// The largest epoch: the last whose tokens fit.
pub const EPOCH_MAX: u64 = (1 << 43) - 1;

impl Version {
    /// The fencing token of grants that this root makes: epoch x 2^20 +
    /// number. Nothing if it does not fit.
    pub fn token(self) -> Option<Token> {
        let epoch = i64::try_from(self.epoch).ok()?;
        let high = epoch.checked_mul(1 << 20)?;
        Token::new(high.checked_add(i64::from(self.number))?)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.number)
    }
}

/// What a member is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not started.
    Init,
    /// Looking for a stable id.
    ClaimingId,
    /// Waiting to know who leads.
    Election,
    /// Waiting for the first assignment.
    WaitingAssignment,
    /// Working.
    Stable,
    /// The cluster waits for workers before it places partitions. Followers
    /// show this until the first assignment; only the leader shows it when
    /// workers join later.
    Scaling,
    /// Partitions are being moved. Followers show this while the assignment
    /// asks any worker to give partitions back.
    Rebalancing,
    /// Partitions of a crashed worker are being handed on. Only the leader
    /// shows this: followers learn of it by the assignment that ends it.
    Emergency,
    /// Stopping.
    Shutdown,
}

/// How far a cluster has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lifecycle {
    /// Nothing was ever assigned, or everyone restarted.
    ColdStart,
    /// The first assignment after that is in force.
    PostColdStart,
    /// Ordinary operation.
    Stable,
}

/// What the first grants of a cluster wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The store is new, has restarted or lost its data, and leases that it
    /// forgot may not have expired.
    Quarantine,
    /// More workers may join.
    Workers,
}

/// How to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Hand everything over at once.
    Leave,
    /// Keep id and partitions reserved: this worker will be back.
    Return {
        /// For how long; beyond [`TIMING_MAX`](super::TIMING_MAX) it is cut.
        within: Duration,
    },
}

/// The record `leader`: who leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderRecord {
    /// Its epoch.
    pub epoch: u64,
    /// Its session.
    pub session: SessionId,
    /// Counts its renewals.
    pub beat: u64,
    /// How long others wait, without seeing a change, before they take over.
    pub lease: Duration,
}

/// A record `w.<stable id>`: what a worker says of itself. Never deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRecord {
    /// Which instance claimed the id.
    pub instance: Box<str>,
    /// Its session.
    pub session: SessionId,
    /// Counts its renewals.
    pub beat: u64,
    /// Its lease length L: how long others wait, without seeing a change.
    pub lease: Duration,
    /// Whether the session goes on.
    pub life: Life,
    /// The newest root whose revocations it has carried out, but for
    /// `stopping`.
    pub acked: Version,
    /// Partitions, by the native hash of their text, whose stop hook is still
    /// running.
    pub stopping: Vec<u64>,
    /// The newest root that it has adopted.
    pub adopted: Version,
    /// The highest token that it was ever given, or that the record it replaced
    /// told of.
    pub token_max: Option<Token>,
    /// Whether it may own partitions.
    pub health: Health,
    /// Its capacity in relation to the others.
    pub weight: f64,
    /// Its zone.
    pub zone: Option<Box<str>>,
    /// Counts requests of its application to read the partitions anew.
    pub refresh: u64,
    /// The newest epoch that its process knew of when it found that the store
    /// had forgotten, until a quarantine of a later epoch answers that; else
    /// 0.
    pub alarm: u64,
    /// Partitions, by the native hash of their text and in order, that it could
    /// not start: others shall have them for now, if there are any.
    pub unable: Vec<u64>,
    /// The longest lease that its process has known any worker to have, at
    /// least its own: what a store that forgot cannot say any more.
    pub longest: Duration,
}

impl WorkerRecord {
    /// The record of a session that says nothing of itself.
    pub(super) fn of_nobody(
        instance: &str,
        session: SessionId,
        life: Life,
        lease: Duration,
    ) -> Self {
        Self {
            instance: instance.into(),
            session,
            beat: 0,
            lease,
            life,
            acked: Version::default(),
            stopping: Vec::new(),
            adopted: Version::default(),
            token_max: None,
            health: Health::Healthy,
            weight: 0.0,
            zone: None,
            refresh: 0,
            alarm: 0,
            unable: Vec::new(),
            longest: lease,
        }
    }
}

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Live,
    /// It was ended by a leader that saw no renewal.
    Fenced,
    /// It ended itself.
    Left {
        /// How long its partitions are kept for the same id.
        keep_for: Duration,
    },
}

/// The record `root`: who holds what.
#[derive(Debug, Clone, PartialEq)]
pub struct Root {
    /// The life of the store that it was written in.
    pub incarnation: Incarnation,
    /// Which root it is.
    pub version: Version,
    /// How far the cluster has come.
    pub lifecycle: Lifecycle,
    /// Whether the store has forgotten something, and nothing is granted until
    /// everyone is known to have stopped.
    pub quarantine: bool,
    /// The epoch of the last root that set a quarantine, 0 if none did: what
    /// a worker found that knew only older epochs is answered.
    pub answered: u64,
    /// The longest lease of the sessions that it names.
    pub lease: Duration,
    /// The sessions that entries name by index.
    pub sessions: Vec<SessionEntry>,
    /// The entry of each partition, in the order of the partition list.
    pub holdings: Vec<Holding>,
}

impl Root {
    /// Whether workers have yet to confirm that they have stopped something.
    pub(super) fn awaits_words(&self) -> bool {
        let is_revoking = |holding: &Holding| matches!(holding, Holding::Revoking { .. });
        self.quarantine || self.holdings.iter().any(is_revoking)
    }
}

/// A session that holds, or has to give back, partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEntry {
    /// The session.
    pub session: SessionId,
    /// Its stable id.
    pub worker: Box<str>,
    /// The revision of its record that its grants were based on.
    pub seen: Revision,
}

/// Who holds a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// Nobody.
    None,
    /// A session, by its index, with the token that it was granted with.
    Held {
        /// Index of the session.
        session: u32,
        /// Its token.
        token: Token,
    },
    /// A session that has been asked to stop, and may not have stopped yet.
    Revoking {
        /// Index of the session.
        session: u32,
        /// The root that asked it.
        since: Version,
    },
}

impl Holding {
    /// The index of the session that has it, or may still have it.
    pub const fn session(&self) -> Option<u32> {
        match *self {
            Self::None => None,
            Self::Held { session, .. } | Self::Revoking { session, .. } => Some(session),
        }
    }
}
