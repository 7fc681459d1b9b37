//! A worker in lease mode: decides everything, does nothing itself.
//!
//! ```text
//! session -> heartbeats          roster, groups -> places (who should have what)
//!                                                     |
//!     leases seen ---------> taking <-----------------+
//!                              v                      v
//!                  tenures (start, renew, stop) <- giving up
//! ```
//!
//! What a reader would get wrong: places protect nothing. Two workers that
//! disagree on them both ask for a lease, and the store gives it to one. And a
//! tenure that has ended is never taken up again, even if its lease turns out
//! to be there still: its token has been voided.

mod backoff;
mod disagreement;
mod dispatch;
mod explanation;
mod groups;
mod hooks;
mod log;
mod operations;
mod outlook;
mod placement;
mod quarantine;
mod reconcile;
mod renewal;
mod roster;
mod session;
mod shedding;
mod strangers;
mod taking;
mod tenure;
mod timers;
mod units;
mod view;
mod wishes;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::action::{Action, Ending, Operation, Report};
use super::defect::Defect;
use super::event::{Event, SelfDescription};
use super::group::Group;
use super::hashes::Hashes;
use super::settings::LeaseSettings;
use crate::error::Invalid;
use crate::moment::Moment;
use crate::operations::Operations;
use crate::random::Random;
use crate::store::{Incarnation, Nonce, WorkerId, WorkerInfo};
use crate::timers::Timers;

use self::backoff::Backoff;
use self::disagreement::Disagreements;
use self::groups::Groups;
use self::operations::Purpose;
use self::quarantine::QuarantineWait;
use self::roster::Roster;
use self::session::Session;
use self::strangers::Strangers;
use self::tenure::Tenures;
use self::timers::Timer;
use self::units::Units;
use self::wishes::Wishes;

pub use self::explanation::Explained;
pub use self::outlook::Outlook;
pub use self::view::{Held, Misaligned, Misalignment};

/// Of stops that nobody confirms, so many are named in the store.
const UNCONFIRMED_TOLD: usize = 50;

/// What a member is made of.
#[derive(Debug, Clone)]
pub struct MemberSetup {
    /// Its settings, which have been checked.
    pub settings: LeaseSettings,
    /// Its cluster and name there.
    pub worker: WorkerId,
    /// The groups that its own settings name.
    pub groups: Vec<Group>,
    /// Whether it serves the groups of the store, too. Where both name one,
    /// the store's document counts.
    pub dynamic: bool,
    /// What this worker says of itself.
    pub description: SelfDescription,
    /// Where nonces and jitter come from: different in every process and every
    /// start.
    pub seed: u64,
    /// How many leases go into one operation.
    pub batches: Batches,
    /// Whether hooks may have to wait for others before they are called: then
    /// their time counts from when that is told.
    pub hooks_wait: bool,
}

impl MemberSetup {
    /// Whether a member can be made of this. [`Member::new`] takes that for
    /// granted.
    pub fn check(&self) -> Result<(), Invalid> {
        self.settings.check()?;
        if self.groups.is_empty() && !self.dynamic {
            let rule = "must name at least one, unless those of the store are served";
            return Err(Invalid::new("groups", "none", rule));
        }
        Group::check_all(&self.groups)?;
        self.description.check()
    }
}

/// How many leases go into one operation on the store, at most: one that is
/// lost takes no more with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// Of those that are renewed.
    pub renewals: usize,
    /// Of those that are asked for.
    pub acquires: usize,
    /// Of those that are given back.
    pub releases: usize,
    /// Of those that are looked at.
    pub looks: usize,
    /// Of those whose cooldown is asked for.
    pub candidates: usize,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            renewals: 2_000,
            acquires: 2_000,
            releases: 2_000,
            looks: 5_000,
            candidates: 1_000,
        }
    }
}

/// How far a member has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It has not begun.
    New,
    /// It takes part.
    Live,
    /// It stops; and so it will end.
    Stopping,
    /// It has ended.
    Over,
}

/// A worker in lease mode: handed events and the time, it says what to do.
#[derive(Debug, Clone)]
pub struct Member {
    setup: MemberSetup,
    defect: Option<Defect>,
    now: Moment,
    random: Random,
    actions: VecDeque<Action>,
    timers: Timers<Timer>,
    operations: Operations<Purpose>,
    life: Life,
    /// How it will end.
    ending: Ending,
    /// The life of the store, once it is reached.
    incarnation: Option<Incarnation>,
    session: Session,
    /// When the name was last asked for.
    name_asked: Moment,
    groups: Groups,
    /// Hashes that need not be calculated.
    hashes: Arc<Hashes>,
    roster: Roster,
    wishes: Wishes,
    /// Its own people want it empty.
    is_drain_asked: bool,
    /// Moves that are not in the store's log yet.
    unlogged: Vec<String>,
    /// The live workers have been read at least once.
    is_roster_known: bool,
    roster_changed: Moment,
    /// From when on others are held to the numbers of units that they know.
    numbers_count_from: Moment,
    /// It was not among them when they were last read.
    is_unlisted: bool,
    strangers: Strangers,
    disagreements: Disagreements,
    units: Units,
    tenures: Tenures,
    backoff: Backoff,
    /// Reconciles so far.
    round: u64,
    quarantine: QuarantineWait,
    /// When the worker last got its name, and whether it has waited for
    /// others since.
    joined: Option<Moment>,
    is_window_over: bool,
    /// Who was there when it lost its name.
    missed: Vec<Box<str>>,
    /// It was told that leases could not be given back.
    is_unreleased_told: bool,
    /// What was taken for others and given up since the last full reconcile.
    taken_for_others: u32,
    given_up: u32,
    pace_since: Moment,
    /// How many were asked for their cooldown, where not all are at once.
    candidates_asked: usize,
    /// Something may be takeable that was not looked at.
    is_taking: bool,
    /// A round of looks was due while another look was under way.
    is_round_missed: bool,
    /// Grants have changed, and their timers not yet.
    are_grants_changed: bool,
}

