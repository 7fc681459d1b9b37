//! A cluster on a real store, by real time: managers or controllers that the
//! playground has started itself, each a process, and breaks.
//!
//! What the store tells is shown as of any live cluster; laid over it is what
//! only the playground knows: what it has done to whom, and what the hooks of
//! members say. That is held against the invariants, as it comes.

mod act;
mod board;
mod forecast;
mod ground;
mod judge;
mod overlay;
mod process;
mod runs;
mod troupe;

use std::time::{Duration, Instant};

use divvy_sim::Broken;
use serde_json::Value;

use self::board::Board;
pub(crate) use self::board::Place;
pub use self::ground::Ground;
pub(crate) use self::troupe::Troupe;
pub use self::troupe::{Crew, REAL_WORKERS_MAX};
use crate::document::{ChoicesView, Snapshot, Violation};
use crate::engine::{Answer, News, PartitionDocument, Refusal, WhatIf, WorkerDocument};
use crate::live::Live;
use crate::scenario::Scenario;
use crate::setup::{presets, strategies};
use crate::shown::VIOLATIONS_MAX;
use crate::stage::{Desired, Ranking, Stage};
use crate::timeline::{Timeline, Told};

/// What is shown of a cluster on a real store.
#[derive(Debug)]
pub(crate) struct Real {
    live: Live,
    board: Board,
    modes: &'static [&'static str],
    violations: Vec<Violation>,
}

impl Real {
    pub(crate) fn new(live: Live, troupe: &Troupe) -> Self {
        let mut real = Self {
            live,
            board: troupe.board.clone(),
            modes: troupe.ground.modes(),
            violations: Vec::new(),
        };
        real.catch_up();
        // What is known of them is seen from the beginning.
        let next = real.see();
        real.live.show(next);
        real
    }

    /// Takes in what has happened since, and who is there.
    fn catch_up(&mut self) {
        let board = self.board.clone();
        let mut known = board.known();
        let broken = known.judge.pass(now());
        for note in known.notes.drain(..) {
            self.live.tell(note.kind, note.told, note.text);
        }
        self.live.change(known.judge.changing().count());
        for (number, place) in known.places.iter().enumerate() {
            self.live.seat(number, &place.name);
        }
        drop(known);
        for broken in broken {
            self.broke(&broken);
        }
    }

    /// Notes that an invariant does not hold.
    fn broke(&mut self, broken: &Broken) {
        let at_ms = self.live.now_ms();
        self.live
            .tell("violation", Told::default(), broken.to_string());
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation {
                invariant: broken.invariant,
                property: broken.property,
                seen: broken.seen.clone(),
                at_ms,
                trace: "/api/v1/trace",
            });
        }
    }

    /// Another cluster takes the place of this one, if one has begun.
    fn succeeded(&mut self) -> Option<News> {
        let next = self.board.known().next.take()?;
        let before = std::mem::replace(&mut self.live, next.live);
        let sequence = self.live.succeed(before);
        self.violations.clear();
        self.catch_up();
        let shown = self.see();
        self.live.show(shown);
        Some(News::Reload {
            sequence,
            why: next.why,
        })
    }
}

impl Stage for Real {
    fn follow(&mut self, elapsed: Duration, by: Instant) {
        if self.board.known().next.is_some() {
            // What is seen is of the one before.
            return;
        }
        self.catch_up();
        Stage::follow(&mut self.live, elapsed, by);
    }

    fn news(&mut self) -> Option<News> {
        if let Some(news) = self.succeeded() {
            return Some(news);
        }
        self.catch_up();
        let next = self.see();
        self.live.news_of(next)
    }

    fn snapshot(&self) -> Snapshot {
        let mode = self.board.known().setup.mode;
        let choices = ChoicesView {
            presets: presets(mode),
            strategies: strategies(mode),
            modes: self.modes.to_vec(),
            isolations: act::ISOLATED.to_vec(),
        };
        self.live.snapshot_of("store", act::names(mode), choices)
    }

    fn timeline(&self) -> &Timeline {
        self.live.timeline()
    }

    fn trace(&self) -> Result<Vec<String>, Refusal> {
        Ok(self.board.known().lines())
    }

    fn explain_partition(
        &mut self,
        name: &str,
        ranking: Ranking,
    ) -> Result<PartitionDocument, Refusal> {
        self.live.explain_partition(name, ranking)
    }

    fn explain_worker(&self, number: usize) -> Result<WorkerDocument, Refusal> {
        self.account_of(number)
    }

    fn what_if(&self, number: usize, desired: Desired) -> Result<WhatIf, Refusal> {
        self.forecast(number, desired)
    }

    fn request(&mut self, _value: Value) -> Result<Answer, Refusal> {
        unreachable!("whoever can do something is asked to")
    }

    fn start(&mut self, _scenario: Scenario) -> Result<(), Refusal> {
        let why = "a scenario needs a world of its own, whose time can be told: open the \
                   playground without --store";
        Err(Refusal::Conflict(why.to_owned()))
    }
}

/// Now, on the clock that all processes of this machine share, in nanoseconds.
fn now() -> u64 {
    let nanos = divvy::manager::now().to_origin().as_nanos();
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
