//! A live cluster on the stage: what its store tells, by real time. Nothing of
//! it is changed, and what cannot be known is not told.

mod account;
mod log;
mod roster;
mod sight;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use divvy::observer::{Mode, Snapshot as Seen};
use divvy_core::MoveEntry;
use serde_json::Value;

use crate::audience::Audience;
use crate::document::{ChoicesView, Point, Snapshot};
use crate::engine::{Answer, News, PartitionDocument, Refusal, WhatIf, WorkerDocument};
use crate::scenario::Scenario;
use crate::shown::{Origin, POINTS_MAX, Shown};
use crate::stage::{Desired, Ranking, Stage};
use crate::timeline::{Timeline, Told};
pub(crate) use account::share_of;
use log::Log;
use roster::Roster;
pub(crate) use watch::{Watch, Window};

/// How often one is made, in milliseconds.
const POINT_EVERY_MS: u64 = 500;
/// Why nothing is done.
const READ_ONLY: &str = "this page only looks at a live cluster: nothing can be changed here; \
                         divvy drain, cordon, uncordon, pin, unpin and refresh change what is wished";

/// What a live cluster begins with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Opening {
    /// Where sequence numbers begin.
    pub(crate) first: u64,
    /// Another cluster has another one.
    pub(crate) run: String,
    /// How many numbers are kept for instances that are known beforehand.
    pub(crate) seats: usize,
    /// What a partition of weight 1 weighs in the store.
    pub(crate) unit: f64,
}

/// A live cluster, as it was last seen.
#[derive(Debug)]
pub(crate) struct Live {
    mode: Mode,
    window: Arc<Window>,
    /// Real time of the first look, and what the page's clock was then.
    opened: Instant,
    opened_ms: u64,
    began_unix_ms: u64,
    run: String,
    unit: f64,
    roster: Roster,
    log: Log,
    timeline: Timeline,
    seen: Seen,
    /// By partition, who had it last, if that is known.
    last_owners: Vec<Option<usize>>,
    moves: u64,
    /// Partitions that are being started or stopped, where members say so.
    changing: usize,
    settled_since: Option<u64>,
    points: VecDeque<Point>,
    /// Why the store does not answer, if it does not.
    trouble: Option<String>,
    audience: Audience,
}

impl Live {
    /// What was seen at first.
    pub(crate) fn new(
        opening: Opening,
        seen: Seen,
        moves: Vec<MoveEntry>,
        window: Arc<Window>,
    ) -> Self {
        let unix_ms = unix_ms();
        // The clock begins with the oldest thing that is known.
        let oldest = moves.iter().map(|entry| entry.unix_ms).min();
        let began_unix_ms = oldest.unwrap_or(unix_ms).min(unix_ms);
        let mut live = Self {
            mode: seen.mode,
            window,
            opened: Instant::now(),
            opened_ms: unix_ms - began_unix_ms,
            began_unix_ms,
            run: opening.run,
            unit: opening.unit,
            roster: Roster::with_seats(opening.seats),
            log: Log::default(),
            timeline: Timeline::default(),
            seen: seen.clone(),
            last_owners: Vec::new(),
            moves: 0,
            changing: 0,
            settled_since: None,
            points: VecDeque::new(),
            trouble: None,
            audience: Audience::new(opening.first),
        };
        live.take_in(seen, moves);
        let text = format!(
            "{} in {} mode is looked at: {} workers, {} partitions",
            live.seen.store,
            live.mode,
            live.seen.workers.len(),
            live.seen.partitions.len()
        );
        live.note("note", text);
        live.show(live.see());
        live
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let since = self.opened.elapsed().as_millis();
        self.opened_ms + u64::try_from(since).unwrap_or(u64::MAX / 2)
    }

    fn note(&mut self, kind: &'static str, text: String) {
        self.timeline
            .tell(self.now_ms(), kind, Told::default(), text);
    }

