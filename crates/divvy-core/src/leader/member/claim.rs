//! Claiming a stable id: only one that is free, or that nobody has renewed for
//! longer than its lease by this clock.

use std::collections::BTreeSet;

use super::Member;
use super::keys::Keys;
use super::observation::Observed;
use super::operations::Purpose;
use super::quarantine::epoch_of;
use super::session::Session;
use super::timers::Timer;
use crate::hash;
use crate::leader::action::Report;
use crate::leader::defect::Defect;
use crate::leader::event::Reply;
use crate::leader::record::{Life, SessionId, Version, WorkerRecord};
use crate::moment::Moment;
use crate::store::{Expected, Key, Outcome, Revision, StoreErrorKind};

/// Ids that are tried by one look at the records before the next.
const TRIES_MAX: usize = 4;

/// What is under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Claim {
    /// All records were read: before, the own one might be overlooked.
    pub(super) has_looked: bool,
    attempt: Option<Attempt>,
    /// Ids that were lost to others since the last look.
    lost: BTreeSet<Box<str>>,
    /// The session of our own instance that was found alive.
    twin: Option<(SessionId, Revision)>,
    /// How often in a row the store did not do what was asked.
    failures: u32,
    /// That no id is free was reported.
    reported: bool,
    /// That another process has our name was reported.
    has_told_twin: bool,
}

#[derive(Debug, Clone)]
struct Attempt {
    session: SessionId,
    worker: Box<str>,
    key: Key,
    sent: Moment,
}

/// Which id to claim.
enum Choice {
    Now(Box<str>, Expected),
    /// Nothing before this.
    Later(Option<Moment>),
}

impl Member {
    pub(super) fn begin_claim(&mut self) {
        self.claim = Claim::default();
        self.timers.set(Timer::Claim, self.clock.now);
    }

    pub(super) fn is_claiming(&self) -> bool {
        self.is_begun() && self.session.is_none() && self.stopping.is_none()
    }

    /// Looks at all records, to choose an id by them.
    pub(super) fn claim_step(&mut self) {
        if !self.is_claiming() || self.claim.attempt.is_some() {
            return;
        }
        self.list_workers();
        // Should the answer never come.
        let again = self.clock.now + self.setup.settings.root_poll_interval;
        self.timers.set(Timer::Claim, again);
    }

    /// Records have been read or seen: an id may be free.
    pub(super) fn choose_id(&mut self) {
        // Who cannot read the root can do nothing with an id.
        let is_ready = self.claim.has_looked && self.view.is_known && self.claim.attempt.is_none();
        if !self.is_claiming() || !is_ready {
            return;
        }
        let choice = self.choice();
        self.tell_of_twin();
        match choice {
            Choice::Now(id, expected) => self.send_claim(id, expected),
            Choice::Later(at) => {
                let now = self.clock.now;
                let poll = now + self.jittered(self.setup.settings.root_poll_interval);
                let at = at.map_or(poll, |at| at.min(poll));
                // What was lost looks free here: not before it is known better.
                let soonest = now + self.setup.settings.heartbeat_interval / 8;
                self.claim.lost.clear();
                self.timers.set(Timer::Claim, at.max(soonest));
                if !self.claim.reported && !self.waits_for_own() {
                    self.claim.reported = true;
                    let text = "all stable ids in range are claimed";
                    self.report(Report::Problem(text.into()));
                }
            }
        }
    }

    /// Whether an id is looked for and none is free.
    pub fn is_out_of_ids(&self) -> bool {
        self.is_claiming() && self.claim.reported
    }

    fn waits_for_own(&self) -> bool {
        self.own_record_of_before().is_some()
    }

    /// The live record that this instance held before, unless somebody renews
    /// it: then that is another with our name.
    fn own_record_of_before(&self) -> Option<&Observed> {
        let mine = self.observation.workers().find(|observed| {
            observed.record.instance == self.setup.instance && observed.is_live()
        })?;
        let is_ours = Some(mine.record.session) == self.ended_session;
        let seen = (mine.record.session, mine.revision);
        let is_twin = !is_ours && self.claim.twin.is_some_and(|first| first != seen);
        (!is_twin && self.is_in_range(&mine.id)).then_some(mine)
    }

