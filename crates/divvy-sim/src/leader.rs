//! A world: members, their store, and all that happens to them.
//!
//! One queue orders everything, one source of chance decides everything, so a
//! seed is a world. Members are the machine that runs in production; nothing
//! here decides for them.

mod act;
mod arrive;
mod course;
mod elect;
mod hands;
mod network;
mod phase;
mod process;
mod source;
mod store;
mod strike;

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::leader::{Member, StoreOutage};
use divvy_core::store::Token;
use divvy_core::{Strategy, StrategySettings};

use crate::clock::{MemberClock, RATE_ERROR_MAX_PPM};
use crate::coverage::{Coverage, Mishap};
use crate::dice::Dice;
use crate::fact::{Fact, Phase, Seen};
use crate::fault::{FaultKind, HookWeather, Weather};
use crate::hands::{Chronicle, Trace};
use crate::invariants::{Bounds, Broken, Invariants};
use crate::ledger::Ledger;
use crate::profile::Profile;
use crate::queue::Queue;
use crate::resource::Resource;
use crate::time::TrueTime;
use course::Course;
use elect::Agent;
use network::Request;
use process::{Arrival, Lameness, Process};
use source::Source;
use store::Store;

/// Operations of one member that are under way at once, chunks of a root and
/// garbage included.
pub(crate) const OPERATIONS_MAX: usize = 64;
/// Wall clocks are off by at most this, in milliseconds.
const WALL_ERROR_MAX_MS: i64 = 100;

/// Something that will happen.
#[derive(Debug, Clone)]
enum Happening {
    /// A process is started.
    Boot(usize),
    /// Something reaches a process of this generation.
    Arrive(usize, u32, Arrival),
    /// An operation reaches the store.
    Request(Box<Request>),
    /// A process that stands still goes on.
    Resume(usize),
    /// An effect that was decided on earlier reaches its resource.
    LateEffect(usize, Token),
    /// All running partitions do something.
    Effects,
    /// The store is remembered for a fault that will roll it back.
    Remember(usize),
    /// A fault begins.
    Strike(usize),
    /// A fault ends.
    Relent(usize),
    /// The next member of a rolling restart leaves.
    Roll(usize),
}

/// What can be counted of a world.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Things that happened.
    pub events: u64,
    /// Partitions that got a holder.
    pub grants: u64,
    /// Partitions that were asked back or lost their holder.
    pub moves: u64,
    /// Effects that happened at resources.
    pub effects: u64,
    /// How long it lasted.
    pub lasted: Duration,
    /// What went wrong.
    pub coverage: Coverage,
}

/// A world.
#[derive(Debug, Clone)]
pub struct World {
    profile: Profile,
    strategy: std::sync::Arc<dyn Strategy>,
    now: TrueTime,
    queue: Queue<Happening>,
    dice: Dice,
    processes: Vec<Process>,
    store: Store,
    source: Source,
    agent: Agent,
    resource: Resource,
    ledger: Ledger,
    invariants: Invariants,
    phase: Phase,
    /// Faults that have begun and not ended.
    active: Vec<usize>,
    weather: Weather,
    hook_weather: HookWeather,
    /// Members that cannot start something.
    lame: BTreeMap<usize, Lameness>,
    tally: Tally,
    trace: Option<Trace>,
    /// What hands want to know; nothing where none reach into it.
    chronicle: Option<Chronicle>,
    /// How far its course is, where somebody watches it run.
    course: Option<Course>,
    observations: Vec<Observation>,
}

/// Something that figures are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// When.
    pub at: TrueTime,
    /// What.
    pub what: Observed,
}

/// What figures are made from.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// The start hook of a partition was called.
    Started {
        /// Where.
        member: usize,
        /// Which.
        partition: usize,
    },
    /// A member sent a root.
    RootSent(usize),
    /// A root was committed: how many partitions it granted and asked back.
    Committed {
        /// Partitions that got a holder.
        granted: u32,
        /// Partitions that were asked back.
        revoked: u32,
    },
}

impl World {
    /// The world of this profile, before anything has happened.
    pub fn new(profile: Profile, traced: bool) -> Self {
        let strategy = StrategySettings::new(profile.strategy).build();
        let strategy = strategy.expect("defaults of built-in strategies are valid");
        let stale = profile
            .faults
            .iter()
            .any(|fault| matches!(fault.kind, FaultKind::Weather(weather) if weather.stale > 0.0));
        let mut world = Self {
            strategy: strategy.into(),
            now: TrueTime::ZERO,
            queue: Queue::new(),
            dice: Dice::new(!profile.seed),
            processes: Vec::new(),
            store: Store::new(stale),
            source: Source::new(&profile),
            agent: Agent::new(profile.election),
            resource: Resource::new(profile.partitions_max()),
            ledger: Ledger::default(),
            invariants: Invariants::new(&bounds(&profile)),
            phase: Phase::Faults,
            active: Vec::new(),
            weather: Weather::default(),
            hook_weather: HookWeather::default(),
            lame: BTreeMap::new(),
            tally: Tally::default(),
            trace: traced.then(|| Trace::new(profile.room.is_some())),
            chronicle: profile.room.map(|_| Chronicle::default()),
            course: None,
            observations: Vec::new(),
            profile,
        };
        if world.profile.mixed {
            world.tally.coverage.count(Mishap::MixedLeases);
        }
        world.begin();
        world
    }

