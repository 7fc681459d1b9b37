//! The store of a world: the reference table of leases, with a clock of its
//! own that can be set, and lives.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::lease::{Operation, Reply};
use divvy_core::store::{
    Beaten, Heartbeat, LeaseNotice, LeaseTable, Nonce, QuarantineId, SessionStart, StoreTime,
    Tenure, WorkerId,
};

use crate::clock::MemberClock;
use crate::time::TrueTime;

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(super) table: LeaseTable,
    clock: MemberClock,
    /// By how much its clock was set, in milliseconds.
    stepped: i64,
    /// How often it was restarted or emptied: it names its quarantines.
    lives: u64,
    /// What it will be after a restart that loses data, by the fault that is.
    snapshots: BTreeMap<usize, LeaseTable>,
}

impl Store {
    pub(super) fn new(clock: MemberClock, fresh: bool) -> Self {
        let mut store = Self {
            table: LeaseTable::default(),
            clock,
            stepped: 0,
            lives: 0,
            snapshots: BTreeMap::new(),
        };
        if fresh {
            store.restart();
        }
        store
    }

    /// What its clocks show.
    pub(super) fn time(&self, at: TrueTime) -> StoreTime {
        let shown = self.clock.both_at(at);
        let span = Duration::from_millis(self.stepped.unsigned_abs());
        let elapsed = shown.now.to_origin();
        let elapsed = match self.stepped < 0 {
            true => elapsed.saturating_sub(span),
            false => elapsed + span,
        };
        StoreTime {
            now: Moment::from_origin(elapsed),
            unix_ms: shown.unix_ms.saturating_add_signed(self.stepped),
        }
    }

    /// When a span of its clock that begins at `at` is over, if nobody sets it.
    pub(super) fn after(&self, at: TrueTime, span: Duration) -> TrueTime {
        self.clock.time_of(self.clock.at(at) + span)
    }

    pub(super) fn step_clock(&mut self, ms: i64) {
        self.stepped += ms;
    }

    /// Sets the clock by which it gives tokens, and not the one by which leases
    /// expire.
    pub(super) fn step_wall(&mut self, ms: i64) {
        self.clock.step_wall(ms);
    }

    pub(super) fn remember(&mut self, fault: usize) {
        self.snapshots.insert(fault, self.table.clone());
    }

    /// Begins another life with what it had for `fault`, or with nothing.
    pub(super) fn restart_behind(&mut self, fault: usize) {
        self.table = self.snapshots.remove(&fault).unwrap_or_default();
        self.restart();
    }

    /// Begins another life with what it has.
    pub(super) fn restart(&mut self) {
        self.lives += 1;
        let id = QuarantineId::new(format!("life {}", self.lives));
        self.table.begin_quarantine(id);
    }

    /// Throws everything away.
    pub(super) fn empty(&mut self) {
        self.table = LeaseTable::default();
        self.restart();
    }

    /// Carries out an operation of a worker, of several leases the first
    /// `most`. Gives what all are told, too.
    pub(super) fn apply(
        &mut self,
        at: TrueTime,
        worker: &WorkerId,
        operation: &Operation,
        most: usize,
    ) -> (Reply, Vec<LeaseNotice>) {
        let time = self.time(at);
        let mut notices = Vec::new();
        let table = &mut self.table;
        let reply = match operation {
            Operation::OpenSession { session, ttl } => {
                Reply::Session(table.open_session(time, worker, *session, *ttl))
            }
            Operation::Beat(heartbeat) => {
                let (tenure, is_news) = beaten(table, time, worker, heartbeat);
                notices.extend(is_news.then_some(LeaseNotice::Members));
                let quarantine = table.report(&heartbeat.report);
                Reply::Beaten(Beaten { tenure, quarantine })
            }
            Operation::Leave { session } => {
                let tenure = table.leave(time, worker, *session);
                if tenure == Tenure::Current {
                    notices.push(LeaseNotice::Members);
                }
                Reply::Left(tenure)
            }
            Operation::Members => Reply::Members(
                table.members(time, &worker.cluster),
                table.wishes(&worker.cluster),
            ),
            Operation::Groups => Reply::Groups(table.groups()),
            Operation::Holders(keys) => {
                Reply::Holders(keys.iter().map(|key| table.holder(time, key)).collect())
            }
            Operation::Cooling(keys) => {
                Reply::Cooling(keys.iter().map(|key| table.is_cooling(time, key)).collect())
            }
            Operation::Acquire { claims, ttl } => {
                let acquired = claims.iter().take(most);
                let acquired = acquired.map(|claim| table.acquire(time, worker, claim, *ttl));
                Reply::Acquired(acquired.collect())
            }
            Operation::Renew { claims, ttl } => {
                let renewed = claims.iter().take(most);
                let renewed = renewed.map(|claim| table.renew(time, worker, claim, *ttl));
                Reply::Tenures(renewed.collect())
            }
            Operation::Release { claims } => {
                let released = claims.iter().take(most).map(|claim| {
                    let tenure = table.release(time, worker, claim);
                    if tenure == Tenure::Current {
                        notices.push(LeaseNotice::Released(claim.key.clone()));
                    }
                    tenure
                });
                Reply::Tenures(released.collect())
            }
            Operation::MarkMoved { keys, cooldown } => {
                for key in keys {
                    table.mark_moved(time, key, *cooldown);
                }
                Reply::Done
            }
            // Nothing depends on it.
            Operation::LogMoves(_) => Reply::Done,
        };
        (reply, notices)
    }

    /// A stranger says that it is a live worker, with these words.
    pub(super) fn pretend(
        &mut self,
        at: TrueTime,
        worker: &WorkerId,
        words: &str,
        spans: (Duration, Duration),
    ) -> bool {
        let time = self.time(at);
        let session = Nonce::new(u128::from(at.nanos()));
        self.table.open_session(time, worker, session, spans.1) == SessionStart::Opened
            && self.table.beat(time, worker, session, words, spans) == Tenure::Current
    }
}

/// A heartbeat: whether it was of the current session, and whether it tells
/// the others something.
fn beaten(
    table: &mut LeaseTable,
    time: StoreTime,
    worker: &WorkerId,
    heartbeat: &Heartbeat,
) -> (Tenure, bool) {
    let info = heartbeat
        .info
        .to_json()
        .expect("members describe themselves in bounds");
    let is_new = table.words_of(time, worker) != Some(info.as_str());
    let spans = (heartbeat.heartbeat_ttl, heartbeat.session_ttl);
    let tenure = table.beat(time, worker, heartbeat.session, &info, spans);
    (tenure, is_new && tenure == Tenure::Current)
}
