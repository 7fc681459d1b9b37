//! HTTP for those who look after a member of a cluster: probes, metrics, what
//! it owns and why, and handing everything on.
//!
//! [`Listening`] has the port before anything else is begun, [`routes`] answers,
//! and [`divvy_http`] decides who may ask.

mod listening;
mod routes;
mod token;

pub(crate) use self::listening::Listening;
pub(crate) use self::token::{read_secret, read_token};

use async_trait::async_trait;
use serde_json::Value;

/// A member of a cluster, as it is looked at and asked by HTTP.
#[async_trait]
pub(crate) trait Attended: Send + Sync + 'static {
    /// Whether it runs; otherwise why not.
    fn health(&self) -> Result<(), String>;

    /// Whether it takes part and could have its share; otherwise why not.
    fn readiness(&self) -> Result<(), String>;

    /// What was counted and measured, in Prometheus' text form.
    fn metrics(&self) -> String;

    /// What it has.
    fn owned(&self) -> Value;

    /// Why a partition is where it is; nothing if there is no such partition.
    async fn explain(&self, partition: &str) -> Result<Option<Value>, String>;

    /// Hands on everything it has and takes nothing, or no longer does so.
    fn drain(&self, wanted: bool);

    /// Whether it hands everything on.
    fn is_draining(&self) -> bool;
}

/// A moment of the clock that all processes of this machine share, in
/// milliseconds since 1970.
pub(crate) fn unix_ms(moment: divvy::Moment) -> u64 {
    let ago = divvy::manager::now().since(moment);
    let then = std::time::SystemTime::now().checked_sub(ago);
    let then = then.and_then(|then| then.duration_since(std::time::UNIX_EPOCH).ok());
    then.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
