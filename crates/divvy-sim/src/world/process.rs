//! A place where a member runs: its process, clock, link and hooks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use divvy_core::leader::{HookEnd, HookId, OperationId};
use divvy_core::lease::Ending;

use super::WorldOf;
use super::coordination::{Coordination, EventOf, NewsOf, ReplyOf};
use super::hooks::{Call, Hook};
use crate::clock::MemberClock;
use crate::fault::{HookWeather, Isolation};
use crate::invariants::Broken;
use crate::time::TrueTime;

/// Something that reaches a process, unless it stands still.
#[derive(Debug, Clone)]
pub(crate) enum Arrival<C: Coordination> {
    Wake,
    Event(EventOf<C>),
    /// It is asked to stop, by this event.
    Stop(EventOf<C>),
    /// What the store sent on this connection, when it had forgotten so often.
    News(u64, u32, NewsOf<C>),
    /// The answer to an operation, on this connection.
    Answer(OperationId, ReplyOf<C>, u64),
    /// In which life the store is on this connection.
    Life(u64),
    /// An operation has taken too long.
    Expire(OperationId),
    /// A hook that had to wait is called.
    Begun(HookId),
    /// A hook runs for longer than it may.
    Overdue(HookId),
    Hook(HookId, HookEnd),
    /// The store is reached again.
    Connect,
    /// Something that only members of one mode do.
    Errand(fn(&mut WorldOf<C>, usize) -> Result<(), Broken>),
}

/// An operation that has not come to an end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    pub(crate) id: OperationId,
    pub(crate) is_write: bool,
    /// An expiry is under way already.
    pub(crate) expiring: bool,
    pub(crate) expires: TrueTime,
}

/// Standing still.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stillness {
    pub(crate) until: TrueTime,
    pub(crate) suspended: bool,
}

/// How a process ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    Ended(Ending),
    Aborted,
}

#[derive(Debug, Clone)]
pub(crate) struct Process<C: Coordination> {
    /// What only places of one mode have.
    pub(crate) host: C::Host,
    /// A second process with another's name: never started again.
    pub(crate) is_namesake: bool,
    pub(crate) clock: MemberClock,
    /// In a box: it is taken out and put back at every step.
    pub(crate) machine: Option<Box<C::Machine>>,
    /// Counts starts: what was meant for an earlier process does not reach
    /// this one.
    pub(crate) generation: u32,
    pub(crate) stillness: Option<Stillness>,
    pub(crate) backlog: VecDeque<Arrival<C>>,
    /// When its driver wakes, and when it should.
    pub(crate) wake_at: Option<TrueTime>,
    pub(crate) wake_due: Option<TrueTime>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) isolation: Option<Isolation>,
    /// It gets no news.
    pub(crate) is_deaf: bool,
    /// Since when hands have kept others from hearing of it.
    pub(crate) silent_since: Option<TrueTime>,
    /// The life of the store that it is connected to.
    pub(crate) connected: Option<u32>,
    /// Counts its connections.
    pub(crate) connection: u64,
    /// Hooks that wait for their turn.
    pub(crate) waiting: VecDeque<Hook>,
    pub(crate) calls: BTreeMap<HookId, Call>,
    /// How its own hooks fare, beside those of everybody.
    pub(crate) hooks: HookWeather,
    pub(crate) running: BTreeMap<usize, C::Running>,
    /// Partitions that commands work on, where commands do the work.
    pub(crate) commands: BTreeSet<usize>,
    /// The fencer has a moment at which it will act.
    pub(crate) is_fence_planned: bool,
    /// It has been asked to stop.
    pub(crate) stopping: bool,
    /// How long after its end it is started again; nothing if never.
    pub(crate) comes_back: Option<Duration>,
    /// It said that it has ended, or that it must be.
    pub(crate) over: Option<Over>,
}

impl<C: Coordination> Process<C> {
    pub(crate) fn new(host: C::Host, clock: MemberClock) -> Self {
        Self {
            host,
            is_namesake: false,
            clock,
            machine: None,
            generation: 0,
            stillness: None,
            backlog: VecDeque::new(),
            wake_at: None,
            wake_due: None,
            flights: Vec::new(),
            isolation: None,
            is_deaf: false,
            silent_since: None,
            connected: None,
            connection: 0,
            waiting: VecDeque::new(),
            calls: BTreeMap::new(),
            hooks: HookWeather::default(),
            running: BTreeMap::new(),
            commands: BTreeSet::new(),
            is_fence_planned: false,
            stopping: false,
            comes_back: None,
            over: None,
        }
    }

    /// Whether there is a process, standing still or not.
    pub(crate) const fn is_alive(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether what it sends reaches the store.
    pub(crate) const fn sends(&self) -> bool {
        matches!(self.isolation, None | Some(Isolation::Inward))
    }

    /// Whether what the store sends reaches it.
    pub(crate) const fn receives(&self) -> bool {
        matches!(self.isolation, None | Some(Isolation::Outward))
    }

    /// Whether it reaches the resources that partitions work on.
    pub(crate) const fn reaches_resources(&self) -> bool {
        !matches!(self.isolation, Some(Isolation::Full))
    }

    /// Whether the start of a partition waits for its turn.
    pub(crate) fn awaits_start(&self, partition: usize) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|hook| hook.partition == partition && hook.start.is_some())
    }

    /// Forgets what processes of both modes have.
    pub(super) fn clear(&mut self) {
        self.machine = None;
        self.generation += 1;
        self.backlog.clear();
        self.wake_at = None;
        self.wake_due = None;
        self.flights.clear();
        self.connected = None;
        self.waiting.clear();
        self.calls.clear();
        self.running.clear();
        self.commands.clear();
        self.is_fence_planned = false;
        self.stopping = false;
        self.over = None;
    }
}
