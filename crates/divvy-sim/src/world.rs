//! A world: members, their store, and all that happens to them, whichever mode
//! it is of.
//!
//! One queue orders everything, one source of chance decides everything, so a
//! seed is a world. Members are the machine that runs in production; nothing
//! here decides for them.

// There are the two modes of this crate, and nobody can make a third.
#![allow(private_bounds, private_interfaces)]

mod arrive;
mod boot;
mod coordination;
mod course;
mod driver;
mod hindrance;
mod hooks;
mod life;
mod machine;
mod network;
mod phase;
mod process;
mod reach;
mod strike;
mod work;

use std::collections::BTreeSet;
use std::time::Duration;

use divvy_core::store::Token;

use crate::clock::{MemberClock, RATE_ERROR_MAX_PPM};
use crate::coverage::{Coverage, Mishap};
use crate::dice::Dice;
use crate::fact::{Fact, Phase, Seen};
use crate::fault::{HookWeather, Weather};
use crate::hands::{Chronicle, Deed, Trace};
use crate::invariants::Broken;
use crate::ledger::Ledger;
use crate::queue::Queue;
use crate::resource::Resource;
use crate::time::TrueTime;
pub(crate) use coordination::{Coordination, Frame};
pub(crate) use course::{Course, Stage};
pub(crate) use driver::DRIVERS;
pub use driver::{DriverDefect, DriverPlan};
use hindrance::Hindrances;
pub(crate) use hooks::{Hook, Start};
pub use life::Life;
pub(crate) use machine::{Machine, Occasion};
pub(crate) use network::Request;
pub(crate) use process::{Arrival, Over, Process};
pub(crate) use reach::Reach;

/// Operations of one member that are under way at once, chunks of a root and
/// garbage included.
pub(crate) const OPERATIONS_MAX: usize = 64;

/// Something that will happen.
#[derive(Debug, Clone)]
pub(crate) enum Happening<C: Coordination> {
    /// A process is started.
    Boot(usize),
    /// Something reaches a process of this generation.
    Arrive(usize, u32, Arrival<C>),
    /// An operation reaches the store.
    Request(Box<Request<C>>),
    /// A process that stands still goes on.
    Resume(usize),
    /// An effect that was decided on earlier reaches its resource.
    LateEffect(usize, Token),
    /// The fencer of a process of this generation acts.
    Fence(usize, u32),
    /// All running partitions do something.
    Effects,
    /// The store is remembered for a fault that will make it forget.
    Remember(usize),
    /// A fault begins.
    Strike(usize),
    /// A fault ends.
    Relent(usize),
    /// The next member of a rolling restart leaves.
    Roll(usize),
    /// Something that only worlds of one mode do.
    Errand(fn(&mut WorldOf<C>)),
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

/// A world of one mode.
#[derive(Debug, Clone)]
pub struct WorldOf<C: Coordination> {
    pub(crate) profile: C::Profile,
    pub(crate) now: TrueTime,
    pub(crate) queue: Queue<Happening<C>>,
    pub(crate) dice: Dice,
    pub(crate) processes: Vec<Process<C>>,
    pub(crate) store: C::Store,
    pub(crate) reach: Reach,
    pub(crate) hindrances: Hindrances,
    pub(crate) resource: Resource,
    pub(crate) ledger: Ledger,
    invariants: C::Invariants,
    pub(crate) phase: Phase,
    /// Faults that have begun and not ended.
    pub(crate) active: Vec<usize>,
    pub(crate) weather: Weather,
    pub(crate) hook_weather: HookWeather,
    pub(crate) tally: Tally,
    pub(crate) trace: Option<Trace>,
    /// What hands want to know; nothing where none reach into it.
    pub(crate) chronicle: Option<Chronicle>,
    /// How far its course is, where somebody watches it run.
    pub(crate) course: Option<Course>,
    pub(crate) observations: Vec<Observation>,
    /// What only worlds of this mode have.
    pub(crate) own: C,
}

/// What a world of one mode begins with.
#[derive(Debug)]
pub(crate) struct Beginning<C: Coordination> {
    pub(crate) dice: Dice,
    pub(crate) store: C::Store,
    pub(crate) invariants: C::Invariants,
    pub(crate) partitions_max: usize,
    /// When each fault begins, and how long before that the store is remembered
    /// for it.
    pub(crate) faults: Vec<(TrueTime, Option<Duration>)>,
    /// Faults that are left out.
    pub(crate) without: BTreeSet<usize>,
    pub(crate) own: C,
}

impl<C: Coordination> WorldOf<C> {
    /// The world of this profile, before anything has happened.
    pub(crate) fn begun(profile: C::Profile, traced: bool, beginning: Beginning<C>) -> Self {
        let room = C::frame(&profile).room;
        let mut world = Self {
            profile,
            now: TrueTime::ZERO,
            queue: Queue::new(),
            dice: beginning.dice,
            processes: Vec::new(),
            store: beginning.store,
            reach: Reach::default(),
            hindrances: Hindrances::default(),
            resource: Resource::new(beginning.partitions_max),
            ledger: Ledger::default(),
            invariants: beginning.invariants,
            phase: Phase::Faults,
            active: Vec::new(),
            weather: Weather::default(),
            hook_weather: HookWeather::default(),
            tally: Tally::default(),
            trace: traced.then(|| Trace::new(room.is_some())),
            chronicle: room.map(|_| Chronicle::default()),
            course: None,
            observations: Vec::new(),
            own: beginning.own,
        };
        world.begin(&beginning.faults, &beginning.without);
        world
    }

