//! What is known of the root: the newest one, and one that is being read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Member;
use super::operations::Purpose;
use crate::leader::action::Report;
use crate::leader::codec::{AssembleError, Committed, RootHead};
use crate::leader::event::Reply;
use crate::leader::record::Version;
use crate::moment::Moment;
use crate::store::{Entry, Key, Revision};

/// How often in a row what a root names may be missing before that is told.
const MISSING_MAX: u32 = 8;

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
    fetch: Option<Fetch>,
    /// How often in a row something that a root names was not there.
    missing: u32,
    /// Why the root that is there cannot be read, if it cannot.
    pub(super) unreadable: Option<Box<str>>,
    /// Since when the store is known to have forgotten something.
    pub(super) quarantined_since: Option<Moment>,
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
            Reply::Got(None) => self.root_absent(),
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
            return self.base_found(known);
        }
        let head = match RootHead::decode(&entry.value) {
            Ok(head) => head,
            Err(invalid) => return self.root_unreadable(&invalid.to_string()),
        };
        let is_old = |newest: &SeenRoot| newest.version() >= head.version();
        let is_ours = self.incarnation.as_ref() == Some(head.incarnation());
        let is_news =
            is_ours && (!self.view.newest.as_ref().is_some_and(is_old) || self.adopts_older());
        if !is_news && !self.wants_base() {
            return;
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
            self.root_is_newest(seen.clone(), false);
        }
        self.base_found(seen);
    }

    /// There is a newer root than was known; whether it is known to prolong
    /// the quarantine of the one before. Of another epoch it may be another
    /// quarantine: everything between may have been missed.
    pub(super) fn root_is_newest(&mut self, seen: SeenRoot, prolongs: bool) {
        let flagged = seen.committed.root.quarantine;
        let newest = self.view.newest.as_ref();
        let same_epoch = newest.is_some_and(|old| old.version().epoch == seen.version().epoch);
        let since = self
            .view
            .quarantined_since
            .filter(|_| same_epoch || prolongs);
        if flagged && since.is_none() {
            self.forget_records();
        }
        self.view.quarantined_since = match since {
            Some(since) if flagged => Some(since),
            _ => flagged.then_some(self.clock.now),
        };
        if flagged && seen.version().epoch > self.alarm {
            self.alarm = 0;
        }
        self.lease_max = self.lease_max.max(seen.committed.root.lease);
        self.view.newest = Some(seen);
        self.view.missing = 0;
        self.view.unreadable = None;
        self.adopt();
        self.choose_standby();
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
