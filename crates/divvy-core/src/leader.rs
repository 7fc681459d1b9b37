//! Leader mode: how members of a cluster agree on one owner for every
//! partition, as a pure machine.
//!
//! ```text
//!           events, clock                        actions, next wake-up
//! driver ------------------>  Member (decides)  ------------------> driver
//! ```

mod action;
mod codec;
#[cfg_attr(not(feature = "simulation"), allow(dead_code, unreachable_pub))]
mod defect;
mod event;
mod keys;
mod member;
mod move_log;
mod record;
mod retries;
mod settings;

pub use action::{Action, Handover, HookId, Operation, OperationId, Report, Watched};
pub use codec::{
    AssembleError, Committed, EncodedRoot, INSTANCE_BYTES_MAX, ROOT_BYTES_MAX, RootHead,
    STOPPING_MAX, STRUCK_OUT, UNABLE_MAX, chunk_version, encode_root,
};
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub use defect::Defect;
pub use event::{Clock, Event, HookEnd, Reply, SelfDescription};
pub use keys::Keys;
pub use member::{Batches, Holder, Member, MemberSetup};
pub use record::{
    EPOCH_MAX, Holding, LeaderRecord, Life, Lifecycle, Root, SessionEntry, SessionId, Shutdown,
    State, VERSION_NUMBER_MAX, Version, Wait, WorkerRecord,
};
pub use retries::Retries;
pub use settings::{
    CLOCK_DRIFT_PER_MILLE, LEASE_MIN, LeaderSettings, Overdue, START_ATTEMPTS_MAX, StoreOutage,
    TIMING_MAX, WORKER_ID_PREFIX_BYTES_MAX, WORKER_IDS_MAX,
};
