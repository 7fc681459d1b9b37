//! A member of a cluster: decides everything, does nothing itself.
//!
//! ```text
//! claim -> session -> renewals ---------------------> work (start, stop hooks)
//!             |                                         ^
//!             |        root (who holds what) ---> adoption
//!             v                 ^
//!         election -> leading: observe, fence, draft, commit
//! ```
//!
//! What a reader would get wrong: leadership protects nothing. Every grant
//! rests on facts that cannot become untrue, and is written over the very root
//! that it was judged by, so that any number of leaders at once is safe.

mod adoption;
mod beat;
mod claim;
mod commit;
mod departure;
mod dispatch;
mod draft;
mod election;
mod fencing;
mod garbage;
mod hooks;
mod inheritance;
mod leading;
mod lease;
mod observation;
mod operations;
mod placement;
mod policy;
mod quarantine;
mod refusals;
mod renewal;
mod root_view;
mod roster;
mod session;
mod sessions;
mod sketch;
mod source;
mod timers;
mod trigger;
mod wishes;
mod work;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::action::{Action, Operation};
use super::codec::{INSTANCE_BYTES_MAX, STOPPING_MAX, UNABLE_MAX};
use super::defect::Defect;
use super::event::{Clock, Event, Reply, SelfDescription};
use super::record::{Holding, Lifecycle, SessionId, Shutdown, State, Version};
use super::retries::Retries;
use super::settings::LeaderSettings;
use crate::assignment::Assignment;
use crate::error::Invalid;
use crate::moment::Moment;
use crate::operations::Operations;
use crate::partition::Partition;
use crate::store::{Incarnation, StoreErrorKind, Token};
use crate::strategy::Strategy;
use crate::timers::Timers;

use self::claim::Claim;
use self::election::Election;
use self::leading::Leading;
use self::observation::Observation;
use self::operations::Purpose;
use self::refusals::Refusals;
use self::root_view::RootView;
use self::session::Session;
use self::timers::Timer;
use self::work::Work;
use super::keys::{self, Keys};
use crate::random::Random;

/// Who has a partition, by its stable id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Nobody yet.
    Nobody,
    /// This worker, with this token.
    Granted(Box<str>, Token),
    /// This worker, which was asked to give it back.
    AskedBack(Box<str>),
}

/// What a member is made of.
#[derive(Debug, Clone)]
pub struct MemberSetup {
    /// The cluster's settings, which have been checked.
    pub settings: LeaderSettings,
    /// Who asks for an id: the pod's or host's name, 1..=
    /// [`INSTANCE_BYTES_MAX`] bytes. An instance that comes back gets its id,
    /// and with it its partitions, again.
    pub instance: Box<str>,
    /// Who places partitions when this member leads.
    pub strategy: Arc<dyn Strategy>,
    /// Who had which partition before this cluster began, by instances or
    /// stable ids: the first placement leaves everything with them.
    pub previous: Option<Arc<Assignment>>,
    /// What this worker says of itself.
    pub description: SelfDescription,
    /// Where session ids, jitter and names of chunks come from: different in
    /// every process and every start.
    pub seed: u64,
    /// Whether an external agent says who may lead.
    pub external_election: bool,
    /// Whether hooks may have to wait for others before they are called: then
    /// their time counts from when that is told.
    pub hooks_wait: bool,
    /// How failed claims and publications are repeated.
    pub retries: Retries,
    /// The largest value that the store takes, in bytes.
    pub value_bytes_max: usize,
    /// How much is done at once.
    pub batches: Batches,
}

/// How much of a kind is done or told at once; more follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// Partitions that a record names as stopping, at most [`STOPPING_MAX`].
    pub stopping: usize,
    /// Partitions that a record names as not to be started there, at most
    /// [`UNABLE_MAX`].
    pub unable: usize,
    /// Sessions that are ended.
    pub fences: usize,
    /// Records that are missing and created again.
    pub missing: usize,
    /// Chunks that are deleted.
    pub deletes: usize,
    /// Hooks that run, beyond which nothing is started.
    pub hooks: usize,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            stopping: STOPPING_MAX,
            unable: UNABLE_MAX,
            fences: 256,
            missing: 64,
            deletes: 16,
            hooks: 1024,
        }
    }
}

impl MemberSetup {
    /// Whether a member can be made of this. [`Member::new`] takes that for
    /// granted.
    pub fn check(&self) -> Result<(), Invalid> {
        self.settings.check()?;
        crate::name::check("instance", &self.instance, INSTANCE_BYTES_MAX)?;
        self.description.check()
    }
}

