//! Stores: what members of a cluster coordinate through.
//!
//! There are two contracts, as small as the two modes need. [`KeyValue`] is a
//! key-value store with compare-and-set, for leader mode: no expiry, no fresh
//! reads, no order between keys. [`Leases`] is a store of leases that expire by
//! themselves, for lease mode. The same semantics as pure values, which every
//! store has to agree with, are `KeyValueTable` and `LeaseTable` of
//! `divvy_core::store`.
//!
//! | store | address | serves | [`KeyValue`] | [`Leases`] | feature |
//! | --- | --- | --- | --- | --- | --- |
//! | memory | `memory` | one process | yes | yes | always there |
//! | file | `file:PATH` | all processes of one machine | yes | yes | `file` |
//! | NATS | `nats://…`, `tls://…` | a fleet | yes | no | `nats` |
//! | Redis, Valkey | `redis://…`, `rediss://…`, `redis+unix://…` | a fleet | yes | yes | `redis` |
//!
//! Three things that a caller gets wrong easily:
//!
//! - A lost compare-and-set is [`Outcome::Conflict`], a value. A
//!   [`StoreError`] says what to do by its kind, and
//!   [`StoreErrorKind::Unknown`] means that the write may have happened or may
//!   still happen: read before deciding.
//! - A watch is a hint. It may be late, repeat itself or miss what was
//!   overwritten; decide only by compare-and-set.
//! - Reads may be stale, for the same reason.

// What stores share is not all used without every one of them.
#![cfg_attr(
    not(all(feature = "file", feature = "nats", feature = "redis")),
    allow(dead_code)
)]

pub(crate) mod backoff;
mod bounds;
mod choice;
pub(crate) mod clock;
pub(crate) mod clusters;
mod connection;
mod erase;
mod memory;
mod notices;
mod open;
mod secret;
mod settings;
mod url;
mod watch;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "file")]
pub mod file;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "redis")]
pub mod redis;

pub use bounds::{BATCH_MAX, LIST_MAX, TTL_MAX, TTL_MIN, VALUE_BYTES_MAX};
pub use choice::{Choice, LeaseStoreChoice, StoreChoice};
pub use connection::{Connection, ConnectionReport};
pub use divvy_core::store::{
    Acquired, Beaten, CHUNK_BYTES_MAX, CHUNKS_MAX, Change, ChunkManifest, Claim, Entry, Expected,
    GivingUp, GroupDocument, Heartbeat, Holder, Incarnation, KEY_BYTES_MAX, KEY_PARTS_MAX, Key,
    LEASE_NAME_BYTES_MAX, LeaseKey, LeaseName, LeaseNotice, MOVE_LINES_MAX, MOVES_PER_CALL_MAX,
    Member, Nonce, Outcome, Prefix, Quarantine, QuarantineId, QuarantineReport, Revision,
    SessionStart, StoreError, StoreErrorKind, Tenure, Token, WorkerId, WorkerInfo, check_moves,
    decode_part, encode_part, with_moves,
};
pub use erase::{erase_key_value, erase_leases};
pub use memory::{MemoryKeyValue, MemoryLeases};
pub use notices::{LeaseNotices, NoticeBoard};
pub use open::{open_key_value, open_leases};
pub use secret::{Secret, SecretSource};
pub use settings::{Credentials, StoreSettings, Tls};
pub use url::{StoreKind, StoreUrl};
pub use watch::{Hint, Hints, Notice, Watch};

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

/// What every store can say of itself.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// What it is, for people: kind, server and version, address without
    /// credentials.
    fn describe(&self) -> String;

    /// Which life of the store this is. Another one than before means that it
    /// may have forgotten what it acknowledged.
    async fn incarnation(&self) -> Result<Incarnation, StoreError>;

    /// Whether it is reached, as it changes. Whoever relies on watches or
    /// notices reads everything again when [`Connection::connects`] has grown.
    fn connection(&self) -> tokio::sync::watch::Receiver<Connection>;

    /// The number of the present connection: another one for each, from before
    /// the first request goes out on it. What was asked and answered while it
    /// stayed the same came from one life of the store.
    ///
    /// A store around another one passes on the number of the inner store. One
    /// that reports each connection before it uses it returns
    /// [`Connection::connects`].
    fn connects(&self) -> u64;

    /// Whether it can lose what it acknowledged, while those who use it live
    /// on. Only where that is impossible, a very first start need not wait for
    /// a lease that somebody forgotten might have.
    fn forgets(&self) -> bool {
        true
    }
}

/// A key-value store with compare-and-set, bound to one cluster's keys.
///
/// Every operation ends within the operation timeout of its settings. One that
/// failed with [`StoreErrorKind::Unknown`] may still be applied later, once.
#[async_trait]
pub trait KeyValue: Store {
    /// The value of `key`, perhaps a stale one.
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError>;

