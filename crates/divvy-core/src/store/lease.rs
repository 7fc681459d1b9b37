//! The words of lease mode: who holds which lease, by which token, for how
//! long.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Invalid};
use crate::name;
use crate::store::quarantine::{Quarantine, QuarantineReport};
use crate::worker::{WORKER_WEIGHT_DEFAULT, WORKER_WEIGHT_MAX, WORKER_WEIGHT_MIN, is_weight};

/// Longest name of a cluster, worker or group in lease mode, in bytes.
pub const LEASE_NAME_BYTES_MAX: usize = 256;
/// Most groups that a worker can say it serves.
pub(crate) const SERVED_GROUPS_MAX: usize = 1000;
/// Longest description of a worker, in bytes.
const WORKER_INFO_BYTES_MAX: usize = 64 * 1024;

/// A name that lease mode writes into keys as it is: of a cluster, a worker or
/// a group. The layout of those keys is shared with other systems, so what
/// would be ambiguous in it is refused, not encoded.
///
/// ```
/// use divvy_core::store::LeaseName;
///
/// assert_eq!(LeaseName::new("group", "orders")?.as_str(), "orders");
/// assert!(LeaseName::new("group", "orders:eu").is_err());
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseName(Box<str>);

impl LeaseName {
    /// The name of `what`: 1..=[`LEASE_NAME_BYTES_MAX`] bytes, no control
    /// characters, none of `: | { }`.
    pub fn new(what: &'static str, name: &str) -> Result<Self, Invalid> {
        name::check(what, name, LEASE_NAME_BYTES_MAX)?;
        match name.chars().find(|c| matches!(c, ':' | '|' | '{' | '}')) {
            Some(bad) => {
                let rule = format!("must not contain '{bad}', which parts a lease's key");
                Err(Invalid::new(what, name, rule))
            }
            None => Ok(Self(name.into())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A worker of a cluster, written `cluster:name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId {
    /// Its cluster.
    pub cluster: LeaseName,
    /// Its name there.
    pub name: LeaseName,
}

impl WorkerId {
    /// The worker `name` of `cluster`.
    pub fn new(cluster: &str, name: &str) -> Result<Self, Invalid> {
        Ok(Self {
            cluster: LeaseName::new("cluster", cluster)?,
            name: LeaseName::new("worker", name)?,
        })
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.cluster, self.name)
    }
}

impl FromStr for WorkerId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parts = text.split_once(':');
        let (cluster, name) =
            parts.ok_or_else(|| Invalid::new("worker", text, "must be cluster:name"))?;
        Self::new(cluster, name)
    }
}

/// What a lease is for: the partition with this number in a group, written
/// `group:number`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey {
    /// The group.
    pub group: LeaseName,
    /// The partition's number in it.
    pub number: u32,
}

impl LeaseKey {
    /// Partition `number` of `group`.
    pub fn new(group: &str, number: u32) -> Result<Self, Invalid> {
        Ok(Self {
            group: LeaseName::new("group", group)?,
            number,
        })
    }
}

impl fmt::Display for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.group, self.number)
    }
}

/// What tells one tenure from every other: a random number, drawn anew for
/// each attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(u128);

impl Nonce {
    /// The nonce with these random bits.
    pub const fn new(bits: u128) -> Self {
        Self(bits)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Nonce {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refused = || Invalid::new("nonce", text, "must be 32 hexadecimal digits");
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(refused());
        }
        u128::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_error| refused())
    }
}

/// A fencing token. Those of one partition strictly increase from grant to
/// grant, so that a resource can refuse whoever comes with an older one.
/// Written in decimal digits; never as a floating-point number, which would
/// round it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(i64);

impl Token {
    /// The token with this number, which is above 0.
    pub const fn new(number: i64) -> Option<Self> {
        match number {
            1.. => Some(Self(number)),
            _ => None,
        }
    }

    /// The number, for a resource that compares.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The token of a lease that is granted at `unix_ms` on the store's clock
    /// after `last`: above the last, and above what a store that forgot the
    /// last can have granted before.
    pub fn after(last: Option<Self>, unix_ms: u64) -> Self {
        let floor = i64::try_from(unix_ms.saturating_mul(1024)).unwrap_or(i64::MAX);
        let next = last.map_or(1, |token| token.0.saturating_add(1));
        Self(next.max(floor).max(1))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Token {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digits = text.bytes().all(|digit| digit.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits).and_then(Self::new);
        number.ok_or_else(|| Invalid::new("token", text, "must be a whole number above 0"))
    }
}

/// One tenure of a lease, or the wish for one: which lease, and the nonce that
/// it was or shall be taken with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The lease.
    pub key: LeaseKey,
    /// Its tenure.
    pub nonce: Nonce,
}

/// What became of the wish for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// It is granted, with this token.
    Granted(Token),
    /// Somebody has it, perhaps an earlier tenure of the same worker.
    Held,
    /// Nobody gets it yet: the store restarted or lost its data, and leases
    /// that it forgot may still be in use.
    Quarantined,
}

/// Whether a tenure, of a lease or of a session, was still the current one
/// when the store looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a tenure that is over gives no right to work"]
pub enum Tenure {
    /// It was, and what was asked has been done.
    Current,
    /// It was not: expired, or somebody else's. Nothing was changed.
    Over,
}

/// Something that a lease store's client may want to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseNotice {
    /// This group's document was written or removed.
    Group(String),
    /// A worker of this cluster joined, left, or says something new of itself.
    Members,
    /// This lease was released.
    Released(LeaseKey),
    /// Notices may have been lost: read everything again.
    Resync,
}

/// What the store knows of a lease that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The holder's id, `cluster:name`, as it was written.
    pub worker: String,
    /// How long the lease still runs; [`Self::ENDLESS`] if it never expires.
    pub left: Duration,
    /// Token and nonce of the last tenure that was granted with one. A holder
    /// that follows only the shared layout mints none, so they may be those of
    /// an earlier tenure.
    pub fence: Option<(Token, Nonce)>,
}

impl Holder {
    /// What is left of a lease that never expires: no worker takes one for
    /// longer.
    pub const ENDLESS: Duration = Duration::from_hours(24);

    /// Whether the lease never expires: another program wrote it, or took its
    /// time to live away.
    pub fn is_endless(&self) -> bool {
        self.left >= Self::ENDLESS
    }
}

/// Whether a worker's name was free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStart {
    /// It was, or this session had it already: for the whole time from now on.
    Opened,
    /// Another session has it, and has to renew it within so long.
    Taken(Duration),
}

/// A heartbeat: it renews a session and keeps its worker a live member.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    /// The session.
    pub session: Nonce,
    /// What the worker says of itself.
    pub info: WorkerInfo,
    /// How long it is a live member.
    pub heartbeat_ttl: Duration,
    /// How long it has its name.
    pub session_ttl: Duration,
    /// What it knows of the store's quarantine. It counts also when the session
    /// is over.
    pub report: QuarantineReport,
}

impl Heartbeat {
    /// A heartbeat that reports nothing of quarantines.
    pub fn new(session: Nonce, info: WorkerInfo, heartbeat_ttl: Duration, ttl: Duration) -> Self {
        Self {
            session,
            info,
            heartbeat_ttl,
            session_ttl: ttl,
            report: QuarantineReport::default(),
        }
    }
}

/// What a store answers to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a session that is over gives no right to work"]
pub struct Beaten {
    /// Whether the session was current.
    pub tenure: Tenure,
    /// The store's quarantine, after the report of this heartbeat.
    pub quarantine: Quarantine,
}

/// What a worker says of itself with every heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerInfo {
    /// Its capacity in relation to the others.
    pub weight: f64,
    /// Whether it may take partitions.
    pub healthy: bool,
    /// Whether its own people want it to give up everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// Whether the store grants it nothing yet: for those who look on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quarantined: bool,
    /// How long its leases last, in milliseconds: the others remember the
    /// longest, for a store that forgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<u64>,
    /// The groups that it serves; nothing means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// How many partitions each of them has, as this worker knows it: it is
    /// given none beyond. What is not named has any number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub partitions: BTreeMap<String, u32>,
    /// How many partitions it owns at most; nothing means any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_partitions: Option<u32>,
    /// How many of one group it owns at most; nothing means any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_group: Option<u32>,
    /// How it gives up what another worker should have: for those who look on,
    /// nothing is decided by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gives_up: Option<GivingUp>,
    /// Partitions whose stop was not confirmed in time, some of them if there
    /// are many: for those who look on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<String>,
}

/// When a worker gives up what another should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GivingUp {
    /// It does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
    /// How long a partition runs there before, in milliseconds.
    pub min_runtime_ms: u64,
    /// How long a partition stays after it moved, in milliseconds.
    pub cooldown_ms: u64,
    /// How many it gives up at a time; 0 is any number.
    pub at_once: u32,
    /// How long such a time is, in milliseconds.
    pub every_ms: u64,
}

impl Default for WorkerInfo {
    fn default() -> Self {
        Self {
            weight: WORKER_WEIGHT_DEFAULT,
            healthy: true,
            drained: false,
            quarantined: false,
            lease_ttl_ms: None,
            groups: None,
            partitions: BTreeMap::new(),
            max_partitions: None,
            max_per_group: None,
            gives_up: None,
            unconfirmed: Vec::new(),
        }
    }
}

impl WorkerInfo {
    /// Reads what [`WorkerInfo::to_json`] wrote. Fields that a later version
    /// may add are passed over.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        if text.len() > WORKER_INFO_BYTES_MAX {
            let rule = format!("must be at most {WORKER_INFO_BYTES_MAX}");
            return Err(Invalid::new("worker info bytes", text.len(), rule).into());
        }
        // A list would be taken for the fields in their order.
        if text.trim_start().starts_with('[') {
            let rule = "must be a JSON object, such as {\"weight\": 2}";
            return Err(Invalid::new("worker info", text, rule).into());
        }
        let info: Self =
            serde_json::from_str(text).map_err(|error| Error::document("worker info", error))?;
        info.check()?;
        Ok(info)
    }

    /// Its JSON form, if it keeps the bounds.
    pub fn to_json(&self) -> Result<String, Error> {
        self.check()?;
        serde_json::to_string(self).map_err(|error| Error::document("worker info", error))
    }

    fn check(&self) -> Result<(), Invalid> {
        if !is_weight(self.weight) {
            let rule = format!("must be 0 or in {WORKER_WEIGHT_MIN}..={WORKER_WEIGHT_MAX}");
            return Err(Invalid::new("worker weight", self.weight, rule));
        }
        let groups = self.groups.as_deref().unwrap_or_default();
        if groups.len() > SERVED_GROUPS_MAX {
            let rule = format!("must be at most {SERVED_GROUPS_MAX}");
            return Err(Invalid::new("served groups", groups.len(), rule));
        }
        if self.partitions.len() > SERVED_GROUPS_MAX {
            let rule = format!("must be at most {SERVED_GROUPS_MAX}");
            return Err(Invalid::new("sized groups", self.partitions.len(), rule));
        }
        for group in groups.iter().chain(self.partitions.keys()) {
            LeaseName::new("served group", group)?;
        }
        Ok(())
    }
}

/// A live worker, as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name inside the cluster.
    pub name: String,
    /// What it says of itself, as text; nothing if it follows only the shared
    /// layout.
    pub info: Option<String>,
}

/// The configuration of a group, as text: who reads it judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDocument {
    /// The group.
    pub name: String,
    /// Its JSON document; nothing if the group is listed without one.
    pub json: Option<String>,
}