/// A member of a cluster: handed events and the time, it says what to do.
#[derive(Debug, Clone)]
pub struct Member {
    setup: MemberSetup,
    defect: Option<Defect>,
    clock: Clock,
    random: Random,
    keys: Keys,
    actions: VecDeque<Action>,
    timers: Timers<Timer>,
    operations: Operations<Purpose>,
    state: State,
    is_started: bool,
    is_leaving: bool,
    is_over: bool,
    stopping: Option<Shutdown>,
    /// The life of the store, once it is reached.
    incarnation: Option<Incarnation>,
    /// The connection on which the store was last found to be in that life.
    connection: Option<u64>,
    begun_at: Moment,
    claim: Claim,
    session: Option<Session>,
    /// The session before, which is known to be over.
    ended_session: Option<SessionId>,
    /// The lease is about to end.
    is_draining: bool,
    has_drained: bool,
    /// While that was told: when the last renewal was sent that counts.
    silent_since: Option<Moment>,
    deadline_told: Option<Moment>,
    /// When the last write was sent that the store acknowledged.
    last_acknowledged: Moment,
    work: Work,
    refusals: Refusals,
    view: RootView,
    /// The newest root and the highest token that this process ever had.
    adopted_max: Version,
    token_max: Option<Token>,
    /// The longest lease that this process knows anybody to have worked by:
    /// what a store that forgot cannot tell any more.
    lease_max: Duration,
    refresh: u64,
    /// What [`WorkerRecord::alarm`](super::record::WorkerRecord) says.
    alarm: u64,
    election: Election,
    observation: Observation,
    leading: Option<Box<Leading>>,
    /// Tells writes apart whose answers must not be mixed up between two
    /// tenures: every number is used once.
    serial: u64,
    watching: dispatch::Watching,
}

impl Member {
    /// A member that has not begun.
    pub fn new(setup: MemberSetup, clock: Clock) -> Self {
        let lease_max = setup.settings.heartbeat_ttl;
        Self {
            random: Random::new(setup.seed),
            setup,
            defect: None,
            clock,
            keys: Keys::default(),
            actions: VecDeque::new(),
            timers: Timers::default(),
            operations: Operations::default(),
            state: State::Init,
            is_started: false,
            is_leaving: false,
            is_over: false,
            stopping: None,
            incarnation: None,
            connection: None,
            begun_at: clock.now,
            claim: Claim::default(),
            session: None,
            ended_session: None,
            is_draining: false,
            has_drained: false,
            silent_since: None,
            deadline_told: None,
            last_acknowledged: clock.now,
            work: Work::default(),
            refusals: Refusals::default(),
            view: RootView::default(),
            adopted_max: Version::default(),
            token_max: None,
            lease_max,
            refresh: 0,
            alarm: 0,
            election: Election::default(),
            observation: Observation::default(),
            leading: None,
            serial: 0,
            watching: dispatch::Watching::Nothing,
        }
    }