    /// Writes `value` if `key` is as `expected`, and gives its new revision.
    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError>;

    /// Deletes `key` if its value is still that of `revision`, and gives the
    /// revision of the deletion.
    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError>;

    /// All keys that `prefix` holds with their values, in order of their text; no
    /// snapshot. More than [`LIST_MAX`] are refused.
    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError>;

    /// What `prefix` holds now, and from then on what changes there.
    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError>;

    /// The largest value that this store takes, in bytes: at most
    /// [`VALUE_BYTES_MAX`], and at most half of what a server's message may
    /// hold. What is larger is written in [chunks](ChunkManifest).
    fn value_bytes_max(&self) -> usize;
}

/// A store of leases that expire by themselves, bound to one cluster's
/// workers. Leases, cooldown marks and groups are shared by all clusters of a
/// store.
///
/// Lists are answered in their order; at most [`BATCH_MAX`] at a time. Times
/// to live are in [`TTL_MIN`]..=[`TTL_MAX`].
#[async_trait]
pub trait Leases: Store {
    /// The cluster whose workers it is bound to.
    fn cluster(&self) -> &str;

    /// Takes those of the leases that nobody holds. Each claim brings a nonce
    /// of its own, never used before.
    async fn acquire(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, StoreError>;

    /// Lets leases run for `ttl` from now, where the tenure is still current.
    async fn renew(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, StoreError>;

    /// Ends leases where the tenure is still current, and tells the others.
    async fn release(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
    ) -> Result<Vec<Tenure>, StoreError>;

    /// Who holds these leases.
    async fn holders(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, StoreError>;

    /// Takes a worker's name for a session, if no other session has it. A
    /// session that has it already goes on for `ttl`, so that asking again is
    /// safe where an answer was lost.
    async fn open_session(
        &self,
        worker: &LeaseName,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, StoreError>;

    /// A heartbeat: the session goes on for `session_ttl`, and the worker is a
    /// live member for `heartbeat_ttl`, with what it says of itself. The first
    /// one, and one that says something new, tells the others.
    ///
    /// In the same step, and also if the session is over, the store takes in
    /// the report of the heartbeat as [`Quarantine::report`] does. A store that
    /// restarted, or finds no quarantine, begins one with [`Quarantine::begin`]
    /// and another id; until that is over, [`Leases::acquire`] grants nothing.
    /// A store that cannot forget leases answers with [`Quarantine::default`].
    async fn beat(&self, worker: &LeaseName, heartbeat: &Heartbeat) -> Result<Beaten, StoreError>;

    /// Ends a session and its membership at once, and tells the others.
    async fn leave(&self, worker: &LeaseName, session: Nonce) -> Result<Tenure, StoreError>;

    /// The live workers of this cluster, in order of their names.
    async fn members(&self) -> Result<Vec<Member>, StoreError>;

    /// Marks partitions as moved, for as long as their cooldown lasts.
    async fn mark_moved(&self, keys: &[LeaseKey], cooldown: Duration) -> Result<(), StoreError>;

    /// Which of these partitions were moved so lately that they have to stay.
    async fn cooling(&self, keys: &[LeaseKey]) -> Result<Vec<bool>, StoreError>;

    /// All groups and their documents, in order of their names.
    async fn groups(&self) -> Result<Vec<GroupDocument>, StoreError>;

    /// Adds or replaces a group, and tells the others.
    async fn set_group(&self, name: &LeaseName, json: &str) -> Result<(), StoreError>;

    /// Removes a group, tells the others, and says whether it was there.
    async fn remove_group(&self, name: &LeaseName) -> Result<bool, StoreError>;

    /// What operators wish of this cluster, as text: who reads it judges it.
    async fn wishes(&self) -> Result<Option<String>, StoreError>;

    /// Writes what operators wish if it still is `before`, tells the members,
    /// and says whether it was written. At most [`CONTROL_BYTES_MAX`] bytes.
    ///
    /// [`CONTROL_BYTES_MAX`]: divvy_core::CONTROL_BYTES_MAX
    async fn set_wishes(&self, before: Option<&str>, wishes: &str) -> Result<bool, StoreError>;

    /// Adds lines to this cluster's log of moves, of which the last
    /// [`MOVES_BYTES_MAX`] bytes stay. At most [`MOVES_PER_CALL_MAX`] lines.
    ///
    /// [`MOVES_BYTES_MAX`]: divvy_core::MOVES_BYTES_MAX
    async fn log_moves(&self, moves: &[String]) -> Result<(), StoreError>;

    /// This cluster's log of moves, oldest first.
    async fn moves(&self) -> Result<Vec<String>, StoreError>;

    /// What happens from now on. Notices may be lost; they only save time.
    async fn notices(&self) -> Result<LeaseNotices, StoreError>;
}