    /// Whoever was found under our name renews its lease: it lives, and keeps
    /// its id.
    fn tell_of_twin(&mut self) {
        let Some(first) = self.claim.twin.filter(|_| !self.claim.has_told_twin) else {
            return;
        };
        let twin = self.observation.workers().find(|observed| {
            let record = &observed.record;
            let is_other = Some(record.session) != self.ended_session;
            let is_named = record.instance == self.setup.instance && observed.is_live();
            is_named && is_other && (record.session, observed.revision) != first
        });
        let Some(id) = twin.map(|twin| twin.id.clone()) else {
            return;
        };
        self.claim.has_told_twin = true;
        let name = &self.setup.instance;
        let text = format!(
            "instance '{name}' also runs in another process, as {id}: this one takes another id; \
             give every process an instance of its own"
        );
        self.report(Report::Problem(text.into()));
    }

    fn choice(&mut self) -> Choice {
        let now = self.clock.now;
        if let Some(mine) = self.own_record_of_before() {
            let (session, revision) = (mine.record.session, mine.revision);
            if self.is_claimable(mine) {
                return Choice::Now(mine.id.clone(), Expected::At(revision));
            }
            let at = mine.over_at(self.lease_max);
            if self.claim.twin.is_none() && Some(session) != self.ended_session {
                let (name, id) = (&self.setup.instance, &mine.id);
                let text =
                    format!("instance '{name}' has {id} already: waiting until that lease is over");
                self.report(Report::Problem(text.into()));
            }
            self.claim.twin.get_or_insert((session, revision));
            self.tell_alarm();
            return Choice::Later(Some(at));
        }
        let free = self.observation.workers().find(|observed| {
            let is_mine = observed.record.instance == self.setup.instance;
            is_mine && self.is_in_range(&observed.id) && self.is_free(observed)
        });
        if let Some(free) = free {
            return Choice::Now(free.id.clone(), Expected::At(free.revision));
        }
        let mut best: Option<(bool, &Observed)> = None;
        let mut earliest: Option<Moment> = None;
        for number in self.numbers_in_order() {
            let id = self.id_with(number);
            let Some(observed) = self.observation.get(&Keys::worker(&id)) else {
                if self.claim.lost.contains(&id) || self.is_lost_record(&id) {
                    continue;
                }
                return Choice::Now(id, Expected::Absent);
            };
            if !self.is_free(observed) {
                let at = observed.over_at(self.lease_max);
                earliest = Some(earliest.map_or(at, |known| known.min(at)));
                continue;
            }
            // Which free id to prefer is never a matter of safety.
            let is_reserved = observed.since + self.setup.settings.worker_id_ttl > now;
            if best.is_none_or(|(known, _)| !is_reserved & known) {
                best = Some((is_reserved, observed));
            }
        }
        match best {
            Some((_, free)) => Choice::Now(free.id.clone(), Expected::At(free.revision)),
            None => Choice::Later(earliest),
        }
    }

    /// Whoever found that the store forgot may have to wait for its next id:
    /// while its stop hooks run, others would take up work that they lost. The
    /// record of its ended session says it meanwhile. That keeps the id for a
    /// lease more, and nothing is started on it.
    fn tell_alarm(&mut self) {
        let Some(mine) = self.own_record_of_before() else {
            return;
        };
        let is_ours = Some(mine.record.session) == self.ended_session;
        if !is_ours || self.alarm <= mine.record.alarm {
            return;
        }
        let key = Keys::worker(&mine.id);
        let revision = mine.revision;
        let record = WorkerRecord {
            beat: mine.record.beat + 1,
            adopted: self.adopted_max,
            token_max: self.token_max,
            alarm: self.alarm,
            longest: self.lease_max,
            ..mine.record.clone()
        };
        let purpose = Purpose::Alarm(key.clone());
        if !self.operations.is_under_way(|known| *known == purpose) {
            let timeout = self.setup.settings.renewal_timeout();
            let expected = Expected::At(revision);
            self.write_within(key, expected, record.encode(), purpose, timeout);
        }
    }

