//! One of several processes that load a store together.

use std::io::{BufRead as _, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use divvy::store::{
    KeyValue, Leases, StoreError, StoreKind, StoreSettings, StoreUrl, open_key_value, open_leases,
};
use serde::{Deserialize, Serialize};

use super::key_value;
use super::leases::{Held, paced};
use super::measure::{Stopwatch, Tally};
use crate::args::{Part, StoresArgs};
use crate::failure::Failure;

/// So many of the processes write without pause in
/// [`Load::RenewBesideWriters`].
pub(super) const WRITERS: u32 = 2;

/// What the processes do at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Load {
    /// Each writes a key of its own without pause.
    Keys,
    Acquire,
    /// Each renews its leases once in every interval.
    Renew,
    /// The same, but the first [`WRITERS`] write keys of their own without
    /// pause meanwhile, and are not measured.
    RenewBesideWriters,
    /// Everything that was written is removed.
    End,
}

/// What a process says, a line each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It has opened the store.
    Ready,
    /// It has done a load, and perhaps measured it.
    Done(Option<Tally>),
    /// It cannot go on.
    Failed(String),
}

/// Takes part until nobody tells it to do anything any more.
pub(super) async fn play(
    part: Part,
    url: &StoreUrl,
    settings: &StoreSettings,
    args: &StoresArgs,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let actor = match Actor::open(part, url, settings, args).await {
        Ok(actor) => actor,
        Err(error) => return say(out, &Answer::Failed(error.to_string())),
    };
    say(out, &Answer::Ready)?;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let wrong = |error: serde_json::Error| Failure::Failed(error.into());
        let answer = match actor.act(serde_json::from_str(&line).map_err(wrong)?).await {
            Ok(tally) => Answer::Done(tally),
            Err(error) => Answer::Failed(error.to_string()),
        };
        say(out, &answer)?;
    }
    Ok(())
}

fn say(out: &mut dyn Write, answer: &Answer) -> Result<(), Failure> {
    let line = serde_json::to_string(answer).map_err(|error| Failure::Failed(error.into()))?;
    writeln!(out, "{line}").map_err(Failure::output)?;
    out.flush().map_err(Failure::output)
}

struct Actor {
    number: u32,
    records: Arc<dyn KeyValue>,
    held: Option<Held>,
    time: Duration,
    interval: Duration,
    /// How much later than the first it renews: the processes of a cluster do
    /// not do it in the same instant either.
    later: Duration,
}

impl Actor {
    async fn open(
        part: Part,
        url: &StoreUrl,
        settings: &StoreSettings,
        args: &StoresArgs,
    ) -> Result<Self, StoreError> {
        let count = args.processes.unwrap_or(1);
        let each = args.leases / count;
        let held = match url.kind() {
            StoreKind::Nats => None,
            _ => {
                let store: Arc<dyn Leases> = open_leases(url, settings).await?;
                let first = part.number * each;
                let worker = format!("bench-{}", part.number);
                Some(Held::new(
                    &store,
                    &worker,
                    first..first + each,
                    args.interval,
                )?)
            }
        };
        Ok(Self {
            number: part.number,
            records: open_key_value(url, settings).await?,
            held,
            time: args.time,
            interval: args.interval,
            later: args.interval * part.number / count,
        })
    }

    async fn act(&self, load: Load) -> Result<Option<Tally>, StoreError> {
        match (load, &self.held) {
            (Load::Keys, _) => self.write(self.time).await.map(Some),
            (Load::RenewBesideWriters, Some(held)) if self.number < WRITERS => {
                // Leases that it does not renew would run out.
                held.release().await?;
                let longest = paced(self.time, self.interval) + self.interval;
                self.write(longest).await?;
                held.acquire().await.map(|_| None)
            }
            (Load::Renew | Load::RenewBesideWriters, Some(held)) => held
                .renew_paced(self.time, self.interval, self.later)
                .await
                .map(Some),
            (Load::Acquire, Some(held)) => held.acquire().await.map(|_| None),
            (Load::End, held) => {
                if let Some(held) = held {
                    held.release().await?;
                }
                if self.number == 0 {
                    key_value::clean(&self.records).await?;
                }
                Ok(None)
            }
            (_, None) => Ok(None),
        }
    }

    async fn write(&self, time: Duration) -> Result<Tally, StoreError> {
        let mut watch = Stopwatch::start();
        let until = Instant::now() + time;
        let writing = key_value::renewals(Arc::clone(&self.records), self.number, until);
        watch.laps(writing.await?);
        Ok(watch.tally())
    }
}
