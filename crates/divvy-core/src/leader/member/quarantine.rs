//! What to do when the store has forgotten: nobody is granted anything until
//! everybody is known to have stopped.
//!
//! A read proves nothing here, because reads may be stale: the root that sets
//! the quarantine is written by compare-and-set over the one that looked
//! wrong, and a record counts as missing when it could be created.

use std::time::Duration;

use super::Member;
use super::draft::{Changes, Draft};
use super::keys::Keys;
use super::observation::Observed;
use super::root_view::SeenRoot;
use super::sessions::SessionTable;
use super::sketch::Standing;
use super::timers::Timer;
use crate::leader::action::Report;
use crate::leader::codec::Committed;
use crate::leader::defect::Defect;
use crate::leader::record::{Holding, Life, Lifecycle, Root, Version, WorkerRecord};
use crate::leader::settings::LeaderSettings;
use crate::moment::Moment;
use crate::partition::Partitions;
use crate::store::{Expected, Incarnation, Token};

/// How many bits of a token are the number of the root.
const TOKEN_NUMBER_BITS: u32 = 20;

impl Member {
    /// The store is reached, and says which life it is in.
    pub(super) fn connected(&mut self, incarnation: Incarnation) {
        let is_other = self
            .incarnation
            .as_ref()
            .is_some_and(|known| *known != incarnation);
        if is_other {
            self.forget_store("the store has another incarnation");
        }
        let is_first = self.incarnation.is_none();
        self.incarnation = Some(incarnation);
        if is_first && self.is_begun() {
            self.begun_at = self.clock.now;
            self.begin_claim();
        }
        self.poll();
    }

    /// A sign, seen by this member itself, that the store has lost what it had
    /// acknowledged.
    pub(super) fn store_forgot(&mut self, sign: &str) {
        let text = format!("the store seems to have forgotten: {sign}");
        self.report(Report::Problem(text.into()));
        // Whoever leads may not have seen it: the next claim says so.
        // Once the view is forgotten, less may be known than at the first sign.
        self.alarm = self.alarm.max(self.newest_known().epoch).max(1);
        self.forget_store(sign);
        self.poll();
    }

    /// Uses nothing any more that was learned before: no revision, no root.
    fn forget_store(&mut self, why: &str) {
        self.operations.forget();
        self.observation.forget();
        self.view = super::root_view::RootView::default();
        self.election = super::election::Election::default();
        self.end_session(why);
        self.leading = None;
        if self.is_claiming() {
            self.begin_claim();
        }
    }

    /// Somebody found that the store has forgotten: revisions of records that
    /// were learned before may never come again.
    pub(super) fn forget_records(&mut self) {
        self.observation.forget();
        if let Some(leading) = &mut self.leading {
            leading.unlist(self.clock.now);
        }
        if self.observes() {
            self.list_workers();
        }
    }

