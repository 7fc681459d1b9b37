//! The reference semantics of a lease store.

#[cfg(feature = "simulation")]
mod spoilt;
#[cfg(feature = "simulation")]
mod strangers;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::lease::{
    Acquired, Claim, GroupDocument, Holder, LeaseKey, LeaseName, Member, Nonce, SessionStart,
    Tenure, Token, WorkerId,
};
use super::move_log::with_moves;
use super::quarantine::{Quarantine, QuarantineId, QuarantineReport};
use crate::moment::Moment;

/// The store's own clocks at the time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreTime {
    /// The clock by which leases expire.
    pub now: Moment,
    /// The wall clock, for the floor of tokens only.
    pub unix_ms: u64,
}

/// A lease store as a value: what every lease store must behave like.
///
/// ```
/// use divvy_core::Moment;
/// use divvy_core::store::{Acquired, Claim, LeaseKey, LeaseTable, Nonce, StoreTime, WorkerId};
/// use std::time::Duration;
///
/// let at = |ms| StoreTime { now: Moment::from_origin(Duration::from_millis(ms)), unix_ms: ms };
/// let ttl = Duration::from_millis(700);
/// let (one, two) = (WorkerId::new("c", "one")?, WorkerId::new("c", "two")?);
/// let claim = |bits| Claim { key: LeaseKey::new("orders", 7).unwrap(), nonce: Nonce::new(bits) };
///
/// let mut table = LeaseTable::default();
/// let Acquired::Granted(first) = table.acquire(at(0), &one, &claim(1), ttl) else { panic!() };
/// assert_eq!(table.acquire(at(699), &two, &claim(2), ttl), Acquired::Held);
/// let Acquired::Granted(second) = table.acquire(at(700), &two, &claim(3), ttl) else { panic!() };
/// assert!(second > first);
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct LeaseTable {
    leases: BTreeMap<LeaseKey, Expiring<HolderText>>,
    /// The last tenure of every lease, which outlives it; nothing if it cannot
    /// be read.
    fences: BTreeMap<LeaseKey, Option<(Token, Nonce)>>,
    /// Nothing in the place of a session that cannot be read.
    sessions: BTreeMap<WorkerId, Expiring<Option<Nonce>>>,
    members: BTreeMap<WorkerId, Expiring<String>>,
    moved: BTreeMap<LeaseKey, Expiring<()>>,
    groups: BTreeMap<LeaseName, String>,
    wishes: BTreeMap<LeaseName, String>,
    move_logs: BTreeMap<LeaseName, String>,
    /// One that is over, unless the table was restarted.
    quarantine: Quarantine,
}

impl LeaseTable {
    /// Takes a lease that nobody holds.
    pub fn acquire(
        &mut self,
        time: StoreTime,
        worker: &WorkerId,
        claim: &Claim,
        ttl: Duration,
    ) -> Acquired {
        if live(&self.leases, &claim.key, time.now).is_some() {
            return Acquired::Held;
        }
        if !self.quarantine.is_over {
            return Acquired::Quarantined;
        }
        self.quarantine.cover(ttl);
        let last = match self.fences.get(&claim.key) {
            // The next token might not be above the last.
            Some(None) => return Acquired::Held,
            fence => fence.copied().flatten().map(|(token, _)| token),
        };
        let token = Token::after(last, time.unix_ms);
        self.fences
            .insert(claim.key.clone(), Some((token, claim.nonce)));
        let lease = Expiring::new(HolderText::Worker(worker.clone()), time.now, ttl);
        self.leases.insert(claim.key.clone(), lease);
        Acquired::Granted(token)
    }

    /// Lets a lease run for `ttl` from now, if this tenure is still current.
    pub fn renew(
        &mut self,
        time: StoreTime,
        worker: &WorkerId,
        claim: &Claim,
        ttl: Duration,
    ) -> Tenure {
        if self.is_current(time.now, worker, claim) {
            let lease = Expiring::new(HolderText::Worker(worker.clone()), time.now, ttl);
            self.leases.insert(claim.key.clone(), lease);
            return Tenure::Current;
        }
        Tenure::Over
    }

