//! A place where a member runs: its process, clock, link and hooks.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{HookEnd, HookId, OperationId};
use divvy_core::lease::{Ending, Event, Member, Reply, SelfDescription, TenureId};
use divvy_core::store::{LeaseNotice, Nonce, Token, WorkerId};

use crate::clock::MemberClock;
use crate::fault::{HookWeather, Isolation};
use crate::time::TrueTime;

/// Something that reaches a process, unless it stands still.
#[derive(Debug, Clone)]
pub(super) enum Arrival {
    Wake,
    Event(Event),
    /// A notice, from this life of the store.
    Notice(u32, LeaseNotice),
    Answer(OperationId, Reply),
    /// An operation has taken too long.
    Expire(OperationId),
    Hook(HookId, HookEnd),
    /// The groups of its settings may have changed.
    Regroup,
    /// The store is reached again.
    Connect,
}

/// An operation that has not come to an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) id: OperationId,
    pub(super) is_write: bool,
    /// An expiry is under way already.
    pub(super) expiring: bool,
    pub(super) expires: TrueTime,
}

/// A call of a hook that has not come to an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) partition: usize,
    pub(super) starts: bool,
    pub(super) stuck: bool,
}

/// A partition that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    pub(super) token: Token,
    pub(super) tenure: TenureId,
    /// What its lease was taken with.
    pub(super) nonce: Option<Nonce>,
    /// Until when its effects count; nothing if no longer.
    pub(super) until: Option<Moment>,
    /// It was asked to stop.
    pub(super) stopping: bool,
}

/// Standing still.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stillness {
    pub(super) until: TrueTime,
    pub(super) suspended: bool,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) worker: WorkerId,
    /// A second process with another's name: never started again.
    pub(super) is_namesake: bool,
    pub(super) clock: MemberClock,
    /// In a box: it is taken out and put back at every step.
    pub(super) machine: Option<Box<Member>>,
    /// Counts starts: what was meant for an earlier process does not reach
    /// this one.
    pub(super) generation: u32,
    pub(super) booted: TrueTime,
    pub(super) stillness: Option<Stillness>,
    pub(super) backlog: VecDeque<Arrival>,
    pub(super) wake_at: Option<TrueTime>,
    pub(super) flights: Vec<Flight>,
    pub(super) isolation: Option<Isolation>,
    /// It gets no notices.
    pub(super) is_deaf: bool,
    /// The store has forgotten the scripts that this member would use.
    pub(super) lacks_scripts: bool,
    /// The life of the store that it is connected to.
    pub(super) connected: Option<u32>,
    pub(super) calls: BTreeMap<HookId, Call>,
    /// How its own hooks fare, beside those of everybody.
    pub(super) hooks: HookWeather,
    pub(super) running: BTreeMap<usize, Running>,
    pub(super) tenures: BTreeMap<TenureId, usize>,
    pub(super) description: SelfDescription,
    /// It has been asked to stop.
    pub(super) stopping: bool,
    /// How long after its end it is started again; nothing if never.
    pub(super) comes_back: Option<Duration>,
    /// It said that it has ended, or that it must be.
    pub(super) over: Option<Over>,
}

/// How a process ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Over {
    Ended(Ending),
    Aborted,
}

impl Process {
    pub(super) fn new(worker: WorkerId, clock: MemberClock, weight: f64) -> Self {
        Self {
            worker,
            is_namesake: false,
            clock,
            machine: None,
            generation: 0,
            booted: TrueTime::ZERO,
            stillness: None,
            backlog: VecDeque::new(),
            wake_at: None,
            flights: Vec::new(),
            isolation: None,
            is_deaf: false,
            lacks_scripts: false,
            connected: None,
            calls: BTreeMap::new(),
            hooks: HookWeather::default(),
            running: BTreeMap::new(),
            tenures: BTreeMap::new(),
            description: SelfDescription {
                healthy: true,
                weight,
            },
            stopping: false,
            comes_back: None,
            over: None,
        }
    }

    /// Whether there is a process, standing still or not.
    pub(super) const fn is_alive(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether what it sends reaches the store.
    pub(super) const fn sends(&self) -> bool {
        matches!(self.isolation, None | Some(Isolation::Inward))
    }

    /// Whether what the store sends reaches it.
    pub(super) const fn receives(&self) -> bool {
        matches!(self.isolation, None | Some(Isolation::Outward))
    }

    /// Whether it reaches the resources that partitions work on.
    pub(super) const fn reaches_resources(&self) -> bool {
        !matches!(self.isolation, Some(Isolation::Full))
    }

    /// The partitions whose effects happen at `now`.
    pub(super) fn working(&self, now: TrueTime) -> impl Iterator<Item = (usize, Token)> {
        let now = self.clock.at(now);
        let running = self.running.iter();
        let working =
            running.filter(move |(_, running)| running.until.is_some_and(|until| now < until));
        working.map(|(&partition, running)| (partition, running.token))
    }

    /// The partitions that it has and has not been asked to stop.
    pub(super) fn owned(&self) -> impl Iterator<Item = usize> {
        let running = self.running.iter();
        let owned = running.filter(|(_, running)| !running.stopping);
        owned.map(|(&partition, _)| partition)
    }

    /// Forgets all that the process had; what stays is the host.
    pub(super) fn clear(&mut self) {
        self.machine = None;
        self.generation += 1;
        self.stillness = None;
        self.backlog.clear();
        self.wake_at = None;
        self.flights.clear();
        self.lacks_scripts = false;
        self.connected = None;
        self.calls.clear();
        self.running.clear();
        self.tenures.clear();
        self.stopping = false;
        self.over = None;
    }
}