    /// A sign that a leader has proved: it acts on it with its next root. What
    /// it knew may be of a past that is lost, and a revision of that past may
    /// stand for another write by now: root and records are read again first.
    pub(super) fn suspect(&mut self, sign: &str) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        leading.has_forgotten = true;
        leading.verifies = true;
        leading.dirty = true;
        self.forget_records();
        let text = format!("the store has forgotten: {sign}");
        self.report(Report::Problem(text.into()));
    }

    /// Whether a worker has seen a newer root than this leader's.
    pub(super) fn knows_more(&self, record: &WorkerRecord) -> bool {
        let base = self
            .leading
            .as_ref()
            .and_then(|leading| leading.base_root());
        base.is_some_and(|base| self.is_above(record, base.version()))
    }

    fn is_above(&self, record: &WorkerRecord, version: Version) -> bool {
        let has_newer = record.adopted > version && self.is_credible(record.adopted.epoch);
        let token = record.token_max;
        has_newer || (token > version.token() && self.is_credible(epoch_of(token)))
    }

    /// Whether anybody, this member included, knows of a newer root than one
    /// that was just read. If the read was stale, nothing can be written over
    /// what it showed.
    pub(super) fn is_outrun(&self, seen: &SeenRoot) -> bool {
        let mut workers = self.observation.workers();
        self.newest_known() > seen.version()
            || workers.any(|observed| self.is_above(&observed.record, seen.version()))
    }

    /// Whether a worker found that the store has forgotten, and this root does
    /// not answer that.
    pub(super) fn is_alarmed(&self, root: &Root) -> bool {
        let mut workers = self.observation.workers();
        workers.any(|observed| self.is_unanswered(&observed.record, root.answered))
    }

    /// Whether a live worker's record says that the store has forgotten since
    /// the quarantine of this epoch.
    pub(super) fn is_unanswered(&self, record: &WorkerRecord, answered: u64) -> bool {
        let alarm = record.alarm;
        let is_alarm = alarm > 0 && alarm >= answered && self.is_credible(alarm);
        is_alarm && record.life == Life::Live
    }

    /// The newest root that this process has ever seen in force.
    pub(super) fn newest_known(&self) -> Version {
        let newest = self.view.newest.as_ref();
        let newest = newest.map_or_else(Version::default, SeenRoot::version);
        newest.max(self.adopted_max)
    }

    /// An epoch above everything that anybody is known to have seen.
    fn epoch_above_all(&mut self, last: u64) -> u64 {
        let reported = self.observation.workers().map(|observed| {
            let record = &observed.record;
            let told = [
                record.adopted.epoch,
                record.alarm,
                epoch_of(record.token_max),
            ];
            let credible = told.into_iter().filter(|epoch| self.is_credible(*epoch));
            credible.max().unwrap_or(0)
        });
        let seen = reported.max().unwrap_or(0).max(last);
        let seen = seen
            .max(epoch_of(self.token_max))
            .max(self.newest_known().epoch);
        let current = self.leading.as_ref().map_or(0, |leading| leading.epoch);
        let epoch = match current > seen {
            true => current,
            false => self.epoch_above(seen),
        };
        if let Some(leading) = &mut self.leading {
            leading.epoch = epoch;
        }
        epoch
    }

    /// The very first root, or the first after everything was lost: nobody can
    /// tell which.
    pub(super) fn first_root(&mut self) -> Option<Draft> {
        // A root that was lost may be of a later leader, which nobody here saw:
        // only clocks tell.
        let current = self.leading.as_ref()?.epoch;
        let epoch = self.epoch_above_all(current);
        let leading = self.leading.as_ref()?;
        let nothing = Partitions::new([]).expect("no partitions are a set");
        let partitions = leading.source.believed.clone().unwrap_or(nothing);
        // Somebody who remembers a root knows that one was lost.
        let remembers = |observed: &Observed| observed.record.adopted != Version::default();
        let may_have_forgotten = self.setup.settings.store_forgets
            || self.adopted_max != Version::default()
            || self.observation.workers().any(remembers);
        let quarantine = may_have_forgotten && self.defect != Some(Defect::IgnoreAmnesia);
        let root = Root {
            incarnation: self.incarnation.clone()?,
            version: Version { epoch, number: 0 },
            lifecycle: Lifecycle::ColdStart,
            quarantine,
            answered: if quarantine { epoch } else { 0 },
            lease: self.lease_max,
            sessions: Vec::new(),
            holdings: vec![Holding::None; partitions.len()],
        };
        self.encode_draft(
            root,
            &partitions,
            None,
            Expected::Absent,
            Changes::default(),
        )
    }

    /// The root that sets the quarantine: everything is asked back.
    pub(super) fn quarantine_root(
        &mut self,
        before: &Committed,
        expected: Expected,
    ) -> Option<Draft> {
        let epoch = self.epoch_above_all(before.root.version.epoch);
        let version = Version { epoch, number: 0 };
        let holdings = before.root.holdings.iter().map(|holding| match *holding {
            Holding::None => Holding::None,
            Holding::Held { session, .. } | Holding::Revoking { session, .. } => {
                Holding::Revoking {
                    session,
                    since: version,
                }
            }
        });
        let root = Root {
            incarnation: self.incarnation.clone()?,
            version,
            lifecycle: Lifecycle::ColdStart,
            quarantine: true,
            answered: epoch,
            lease: self.lease_max.max(before.root.lease),
            sessions: before.root.sessions.clone(),
            holdings: holdings.collect(),
        };
        self.encode_draft(
            root,
            &before.partitions,
            Some(before),
            expected,
            Changes::default(),
        )
    }

    /// Waits for the quarantine's end, and ends it.
    pub(super) fn quarantine_step(
        &mut self,
        before: &Committed,
        expected: Expected,
    ) -> Option<Draft> {
        let version = self.next_version(before.root.version);
        let is_sealed = version.epoch == before.root.version.epoch;
        let mut root = Root {
            version,
            ..before.root.clone()
        };
        if self.is_quarantine_over(before) {
            self.remember_owners(before);
            // What a session was asked to give back leaves it as at any other
            // time: the listing that ended the wait may be stale.
            let roster = self.roster();
            let standings = self.standings(before, &roster);
            let entries = before.root.holdings.iter().zip(&standings);
            root.quarantine = false;
            root.holdings = entries
                .map(|(holding, standing)| match standing {
                    Standing::Free(_) => Holding::None,
                    _ => *holding,
                })
                .collect();
            let table = SessionTable::new(&before.root.sessions, &root.holdings);
            root.sessions = table.finish(&roster);
        } else if is_sealed {
            return None;
        }
        let changes = Changes::default();
        self.encode_draft(root, &before.partitions, Some(before), expected, changes)
    }

    fn is_quarantine_over(&mut self, before: &Committed) -> bool {
        if self.defect == Some(Defect::QuarantineWithoutWait) {
            return true;
        }
        let now = self.clock.now;
        let lease = before.root.lease.max(self.lease_max);
        let Some(over) = self.quarantine_expires(lease) else {
            // The base is not the newest root, so it cannot be replaced either.
            return false;
        };
        if now < over {
            self.timers.set_earlier(Timer::Round, over);
            return false;
        }
        let listed = self.leading.as_ref().and_then(|leading| leading.listed);
        if listed.is_none_or(|asked| asked < over) {
            self.list_workers();
            return false;
        }
        let epoch = before.root.version.epoch;
        let Some(id) = self.hold_up(epoch, over, LeaderSettings::observed(lease)) else {
            return true;
        };
        if let Some(leading) = &mut self.leading
            && leading.waits_told != Some(epoch)
        {
            leading.waits_told = Some(epoch);
            let text = format!(
                "nothing is granted before {id} has stopped what it had when the store forgot"
            );
            self.report(Report::Problem(text.into()));
        }
        false
    }

    /// Who holds up the end of a quarantine that has lasted long enough, if
    /// anybody does. Those who have not read the root of this epoch for so long
    /// beyond are struck out.
    fn hold_up(&mut self, epoch: u64, over: Moment, patience: Duration) -> Option<Box<str>> {
        let is_unread = |record: &WorkerRecord| record.acked.epoch < epoch;
        let workers = self.observation.workers().filter(|observed| {
            let record = &observed.record;
            observed.is_live() && (is_unread(record) || !record.stopping.is_empty())
        });
        let waited_for: Vec<Observed> = workers.cloned().collect();
        for observed in &waited_for {
            let until = over.max(observed.met) + patience;
            if self.clock.now < until {
                self.timers.set_earlier(Timer::Round, until);
            } else if observed.is_readable && is_unread(&observed.record) {
                self.strike_out(Keys::worker(&observed.id), observed.revision);
            }
        }
        waited_for.into_iter().next().map(|observed| observed.id)
    }

    /// So that as little as possible moves.
    fn remember_owners(&mut self, before: &Committed) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        for (partition, holding) in before.partitions.iter().zip(&before.root.holdings) {
            if let Holding::Revoking { session, .. } | Holding::Held { session, .. } = holding {
                let worker = before.root.sessions[*session as usize].worker.clone();
                leading.destined.insert(partition.as_str().into(), worker);
            }
        }
    }
}

pub(super) fn epoch_of(token: Option<Token>) -> u64 {
    token.map_or(0, |token| token.get().unsigned_abs() >> TOKEN_NUMBER_BITS)
}
