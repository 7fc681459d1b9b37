//! The engine: a world that goes on by slices, what is seen of it, and what is
//! done to it. It knows no clock but the one that it is told, and no sockets.

mod act;
pub(crate) mod explain;
mod neighbour;
mod tell;
pub(crate) mod view;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use divvy_core::{Control, Invalid};
use divvy_sim::{Broken, Hands, Place, Trial, TrueTime};

use crate::audience::Audience;
use crate::compass::{Compass, counts};
use crate::document::{Delta, Point, Snapshot, Violation};
use crate::gauge::Gauge;
use crate::scenario::{Outcome, Run, Scenario, Step};
use crate::setup::Setup;
use crate::shown::{GONE_SHOWN_MAX, POINTS_MAX, VIOLATIONS_MAX};
use crate::timeline::Timeline;
use neighbour::Neighbour;

pub use act::Answer;
pub use explain::{Gain, MoveDocument, PartitionDocument, WhatIf, WorkerDocument};

/// How often everything is looked at, by the world's clock: what is measured is
/// measured so finely, however fast time passes.
pub(crate) const SLICE: Duration = Duration::from_millis(20);
/// How often one is made at first, in milliseconds.
const POINT_EVERY_MS: u64 = 100;

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It was not asked for properly.
    Bad(String),
    /// There is no such thing.
    Missing(String),
    /// It cannot be done as things are.
    Conflict(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(why) | Self::Missing(why) | Self::Conflict(why) => f.write_str(why),
        }
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Bad(invalid.to_string())
    }
}

/// What followers are to be told.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// Something changed.
    Delta(Box<Delta>),
    /// Everything did.
    Reload {
        /// The number of this news.
        sequence: u64,
        /// Why.
        why: String,
    },
}

/// A world with all that is known of it.
#[derive(Debug)]
pub struct Engine {
    setup: Setup,
    /// What a reset goes back to: what it was opened with, or was chosen since.
    /// What a scenario brings is not.
    home: Setup,
    /// Counts worlds.
    worlds: u64,
    run_base: u64,
    world: Box<dyn Hands>,
    /// Another cluster on the same store, where a scenario has one.
    neighbour: Option<Neighbour>,
    /// Whether it is a seed of the simulator, which runs its course.
    is_replay: bool,
    control: Control,
    gauge: Gauge,
    compass: Compass,
    timeline: Timeline,
    is_running: bool,
    speed: f64,
    /// How much time a world that cannot keep up has lost in a row, by the
    /// clock of whoever watches.
    behind: Duration,
    violations: Vec<Violation>,
    scenario: Option<Run>,
    points: VecDeque<Point>,
    point_every_ms: u64,
    converged_since: Option<u64>,
    /// What convergence was judged for.
    judged: Option<u64>,
    /// Workers that are shown no longer.
    removed: BTreeSet<usize>,
    leader: Option<usize>,
    /// Workers, and partitions that they could not start and try again.
    failing: BTreeSet<(usize, usize)>,
    audience: Audience,
    /// Counts what was shown.
    turn: u64,
    reload: Option<String>,
}

impl Engine {
    /// The engine of this setup. Sequence numbers begin at `first`: another
    /// server's must not be taken for ours.
    pub fn new(setup: Setup, first: u64) -> Result<Self, Invalid> {
        setup.check()?;
        let world = setup.build();
        Ok(Self::of(setup, world, false, first))
    }

    /// The engine of a seed of the simulator, which runs its course and is
    /// watched.
    pub fn replay(trial: &Trial, first: u64) -> Self {
        let world = trial.watched();
        let setup = Setup {
            workers: world.count_places(),
            partitions: world.count_partitions(),
            preset: "default".to_owned(),
            strategy: trial.strategy(),
            seed: trial.seed,
            ..Setup::default().in_mode(trial.mode)
        };
        Self::of(setup, world, true, first)
    }

