//! Stores in a Redis or Valkey server, of version 6.2 or newer.
//!
//! [`RedisLeases`] keeps the layout of keys that other lease-mode agents use
//! (`lease:…`, `node:…`, `cfg:…`), so both can share a server, and puts what
//! it needs beyond that below `divvy:`. [`RedisKeyValue`] uses keys below
//! `divvy:kv:` only. Everything that decides runs in Lua scripts, which Redis
//! executes one at a time.
//!
//! One server, or one primary with replicas behind a fixed address; Redis
//! Cluster and read-only replicas are refused. So is a server that may evict
//! keys, for it would evict leases.

mod endpoint;
mod erasing;
mod examination;
mod failure;
mod groups;
mod incarnation;
mod key_value;
mod layout;
mod leases;
mod link;
mod members;
mod notes;
mod reply;
mod script;
mod server;
mod set;
mod subscription;
mod tls;

pub(super) use erasing::clusters;
pub(crate) use examination::examine;
pub(crate) use failure::NO_LOGIN;
pub use key_value::RedisKeyValue;
pub use leases::RedisLeases;
