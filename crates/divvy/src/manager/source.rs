//! Where partitions come from.

mod command;
mod file;

pub use command::CommandSource;
pub use file::FileSource;

use std::sync::Arc;

use async_trait::async_trait;
use divvy_core::{Error, Invalid, Partitions};

use super::hooks::HookError;

/// Says which partitions there are. Asked when a worker begins to lead, when
/// somebody asks for a refresh, and every `partition_poll_interval` where that
/// is set; within `operation_timeout`, and again by the settings of
/// [`Retry`](super::Retry).
///
/// A list that has lost more than half of its partitions, or all, is believed
/// only when it is given twice: a broken source must not stop the world.
///
/// ```
/// use async_trait::async_trait;
/// use divvy::Partitions;
/// use divvy::manager::{HookError, PartitionSource};
///
/// /// A shard for each table of a database, as it is now.
/// struct Tables;
///
/// #[async_trait]
/// impl PartitionSource for Tables {
///     async fn list_partitions(&self) -> Result<Partitions, HookError> {
///         let tables = ["orders", "users"]; // asked for, in a real one
///         Ok(Partitions::shards(tables.map(|table| (table, 16)))?)
///     }
/// }
/// ```
#[async_trait]
pub trait PartitionSource: Send + Sync + 'static {
    /// All partitions.
    async fn list_partitions(&self) -> Result<Partitions, HookError>;

    /// Waits until they may have changed; without an implementation, for ever.
    /// Everybody follows it, and the leader then lists, once a second at most.
    /// One that panics is not followed any more, which is told.
    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

/// Partitions that never change.
///
/// ```
/// use divvy::manager::StaticSource;
///
/// let listed = StaticSource::new(divvy::Partitions::new([
///     divvy::Partition::new(["tool001", "chamber1"])?.with_weight(100)?,
///     divvy::Partition::new(["tool001", "chamber2"])?.with_weight(150)?,
/// ])?);
/// let shards = StaticSource::shards(["orders", "users"], 64)?;
/// assert_eq!(shards.partitions().len(), 128);
/// # Ok::<(), divvy::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StaticSource {
    partitions: Partitions,
}

impl StaticSource {
    /// These partitions.
    pub fn new(partitions: Partitions) -> Self {
        Self { partitions }
    }

    /// So many shards of each group, at least 1: `group:0` and on.
    pub fn shards<'a>(
        groups: impl IntoIterator<Item = &'a str>,
        shards_per_group: u32,
    ) -> Result<Self, Error> {
        if shards_per_group == 0 {
            return Err(Invalid::new("shards per group", 0, "must be at least 1").into());
        }
        let groups = groups.into_iter().map(|group| (group, shards_per_group));
        Ok(Self::new(Partitions::shards(groups)?))
    }

    /// The partitions.
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }
}

#[async_trait]
impl<S: PartitionSource + ?Sized> PartitionSource for Arc<S> {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        (**self).list_partitions().await
    }

    async fn changed(&self) {
        (**self).changed().await;
    }
}

#[async_trait]
impl PartitionSource for StaticSource {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        Ok(self.partitions.clone())
    }
}