    fn of(setup: Setup, world: Box<dyn Hands>, is_replay: bool, first: u64) -> Self {
        let mut engine = Self {
            is_replay,
            compass: Compass::new(setup.strategy, &*world),
            home: setup.clone(),
            setup,
            worlds: 0,
            run_base: first,
            world,
            neighbour: None,
            control: Control::default(),
            gauge: Gauge::default(),
            timeline: Timeline::default(),
            is_running: true,
            speed: 1.0,
            behind: Duration::ZERO,
            violations: Vec::new(),
            scenario: None,
            points: VecDeque::new(),
            point_every_ms: POINT_EVERY_MS,
            converged_since: None,
            judged: None,
            removed: BTreeSet::new(),
            leader: None,
            failing: BTreeSet::new(),
            audience: Audience::new(first),
            turn: 0,
            reload: None,
        };
        engine.begin();
        engine
    }

    /// Everything that is known is of the world that begins.
    fn begin(&mut self) {
        self.look();
        let (mode, count) = (self.setup.mode, self.setup.workers);
        let text = format!(
            "a world in {mode} mode begins: {count} workers, {} partitions, seed {}",
            self.setup.partitions, self.setup.seed
        );
        self.note("note", text);
        self.show_all();
    }

    /// Another world takes the place of this one.
    fn renew(&mut self, setup: Setup, why: &str) {
        self.world = setup.build();
        self.is_replay = false;
        self.compass = Compass::new(setup.strategy, &*self.world);
        self.setup = setup;
        self.worlds += 1;
        self.neighbour = None;
        self.control = Control::default();
        self.gauge = Gauge::default();
        self.timeline.begin_anew();
        self.violations.clear();
        self.scenario = None;
        self.points.clear();
        self.point_every_ms = POINT_EVERY_MS;
        self.converged_since = None;
        self.judged = None;
        self.removed.clear();
        self.leader = None;
        self.failing.clear();
        self.reload = Some(why.to_owned());
        self.begin();
    }

    /// What it is now, in milliseconds of the world.
    pub fn now_ms(&self) -> u64 {
        self.world.time().nanos() / 1_000_000
    }

    /// What the world was made of.
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Lets time pass as it does for whoever watches: nothing while it stands
    /// still, and no longer than until `by`.
    pub fn follow(&mut self, elapsed: Duration, by: Instant) {
        if self.is_running {
            let until = self.world.time() + elapsed.mul_f64(self.speed);
            self.pass_until(until, Some(by));
            let missed = until.elapsed().saturating_sub(self.world.time().elapsed());
            self.behind = match missed.is_zero() || !self.is_running {
                true => Duration::ZERO,
                false => self.behind + missed.div_f64(self.speed),
            };
        }
    }

    /// Lets so much time pass, whether it stands still or not.
    pub fn pass(&mut self, span: Duration) {
        self.pass_until(self.world.time() + span, None);
    }

    fn pass_until(&mut self, until: TrueTime, by: Option<Instant>) {
        let before = self.violations.len();
        while self.world.time() < until && !self.world.has_ended() {
            let next = self.next_look().min(until);
            let mut in_time = || by.is_none_or(|by| Instant::now() < by);
            match self.world.go_on_while(next, &mut in_time) {
                Ok(true) => {}
                // The rest of this slice comes next time.
                Ok(false) => break,
                Err(broken) => self.broke(&broken),
            }
            let now = self.world.time();
            let beside = self.neighbour.as_mut().map(|it| it.go_on(now));
            if let Some(Err(broken)) = beside {
                self.broke(&broken);
            }
            self.look();
            let was_running = self.scenario.as_ref().is_some_and(Run::is_running);
            self.direct();
            // A scenario leaves its world as it is at its end.
            let is_over = was_running && !self.scenario.as_ref().is_some_and(Run::is_running);
            let is_broken = self.violations.len() > before;
            if is_broken || is_over || by.is_some_and(|by| Instant::now() >= by) {
                break;
            }
        }
        if self.is_running && self.world.has_ended() {
            self.note("goal", "the seed has run its course".to_owned());
        }
        if self.violations.len() > before || self.world.has_ended() {
            self.is_running = false;
        }
    }

