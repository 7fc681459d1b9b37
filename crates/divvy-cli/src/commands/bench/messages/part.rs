//! A worker of a run, as a process: brings every message to the ledger.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use divvy::manager::{Grant, Manager, Shutdown, StaticSource};
use divvy::subscriptions::{Failure, Handler, Message, Subscriptions};
use divvy::{Moment, Partition};
use tokio::signal::unix::{SignalKind, signal};

use super::desk::Visitor;
use super::ledger::Effect;
use super::place::{Place, number};

/// Which worker, and where its ledger is.
#[derive(Debug)]
pub(super) struct Part {
    number: u32,
    /// The cluster of the run.
    pub(super) cluster: String,
    socket: PathBuf,
}

impl Part {
    /// `NUMBER:CLUSTER:SOCKET`
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let form = "--part is NUMBER:CLUSTER:SOCKET";
        let (number, rest) = text.split_once(':').context(form)?;
        let (cluster, socket) = rest.rsplit_once(':').context(form)?;
        Ok(Self {
            number: number.parse().context(form)?,
            cluster: cluster.to_owned(),
            socket: socket.into(),
        })
    }

    /// Works until a signal asks it to end.
    pub(super) async fn play(self, place: Place) -> anyhow::Result<()> {
        let mut term = signal(SignalKind::terminate())?;
        let handler = Reporting {
            worker: self.number,
            desk: Visitor::come(&self.socket).await?,
        };
        let settings = place.subscription("live");
        let opened = Subscriptions::open(&place.url, &place.reach, settings, handler).await;
        let subscriptions = opened.context("cannot subscribe")?;
        let source = StaticSource::new(place.all()?);
        let store = (place.url.clone(), place.reach.clone());
        let starting = Manager::builder(store, source)
            .settings(place.manager(format!("bench-{}", self.number)))
            .hooks(subscriptions.clone())
            .start();
        let manager = tokio::select! {
            started = starting => started.context("cannot start")?,
            _ = term.recv() => return Ok(()),
        };
        term.recv().await;
        manager.stop(Shutdown::Leave).await.context("cannot stop")
    }
}

struct Reporting {
    worker: u32,
    desk: Visitor,
}

#[async_trait]
impl Handler for Reporting {
    async fn handle(
        &self,
        message: &Message,
        partition: &Partition,
        grant: &Grant,
    ) -> Result<(), Failure> {
        let text = std::str::from_utf8(message.payload())?;
        let (count, micros) = text
            .split_once(' ')
            .ok_or_else(|| Failure::poison("no number"))?;
        let effect = Effect {
            partition: number(partition).ok_or_else(|| Failure::poison("not of this run"))?,
            number: count.parse()?,
            token: grant.token().get(),
            worker: self.worker,
            published: Moment::from_origin(Duration::from_micros(micros.parse()?)),
        };
        let entered = self
            .desk
            .enter(&effect)
            .await
            .map_err(|error| Failure::retry(error.to_string()))?;
        match entered {
            true => Ok(()),
            false => Err(Failure::retry("the ledger has seen a higher token")),
        }
    }
}
