//! A playground that goes on by itself: a world whose time passes or a live
//! cluster, and followers who are told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use divvy::observer::Observer;
use divvy::store::StoreError;
use divvy_core::Invalid;
use divvy_sim::Trial;
use serde_json::Value;
use tokio::sync::Mutex as Mutexed;

use crate::engine::{Answer, Engine, Refusal};
use crate::feed::{Feed, Follower};
use crate::live::{Live, Opening, Watch, Window};
use crate::real::{Crew, Ground, Place, REAL_WORKERS_MAX, Real, Troupe};
use crate::scenario::Scenario;
use crate::setup::Setup;
use crate::stage::{Desired, Ranking, Stage};

/// How often followers are told, at most.
const TICK: Duration = Duration::from_millis(100);
/// How much of that may be calculated, so that whoever asks gets an answer.
const BUDGET: Duration = Duration::from_millis(70);
/// Most time that is made up for: a machine that slept does not fast-forward.
const MADE_UP_MAX: Duration = Duration::from_millis(300);

/// A playground. Its copies are the same one; it ends with the last.
#[derive(Debug, Clone)]
pub struct Playground {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stage: Mutex<Box<dyn Stage>>,
    feed: Feed,
    /// Who asks the store of a live cluster.
    watch: Option<Watch>,
    /// Who does something, where that takes its time.
    troupe: Option<Mutexed<Troupe>>,
}

impl Shared {
    fn stage(&self) -> MutexGuard<'_, Box<dyn Stage>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, stage: &mut dyn Stage) {
        if let Some(news) = stage.news() {
            self.feed.tell(&news);
        }
    }
}

impl Playground {
    /// A playground whose time passes from now on.
    pub fn open(setup: Setup, scenario: Option<Scenario>) -> Result<Self, Invalid> {
        let mut engine = Engine::new(setup, unix_ms())?;
        if let Some(scenario) = scenario {
            engine.start(scenario);
        }
        Ok(Self::of(Box::new(engine), None, None))
    }

    /// A seed of the simulator, whose time passes from now on.
    pub fn replay(trial: &Trial) -> Self {
        Self::of(Box::new(Engine::replay(trial, unix_ms())), None, None)
    }

    /// A live cluster, which is looked at so often and never changed. A store
    /// that goes away later is waited for.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime: looks are taken on it.
    pub async fn observe(observer: Observer, every: Duration) -> Result<Self, StoreError> {
        let watch = Watch::new(observer);
        let (seen, moves) = watch.look().await?;
        let window = Arc::new(Window::default());
        tokio::spawn(watch.clone().run(Arc::downgrade(&window), every));
        let first = unix_ms();
        let opening = Opening {
            first,
            run: format!("{first:x}-live"),
            seats: 0,
            unit: 1.0,
        };
        let live = Live::new(opening, seen, moves, window);
        Ok(Self::of(Box::new(live), Some(watch), None))
    }

    /// A cluster of processes on a real store, by real time. Nobody else may be
    /// in it; [`Playground::end`] ends it, and deletes what it wrote.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime: members are heard on it.
    pub async fn perform(
        ground: Ground,
        setup: Setup,
        crew: Crew,
        every: Duration,
    ) -> Result<Self, StoreError> {
        setup.check()?;
        ground.check(setup.mode)?;
        if setup.workers > REAL_WORKERS_MAX {
            let rule = format!(
                "must be in 1..={REAL_WORKERS_MAX} on a real store, where each is a process"
            );
            return Err(Invalid::new("workers", setup.workers, rule).into());
        }
        let like = Place::new(String::new(), 1.0, None);
        let count = setup.workers;
        let opened = Troupe::open(ground, crew, setup, (unix_ms(), every));
        let (mut troupe, live) = opened.await?;
        if let Err(refusal) = troupe.add(count, &like, None) {
            // Nothing was written that could be left.
            troupe.end().await?;
            return Err(StoreError::unfit(refusal));
        }
        let real = Real::new(live, &troupe);
        let troupe = Some(Mutexed::new(troupe));
        Ok(Self::of(Box::new(real), None, troupe))
    }

    /// Ends what was started, and deletes what it wrote; an error says what is
    /// left.
    pub async fn end(&self) -> Result<(), StoreError> {
        match &self.shared.troupe {
            Some(troupe) => troupe.lock().await.end().await,
            None => Ok(()),
        }
    }

    fn of(stage: Box<dyn Stage>, watch: Option<Watch>, troupe: Option<Mutexed<Troupe>>) -> Self {
        let shared = Arc::new(Shared {
            stage: Mutex::new(stage),
            feed: Feed::new(),
            watch,
            troupe,
        });
        let weak = Arc::downgrade(&shared);
        let clock = thread::Builder::new().name("playground".into());
        let clock = clock.spawn(move || drive(&weak));
        clock.expect("the system has a thread for the clock");
        Self { shared }
    }

    /// Asks or does something, while nothing else happens.
    pub(crate) fn with<T>(&self, ask: impl FnOnce(&mut dyn Stage) -> T) -> T {
        ask(&mut **self.shared.stage())
    }

    /// The same, on everything that has been told to followers.
    pub(crate) fn with_told<T>(&self, ask: impl FnOnce(&mut dyn Stage) -> T) -> T {
        let mut stage = self.shared.stage();
        self.shared.publish(&mut **stage);
        ask(&mut **stage)
    }

    /// How workers rank for a partition, where there is a store to ask.
    pub(crate) async fn ranking(&self, partition: &str) -> Ranking {
        let watch = match &self.shared.troupe {
            // Whoever is busy with an action has no time for questions.
            Some(troupe) => troupe.try_lock().ok()?.watch.clone(),
            None => self.shared.watch.clone()?,
        };
        watch.ranking(partition).await
    }

    /// Who should have each partition if a worker was not there, where there is
    /// a store to ask.
    pub(crate) async fn desired_without(&self, worker: usize) -> Desired {
        let troupe = self.shared.troupe.as_ref()?.try_lock().ok()?;
        troupe.desired_without(worker).await
    }

    /// Does what a request asks for; returns when it is done.
    pub(crate) async fn request(&self, value: Value) -> Result<Answer, Refusal> {
        match &self.shared.troupe {
            Some(troupe) => {
                let done = troupe.lock().await.request(value).await;
                // Whoever looks now sees what was done.
                self.with_told(|_stage| ());
                done
            }
            None => {
                let playground = self.clone();
                let asked = move || playground.with(|stage| stage.request(value));
                let asked = tokio::task::spawn_blocking(asked);
                asked.await.expect("actions do not panic")
            }
        }
    }

    /// Follows from after a number on; from now on if none is given.
    pub fn follow(&self, after: Option<u64>) -> Follower {
        self.shared.feed.follow(after)
    }
}

/// Lets time pass until nobody has the playground any more.
fn drive(shared: &Weak<Shared>) {
    let mut last = Instant::now();
    loop {
        thread::sleep(TICK.saturating_sub(last.elapsed()));
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let now = Instant::now();
        let elapsed = now.duration_since(last).min(MADE_UP_MAX);
        last = now;
        let mut stage = shared.stage();
        stage.follow(elapsed, now + BUDGET);
        shared.publish(&mut **stage);
    }
}

/// Where sequence numbers begin: above those of every server before.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    u64::try_from(ms).unwrap_or(0)
}