impl Member {
    /// A member that has not begun.
    pub fn new(setup: MemberSetup, now: Moment) -> Self {
        let groups = Groups::new(setup.groups.clone());
        let mut units = Units::default();
        units.serve(groups.served());
        Self {
            random: Random::new(setup.seed),
            setup,
            defect: None,
            now,
            actions: VecDeque::new(),
            timers: Timers::default(),
            operations: Operations::default(),
            life: Life::New,
            ending: Ending::InOrder,
            incarnation: None,
            session: Session::None,
            name_asked: now,
            groups,
            hashes: Arc::default(),
            roster: Roster::default(),
            wishes: Wishes::default(),
            is_drain_asked: false,
            unlogged: Vec::new(),
            is_roster_known: false,
            roster_changed: now,
            numbers_count_from: now,
            is_unlisted: false,
            strangers: Strangers::default(),
            disagreements: Disagreements::default(),
            units,
            tenures: Tenures::default(),
            backoff: Backoff::default(),
            round: 0,
            quarantine: QuarantineWait::default(),
            joined: None,
            is_window_over: false,
            missed: Vec::new(),
            is_unreleased_told: false,
            taken_for_others: 0,
            given_up: 0,
            pace_since: now,
            candidates_asked: 0,
            is_taking: false,
            is_round_missed: false,
            are_grants_changed: false,
        }
    }

    /// The same with a mistake in it, for what tests the tests.
    #[cfg(feature = "simulation")]
    #[doc(hidden)]
    pub fn planted(setup: MemberSetup, now: Moment, defect: Defect) -> Self {
        Self {
            defect: Some(defect),
            ..Self::new(setup, now)
        }
    }

    /// Hashes that it need not calculate any more. They change nothing of what
    /// it does.
    pub fn share(&mut self, hashes: Arc<Hashes>) {
        self.hashes = hashes;
    }

    /// Takes in something that happened. Afterwards take all actions.
    pub fn handle(&mut self, now: Moment, event: Event) {
        if self.is_over() {
            return;
        }
        self.advance(now);
        if !self.is_over() {
            self.dispatch(event);
        }
        self.settle();
    }

    /// Does what is due. A call too early does nothing.
    pub fn wake(&mut self, now: Moment) {
        if self.is_over() {
            return;
        }
        self.advance(now);
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

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.life == Life::Over
    }

    fn is_planted(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    fn report(&mut self, report: Report) {
        self.actions.push_back(Action::Report(report));
    }

    fn problem(&mut self, words: impl Into<Box<str>>) {
        self.report(Report::Problem(words.into()));
    }

    fn nonce(&mut self) -> Nonce {
        Nonce::new(self.random.next_wide())
    }

    /// Sends an operation, whose reply comes back for `purpose`.
    fn send(&mut self, purpose: Purpose, operation: Operation, timeout: Duration) {
        let (id, lost) = self.operations.begin(purpose, self.now, timeout);
        self.timers.set_earlier(Timer::Lost, lost);
        self.actions.push_back(Action::Store {
            id,
            operation,
            timeout,
        });
    }

    /// What this worker says of itself.
    fn info(&self) -> WorkerInfo {
        let settings = &self.setup.settings;
        let description = self.setup.description;
        let limit = |most: u32| (most > 0).then_some(most);
        WorkerInfo {
            weight: description.weight,
            // Whoever is about to go is nobody to wait for.
            healthy: description.healthy && self.life != Life::Stopping,
            drained: self.is_drain_asked,
            quarantined: self.is_quarantined(),
            lease_ttl_ms: Some(settings.lease_ttl.as_nanos().div_ceil(1_000_000) as u64),
            groups: self.groups.told(),
            partitions: self.groups.sizes(),
            max_partitions: limit(settings.max_partitions),
            max_per_group: limit(settings.max_per_group),
            gives_up: Some(settings.giving_up()),
            unconfirmed: self.unconfirmed().take(UNCONFIRMED_TOLD).collect(),
        }
    }

    /// Whether this worker may own partitions, by what it says of itself and by
    /// what operators wish.
    fn is_eligible(&self) -> bool {
        let description = self.setup.description;
        let is_able = description.healthy && description.weight > 0.0;
        self.life == Life::Live && is_able && !self.is_drained()
    }

    /// Whether operators or its own people wish that this worker gives up
    /// everything.
    fn is_drained(&self) -> bool {
        self.is_drain_asked || self.wishes.is_drained(self.setup.worker.name.as_str())
    }

    /// Whether operators wish that this worker takes nothing more.
    fn is_cordoned(&self) -> bool {
        self.wishes.is_cordoned(self.setup.worker.name.as_str())
    }

    /// Ends, whatever is under way.
    fn end(&mut self) {
        self.life = Life::Over;
        self.timers.cancel_all();
        self.operations.forget();
        self.actions.push_back(Action::Ended(self.ending.clone()));
    }
}