    /// When everything is looked at next: by the clock, and when a scenario
    /// wants something.
    fn next_look(&self) -> TrueTime {
        let slice = SLICE.as_nanos() as u64;
        let now = self.world.time().nanos();
        let next = TrueTime::from_nanos((now / slice + 1) * slice);
        let due = self.scenario.as_ref().and_then(Run::next_ms);
        let due = due.map(|ms| TrueTime::from_nanos(ms * 1_000_000));
        due.filter(|due| due.nanos() > now)
            .map_or(next, |due| due.min(next))
    }

    /// Looks at everything.
    fn look(&mut self) {
        let now_ms = self.now_ms();
        self.hear_deeds();
        if self.world.count_partitions() != self.gauge.owners.len() || self.is_replay {
            self.compass.relist(&*self.world);
        }
        self.gauge.look(&*self.world, now_ms);
        self.judge(now_ms);
        if let Some(run) = &mut self.scenario {
            run.measure(now_ms, &self.gauge, self.converged_since);
            if let Some(neighbour) = &self.neighbour {
                run.measure_neighbour(&neighbour.gauge);
            }
            self.weigh();
        }
        let last = self.points.back().map(|point| point.at_ms);
        if last.is_none_or(|last| now_ms >= last + self.point_every_ms) {
            self.add_point(now_ms);
        }
    }

    /// Lets a scenario know who leads and how even it is.
    fn weigh(&mut self) {
        let places = self.places();
        let (loads, imbalance) = self.loads(&places);
        let here = (0..places.len()).filter(|number| counts(&places[*number]));
        let owned: Vec<usize> = here.map(|number| loads.owned[number]).collect();
        let leader = places.iter().position(|place| place.is_leader);
        if let Some(run) = &mut self.scenario {
            run.weigh(leader, imbalance, &owned);
        }
    }

    /// Whether everything is where it should be, asked only where that may have
    /// changed.
    fn judge(&mut self, now_ms: u64) {
        let is_whole = self.gauge.owned == self.gauge.count;
        let is_still = self.gauge.moving == 0 && self.gauge.two_owners == 0;
        if !is_whole || !is_still {
            self.converged_since = None;
            self.judged = None;
            return;
        }
        // Of worlds that go fast only what has changed is judged, and what
        // nobody sees is judged at last.
        let beat = now_ms / 100;
        let key = self.gauge.version << 20 ^ beat;
        if self.judged == Some(key) {
            return;
        }
        self.judged = Some(key);
        let places = self.places();
        let marks = self.marks(&places);
        let is_settled = marks.iter().all(|mark| *mark == 0);
        self.converged_since = match (is_settled, self.converged_since) {
            (false, _) => None,
            (true, None) => Some(now_ms),
            (true, since) => since,
        };
    }

    fn add_point(&mut self, at_ms: u64) {
        let places = self.places();
        let (_, imbalance) = self.loads(&places);
        self.points.push_back(Point {
            at_ms,
            owned: self.gauge.owned,
            moving: self.gauge.moving,
            imbalance,
            moves: self.gauge.moves,
        });
        if self.points.len() > POINTS_MAX {
            // Twice the span with the same number of points.
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.point_every_ms *= 2;
        }
    }

    /// Does what a scenario wants done by now.
    fn direct(&mut self) {
        let now_ms = self.now_ms();
        while let Some(step) = self.scenario.as_mut().and_then(|run| run.next(now_ms)) {
            let workers = self.targets(&step);
            if workers.is_empty() {
                let why = step.targets.nobody();
                self.refuse_step(&step, &format!("it is about nobody: {why}"));
            }
            for worker in workers {
                let done = step
                    .action(worker, &self.setup)
                    .map_err(Refusal::from)
                    .and_then(|action| self.act_now(&action));
                if let Err(refusal) = done {
                    self.refuse_step(&step, &refusal.to_string());
                }
            }
            self.look();
        }
        let violations = &self.violations;
        let ended = self
            .scenario
            .as_mut()
            .and_then(|run| run.end(now_ms, violations));
        if let Some((passed, text)) = ended {
            let verdict = if passed { "passed" } else { "failed" };
            self.note("goal", format!("{verdict}: {text}"));
            self.is_running = false;
        }
    }