    /// Takes in what a look gave.
    fn take_in(&mut self, mut seen: Seen, moves: Vec<MoveEntry>) {
        for partition in &mut seen.partitions {
            partition.weight /= self.unit;
        }
        if self.trouble.take().is_some() {
            self.note("store", "the store answers again".to_owned());
        }
        let mode_words = |seen: &Seen| (seen.lifecycle, seen.quarantine);
        if mode_words(&seen) != mode_words(&self.seen) {
            let lifecycle = seen.lifecycle.unwrap_or("unknown").replace('_', " ");
            let quarantine = if seen.quarantine {
                ", in quarantine"
            } else {
                ""
            };
            self.note("note", format!("the cluster is {lifecycle}{quarantine}"));
        }
        for problem in &seen.problems {
            if !self.seen.problems.contains(problem) || self.audience.view().is_none() {
                self.note("error", problem.clone());
            }
        }
        let turns = self.roster.take_in(&seen);
        self.tell_moves(moves);
        // Who is there when somebody begins to look has not joined just then.
        let is_first = self.audience.view().is_none();
        let turns = turns.into_iter();
        for turn in turns.filter(|turn| !is_first || turn.kind == "leader") {
            let told = Told {
                worker: Some(turn.worker),
                ..Told::default()
            };
            self.timeline
                .tell(self.now_ms(), turn.kind, told, turn.text);
        }
        self.count_moves(&seen);
        // What has changed hands has to settle again.
        if !owners(&seen).eq(owners(&self.seen)) {
            self.settled_since = None;
        }
        self.seen = seen;
        self.judge();
    }

    /// Puts what is new in the log of moves on the timeline.
    fn tell_moves(&mut self, moves: Vec<MoveEntry>) {
        let fresh = self.log.take_in(moves);
        if fresh.is_torn {
            let text = "more moved at once than the store remembers: some moves are not told";
            self.note("note", text.to_owned());
        }
        for entry in fresh.entries {
            let (kind, text) = log::told(&entry);
            let from = entry.from.as_deref().map(|name| self.roster.number(name));
            let to = entry.to.as_deref().map(|name| self.roster.number(name));
            let at_ms = self.at_ms(entry.unix_ms);
            let told = Told {
                worker: to.or(from),
                partition: Some(entry.partition),
                from,
                to,
                token: entry.token,
                cause: None,
            };
            self.timeline.tell(at_ms, kind, told, text);
        }
    }

    /// A time of the store's wall clock on the page's clock. Clocks of machines
    /// differ: nothing is later than now.
    fn at_ms(&self, unix_ms: u64) -> u64 {
        unix_ms
            .saturating_sub(self.began_unix_ms)
            .min(self.now_ms())
    }

    /// Counts what went from one worker to another between two looks.
    fn count_moves(&mut self, seen: &Seen) {
        let is_same = self.last_owners.len() == seen.partitions.len();
        let names = || seen.partitions.iter().map(|partition| &partition.name);
        if !is_same || !names().eq(self.seen.partitions.iter().map(|p| &p.name)) {
            self.last_owners = vec![None; seen.partitions.len()];
        }
        for (index, partition) in seen.partitions.iter().enumerate() {
            let Some(owner) = partition.owner.as_deref() else {
                continue;
            };
            let number = self.roster.number(owner);
            let before = self.last_owners[index].replace(number);
            if before.is_some_and(|before| before != number) {
                self.moves += 1;
            }
        }
    }

    /// Whether everything is where it should be, and a point for the charts.
    fn judge(&mut self) {
        let now_ms = self.now_ms();
        let is_settled = self.is_settled();
        self.settled_since = match self.settled_since {
            Some(since) if is_settled => Some(since),
            _ => is_settled.then_some(now_ms),
        };
        let last = self.points.back().map(|point| point.at_ms);
        if last.is_none_or(|last| now_ms >= last + POINT_EVERY_MS) {
            let summary = self.summary();
            self.points.push_back(Point {
                at_ms: now_ms,
                owned: summary.owned,
                moving: summary.moving.max(self.changing),
                imbalance: summary.imbalance,
                moves: summary.moves,
            });
            if self.points.len() > POINTS_MAX {
                self.points.pop_front();
            }
        }
    }

    pub(crate) fn shown(&self) -> &Shown {
        self.audience.shown()
    }

    /// What followers are to be told if this is shown next.
    pub(crate) fn news_of(&mut self, next: Shown) -> Option<News> {
        self.audience.news(next, &self.timeline)
    }