    /// Whether an id without a record is one that has partitions by the root:
    /// the store has lost the record, and its session may be at work. Whoever
    /// leads creates it again.
    fn is_lost_record(&self, id: &str) -> bool {
        let root = self.view.newest.as_ref().map(|seen| &seen.committed.root);
        root.is_some_and(|root| {
            let has_some =
                |session: u32| root.holdings.iter().any(|h| h.session() == Some(session));
            let mut named = root.sessions.iter().zip(0..);
            named.any(|(entry, session)| *entry.worker == *id && has_some(session))
        })
    }

    fn is_free(&self, observed: &Observed) -> bool {
        self.is_claimable(observed) && !self.claim.lost.contains(&observed.id)
    }

    fn is_claimable(&self, observed: &Observed) -> bool {
        if self.defect == Some(Defect::ClaimWithoutObserving) {
            return true;
        }
        match observed.record.life {
            Life::Left { .. } | Life::Fenced => true,
            // Its end is known here, and nothing of it runs any more.
            Life::Live if Some(observed.record.session) == self.ended_session => {
                self.work.is_idle() || self.defect == Some(Defect::ClaimWhileStopping)
            }
            Life::Live => self.is_over(observed),
        }
    }

    /// Whether it can be known how long a lease is. The root says how long the
    /// longest is: before it was read, nothing is known of a record that cannot
    /// be read.
    pub(super) fn may_judge(&self, observed: &Observed) -> bool {
        observed.is_readable || self.view.is_known
    }

    /// Whether a lease is over by this clock.
    pub(super) fn is_over(&self, observed: &Observed) -> bool {
        if !self.may_judge(observed) {
            return false;
        }
        let lease = observed.record.lease;
        let at = match self.defect {
            Some(Defect::NoDrift) => observed.since + lease.mul_f64(0.94),
            Some(Defect::FenceEarly) => observed.since + lease / 2,
            _ => observed.over_at(self.lease_max),
        };
        at <= self.clock.now
    }