    fn begin(&mut self, faults: &[(TrueTime, Option<Duration>)], without: &BTreeSet<usize>) {
        let frame = self.frame();
        for _ in 0..frame.members {
            let member = self.add_place();
            let at = self.now + self.dice.span(Duration::ZERO, frame.booted_within);
            self.queue.push(at, Happening::Boot(member));
        }
        for (fault, &(at, back)) in faults.iter().enumerate() {
            if without.contains(&fault) {
                continue;
            }
            self.queue.push(at, Happening::Strike(fault));
            if let Some(back) = back {
                let nanos = at.nanos().saturating_sub(back.as_nanos() as u64);
                let at = TrueTime::from_nanos(nanos);
                self.queue.push(at, Happening::Remember(fault));
            }
        }
        self.after(frame.beat, Happening::Effects);
    }

    pub(crate) fn frame(&self) -> Frame {
        C::frame(&self.profile)
    }

    /// A new place for a member, with a clock of its own.
    pub(crate) fn add_place(&mut self) -> usize {
        let number = self.processes.len();
        let rate = match self.frame().drifting {
            true => self.dice.between(-RATE_ERROR_MAX_PPM, RATE_ERROR_MAX_PPM),
            false => 0,
        };
        let wall = match C::WALL_ERROR_MAX_MS {
            0 => 0,
            most => self.dice.between(-most, most),
        };
        let offset = self
            .dice
            .span(Duration::from_secs(1), Duration::from_secs(1000));
        let clock = MemberClock::new(offset, rate, wall);
        let host = C::host(&self.profile, number);
        self.processes.push(Process::new(host, clock));
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
    pub(crate) fn begin_at(&mut self, at: TrueTime) {
        debug_assert!(at >= self.now, "time goes on");
        self.now = at;
        self.tally.events += 1;
    }

    pub(crate) fn happen(&mut self, happening: Happening<C>) -> Result<(), Broken> {
        match happening {
            Happening::Boot(member) => self.boot(member),
            Happening::Arrive(member, generation, arrival) => {
                if self.processes[member].generation != generation {
                    return Ok(());
                }
                self.stall_before(member, &arrival)?;
                self.arrive(member, arrival)
            }
            Happening::Request(request) => self.request_arrives(request),
            Happening::Resume(member) => self.resume(member),
            Happening::LateEffect(partition, token) => {
                self.late_effect(partition, token);
                Ok(())
            }
            Happening::Fence(member, generation) => {
                if self.processes[member].generation != generation {
                    return Ok(());
                }
                self.fence_is_due(member)
            }
            Happening::Effects => self.effects(),
            Happening::Remember(fault) => {
                C::remember(&mut self.store, fault);
                Ok(())
            }
            Happening::Strike(fault) => match self.phase {
                Phase::Faults => C::strike(self, fault),
                _ => Ok(()),
            },
            Happening::Relent(fault) => self.relent(fault),
            Happening::Roll(member) => {
                self.roll(member);
                Ok(())
            }
            Happening::Errand(run) => {
                run(self);
                Ok(())
            }
        }
    }

    /// Tells all invariants.
    pub(crate) fn tell(&mut self, fact: &Fact<'_>) -> Result<(), Broken> {
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.hear(self.now, fact);
        }
        let seen = Seen {
            at: self.now,
            fact,
            ledger: &self.ledger,
        };
        C::observe(&mut self.invariants, &seen)
    }

    /// Writes a line of the trace, if there is one.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(self.now, line());
        }
    }

    /// Lets hands know of a deed, if there are any.
    pub(crate) fn note_deed(&mut self, deed: Deed) {
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.note(self.now, deed);
        }
    }

    pub(crate) fn after(&mut self, span: Duration, happening: Happening<C>) {
        self.queue.push(self.now + span, happening);
    }

    pub(crate) fn count(&mut self, mishap: Mishap) {
        self.tally.coverage.count(mishap);
    }

    pub(crate) fn observed(&mut self, what: Observed) {
        if self.chronicle.is_some() {
            return;
        }
        let at = self.now;
        self.observations.push(Observation { at, what });
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
    pub fn member(&self, place: usize) -> Option<&C::Machine> {
        self.processes.get(place)?.machine.as_deref()
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.processes.len()
    }
}
