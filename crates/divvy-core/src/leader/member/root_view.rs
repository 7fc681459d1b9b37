//! What is known of the root: the newest one, and one that is being read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Member;
use super::operations::Purpose;
use super::timers::Timer;
use crate::leader::action::Report;
use crate::leader::codec::{AssembleError, Committed, RootHead};
use crate::leader::defect::Defect;
use crate::leader::event::Reply;
use crate::leader::record::{Lifecycle, Version, Wait};
use crate::leader::settings::LeaderSettings;
use crate::moment::Moment;
use crate::store::{Entry, Key, Revision};

/// How often in a row what a root names may be missing before that is told.
const MISSING_MAX: u32 = 8;

/// Reads of chunks under way beyond which no other root is begun.
const CHUNK_READS_MAX: usize = 32;

/// A root as it was read or written.
#[derive(Debug, Clone)]
pub(super) struct SeenRoot {
    pub(super) revision: Revision,
    /// The value of the key, to know it again without reading it.
    pub(super) value: Arc<[u8]>,
    pub(super) committed: Arc<Committed>,
}

impl SeenRoot {
    pub(super) fn version(&self) -> Version {
        self.committed.root.version
    }
}

/// A root whose chunks are being read.
#[derive(Debug, Clone)]
struct Fetch {
    entry: Entry,
    head: RootHead,
    chunks: BTreeMap<Key, Arc<[u8]>>,
    left: usize,
}

/// What is known of the root.
#[derive(Debug, Clone, Default)]
pub(super) struct RootView {
    pub(super) newest: Option<SeenRoot>,
    /// Whether the root was read or found absent since the store was reached.
    pub(super) is_known: bool,
    fetch: Option<Fetch>,
    /// How often in a row something that a root names was not there.
    missing: u32,
    /// Why the root that is there cannot be read, if it cannot.
    pub(super) unreadable: Option<Box<str>>,
    /// The quarantine that the newest root is in.
    quarantine: Option<Quarantine>,
    /// Since when roots say that nothing was assigned yet.
    cold_since: Option<Moment>,
    /// Whether the newest root asks anybody to give partitions back.
    pub(super) awaits_words: bool,
}

/// A quarantine, as this member has seen it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quarantine {
    /// The epoch that set it: roots of later leaders prolong it.
    set_by: u64,
    pub(super) since: Moment,
    /// Whether this member had adopted a root before, and so knows how long
    /// leases were.
    pub(super) remembers: bool,
}

impl Member {
    pub(super) fn read_root(&mut self) {
        if !self
            .operations
            .is_under_way(|known| *known == Purpose::ReadRoot)
        {
            let key = self.keys.root.clone();
            self.read(key, Purpose::ReadRoot);
        }
    }

    pub(super) fn root_answered(&mut self, reply: Reply) {
        match reply {
            Reply::Got(Some(entry)) => self.root_found(entry),
            Reply::Got(None) => {
                self.root_known();
                self.root_absent();
            }
            _failed => {
                self.root_not_read();
            }
        }
    }

    /// A root was read, or a watch showed it. One that is known costs nothing.
    pub(super) fn root_found(&mut self, entry: Entry) {
        let newest = self.view.newest.as_ref();
        if let Some(known) = newest.filter(|newest| newest.revision == entry.revision) {
            let is_same = Arc::ptr_eq(&known.value, &entry.value) || known.value == entry.value;
            if !is_same {
                return self.store_forgot("a revision of the root came twice");
            }
            let known = known.clone();
            self.root_known();
            return self.base_found(known);
        }
        let head = match RootHead::decode(&entry.value) {
            Ok(head) => head,
            Err(invalid) => return self.root_unreadable(&invalid.to_string()),
        };
        // Also that of another life: it says how long leases were there.
        self.lease_max = self.lease_max.max(head.lease());
        let is_old = |newest: &SeenRoot| newest.version() >= head.version();
        let is_ours = self.incarnation.as_ref() == Some(head.incarnation());
        let is_news =
            is_ours && (!self.view.newest.as_ref().is_some_and(is_old) || self.adopts_older());
        if !is_news && !self.wants_base() {
            self.root_known();
            return self.root_behind(head.version());
        }
        let is_chunk = |purpose: &Purpose| matches!(purpose, Purpose::ReadChunk(..));
        if self.operations.count(is_chunk) > CHUNK_READS_MAX {
            // Roots follow each other faster than their chunks are read.
            let again = self.clock.now + self.setup.settings.renewal_retry();
            return self.timers.set_earlier(Timer::Poll, again);
        }
        let known = self.view.newest.as_ref().map(|newest| &newest.committed);
        let missing = head.chunk_keys(known.map(Arc::as_ref));
        self.view.fetch = Some(Fetch {
            head,
            chunks: BTreeMap::new(),
            left: missing.len(),
            entry: entry.clone(),
        });
        for key in missing {
            self.read(key.clone(), Purpose::ReadChunk(entry.revision, key));
        }
        self.assemble();
    }

    pub(super) fn chunk_answered(&mut self, revision: Revision, key: &Key, reply: Reply) {
        let fetch = self.view.fetch.as_mut();
        let Some(fetch) = fetch.filter(|fetch| fetch.entry.revision == revision) else {
            return;
        };
        match reply {
            Reply::Got(Some(entry)) => {
                if fetch.chunks.insert(key.clone(), entry.value).is_none() {
                    fetch.left -= 1;
                }
                self.assemble();
            }
            // Gone means that there is a newer root.
            reply => {
                self.view.fetch = None;
                if matches!(reply, Reply::Got(None)) {
                    self.chunk_missing(key);
                }
                self.root_not_read();
            }
        }
    }

