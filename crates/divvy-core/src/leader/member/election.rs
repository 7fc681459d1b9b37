//! Who leads: whoever has the record `leader`, until nobody has seen it change
//! for longer than its lease.
//!
//! Nothing here is a matter of safety. Two members that both believe to lead
//! hinder each other, because each root is written over the one that it was
//! made from.

use std::time::Duration;

use super::Member;
use super::leading::Leading;
use super::operations::Purpose;
use super::timers::Timer;
use crate::hash;
use crate::leader::action::{Action, Report};
use crate::leader::event::Reply;
use crate::leader::record::{EPOCH_MAX, LeaderRecord, SessionId};
use crate::leader::settings::LeaderSettings;
use crate::moment::Moment;
use crate::store::{Entry, Expected, Outcome, Revision, StoreErrorKind};

/// Reads in a row that may show the record behind what is known of it before
/// that is forgotten.
const BEHIND_MAX: u8 = 2;
/// How many members beside the leader know the workers' records.
const STANDBYS: usize = 2;
/// The largest epoch that a wall clock brings: one that is wrong by ages must
/// leave epochs for those who come after it.
const EPOCH_OF_CLOCK_MAX: u64 = 1 << 42;
/// How far beyond what is known here an epoch can be that a worker tells of.
const EPOCHS_AHEAD_MAX: u64 = 1 << 20;

/// What is known of the record `leader`.
#[derive(Debug, Clone, Default)]
pub(super) struct Election {
    /// Whether it was ever read.
    pub(super) is_known: bool,
    pub(super) record: Option<(Revision, LeaderRecord)>,
    /// When it was first seen like that.
    since: Moment,
    /// Reads in a row that showed a record below it, or none.
    behind: u8,
    taking: bool,
    pub(super) is_standby: bool,
    /// What an external agent said.
    is_elected: bool,
}

impl Election {
    fn expected(&self) -> Expected {
        self.record.as_ref().map(|(revision, _)| *revision).into()
    }
}

impl Member {
    pub(super) fn read_leader(&mut self) {
        if !self
            .operations
            .is_under_way(|known| *known == Purpose::ReadLeader)
        {
            let key = self.keys.leader.clone();
            self.read(key, Purpose::ReadLeader);
        }
    }

    pub(super) fn leader_answered(&mut self, reply: Reply) {
        match reply {
            Reply::Got(Some(entry)) => {
                self.lead_went_back(Some(entry.revision));
                self.forget_lost_leader(Some(entry.revision));
                self.leader_found(&entry);
            }
            Reply::Got(None) => {
                self.lead_went_back(None);
                self.forget_lost_leader(None);
                self.election.is_known = true;
                if self.election.record.is_none() {
                    self.stand_for_election();
                }
            }
            _failed => {}
        }
    }

    /// What is known of the record may be of a past that the store has lost:
    /// kept for ever, it would be taken for another write of its revision when
    /// that comes again. A stale read shows a record below it once.
    fn forget_lost_leader(&mut self, found: Option<Revision>) {
        let known = self.election.record.as_ref().map(|(known, _)| *known);
        if known <= found {
            self.election.behind = 0;
            return;
        }
        // While leading, nothing starts it again.
        self.election.behind = self.election.behind.saturating_add(1);
        if self.election.behind >= BEHIND_MAX && self.leading.is_none() {
            self.election.record = None;
            self.election.behind = 0;
        }
    }

    pub(super) fn leader_found(&mut self, entry: &Entry) {
        let known = self.election.record.as_ref();
        if known.is_some_and(|(known, _)| *known > entry.revision) {
            return self.check_lead();
        }
        let decoded = LeaderRecord::decode(&entry.value);
        let is_known = known.is_some_and(|(known, _)| *known == entry.revision);
        let record = match decoded {
            Ok(record) => record,
            Err(_) if is_known => return self.check_lead(),
            Err(invalid) => self.unreadable_lead(&invalid.to_string()),
        };
        if let Some((known, before)) = self.election.record.as_ref()
            && *known == entry.revision
        {
            return match (before.session, before.beat) == (record.session, record.beat) {
                true => self.check_lead(),
                false => self.store_forgot("a revision of who leads came twice"),
            };
        }
        let before = self.election.record.as_ref();
        let is_another = before.is_none_or(|(_, before)| before.session != record.session);
        self.election.is_known = true;
        self.election.record = Some((entry.revision, record));
        self.election.since = self.clock.now;
        if is_another {
            // Who follows it depends on who it is.
            self.choose_standby();
        }
        self.check_lead();
        self.take_found();
        self.stand_for_election();
    }

