//! What a playground shows: a world, or a live cluster.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use divvy_core::Considered;
use serde_json::Value;

use crate::document::{Event, Snapshot};
use crate::engine::{Answer, Engine, News, PartitionDocument, Refusal, WhatIf, WorkerDocument};
use crate::scenario::Scenario;
use crate::timeline::Timeline;

/// How workers rank for a partition by what the store says; nothing where it
/// was not asked or does not answer.
pub(crate) type Ranking = Option<Vec<Considered>>;

/// Who should have each partition if a worker was not there, by number; nothing
/// where it was not asked or the store does not answer.
pub(crate) type Desired = Option<Vec<Option<String>>>;

/// What is shown, asked and, where that is possible, changed.
pub(crate) trait Stage: Debug + Send {
    /// Time has passed; takes no longer than until `by`.
    fn follow(&mut self, elapsed: Duration, by: Instant);
    /// What followers are to be told now, if anything is.
    fn news(&mut self) -> Option<News>;
    /// Everything, as the last news left it.
    fn snapshot(&self) -> Snapshot;
    /// What happened.
    fn timeline(&self) -> &Timeline;
    /// The last lines of the trace.
    fn trace(&self) -> Result<Vec<String>, Refusal>;
    /// Why a partition is where it is.
    fn explain_partition(
        &mut self,
        name: &str,
        ranking: Ranking,
    ) -> Result<PartitionDocument, Refusal>;
    /// A worker, with what it has.
    fn explain_worker(&self, number: usize) -> Result<WorkerDocument, Refusal>;
    /// What the death of a worker would cause.
    fn what_if(&self, number: usize, desired: Desired) -> Result<WhatIf, Refusal>;
    /// Does what a request asks for.
    fn request(&mut self, value: Value) -> Result<Answer, Refusal>;
    /// Whether scenarios can be started, and why not.
    fn takes_scenarios(&self) -> Result<(), Refusal> {
        Ok(())
    }
    /// Starts a scenario.
    fn start(&mut self, scenario: Scenario) -> Result<(), Refusal>;

    /// Events after a number, so many at most, and the oldest that is kept.
    fn events(&self, after: u64, limit: usize) -> (Vec<Event>, u64) {
        let timeline = self.timeline();
        let events = timeline.after(after).take(limit).cloned();
        (events.collect(), timeline.oldest())
    }
}

impl Stage for Engine {
    fn follow(&mut self, elapsed: Duration, by: Instant) {
        Self::follow(self, elapsed, by);
    }

    fn news(&mut self) -> Option<News> {
        Self::news(self)
    }

    fn snapshot(&self) -> Snapshot {
        Self::snapshot(self)
    }

    fn timeline(&self) -> &Timeline {
        self.events()
    }

    fn trace(&self) -> Result<Vec<String>, Refusal> {
        Ok(Self::trace(self))
    }

    fn explain_partition(
        &mut self,
        name: &str,
        _ranking: Ranking,
    ) -> Result<PartitionDocument, Refusal> {
        Self::explain_partition(self, name)
    }

    fn explain_worker(&self, number: usize) -> Result<WorkerDocument, Refusal> {
        Self::explain_worker(self, number)
    }

    fn what_if(&self, number: usize, _desired: Desired) -> Result<WhatIf, Refusal> {
        Self::what_if(self, number)
    }

    fn request(&mut self, value: Value) -> Result<Answer, Refusal> {
        Self::request(self, value)
    }

    fn start(&mut self, scenario: Scenario) -> Result<(), Refusal> {
        Self::start(self, scenario);
        Ok(())
    }
}
