//! The members of a playground on a real store: processes that are started,
//! told what to do, and ended.

use std::fmt;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use divvy::controller::ControllerSettings;
use divvy::manager::Settings;
use divvy::observer::Observer;
use divvy::store::StoreError;
use divvy_sim::Mode;
use tokio::time::{sleep, timeout};

use super::board::{Board, Known, Next, Place};
use super::ground::{Ground, Opened};
use super::judge::Judge;
use super::process::Process;
use crate::engine::Refusal;
use crate::live::{Live, Opening, Watch, Window};
use crate::member::line::{Brief, Order, UNIT};
use crate::member::weather::Weather;
use crate::setup::{PARTITIONS_MAX, Setup};

/// Most members at once: each is a process.
pub const REAL_WORKERS_MAX: usize = 32;
/// Most places of one cluster.
pub(crate) const PLACES_MAX: usize = 256;
/// Most processes of one cluster.
const LIVES_MAX: usize = 2_000;
/// Longest that members may take to leave, all at once.
const LEAVING_MAX: Duration = Duration::from_secs(5);
/// How often a process in a file's turn is let go on, to be stopped outside of
/// it.
const PAUSES_MAX: usize = 20;
/// How long it goes on each time.
const TURN: Duration = Duration::from_millis(5);

/// How a member's process is started.
type Program = Box<dyn Fn() -> io::Result<Command> + Send + Sync>;

/// Starts the processes of members.
pub struct Crew(Program);

impl Crew {
    /// This command is a member: it hears what to do on its standard input.
    pub fn new(member: impl Fn() -> io::Result<Command> + Send + Sync + 'static) -> Self {
        Self(Box::new(member))
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crew")
    }
}

#[derive(Debug)]
pub(crate) struct Troupe {
    pub(super) ground: Ground,
    crew: Crew,
    pub(super) board: Board,
    pub(super) opened: Opened,
    pub(super) observer: Observer,
    /// Who looks at the cluster for the page.
    pub(crate) watch: Watch,
    /// By place; nothing before its first start.
    processes: Vec<Option<Process>>,
    /// Counts clusters.
    runs: u64,
    first: u64,
    every: Duration,
}

impl Troupe {
    /// Opens a cluster without members, and what is seen of it.
    pub(crate) async fn open(
        ground: Ground,
        crew: Crew,
        setup: Setup,
        (first, every): (u64, Duration),
    ) -> Result<(Self, Live), StoreError> {
        let board = Board::new(begin(setup.clone()));
        let opened = ground.make(setup.mode).await?;
        ground.check_empty().await?;
        let (watch, live) = looked(&opened, &setup, (first, 0), every).await?;
        let troupe = Self {
            observer: opened.observer(),
            ground,
            crew,
            board,
            opened,
            watch,
            processes: Vec::new(),
            runs: 0,
            first,
            every,
        };
        Ok((troupe, live))
    }

    /// Starts so many members at a new place each; gives the first's number.
    pub(crate) fn add(
        &mut self,
        count: usize,
        like: &Place,
        name: Option<String>,
    ) -> Result<usize, Refusal> {
        let first = self.processes.len();
        for number in first..first + count {
            let name = name.clone().unwrap_or_else(|| format!("host-{number}"));
            let mut place = like.clone();
            place.name = name;
            self.board.known().places.push(place);
            self.processes.push(None);
            self.start(number)?;
        }
        Ok(first)
    }

    /// Starts the process of a place.
    pub(super) fn start(&mut self, number: usize) -> Result<(), Refusal> {
        let (brief, life) = {
            let mut known = self.board.known();
            let life = known.lives.len();
            if life >= LIVES_MAX {
                let text = format!("this cluster had {LIVES_MAX} processes: reset it");
                return Err(Refusal::Conflict(text));
            }
            known.lives.push(number);
            let place = &mut known.places[number];
            place.life = Some(life);
            place.is_leaving = false;
            (brief(&known, number), life)
        };
        let command = (self.crew.0)();
        let started =
            command.and_then(|command| Process::start(command, &brief, life, self.board.clone()));
        match started {
            Ok(process) => {
                self.processes[number] = Some(process);
                Ok(())
            }
            Err(error) => {
                self.board.known().places[number].life = None;
                let text = format!("{} cannot be started: {error}", brief.name);
                Err(Refusal::Conflict(text))
            }
        }
    }

