//! Ending sessions that were not renewed: the record itself is made to say so,
//! at the very revision that was watched. That proves that no later renewal
//! exists, and none can be written any more.

use std::collections::BTreeSet;

use super::Member;
use super::keys::Keys;
use super::observation::News;
use super::operations::Purpose;
use super::timers::Timer;
use crate::leader::action::Report;
use crate::leader::codec::STRUCK_OUT;
use crate::leader::defect::Defect;
use crate::leader::event::Reply;
use crate::leader::record::{Holding, Life, SessionEntry, WorkerRecord};
use crate::moment::Moment;
use crate::store::{Entry, Expected, Key, Outcome, Revision};

/// How much of what was asked back is given back.
enum Words {
    None,
    Some,
    All,
}

impl Member {
    /// Whether this leader can trust its own timers: it was heard lately. That
    /// it did not sleep meanwhile, every call checks.
    fn is_fresh(&self) -> bool {
        self.is_recent(self.last_acknowledged)
    }

    fn is_recent(&self, then: Moment) -> bool {
        then + self.setup.settings.heartbeat_ttl / 2 > self.clock.now
    }

    /// Whether the root that a leader builds on may be of a past that the store
    /// has lost while nobody was heard: a revision of it may stand for another
    /// root by now.
    pub(super) fn is_base_old(&self) -> bool {
        let leading = self.leading.as_ref();
        leading.is_some_and(|leading| !self.is_fresh() && !self.is_recent(leading.based))
    }

    /// The store has acknowledged a write that was sent then. After a silence,
    /// nobody else may have been heard either: what was not seen meanwhile says
    /// nothing.
    pub(super) fn acknowledged(&mut self, sent: Moment) {
        if !self.is_fresh() && self.observes() {
            self.observation.restart(self.clock.now);
        }
        self.last_acknowledged = self.last_acknowledged.max(sent);
    }

    /// This process did not run for a while: what it did not see meanwhile
    /// says nothing.
    pub(super) fn watch_gap(&mut self, last: Moment) {
        let gap = self.clock.now.since(last);
        if gap > self.setup.settings.heartbeat_ttl / 4 && self.observes() {
            self.observation.restart(self.clock.now);
        }
    }

    /// Fences every worker whose lease is over.
    pub(super) fn fence_due(&mut self) {
        let Some(leading) = &self.leading else { return };
        let own = self.session.as_ref().map(|session| session.key.clone());
        let mut due = Vec::new();
        let mut next: Option<Moment> = None;
        for (key, observed) in self.observation.iter() {
            let skip = !observed.is_live() || Some(key) == own.as_ref();
            if skip || leading.fencing.contains(key) || !self.may_judge(observed) {
                continue;
            }
            if self.is_over(observed) {
                due.push(key.clone());
            } else {
                let at = match self.defect {
                    Some(Defect::FenceEarly) => observed.since + observed.record.lease / 2,
                    _ => observed.over_at(self.lease_max),
                };
                next = Some(next.map_or(at, |known| known.min(at)));
            }
        }
        if !due.is_empty() && !self.is_fresh() {
            self.observation.restart(self.clock.now);
            let again = self.clock.now + self.setup.settings.renewal_retry();
            return self.timers.set(Timer::Fence, again);
        }
        let most = self.setup.batches.fences;
        if due.len() > most {
            next = Some(self.clock.now + self.setup.settings.renewal_retry());
        }
        for key in due.iter().take(most) {
            self.fence(key);
        }
        let idle = self.clock.now + self.setup.settings.heartbeat_ttl;
        let next = next.unwrap_or(idle);
        self.timers.set(Timer::Fence, next);
    }

    fn fence(&mut self, key: &Key) {
        let Some(observed) = self.observation.get(key) else {
            return;
        };
        let record = WorkerRecord {
            life: Life::Fenced,
            ..observed.record.clone()
        };
        let revision = observed.revision;
        if self.defect == Some(Defect::FenceWithoutCompare) {
            self.observation
                .wrote(key, revision, record, self.clock.now);
            return self.membership_changed();
        }
        let purpose = Purpose::Fence(key.clone());
        self.replace_record(key, Expected::At(revision), &record, purpose);
    }