    /// Something else stands where the leader should. Who it is of renews it,
    /// or it is taken over like any other: leading is no matter of safety.
    fn unreadable_lead(&mut self, why: &str) -> LeaderRecord {
        let key = &self.keys.leader;
        let text = format!("the key {key}, who leads, is not readable, and waited for: {why}");
        self.report(Report::Problem(text.into()));
        LeaderRecord {
            epoch: 0,
            session: SessionId(0),
            beat: 0,
            lease: self.setup.settings.leader_lease,
        }
    }

    /// The lead turned out to be ours: the answer to taking it was lost.
    fn take_found(&mut self) {
        let Some((revision, record)) = &self.election.record else {
            return;
        };
        let is_ours = self
            .session
            .as_ref()
            .is_some_and(|session| session.id == record.session);
        let is_allowed = !self.setup.external_election || self.election.is_elected;
        if is_ours && is_allowed && !record.lease.is_zero() {
            self.begin_leading(record.epoch, *revision);
        }
    }

    /// Leading ends when the record is somebody else's.
    fn check_lead(&mut self) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let Some((revision, record)) = &self.election.record else {
            return;
        };
        let session = self.session.as_ref().map(|session| session.id);
        if *revision <= leading.revision && leading.went_back.is_none() {
            return;
        }
        if Some(record.session) == session {
            // A beat whose answer was lost, or an earlier try to take the lead.
            leading.revision = *revision;
            if leading.epoch < record.epoch {
                leading.epoch = record.epoch;
                leading.dirty = true;
            }
            return;
        }
        if self.setup.external_election && self.election.is_elected {
            // The agent decides; the next beat says so again.
            let (revision, epoch) = (*revision, record.epoch);
            let above = self.epoch_above(epoch);
            let leading = self.leading.as_mut().expect("it leads");
            leading.revision = revision;
            if leading.epoch <= epoch {
                leading.epoch = above;
                leading.dirty = true;
            }
            return;
        }
        self.stop_leading("another leads");
    }

    /// Sets when to take the lead, if nobody renews it.
    pub(super) fn stand_for_election(&mut self) {
        if self.session.is_none() || self.leading.is_some() || self.stopping.is_some() {
            return self.timers.cancel(Timer::Take);
        }
        if !self.election.is_known {
            return;
        }
        if self.setup.external_election {
            let beat = self.setup.settings.leader_beat();
            let at = self.clock.now + self.random.within(beat);
            return self.timers.set_earlier(Timer::Take, at);
        }
        // Those who know the workers' records go first, and by so much that the
        // others see it before their time: who does not know them has to wait
        // for a whole lease of whoever led.
        let spread = self.setup.settings.leader_lease / 8;
        let behind = match self.election.is_standby {
            true => Duration::ZERO,
            false => spread * 2,
        };
        let jitter = behind + self.random.within(spread);
        let wait = match &self.election.record {
            // The lead of this process's last session, which is over.
            Some((_, record)) if Some(record.session) == self.ended_session => Duration::ZERO,
            Some((_, record)) if record.lease.is_zero() => jitter,
            Some((_, record)) => LeaderSettings::observed(record.lease) + jitter,
            None => jitter,
        };
        let at: Moment = self.election.since.max(self.begun_at) + wait;
        self.timers.set(Timer::Take, at);
    }

    /// The lead was not renewed, or an agent is to be asked.
    pub(super) fn take_step(&mut self) {
        if self.session.is_none() || self.leading.is_some() || self.stopping.is_some() {
            return;
        }
        if self.setup.external_election {
            self.actions.push_back(Action::RequestLeadership);
            let again = self.clock.now + self.setup.settings.leader_beat();
            self.timers.set(Timer::Take, again);
            if !self.election.is_elected {
                return;
            }
        }
        self.take();
    }

    fn take(&mut self) {
        let Some(session) = &self.session else { return };
        if self.election.taking {
            return;
        }
        let record = self.election.record.as_ref();
        let last = record.map_or(0, |(_, record)| record.epoch);
        let record = LeaderRecord {
            epoch: self.epoch_above(last),
            session: session.id,
            beat: 1,
            lease: self.setup.settings.leader_lease,
        };
        self.election.taking = true;
        let (key, expected) = (self.keys.leader.clone(), self.election.expected());
        let timeout = self.setup.settings.renewal_timeout();
        let purpose = Purpose::Take(record.session, record.epoch);
        self.write_within(key, expected, record.encode(), purpose, timeout);
    }

    /// An epoch above `last` and above everything that was ever seen here.
    pub(super) fn epoch_above(&self, last: u64) -> u64 {
        let newest = self.view.newest.as_ref();
        let root = newest.map_or(0, |seen| seen.version().epoch);
        let seen = last.max(root).max(self.adopted_max.epoch);
        let floor = self.clock.unix_ms.min(EPOCH_OF_CLOCK_MAX);
        (seen + 1).max(floor).min(EPOCH_MAX)
    }

    /// Whether an epoch that somebody else tells of can be: epochs come from
    /// clocks, or one after another. Whoever makes one up cannot use them up.
    pub(super) fn is_credible(&self, epoch: u64) -> bool {
        let leading = self.leading.as_ref().map_or(0, |leading| leading.epoch);
        let known = self.newest_known().epoch.max(leading);
        epoch <= known.max(EPOCH_OF_CLOCK_MAX) + EPOCHS_AHEAD_MAX
    }

    pub(super) fn take_answered(&mut self, session: SessionId, epoch: u64, reply: Reply) {
        self.election.taking = false;
        if self
            .session
            .as_ref()
            .is_none_or(|current| current.id != session)
        {
            // It was taken for a session that is over.
            return self.read_leader();
        }
        match reply {
            Reply::Written(Outcome::Done(revision)) => self.begin_leading(epoch, revision),
            Reply::Written(Outcome::Conflict) => {
                // What was known did not hold; it may be of a store that has
                // forgotten since, with a revision that never comes again.
                self.election.record = None;
                self.election.is_known = false;
                self.read_leader();
                self.try_take_later();
            }
            Reply::Failed(StoreErrorKind::Unknown) => {
                self.read_leader();
                self.try_take_later();
            }
            _failed => {
                self.try_take_later();
            }
        }
    }

    fn try_take_later(&mut self) {
        let lease = self.setup.settings.leader_lease;
        let at = self.clock.now + lease / 8 + self.random.within(lease / 4);
        self.timers.set_earlier(Timer::Take, at);
    }

    fn begin_leading(&mut self, epoch: u64, revision: Revision) {
        if self.leading.is_some() || self.stopping.is_some() {
            return;
        }
        let Some(session) = &self.session else { return };
        let known = self.election.record.as_ref();
        if known.is_some_and(|(known, _)| *known > revision) {
            // Either the store forgot, or another took it over already.
            return self.read_leader();
        }
        let record = LeaderRecord {
            epoch,
            session: session.id,
            beat: 1,
            lease: self.setup.settings.leader_lease,
        };
        self.election.record = Some((revision, record));
        self.election.since = self.clock.now;
        self.timers.cancel(Timer::Take);
        self.leading = Some(Box::new(Leading::new(epoch, revision, self.clock.now)));
        self.report(Report::Leading(epoch));
        self.lead_begins();
    }

    /// An external agent's word.
    pub(super) fn elected(&mut self, may_lead: bool) {
        if !self.setup.external_election {
            return;
        }
        self.election.is_elected = may_lead;
        if !may_lead {
            self.stop_leading("the election agent said so");
        } else if self.leading.is_none() && self.session.is_some() && self.election.is_known {
            self.take();
        }
    }

    /// Whether this member is one of those who know the workers' records
    /// beside the leader.
    pub(super) fn choose_standby(&mut self) {
        let (Some(session), Some(seen)) = (&self.session, &self.view.newest) else {
            self.election.is_standby = false;
            return;
        };
        let rank = |session: u128| hash::mix64(session as u64 ^ (session >> 64) as u64);
        let leader = self
            .election
            .record
            .as_ref()
            .map(|(_, record)| record.session);
        let mine = rank(session.id.0);
        let sessions = &seen.committed.root.sessions;
        let is_named = sessions.iter().any(|entry| entry.session == session.id);
        let before = sessions
            .iter()
            .filter(|entry| Some(entry.session) != leader && rank(entry.session.0) < mine);
        let is_standby = is_named && before.count() < STANDBYS;
        if is_standby == self.election.is_standby {
            return;
        }
        self.election.is_standby = is_standby;
        if is_standby {
            self.list_workers();
        }
        // The leader may crash before its next beat.
        self.stand_for_election();
    }
}