    /// The process of a place that is alive.
    fn process(&mut self, number: usize) -> Result<&mut Process, Refusal> {
        let process = self.processes.get_mut(number).and_then(Option::as_mut);
        process
            .filter(|process| !process.has_ended())
            .ok_or_else(|| Refusal::Conflict("it has ended".to_owned()))
    }

    /// Tells a member to do something; one that stands still does it later.
    pub(super) async fn tell(&mut self, number: usize, order: Order) -> Result<(), Refusal> {
        let (is_paused, name) = {
            let known = self.board.known();
            let place = &known.places[number];
            (place.paused, place.name.clone())
        };
        let board = self.board.clone();
        let process = self.process(number)?;
        let told = process.tell(order, !is_paused, &board).await;
        told.map_err(|why| Refusal::Conflict(format!("{name}: {why}")))
    }

    /// Tells all members; who ends meanwhile need not hear it.
    pub(super) async fn tell_all(
        &mut self,
        order: impl Fn(&Place) -> Order,
    ) -> Result<(), Refusal> {
        let orders: Vec<(usize, Order)> = {
            let known = self.board.known();
            let places = known.places.iter().enumerate();
            let alive = places.filter(|(_, place)| place.is_alive() && !place.is_leaving);
            alive
                .map(|(number, place)| (number, order(place)))
                .collect()
        };
        let mut refused = Ok(());
        for (number, order) in orders {
            let told = self.tell(number, order).await;
            let is_alive = self.board.known().places[number].is_alive();
            if told.is_err() && is_alive {
                refused = told;
            }
        }
        refused
    }

    pub(super) async fn kill(&mut self, number: usize) -> Result<(), Refusal> {
        self.board.known().places[number].is_leaving = true;
        self.process(number)?.kill().await;
        Ok(())
    }

    /// Lets a member stand still, but not in the middle of its turn to write to
    /// a file.
    pub(super) async fn pause(&mut self, number: usize) -> Result<(), Refusal> {
        let (ground, opened) = (self.ground.clone(), self.opened.clone());
        let process = self.process(number)?;
        for _ in 0..PAUSES_MAX {
            process.pause().await.map_err(Refusal::Conflict)?;
            if ground.can_write(&opened).await {
                self.board.known().places[number].paused = true;
                return Ok(());
            }
            process.resume().await.map_err(Refusal::Conflict)?;
            sleep(TURN).await;
        }
        let text = "it writes all the time, and everybody would wait for its turn to end";
        Err(Refusal::Conflict(text.to_owned()))
    }

    pub(super) async fn resume(&mut self, number: usize) -> Result<(), Refusal> {
        let process = self.process(number)?;
        process.resume().await.map_err(Refusal::Conflict)?;
        self.board.known().places[number].paused = false;
        Ok(())
    }

    /// Ends all members: those that can, in order. Whoever stands still or does
    /// not reach the store cannot say that it leaves.
    pub(super) async fn dismiss(&mut self) {
        let can_leave: Vec<bool> = {
            let mut known = self.board.known();
            let store = known.store;
            let places = known.places.iter_mut();
            let each = places.map(|place| {
                place.is_leaving = true;
                let weather = place.weather(store);
                !place.paused && matches!(weather, Weather::Open | Weather::Slow)
            });
            each.collect()
        };
        let mut leaving = Vec::new();
        for (process, can_leave) in self.processes.drain(..).zip(can_leave) {
            let Some(mut process) = process.filter(|process| !process.has_ended()) else {
                continue;
            };
            let board = self.board.clone();
            leaving.push(tokio::spawn(async move {
                if can_leave {
                    let order = Order::Stop { keep_ms: None };
                    // One that takes no more orders is killed when its time is over.
                    let _unheard = process.tell(order, false, &board).await;
                    let leaving = timeout(LEAVING_MAX, process.until_ended());
                    if leaving.await.is_ok() {
                        return;
                    }
                }
                process.kill().await;
            }));
        }
        for one in leaving {
            one.await.expect("nobody panics while leaving");
        }
    }