    /// Everything, as the last news left it.
    pub(crate) fn snapshot_of(
        &self,
        source: &'static str,
        actions: Vec<&'static str>,
        choices: ChoicesView,
    ) -> Snapshot {
        let origin = Origin {
            run: self.run.clone(),
            source,
            mode: match self.mode {
                Mode::Leader => "leader",
                Mode::Lease => "lease",
            },
            actions,
            choices,
        };
        self.audience.snapshot(origin, &self.points)
    }

    /// Takes the place of another, whose timeline goes on; gives the number of
    /// that news.
    pub(crate) fn succeed(&mut self, before: Self) -> u64 {
        let mut timeline = before.timeline;
        std::mem::swap(&mut self.timeline, &mut timeline);
        for event in timeline.after(0) {
            let text = event.text.clone();
            self.timeline
                .tell(event.at_ms, event.kind, Told::default(), text);
        }
        self.audience.succeed(&before.audience);
        self.audience.count(&self.timeline)
    }

    /// Puts something on the timeline.
    pub(crate) fn tell(&mut self, kind: &'static str, told: Told, text: String) {
        self.timeline.tell(self.now_ms(), kind, told, text);
    }

    /// So many partitions are being started or stopped, as members say.
    pub(crate) const fn change(&mut self, count: usize) {
        self.changing = count;
    }

    /// This was shown.
    pub(crate) fn show(&mut self, shown: Shown) {
        self.audience.show(shown);
    }

    /// What was seen last.
    pub(crate) const fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The number of a worker that was seen under this id.
    pub(crate) fn number(&self, id: &str) -> Option<usize> {
        self.roster.find(id)
    }

    /// An instance has this number.
    pub(crate) fn seat(&mut self, number: usize, instance: &str) {
        self.roster.seat(number, instance);
    }
}

impl Stage for Live {
    fn follow(&mut self, _elapsed: Duration, _by: Instant) {
        match self.window.take() {
            None => {}
            Some(Ok(looked)) => {
                let (seen, moves) = *looked;
                self.take_in(seen, moves);
            }
            Some(Err(trouble)) => {
                if self.trouble.is_none() {
                    let text = format!("the store does not answer: {trouble}");
                    self.note("store", text);
                }
                self.trouble = Some(trouble);
                // Nobody knows.
                self.settled_since = None;
            }
        }
    }

    fn news(&mut self) -> Option<News> {
        let next = self.see();
        self.news_of(next)
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot_of(
            "observed",
            Vec::new(),
            ChoicesView {
                presets: Vec::new(),
                strategies: Vec::new(),
                modes: Vec::new(),
                isolations: Vec::new(),
            },
        )
    }

    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn trace(&self) -> Result<Vec<String>, Refusal> {
        let why = "a live cluster has no trace: see the timeline";
        Err(Refusal::Conflict(why.to_owned()))
    }

    fn explain_partition(
        &mut self,
        name: &str,
        ranking: Ranking,
    ) -> Result<PartitionDocument, Refusal> {
        self.account_of(name, ranking)
    }

    fn explain_worker(&self, number: usize) -> Result<WorkerDocument, Refusal> {
        self.account_of_worker(number)
    }

    fn what_if(&self, _number: usize, _desired: Desired) -> Result<WhatIf, Refusal> {
        let why = "what would become of it is decided inside of the cluster, and not known outside";
        Err(Refusal::Conflict(why.to_owned()))
    }

    fn request(&mut self, _value: Value) -> Result<Answer, Refusal> {
        Err(Refusal::Conflict(READ_ONLY.to_owned()))
    }

    fn takes_scenarios(&self) -> Result<(), Refusal> {
        Err(Refusal::Conflict(READ_ONLY.to_owned()))
    }

    fn start(&mut self, _scenario: Scenario) -> Result<(), Refusal> {
        Err(Refusal::Conflict(READ_ONLY.to_owned()))
    }
}

/// Who has what.
fn owners(seen: &Seen) -> impl Iterator<Item = (&str, Option<&str>)> {
    let partitions = seen.partitions.iter();
    partitions.map(|partition| (partition.name.as_str(), partition.owner.as_deref()))
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.map_or(0, |since| since.as_millis())).unwrap_or(0)
}