    fn begin(&mut self) {
        for _ in 0..self.profile.members {
            let member = self.add_place();
            let stagger = match self.profile.faults.is_empty() {
                true => Duration::from_millis(20),
                false => self.profile.settings.heartbeat_ttl,
            };
            let at = self.now + self.dice.span(Duration::ZERO, stagger);
            self.queue.push(at, Happening::Boot(member));
        }
        for (index, fault) in self.profile.faults.iter().enumerate() {
            if self.profile.without.contains(&index) {
                continue;
            }
            self.queue.push(fault.at, Happening::Strike(index));
            if let FaultKind::Amnesia {
                back: Some(back), ..
            } = fault.kind
            {
                let nanos = fault.at.nanos().saturating_sub(back.as_nanos() as u64);
                let at = TrueTime::from_nanos(nanos);
                self.queue.push(at, Happening::Remember(index));
            }
        }
        let every = self.profile.settings.heartbeat_interval;
        self.queue.push(self.now + every, Happening::Effects);
    }

    /// A new place for a member, with a clock of its own.
    fn add_place(&mut self) -> usize {
        let number = self.processes.len();
        let rate = match self.profile.drifting {
            true => self.dice.between(-RATE_ERROR_MAX_PPM, RATE_ERROR_MAX_PPM),
            false => 0,
        };
        let wall = self.dice.between(-WALL_ERROR_MAX_MS, WALL_ERROR_MAX_MS);
        let offset = self
            .dice
            .span(Duration::from_secs(1), Duration::from_secs(1000));
        let clock = MemberClock::new(offset, rate, wall);
        let mut process = Process::new(number, clock);
        if self.profile.room.is_some() {
            process.description.zone = Some(hands::zone_of(number));
        }
        self.processes.push(process);
        number
    }

    /// Lets everything happen that is due by `until`.
    pub fn run_until(&mut self, until: TrueTime) -> Result<(), Broken> {
        while let Some((at, happening)) = self.queue.pop(until) {
            self.begin_at(at);
            self.happen(happening)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Something happens now.
    fn begin_at(&mut self, at: TrueTime) {
        debug_assert!(at >= self.now, "time goes on");
        self.now = at;
        self.tally.events += 1;
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Broken> {
        match happening {
            Happening::Boot(member) => self.boot(member),
            Happening::Arrive(member, generation, arrival) => {
                if self.processes[member].generation != generation {
                    return Ok(());
                }
                self.arrive(member, arrival)
            }
            Happening::Request(request) => self.request_arrives(request),
            Happening::Resume(member) => self.resume(member),
            Happening::LateEffect(partition, token) => {
                self.late_effect(partition, token);
                Ok(())
            }
            Happening::Effects => self.effects(),
            Happening::Remember(fault) => {
                self.store.remember(fault);
                Ok(())
            }
            Happening::Strike(fault) => self.strike(fault),
            Happening::Relent(fault) => self.relent(fault),
            Happening::Roll(member) => {
                self.roll(member);
                Ok(())
            }
        }
    }

    /// Tells all invariants.
    fn tell(&mut self, fact: &Fact<'_>) -> Result<(), Broken> {
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.hear(self.now, fact);
        }
        self.invariants.observe(&Seen {
            at: self.now,
            fact,
            ledger: &self.ledger,
        })
    }

    /// Writes a line of the trace, if there is one.
    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(self.now, line());
        }
    }

    fn after(&mut self, span: Duration, happening: Happening) {
        self.queue.push(self.now + span, happening);
    }

    /// What can be counted so far.
    pub fn tally(&self) -> Tally {
        Tally {
            lasted: self.now.elapsed(),
            effects: self.resource.effects,
            ..self.tally.clone()
        }
    }

    /// Takes the lines of the trace.
    pub fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().map_or_else(Vec::new, Trace::into_lines)
    }

    /// Takes what figures are made from.
    pub fn take_observations(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.observations)
    }

    /// Writes why it ended as the last line of the trace.
    pub(crate) fn note_end(&mut self, why: &str) {
        self.note(|| format!("broken: {why}"));
    }

    /// What it is now.
    pub const fn now(&self) -> TrueTime {
        self.now
    }

    /// The machine at a place, if its process is alive.
    pub fn member(&self, place: usize) -> Option<&Member> {
        self.processes.get(place)?.machine.as_deref()
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.processes.len()
    }

    /// The records of the store.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

fn bounds(profile: &Profile) -> Bounds {
    let settings = &profile.settings;
    let round_trip = profile.latency.1 * 2;
    Bounds {
        lease: settings.heartbeat_ttl,
        is_exclusive: settings.store_outage == StoreOutage::Exclusive,
        is_calm: false,
        ends_late: true,
        leader_lease: settings.leader_lease,
        value_bytes_max: profile.value_bytes_max,
        operations_max: OPERATIONS_MAX,
        members_max: profile.members_max(),
        partitions_max: profile.partitions_max().max(1),
        // Hooks of one partition are serial: what stops must have stopped.
        start_within: settings.root_poll_interval * 2 + round_trip * 4 + profile.hook.1 * 2,
        beat_within: settings.leader_lease,
    }
}
