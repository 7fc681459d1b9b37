//! Where a worker's partitions come from, and reading that again.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use divvy::Partitions;
use divvy::manager::{FileSource, HookError, PartitionSource, Settings, View};

use super::settings;
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
    pub(super) fn of(args: &WorkerArgs, settings: &Settings) -> Result<Self, Failure> {
        if let Some(path) = args
            .partitions
            .as_deref()
            .and_then(|text| text.strip_prefix('@'))
        {
            let source = FileSource::new(path);
            let source = source.map_err(|error| Failure::Usage(error.to_string()))?;
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

    /// Reads again what can be; what cannot be used changes nothing. Gives
    /// what was read.
    pub(super) async fn reload(
        &self,
        args: &WorkerArgs,
        view: &View,
    ) -> Result<&'static str, String> {
        let told = |failure: Failure| failure.to_string();
        let read = match (&args.config, self) {
            (None, Self::Configured(_)) => {
                return Err("there is neither --config nor a file of partitions".to_owned());
            }
            (None, Self::File(_)) => "partitions",
            (Some(_), origin) => {
                let settings = settings(args).map_err(told)?;
                if let Self::Configured(source) = origin {
                    source.set(partitions(args, &settings).map_err(told)?);
                }
                let weighed = view.report_weight(settings.weight);
                weighed.map_err(|error| error.to_string())?;
                "partitions and weight; others take a restart"
            }
        };
        let wished = view.refresh_partitions().await;
        wished.map_err(|error| error.to_string())?;
        Ok(read)
    }
}

fn partitions(args: &WorkerArgs, settings: &Settings) -> Result<Partitions, Failure> {
    if let Some(text) = &args.partitions {
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
