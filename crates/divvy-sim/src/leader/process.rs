//! A place where a member runs: its process, clock, link and hooks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use divvy_core::leader::{
    Event, HookEnd, HookId, Member, OperationId, Reply, SelfDescription, Watched,
};
use divvy_core::store::{Change, Token};
use divvy_core::{Health, Moment};

use crate::clock::MemberClock;
use crate::fault::{HookWeather, Isolation};
use crate::time::TrueTime;

/// Something that reaches a process, unless it stands still.
#[derive(Debug, Clone)]
pub(super) enum Arrival {
    Wake,
    Event(Event),
    /// A change that a watch saw, when the store had forgotten so often.
    Seen(u32, Arc<Change>),
    Answer(OperationId, Reply),
    /// An operation has taken too long.
    Expire(OperationId),
    Hook(HookId, HookEnd),
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

/// What a member cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lameness {
    EveryOther,
    Everything,
}

impl Lameness {
    pub(super) const fn prevents(self, partition: usize) -> bool {
        match self {
            Self::EveryOther => partition.is_multiple_of(2),
            Self::Everything => true,
        }
    }
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
    /// Its grant is over, and a later deadline is not for it.
    pub(super) void: bool,
}

/// Standing still.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stillness {
    pub(super) until: TrueTime,
    pub(super) suspended: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) instance: String,
    pub(super) clock: MemberClock,
    /// In a box: it is taken out and put back at every step.
    pub(super) machine: Option<Box<Member>>,
    /// Counts starts: what was meant for an earlier process does not reach
    /// this one.
    pub(super) generation: u32,
    pub(super) stillness: Option<Stillness>,
    pub(super) backlog: VecDeque<Arrival>,
    pub(super) wake_at: Option<TrueTime>,
    pub(super) flights: Vec<Flight>,
    pub(super) watched: Vec<Watched>,
    pub(super) isolation: Option<Isolation>,
    /// Since when hands have kept others from hearing of it.
    pub(super) silent_since: Option<TrueTime>,
    /// The life of the store that it is connected to.
    pub(super) connected: Option<u32>,
    pub(super) calls: BTreeMap<HookId, Call>,
    /// How its own hooks fare, beside those of everybody.
    pub(super) hooks: HookWeather,
    pub(super) running: BTreeMap<usize, Running>,
    pub(super) deadline: Option<Moment>,
    pub(super) description: SelfDescription,
    /// It has been asked to stop.
    pub(super) stopping: bool,
    /// How long after its end it is started again; nothing if never.
    pub(super) comes_back: Option<std::time::Duration>,
    /// It said that it has ended, or that it must be.
    pub(super) over: Option<Over>,
    /// An election request is under way.
    pub(super) electing: bool,
}

/// How a process ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    InOrder,
    Aborted,
}

impl Process {
    pub(super) fn new(number: usize, clock: MemberClock) -> Self {
        let zone = format!("zone-{}", number % 3);
        Self {
            instance: format!("host-{number}"),
            clock,
            machine: None,
            generation: 0,
            stillness: None,
            backlog: VecDeque::new(),
            wake_at: None,
            flights: Vec::new(),
            watched: Vec::new(),
            isolation: None,
            silent_since: None,
            connected: None,
            calls: BTreeMap::new(),
            hooks: HookWeather::default(),
            running: BTreeMap::new(),
            deadline: None,
            description: SelfDescription {
                health: Health::Healthy,
                weight: 1.0,
                zone: Some(zone.into()),
            },
            stopping: false,
            comes_back: None,
            over: None,
            electing: false,
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

    /// Whether effects of its partitions happen at `now`.
    pub(super) fn has_authority(&self, now: TrueTime) -> bool {
        let before = |deadline| self.clock.at(now) < deadline;
        self.is_alive() && self.deadline.is_some_and(before)
    }

    /// Forgets all that the process had; what stays is the host.
    pub(super) fn clear(&mut self) {
        self.machine = None;
        self.generation += 1;
        self.backlog.clear();
        self.wake_at = None;
        self.flights.clear();
        self.watched.clear();
        self.connected = None;
        self.calls.clear();
        self.running.clear();
        self.deadline = None;
        self.stopping = false;
        self.over = None;
        self.electing = false;
    }
}