    fn is_in_range(&self, id: &str) -> bool {
        let settings = &self.setup.settings;
        let number = id
            .strip_prefix(&*settings.worker_id_prefix)
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|digits| digits.parse::<u32>().ok());
        number.is_some_and(|number| {
            (settings.worker_id_min..=settings.worker_id_max).contains(&number)
                && id == self.id_with(number).as_ref()
        })
    }

    fn id_with(&self, number: u32) -> Box<str> {
        format!("{}-{number}", self.setup.settings.worker_id_prefix).into()
    }

    /// The numbers of all ids, beginning where this instance's hash points, so
    /// that many that start at once do not all ask for the first.
    fn numbers_in_order(&self) -> impl Iterator<Item = u32> + use<> {
        let settings = &self.setup.settings;
        let (first, last) = (settings.worker_id_min, settings.worker_id_max);
        let count = last - first + 1;
        let start = hash::bytes64(self.setup.instance.as_bytes(), 0) % u64::from(count);
        (0..count).map(move |step| first + (start as u32 + step) % count)
    }

    fn send_claim(&mut self, worker: Box<str>, expected: Expected) {
        let session = SessionId(self.random.next_wide());
        let key = Keys::worker(&worker);
        self.inherit_tokens(&key);
        let record = WorkerRecord {
            instance: self.setup.instance.clone(),
            session,
            beat: 1,
            lease: self.setup.settings.heartbeat_ttl,
            life: Life::Live,
            acked: Version::default(),
            stopping: Vec::new(),
            adopted: self.adopted_max,
            token_max: self.token_max,
            health: self.setup.description.health,
            weight: self.setup.description.weight,
            zone: self.setup.description.zone.clone(),
            refresh: self.refresh,
            alarm: self.alarm,
            // The second beat says it; nothing is granted before that.
            unable: Vec::new(),
            longest: self.lease_max,
        };
        self.claim.attempt = Some(Attempt {
            session,
            worker,
            key: key.clone(),
            sent: self.clock.now,
        });
        let timeout = self.setup.settings.renewal_timeout();
        self.timers.cancel(Timer::Claim);
        self.write_within(key, expected, record.encode(), Purpose::Claim, timeout);
    }

    /// Where the root is lost, too, the record that is written over may be the
    /// last to know which epochs there were.
    fn inherit_tokens(&mut self, key: &Key) {
        let Some(replaced) = self.observation.get(key) else {
            return;
        };
        let record = &replaced.record;
        let told = record.token_max.max(record.adopted.token());
        if self.is_credible(epoch_of(told)) {
            self.token_max = self.token_max.max(told);
        }
    }

    pub(super) fn claim_answered(&mut self, reply: Reply) {
        let Some(attempt) = self.claim.attempt.clone() else {
            return;
        };
        match reply {
            Reply::Written(Outcome::Done(revision)) => self.claimed(attempt, revision),
            Reply::Written(Outcome::Conflict) => {
                self.claim.attempt = None;
                self.claim.lost.insert(attempt.worker);
                let timeout = self.setup.settings.renewal_timeout();
                let purpose = Purpose::ReadWorker(attempt.key.clone());
                // The own record is preferred to all others: what is known of it
                // must be known better before it is tried again.
                let known = self.observation.get(&attempt.key);
                let was_own =
                    known.is_some_and(|known| known.record.instance == self.setup.instance);
                self.read_within(attempt.key, purpose, timeout);
                if was_own {
                    self.claim_again();
                } else {
                    self.claim_lost();
                }
            }
            Reply::Failed(StoreErrorKind::Unknown) => {
                let timeout = self.setup.settings.renewal_timeout();
                self.read_within(attempt.key, Purpose::ReadClaim, timeout);
            }
            _failed => {
                self.claim.attempt = None;
                self.claim_failed();
            }
        }
    }

    /// Whether a claim that was not answered was written. If not, it may be
    /// later: it then is a session of nobody, which will be fenced.
    pub(super) fn claim_read(&mut self, reply: Reply) {
        let Some(attempt) = self.claim.attempt.clone() else {
            return;
        };
        if let Reply::Got(Some(entry)) = reply {
            let record = WorkerRecord::decode(&entry.value);
            let is_mine = |record: WorkerRecord| {
                record.session == attempt.session && record.life == Life::Live
            };
            if record.is_ok_and(is_mine) {
                return self.claimed(attempt, entry.revision);
            }
        }
        self.claim.attempt = None;
        self.claim_failed();
    }

    /// The store did not answer, or refused: later, and later each time.
    fn claim_failed(&mut self) {
        self.claim.lost.clear();
        let failures = self.claim.failures;
        self.claim.failures = failures.saturating_add(1);
        let wait = self.retry_wait("claiming an id", failures);
        self.timers.set(Timer::Claim, self.clock.now + wait);
    }

    fn claim_lost(&mut self) {
        if self.claim.lost.len() < TRIES_MAX {
            self.choose_id();
        } else {
            self.claim_again();
        }
    }

    fn claim_again(&mut self) {
        self.claim.lost.clear();
        let spread = self.setup.settings.heartbeat_interval / 2;
        let at = self.clock.now + spread / 4 + self.random.within(spread);
        self.timers.set(Timer::Claim, at);
    }

    fn claimed(&mut self, attempt: Attempt, revision: Revision) {
        let counted = match self.defect {
            Some(Defect::DeadlineFromReply) => self.clock.now,
            _ => attempt.sent,
        };
        let until = counted + self.setup.settings.heartbeat_ttl;
        let Attempt {
            session,
            worker,
            key,
            sent,
        } = attempt;
        self.report(Report::Claimed(worker.clone()));
        let session = Session::claimed(session, worker, key, revision, until);
        self.session = Some(session);
        self.claim = Claim::default();
        self.timers.cancel(Timer::Claim);
        self.last_acknowledged = self.last_acknowledged.max(sent);
        self.has_drained = false;
        self.lease_changed();
        self.adopt();
        // The second beat makes it eligible.
        self.renew();
        self.poll();
        self.stand_for_election();
    }
}