    /// A step of the scenario cannot be done.
    fn refuse_step(&mut self, step: &Step, why: &str) {
        let (number, name, at_ms) = (step.number, &step.name, step.at_ms);
        let text = format!("step {number} ({name} at {at_ms} ms) was refused: {why}");
        self.note("error", text.clone());
        if let Some(run) = &mut self.scenario {
            run.refused(text);
        }
    }

    /// Starts a scenario, in a world of its own.
    pub fn start(&mut self, scenario: Scenario) {
        let why = format!("the scenario {} starts", scenario.name());
        self.renew(scenario.setup().clone(), &why);
        self.note("goal", format!("{}: {}", scenario.title(), scenario.goal()));
        self.neighbour = scenario.neighbour().map(Neighbour::new);
        self.scenario = Some(Run::new(scenario));
        self.is_running = true;
        self.show_all();
    }

    /// Runs a scenario to its end, as fast as that goes.
    pub fn run_scenario(scenario: Scenario) -> Result<Outcome, Invalid> {
        let mut engine = Self::new(scenario.setup().clone(), 0)?;
        engine.start(scenario);
        while engine.scenario.as_ref().is_some_and(Run::is_running) {
            engine.pass(Duration::from_secs(1));
            if !engine.violations.is_empty() {
                break;
            }
        }
        let run = engine.scenario.as_ref();
        let run = run.expect("it was started");
        Ok(run.outcome(&engine.violations))
    }

    /// Notes that an invariant does not hold.
    fn broke(&mut self, broken: &Broken) {
        let at_ms = self.now_ms();
        let seen = self.named_in(&broken.seen);
        let (invariant, property) = (broken.invariant, broken.property);
        self.note("violation", format!("{invariant} ({property}): {seen}"));
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation {
                invariant,
                property,
                seen,
                at_ms,
                trace: "/api/v1/trace",
            });
        }
    }

    /// What is to be told now, if anything is.
    pub fn news(&mut self) -> Option<News> {
        if let Some(why) = self.reload.take() {
            self.show_all();
            return Some(News::Reload {
                sequence: self.audience.count(&self.timeline),
                why,
            });
        }
        let next = self.see(false);
        self.audience.news(next, &self.timeline)
    }

    /// Shows everything as it is, without a word to followers.
    fn show_all(&mut self) {
        let shown = self.see(true);
        self.audience.show(shown);
    }

    /// Everything, as the last news left it.
    pub fn snapshot(&self) -> Snapshot {
        self.audience.snapshot(self.origin(), &self.points)
    }

    /// What happened.
    pub(crate) const fn events(&self) -> &Timeline {
        &self.timeline
    }

    /// The last lines of the trace.
    pub fn trace(&self) -> Vec<String> {
        self.world.last_lines()
    }

    pub(crate) fn all_places(&self) -> Vec<Place> {
        self.places()
    }

    fn places(&self) -> Vec<Place> {
        let places = 0..self.world.count_places();
        places.map(|place| self.world.place(place)).collect()
    }

    /// Workers that are gone and no longer shown: the oldest of too many.
    fn forget_gone(&mut self, places: &[Place]) {
        // Who had yet to start, or was started again, is there after all.
        self.removed.retain(|number| !places[*number].is_alive());
        let gone = (0..places.len())
            .filter(|number| !places[*number].is_alive() && !self.removed.contains(number));
        let gone: Vec<usize> = gone.collect();
        let surplus = gone.len().saturating_sub(GONE_SHOWN_MAX);
        self.removed.extend(&gone[..surplus]);
    }
}
