//! Where a worker's partitions come from.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use async_trait::async_trait;
use divvy::manager::{FileSource, HookError, PartitionSource, Settings};
use divvy::{PARTITIONS_MAX, Partitions};

use crate::args::WorkerArgs;
use crate::failure::Failure;
use crate::input;

/// The partitions that the settings name, which may be read again.
#[derive(Debug)]
pub(super) struct Configured(Mutex<Partitions>);

impl Configured {
    fn set(&self, partitions: Partitions) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = partitions;
    }
}

#[async_trait]
impl PartitionSource for Configured {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        let partitions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(partitions.clone())
    }
}

/// Where they come from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// A file of their own.
    File(Arc<FileSource>),
    /// The settings, or the command line.
    Configured(Arc<Configured>),
}

impl Origin {
    /// What was asked for. A file that cannot be read now is an error; later,
    /// the last list stays in force.
    pub(super) fn of(args: &WorkerArgs, settings: &Settings) -> Result<Self, Failure> {
        if let Some(path) = file(args) {
            let source = FileSource::new(path);
            let source = source.map_err(|error| Failure::Usage(error.to_string()))?;
            let read = source.read();
            read.map_err(|error| Failure::Failed(anyhow!("--partitions: {error}")))?;
            return Ok(Self::File(Arc::new(source)));
        }
        let partitions = Mutex::new(partitions(args, settings)?);
        Ok(Self::Configured(Arc::new(Configured(partitions))))
    }

    pub(super) fn source(&self) -> Arc<dyn PartitionSource> {
        match self {
            Self::File(source) => Arc::clone(source) as Arc<dyn PartitionSource>,
            Self::Configured(source) => Arc::clone(source) as Arc<dyn PartitionSource>,
        }
    }

    /// Takes the partitions of settings that were read again. Whether that can
    /// be: a file in the place of a list, or the other way round, takes a
    /// restart.
    pub(super) fn set(&self, args: &WorkerArgs, settings: &Settings) -> Result<bool, Failure> {
        match (self, file(args)) {
            (Self::Configured(source), None) => {
                source.set(partitions(args, settings)?);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// The file that lists them, if one does.
fn file(args: &WorkerArgs) -> Option<&str> {
    args.partitions.as_deref()?.strip_prefix('@')
}

fn partitions(args: &WorkerArgs, settings: &Settings) -> Result<Partitions, Failure> {
    if let Some(text) = &args.partitions {
        let count = |part: &str| part.rsplit(':').next().and_then(|n| n.trim().parse().ok());
        if let Some(none) = text.split(',').find(|part| count(part) == Some(0)) {
            let rule = format!("must have a count in 1..={PARTITIONS_MAX}");
            return Err(Failure::usage("partitions", none.trim(), rule));
        }
        return input::partitions(text);
    }
    match settings.source()? {
        Some(source) => Ok(source.partitions().clone()),
        None => {
            let forms = "a count, groups such as orders:64,users:32, or @FILE";
            let text = format!(
                "--partitions is missing: give {forms}, or groups and shards_per_group in --config"
            );
            Err(Failure::Usage(text))
        }
    }
}