    /// Ends a lease, if this tenure is still current.
    pub fn release(&mut self, time: StoreTime, worker: &WorkerId, claim: &Claim) -> Tenure {
        if self.is_current(time.now, worker, claim) {
            self.leases.remove(&claim.key);
            return Tenure::Current;
        }
        Tenure::Over
    }

    /// Who holds a lease.
    pub fn holder(&self, time: StoreTime, key: &LeaseKey) -> Option<Holder> {
        let lease = live(&self.leases, key, time.now)?;
        Some(Holder {
            worker: lease.value.to_string(),
            left: lease.left(time.now),
            fence: self.fences.get(key).copied().flatten(),
        })
    }

    /// Takes a worker's name for a session, which may have it already.
    pub fn open_session(
        &mut self,
        time: StoreTime,
        worker: &WorkerId,
        session: Nonce,
        ttl: Duration,
    ) -> SessionStart {
        // What cannot be read or never expires is no session: nobody renews it.
        let is_others = |it: &&Expiring<Option<Nonce>>| {
            it.value.is_some_and(|value| value != session) && it.expires.is_some()
        };
        if let Some(taken) = live(&self.sessions, worker, time.now).filter(is_others) {
            return SessionStart::Taken(taken.left(time.now));
        }
        let opened = Expiring::new(Some(session), time.now, ttl);
        self.sessions.insert(worker.clone(), opened);
        SessionStart::Opened
    }

    /// A heartbeat: the session goes on for `session_ttl`, and the worker is a
    /// live member for `heartbeat_ttl`, with what it says of itself.
    pub fn beat(
        &mut self,
        time: StoreTime,
        worker: &WorkerId,
        session: Nonce,
        info: &str,
        (heartbeat_ttl, session_ttl): (Duration, Duration),
    ) -> Tenure {
        if !self.has_session(time.now, worker, session) {
            return Tenure::Over;
        }
        let renewed = Expiring::new(Some(session), time.now, session_ttl);
        self.sessions.insert(worker.clone(), renewed);
        let member = Expiring::new(info.to_owned(), time.now, heartbeat_ttl);
        self.members.insert(worker.clone(), member);
        Tenure::Current
    }

    /// Takes in what a member reports with its heartbeat, also with one of a
    /// session that is over, and gives the quarantine as it is then.
    pub fn report(&mut self, report: &QuarantineReport) -> Quarantine {
        self.quarantine.report(report);
        self.quarantine.clone()
    }

    /// Begins a quarantine, because leases may have been granted that this
    /// table does not have: it was restarted, or is an empty one in the place
    /// of another.
    pub fn begin_quarantine(&mut self, id: QuarantineId) {
        self.quarantine = Quarantine::begin(id, Some(&self.quarantine));
    }

    /// Ends a session, and the membership with it.
    pub fn leave(&mut self, time: StoreTime, worker: &WorkerId, session: Nonce) -> Tenure {
        if !self.has_session(time.now, worker, session) {
            return Tenure::Over;
        }
        self.sessions.remove(worker);
        self.members.remove(worker);
        Tenure::Current
    }

    /// The live workers of a cluster, in order of their names.
    pub fn members(&self, time: StoreTime, cluster: &LeaseName) -> Vec<Member> {
        let live = self
            .members
            .iter()
            .filter(|(worker, member)| worker.cluster == *cluster && member.is_live(time.now));
        live.map(|(worker, member)| Member {
            name: worker.name.to_string(),
            info: Some(member.value.clone()),
        })
        .collect()
    }

    /// Marks a partition as moved, for as long as its cooldown lasts.
    pub fn mark_moved(&mut self, time: StoreTime, key: &LeaseKey, cooldown: Duration) {
        self.moved
            .insert(key.clone(), Expiring::new((), time.now, cooldown));
    }

    /// Whether a partition was moved so lately that it has to stay.
    pub fn is_cooling(&self, time: StoreTime, key: &LeaseKey) -> bool {
        live(&self.moved, key, time.now).is_some()
    }