    /// The epoch that its record reports because the store forgot; 0 if it
    /// reports nothing.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    pub fn alarm(&self) -> u64 {
        self.alarm
    }

    /// The same with a mistake in it, for what tests the tests.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    pub fn planted(setup: MemberSetup, clock: Clock, defect: Defect) -> Self {
        Self {
            defect: Some(defect),
            ..Self::new(setup, clock)
        }
    }

    /// Takes in something that happened. Afterwards take all actions.
    pub fn handle(&mut self, clock: Clock, event: Event) {
        if self.is_over {
            return;
        }
        self.tick(clock);
        // Timers act on what is known of the store: its life comes first.
        if matches!(event, Event::Connected(_)) {
            self.dispatch(event);
            self.timers_due();
        } else {
            self.timers_due();
            if !self.is_over {
                self.dispatch(event);
            }
        }
        self.settle();
    }

    /// Takes in something that came from the store, on the connection of this
    /// number; none if the connection changed meanwhile. A store may be in
    /// another life on every new connection, and what it says proves something
    /// only once it is known in which: until [`Event::Connected`] came on a
    /// connection too, answers on it are as good as none.
    pub fn hear(&mut self, clock: Clock, connection: Option<u64>, event: Event) {
        let is_known = connection.is_some() && connection == self.connection;
        let trusts_all = self.defect == Some(Defect::TrustEveryLife);
        match event {
            Event::Connected(_) => self.connection = connection,
            Event::Reply(_, Reply::Failed(_)) => {}
            Event::Reply(id, _) if !is_known && !trusts_all => {
                let unknown = Reply::Failed(StoreErrorKind::Unknown);
                return self.handle(clock, Event::Reply(id, unknown));
            }
            // Everything is read when the life is known.
            Event::Seen(_) if !is_known && !trusts_all => return self.wake(clock),
            _ => {}
        }
        self.handle(clock, event);
    }

    /// Whether an operation may be sent on the connection of this number.
    /// Nothing is written where the life of the store is not known: a write
    /// names the revision that it replaces, and another life may have given
    /// that revision to another write, such as the record of a live session.
    pub fn may_send(&self, connection: u64, operation: &Operation) -> bool {
        let trusts_all = self.defect == Some(Defect::TrustEveryLife);
        !operation.is_write() || self.connection == Some(connection) || trusts_all
    }

    /// The connection on which the life of the store is known.
    pub fn connection(&self) -> Option<u64> {
        self.connection
    }

    /// Does what is due. A call too early does nothing.
    pub fn wake(&mut self, clock: Clock) {
        if self.is_over {
            return;
        }
        self.tick(clock);
        self.timers_due();
        self.settle();
    }

    /// The next thing to do, in order.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Member::wake`], unless something happens before.
    pub fn next_wake(&self) -> Option<Moment> {
        self.timers.next()
    }

    /// What the member is doing.
    pub fn state(&self) -> State {
        self.state
    }

    /// Its stable id, once it has one.
    pub fn worker_id(&self) -> Option<&str> {
        self.session.as_ref().map(|session| &*session.worker)
    }

    /// Its session, while there is one.
    pub fn session(&self) -> Option<SessionId> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Whether it leads, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.leading.is_some()
    }

    /// The epoch that it leads with, if it leads.
    pub fn epoch(&self) -> Option<u64> {
        self.leading.as_ref().map(|leading| leading.epoch)
    }

    /// The assignment in force here.
    pub fn adopted(&self) -> Option<(Version, Lifecycle)> {
        self.session.as_ref()?.adopted
    }

    /// When authority ends unless the lease is renewed: what the last
    /// [`Action::Deadline`] said.
    pub fn deadline(&self) -> Option<Moment> {
        self.deadline_told
    }

    /// Partitions whose start hook was asked for and that have not finished
    /// stopping, with the token that they were granted with: all in which
    /// anything may run.
    pub fn running(&self) -> impl Iterator<Item = (&Partition, Token)> {
        let slots = self.work.iter();
        slots.filter_map(|slot| Some((&slot.partition, slot.phase.token()?)))
    }

    /// Partitions whose start hook has returned and whose stop hook has not,
    /// with the token that they were started with.
    pub fn started(&self) -> impl Iterator<Item = (&Partition, Token)> {
        let slots = self.work.iter();
        slots.filter_map(|slot| Some((&slot.partition, slot.phase.started_with()?)))
    }

    /// Whether nothing runs, starts or stops.
    pub fn is_idle(&self) -> bool {
        self.work.is_idle()
    }

    /// Who has the partition with this text, by the newest root that this
    /// worker knows; nothing if there is no such partition.
    pub fn holder_of(&self, partition: &str) -> Option<Holder> {
        let committed = &self.view.newest.as_ref()?.committed;
        let holding = committed.root.holdings[committed.partitions.index_of(partition)?];
        let worker = |session: u32| committed.root.sessions[session as usize].worker.clone();
        Some(match holding {
            Holding::None => Holder::Nobody,
            Holding::Held { session, token } => Holder::Granted(worker(session), token),
            Holding::Revoking { session, .. } => Holder::AskedBack(worker(session)),
        })
    }

    /// How many partitions nobody owns, by the newest root; only whoever leads
    /// knows.
    pub fn unowned(&self) -> Option<usize> {
        let newest = self.view.newest.as_ref().filter(|_| self.is_leader())?;
        let holdings = newest.committed.root.holdings.iter();
        Some(holdings.filter(|it| **it == Holding::None).count())
    }

    /// Why the newest root cannot be read, if it cannot.
    pub fn unreadable_root(&self) -> Option<&str> {
        self.view.unreadable.as_deref()
    }

    /// Whether an effect on the partition with this text would be allowed at
    /// `now`.
    pub fn holds_authority(&self, partition: &str, now: Moment) -> bool {
        let is_granted = self
            .work
            .get(partition)
            .is_some_and(|slot| slot.granted.is_some());
        is_granted && self.deadline_told.is_some_and(|end| now < end)
    }
}
