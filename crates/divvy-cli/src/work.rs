//! What is done about a partition that this process owns: a command runs for
//! it, or a service is told.

use std::sync::Arc;

use divvy::Partition;
use divvy::manager::{Grant, HookError};

use crate::args::{ExecArgs, WebhookArgs};
use crate::exec::{Children, Lines, Running};
use crate::failure::Failure;
use crate::webhook::{Deadlines, Hooked, Webhook};

/// Does something about partitions.
#[derive(Debug)]
pub(crate) enum Doing {
    /// Commands run.
    Commands(Children),
    /// A service is told.
    Webhook(Arc<Webhook>),
}

/// What is done about one partition.
#[derive(Debug)]
pub(crate) enum Work {
    Command(Running),
    Hooked(Hooked),
}

impl Doing {
    /// What was asked for, if anything was, and what has to be printed of
    /// commands' output.
    pub(crate) fn new(
        exec: &ExecArgs,
        webhook: &WebhookArgs,
        cluster: &str,
        deadlines: Deadlines,
    ) -> Result<Option<(Self, Lines)>, Failure> {
        if let Some(command) = &exec.exec {
            let (children, lines) = Children::new(command, exec)?;
            return Ok(Some((Self::Commands(children), lines)));
        }
        let Some(url) = &webhook.webhook else {
            return Ok(None);
        };
        let webhook = Webhook::new(url, webhook, cluster, deadlines)?;
        Ok(Some((Self::Webhook(Arc::new(webhook)), None)))
    }

    /// What `worker` does about a partition from now on. It has to be stopped,
    /// also where nobody waited for its start.
    pub(crate) fn begin(&self, worker: &str, partition: &Partition, grant: Grant) -> Work {
        match self {
            Self::Commands(children) => Work::Command(children.begin(worker, partition, grant)),
            Self::Webhook(webhook) => Work::Hooked(webhook.begin(worker, partition, grant)),
        }
    }
}

impl Work {
    /// Waits until it has started. After an error nothing is done about the
    /// partition.
    pub(crate) async fn start(&self) -> Result<(), HookError> {
        match self {
            Self::Command(running) => running.started().await,
            Self::Hooked(hooked) => hooked.start().await,
        }
    }

    /// Ends it, and returns when that is done.
    pub(crate) async fn stop(&self, reason: Option<&'static str>) -> Result<(), HookError> {
        match self {
            Self::Command(running) => running.stop().await,
            Self::Hooked(hooked) => hooked.stop(reason).await,
        }
    }
}