    /// Once is nothing; again and again means that somebody deleted what the
    /// root names, and that no root can be read any more.
    fn chunk_missing(&mut self, key: &Key) {
        self.view.missing = self.view.missing.saturating_add(1);
        if self.view.missing == MISSING_MAX {
            let text = format!(
                "the root names {key}, which is not there: nothing can be granted until it is \
                 restored, or all keys of this cluster are deleted"
            );
            self.report(Report::Problem(text.into()));
        }
    }

    /// Puts a root together once all of its chunks are here.
    fn assemble(&mut self) {
        let Some(fetch) = self.view.fetch.take_if(|fetch| fetch.left == 0) else {
            return;
        };
        let known = self.view.newest.as_ref().map(|newest| &newest.committed);
        let known = known.map(Arc::as_ref);
        match fetch
            .head
            .assemble(known, |key| fetch.chunks.get(key).cloned())
        {
            Ok(committed) => self.root_read(SeenRoot {
                revision: fetch.entry.revision,
                value: fetch.entry.value,
                committed: Arc::new(committed),
            }),
            Err(AssembleError::Missing(_)) => self.root_not_read(),
            Err(AssembleError::Invalid(invalid)) => self.root_unreadable(&invalid.to_string()),
        }
    }

    /// A whole root is here: the newest, or what a leader asked for.
    fn root_read(&mut self, seen: SeenRoot) {
        let is_ours = self.incarnation.as_ref() == Some(&seen.committed.root.incarnation);
        let newest = self.view.newest.as_ref();
        let is_newer = newest.is_none_or(|newest| newest.version() < seen.version());
        if is_ours && (is_newer || self.adopts_older()) {
            self.root_is_newest(seen.clone());
        }
        self.root_known();
        self.base_found(seen);
    }

    /// The whole root was read, or there is none: from now on records that cannot
    /// be read may be judged, and it is known whose record was lost.
    fn root_known(&mut self) {
        if self.view.is_known {
            return;
        }
        self.view.is_known = true;
        if self.leading.is_some() {
            self.timers.set_earlier(Timer::Fence, self.clock.now);
        }
        if self.is_claiming() {
            self.choose_id();
        }
    }

    /// There is a newer root than was known.
    pub(super) fn root_is_newest(&mut self, seen: SeenRoot) {
        let root = &seen.committed.root;
        let (set_by, flagged) = (root.answered, root.quarantine);
        let answered = match self.defect {
            Some(Defect::WithdrawAlarm) => root.version.epoch,
            _ => set_by,
        };
        if answered > self.alarm {
            self.alarm = 0;
        }
        self.lease_max = self.lease_max.max(root.lease);
        self.view.awaits_words = root.awaits_words();
        let is_cold = root.lifecycle == Lifecycle::ColdStart;
        let cold_since = self.view.cold_since.unwrap_or(self.clock.now);
        self.view.cold_since = is_cold.then_some(cold_since);
        self.view.newest = Some(seen);
        self.quarantine_seen(flagged.then_some(set_by));
        self.view.missing = 0;
        self.view.unreadable = None;
        self.adopt();
        self.choose_standby();
    }

    /// The newest root is in the quarantine that this epoch set, or in none.
    fn quarantine_seen(&mut self, set_by: Option<u64>) {
        let known = self.view.quarantine.map(|quarantine| quarantine.set_by);
        let counts_on = self.defect == Some(Defect::QuarantineFromFirst);
        if known == set_by || (counts_on && known.is_some() && set_by.is_some()) {
            return;
        }
        self.view.quarantine = set_by.map(|set_by| Quarantine {
            set_by,
            since: self.clock.now,
            remembers: self.adopted_max != Version::default(),
        });
        if set_by.is_some() {
            self.forget_records();
        }
    }

    /// What the first grants wait for, and until when at most unless a worker
    /// does not confirm that it has stopped.
    pub fn waits_for(&self) -> Option<(Wait, Moment)> {
        let settings = &self.setup.settings;
        match self.quarantine_expires(self.lease_max) {
            Some(expires) => Some((Wait::Quarantine, expires)),
            None => Some((
                Wait::Workers,
                self.view.cold_since? + settings.cold_start_window,
            )),
        }
    }

    /// When whatever had this lease at the beginning of the quarantine is over.
    pub(super) fn quarantine_expires(&self, lease: Duration) -> Option<Moment> {
        let quarantine = self.view.quarantine?;
        let expires = quarantine.since + LeaderSettings::observed(lease);
        Some(match quarantine.remembers {
            true => expires,
            // Somebody with a longer lease may have survived what this member
            // has not seen: two heartbeats are enough for it to say so.
            false => expires + self.setup.settings.heartbeat_interval * 2,
        })
    }

    fn root_unreadable(&mut self, why: &str) {
        // It is read again and again, and told once.
        if self.view.unreadable.as_deref() != Some(why) {
            self.view.unreadable = Some(why.into());
            let text = format!(
                "the root is not readable, and nothing is granted until it is: {why}; where nobody \
                 writes it in another format on purpose, delete the key {}",
                self.keys.root
            );
            self.report(Report::Problem(text.into()));
        }
        self.root_not_read();
    }
}