    /// Writes a worker's record in its place, unless such a write is under way.
    fn replace_record(
        &mut self,
        key: &Key,
        expected: Expected,
        record: &WorkerRecord,
        purpose: Purpose,
    ) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if !leading.fencing.insert(key.clone()) {
            return;
        }
        let timeout = self.setup.settings.renewal_timeout();
        self.write_within(key.clone(), expected, record.encode(), purpose, timeout);
    }

    /// A record that the root names was not found: only creating it proves
    /// that it is missing, because reads may be stale. It is created as live:
    /// its session may still work, and nobody knows for how long. Like any
    /// other it is fenced when it was not renewed for its lease, which is the
    /// longest that anybody has.
    fn restore_missing(&mut self, entry: &SessionEntry) {
        let life = match self.defect {
            Some(Defect::FenceMissing) => Life::Fenced,
            _ => Life::Live,
        };
        let (worker, session) = (&entry.worker, entry.session);
        let record = WorkerRecord::of_nobody(worker, session, life, self.lease_max);
        let key = Keys::worker(worker);
        let purpose = Purpose::Restore(key.clone());
        self.replace_record(&key, Expected::Absent, &record, purpose);
    }

    /// A worker renews its lease and does not read the root, so it cannot learn
    /// that it has to stop. Nobody can read what its record is replaced by: it
    /// ends its session when it finds that, and is waited for as long as the
    /// longest lease lasts.
    pub(super) fn strike_out(&mut self, key: Key, revision: Revision) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading.fencing.insert(key.clone()) {
            let purpose = Purpose::StrikeOut(key.clone());
            let timeout = self.setup.settings.renewal_timeout();
            let value = STRUCK_OUT.to_vec();
            self.write_within(key, Expected::At(revision), value, purpose, timeout);
        }
    }

    pub(super) fn struck_out(&mut self, key: Key) {
        if let Some(leading) = &mut self.leading {
            leading.fencing.remove(&key);
            self.read_worker(key);
        }
    }

    pub(super) fn restore_answered(&mut self, key: Key, reply: Reply) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        leading.fencing.remove(&key);
        let in_quarantine = leading
            .base_root()
            .is_some_and(|base| base.committed.root.quarantine);
        if matches!(reply, Reply::Written(Outcome::Done(_))) && !in_quarantine {
            let text = format!("the record {key}, which the root names, was missing");
            self.suspect(&text);
        }
        // Whatever is there now: what was created, or what it lost against.
        self.read_worker(key);
    }

    pub(super) fn fence_answered(&mut self, key: Key, reply: Reply) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        leading.fencing.remove(&key);
        match reply {
            Reply::Written(Outcome::Done(revision)) => self.fenced(&key, revision),
            Reply::Written(Outcome::Conflict) | Reply::Failed(_) => {
                self.read_worker(key);
                let again = self.clock.now + self.setup.settings.renewal_retry();
                self.timers.set_earlier(Timer::Fence, again);
            }
            _ => {}
        }
    }

    pub(super) fn read_worker(&mut self, key: Key) {
        let timeout = self.setup.settings.renewal_timeout();
        self.read_within(key.clone(), Purpose::ReadWorker(key), timeout);
    }

    fn fenced(&mut self, key: &Key, revision: Revision) {
        let now = self.clock.now;
        let Some(observed) = self.observation.get(key) else {
            return self.list_workers();
        };
        if observed.revision >= revision {
            // It was claimed again already.
            return;
        }
        let record = WorkerRecord {
            life: Life::Fenced,
            ..observed.record.clone()
        };
        self.observation.wrote(key, revision, record, now);
        self.crash_seen();
        self.membership_changed();
    }

    /// A record was read, or shown by a watch.
    pub(super) fn worker_seen(&mut self, entry: &Entry) {
        match self.observation.see(entry, self.clock.now) {
            News::None => {}
            News::Impossible => self.store_forgot("a revision of a record came twice"),
            news => {
                self.worker_news(&entry.key, news);
                self.answer_refresh(&entry.key);
                if self.is_claiming() {
                    self.choose_id();
                }
            }
        }
    }

    /// All records were listed, as they were at some time after it was asked.
    pub(super) fn workers_listed(&mut self, asked: Moment, entries: &[Entry]) {
        let is_bad = |entry: &Entry| WorkerRecord::decode(&entry.value).is_err();
        if self.defect == Some(Defect::StopAtScribble) && entries.iter().any(is_bad) {
            return self.workers_not_listed();
        }
        let mut is_other = false;
        if self.is_first_listing(asked) {
            self.observation.relearn(entries);
            is_other = true;
        }
        for entry in entries {
            match self.observation.see(entry, self.clock.now) {
                News::None => {}
                News::Impossible => return self.store_forgot("a revision of a record came twice"),
                news => {
                    is_other |= matches!(news, News::Membership | News::Crash);
                    self.worker_news(&entry.key, news);
                }
            }
        }
        if is_other {
            // Once for all: there may be very many.
            self.answer_refreshes();
        }
        if self.leading.is_some() {
            self.leader_listed(asked);
        }
        if self.is_claiming() {
            self.claim.has_looked = true;
            self.choose_id();
        }
    }

    fn leader_listed(&mut self, asked: Moment) {
        let is_first = self.is_first_listing(asked);
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading.listed.is_none() && !is_first {
            return self.list_workers();
        }
        leading.dirty |= is_first || leading.awaits_words;
        leading.listed = Some(asked);
        self.find_missing();
    }

    /// A leader that cannot judge its base without a listing asks again soon.
    pub(super) fn workers_not_listed(&mut self) {
        let leading = self.leading.as_ref();
        if leading.is_some_and(|leading| leading.listed.is_none()) {
            let again = self.clock.now + self.setup.settings.renewal_retry();
            self.timers.set_earlier(Timer::Poll, again);
        }
    }

    fn worker_news(&mut self, key: &Key, news: News) {
        if let Some(observed) = self.observation.get(key) {
            self.lease_max = self.lease_max.max(observed.record.longest);
        }
        if self.leading.is_none() {
            return;
        }
        if news == News::Crash {
            // A watch may show a fence before it is answered.
            self.crash_seen();
        }
        match news {
            News::Membership | News::Crash => self.membership_changed(),
            News::Unreadable => {
                let text = format!("the record {key} is not readable, and waited for");
                self.report(Report::Problem(text.into()));
                self.membership_changed();
            }
            News::Ack if self.awaits_words() => self.words_seen(),
            News::Ack | News::Beat | News::None | News::Impossible => {}
        }
        let Some(observed) = self.observation.get(key) else {
            return;
        };
        let over = observed.over_at(self.lease_max);
        let is_alarmed = observed.record.alarm > 0;
        let knows_more = self.knows_more(&observed.record);
        // A base that was just read is judged by the listing that follows it.
        if let Some(leading) = &mut self.leading
            && knows_more
            && leading.listed.is_some()
        {
            leading.dirty |= !leading.verifies;
            leading.verifies = true;
        }
        if is_alarmed {
            self.touch();
        }
        self.timers.set_earlier(Timer::Fence, over);
    }

    /// Those who give back at about the same time are answered with one root,
    /// not with one each: as long as words are missing they are waited for, for
    /// somewhat longer than writing a root takes. A word can be that late
    /// because a renewal was under way.
    fn words_seen(&mut self) {
        match self.words() {
            Words::None => {}
            Words::All => self.touch(),
            Words::Some => {
                let most = self.setup.settings.heartbeat_interval / 8;
                let took = self.leading.as_ref().map(|leading| leading.commit_took);
                let soon = (took.unwrap_or_default() * 3 / 2).min(most);
                self.timers.set_earlier(Timer::Round, self.clock.now + soon);
            }
        }
    }

    /// How much of what was asked back is given back, or its holder gone.
    fn words(&self) -> Words {
        let Some(base) = self.base_committed().filter(|base| !base.root.quarantine) else {
            return Words::All;
        };
        let root = &base.root;
        let (mut given, mut missing) = (false, false);
        for (partition, holding) in base.partitions.iter().zip(&root.holdings) {
            if let Holding::Revoking { session, since } = *holding {
                let entry = &root.sessions[session as usize];
                let is_in = !self.is_live(entry) || self.has_acked(entry, since, partition);
                given |= is_in;
                missing |= !is_in;
            }
        }
        match (given, missing) {
            (_, false) => Words::All,
            (true, true) => Words::Some,
            (false, true) => Words::None,
        }
    }

    fn is_live(&self, entry: &SessionEntry) -> bool {
        let observed = self.observation.get(&Keys::worker(&entry.worker));
        observed
            .is_some_and(|observed| observed.record.session == entry.session && observed.is_live())
    }

    fn awaits_words(&self) -> bool {
        self.leading
            .as_ref()
            .is_some_and(|leading| leading.awaits_words)
    }

    /// Records that the root names and that were not found may be gone.
    pub(super) fn find_missing(&mut self) {
        let Some(leading) = self
            .leading
            .as_ref()
            .filter(|leading| leading.listed.is_some())
        else {
            return;
        };
        let Some(base) = leading.base_root() else {
            return;
        };
        let root = &base.committed.root;
        if self.incarnation.as_ref() != Some(&root.incarnation) {
            return;
        }
        // Whoever has nothing need not be waited for, and may be gone for good.
        let owners: BTreeSet<u32> = root.holdings.iter().filter_map(Holding::session).collect();
        let named = owners.iter().map(|index| &root.sessions[*index as usize]);
        let missing: Vec<SessionEntry> = named
            .filter(|entry| self.observation.get(&Keys::worker(&entry.worker)).is_none())
            // More follow with the next listing.
            .take(self.setup.batches.missing)
            .cloned()
            .collect();
        for entry in missing {
            self.restore_missing(&entry);
        }
    }

    /// Whether this member keeps an eye on workers' records.
    pub(super) fn observes(&self) -> bool {
        self.leading.is_some() || self.election.is_standby || self.is_claiming()
    }
}