    /// All groups and their documents, in order of their names.
    pub fn groups(&self) -> Vec<GroupDocument> {
        let documents = self.groups.iter().map(|(name, json)| GroupDocument {
            name: name.to_string(),
            json: Some(json.clone()),
        });
        documents.collect()
    }

    /// Adds or replaces a group.
    pub fn set_group(&mut self, name: &LeaseName, json: &str) {
        self.groups.insert(name.clone(), json.to_owned());
    }

    /// Removes a group, and says whether it was there.
    pub fn remove_group(&mut self, name: &LeaseName) -> bool {
        self.groups.remove(name).is_some()
    }

    /// What operators wish of a cluster.
    pub fn wishes(&self, cluster: &LeaseName) -> Option<String> {
        self.wishes.get(cluster).cloned()
    }

    /// Writes what operators wish if it still is `before`, and says whether it
    /// was.
    pub fn set_wishes(&mut self, cluster: &LeaseName, before: Option<&str>, wishes: &str) -> bool {
        let is_as_before = self.wishes.get(cluster).map(String::as_str) == before;
        if is_as_before {
            self.wishes.insert(cluster.clone(), wishes.to_owned());
        }
        is_as_before
    }

    /// Adds to a cluster's log of moves.
    pub fn log_moves(&mut self, cluster: &LeaseName, moves: &[String]) {
        let log = self.move_logs.entry(cluster.clone()).or_default();
        *log = with_moves(std::mem::take(log), moves);
    }

    /// A cluster's log of moves, oldest first.
    pub fn moves(&self, cluster: &LeaseName) -> Vec<String> {
        let log = self.move_logs.get(cluster).into_iter();
        log.flat_map(|log| log.lines()).map(str::to_owned).collect()
    }

    /// Forgets what has expired, so that the table does not grow with time.
    pub fn sweep(&mut self, time: StoreTime) {
        self.leases.retain(|_, lease| lease.is_live(time.now));
        self.sessions.retain(|_, session| session.is_live(time.now));
        self.members.retain(|_, member| member.is_live(time.now));
        self.moved.retain(|_, mark| mark.is_live(time.now));
    }

    fn is_current(&self, now: Moment, worker: &WorkerId, claim: &Claim) -> bool {
        let held = live(&self.leases, &claim.key, now).is_some_and(|held| held.value.is(worker));
        let last = self.fences.get(&claim.key).copied().flatten();
        held && last.is_some_and(|(_, nonce)| nonce == claim.nonce)
    }

    fn has_session(&self, now: Moment, worker: &WorkerId, session: Nonce) -> bool {
        live(&self.sessions, worker, now).is_some_and(|current| current.value == Some(session))
    }
}

/// What is written into a lease.
#[derive(Debug, Clone)]
enum HolderText {
    Worker(WorkerId),
    /// What another program wrote, as it is read: it names no worker.
    #[cfg_attr(not(feature = "simulation"), expect(dead_code))]
    Unreadable(Box<str>),
}

impl HolderText {
    fn is(&self, worker: &WorkerId) -> bool {
        matches!(self, Self::Worker(holder) if holder == worker)
    }
}

impl fmt::Display for HolderText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(worker) => worker.fmt(f),
            Self::Unreadable(text) => text.fmt(f),
        }
    }
}

/// A value that is there until a moment, and not at it.
#[derive(Debug, Clone)]
struct Expiring<T> {
    value: T,
    /// Nothing if it never expires: another program wrote it.
    expires: Option<Moment>,
}

impl<T> Expiring<T> {
    fn new(value: T, now: Moment, ttl: Duration) -> Self {
        Self {
            value,
            expires: Some(now + ttl),
        }
    }

    fn is_live(&self, now: Moment) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// How long it is still there.
    fn left(&self, now: Moment) -> Duration {
        self.expires
            .map_or(Holder::ENDLESS, |expires| expires.since(now))
    }
}

fn live<'a, K: Ord, T>(
    table: &'a BTreeMap<K, Expiring<T>>,
    key: &K,
    now: Moment,
) -> Option<&'a Expiring<T>> {
    table.get(key).filter(|found| found.is_live(now))
}