    /// Deletes everything that the cluster has written.
    async fn erase(&self) -> Result<(), StoreError> {
        let (mode, group, partitions) = {
            let known = self.board.known();
            let setup = &known.setup;
            (setup.mode, known.group.clone(), known.partitions_max)
        };
        self.ground.erase(mode, &group, partitions).await
    }

    /// All members end, and another cluster begins with others.
    pub(super) async fn renew(&mut self, setup: Setup, why: &str) -> Result<(), Refusal> {
        let gone = |error: StoreError| Refusal::Conflict(error.to_string());
        // Before anything ends: a store that cannot be opened changes nothing.
        let opened = self.ground.open(setup.mode).await.map_err(gone)?;
        self.dismiss().await;
        self.erase().await.map_err(gone)?;
        self.opened = opened;
        self.observer = self.opened.observer();
        self.runs += 1;
        let looked = looked(&self.opened, &setup, (self.first, self.runs), self.every);
        let (watch, live) = looked.await.map_err(gone)?;
        self.watch = watch;
        let count = setup.workers;
        {
            let mut known = self.board.known();
            let notes = std::mem::take(&mut known.notes);
            *known = begin(setup);
            known.notes = notes;
            let why = why.to_owned();
            known.next = Some(Box::new(Next { live, why }));
        }
        self.add(count, &Place::new(String::new(), 1.0, None), None)?;
        Ok(())
    }

    /// Ends everything. What is left in the store is an error.
    pub(crate) async fn end(&mut self) -> Result<(), StoreError> {
        self.dismiss().await;
        self.erase().await
    }
}

/// What is known of a cluster that begins.
fn begin(setup: Setup) -> Known {
    let (lease, is_exclusive) = (lease(&setup), setup.exclusive);
    let group = match setup.mode {
        Mode::Leader => "orders".to_owned(),
        // Leases are shared by all clusters of a store.
        Mode::Lease => format!("orders-{:08x}", fastrand::u32(..)),
    };
    let judge = Judge::new(&group, lease, is_exclusive, (LIVES_MAX, PARTITIONS_MAX));
    Known::new(setup, group, lease.as_millis() as u64, judge)
}

/// How long the leases of members are.
fn lease(setup: &Setup) -> Duration {
    match (setup.mode, setup.preset.as_str()) {
        (Mode::Leader, "fast") => Settings::fast().leader.heartbeat_ttl,
        (Mode::Leader, "calm") => Settings::calm().leader.heartbeat_ttl,
        (Mode::Leader, _) => Settings::default().leader.heartbeat_ttl,
        (Mode::Lease, "fast") => ControllerSettings::fast().lease.lease_ttl,
        (Mode::Lease, "rendezgo") => ControllerSettings::rendezgo().lease.lease_ttl,
        (Mode::Lease, _) => ControllerSettings::default().lease.lease_ttl,
    }
}

/// Begins to look at a cluster.
async fn looked(
    opened: &Opened,
    setup: &Setup,
    (first, run): (u64, u64),
    every: Duration,
) -> Result<(Watch, Live), StoreError> {
    let watch = Watch::new(opened.observer());
    let (seen, moves) = watch.look().await?;
    let window = Arc::new(Window::default());
    tokio::spawn(watch.clone().run(Arc::downgrade(&window), every));
    let opening = Opening {
        first,
        run: format!("{first:x}-{run}"),
        seats: PLACES_MAX,
        unit: match setup.mode {
            Mode::Leader => UNIT,
            Mode::Lease => 1.0,
        },
    };
    let live = Live::new(opening, seen, moves, window);
    Ok((watch, live))
}

fn brief(known: &Known, number: usize) -> Brief {
    let (setup, place) = (&known.setup, &known.places[number]);
    Brief {
        name: place.name.clone(),
        mode: setup.mode.as_str().to_owned(),
        preset: setup.preset.clone(),
        strategy: setup.strategy.as_str().to_owned(),
        exclusive: setup.exclusive,
        weight: place.weight,
        zone: place.zone.clone(),
        group: known.group.clone(),
        partitions: setup.partitions as u32,
        weights: known.weights.clone(),
        weather: place.weather(known.store),
        slow: place.slow,
        broken: place.broken,
        healthy: place.healthy,
    }
}
