//! What a leader has in hand beside the record that makes it one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Member;
use super::draft::Draft;
use super::garbage::Garbage;
use super::operations::Purpose;
use super::policy::Policy;
use super::root_view::SeenRoot;
use super::source::Source;
use super::timers::Timer;
use super::trigger::Trigger;
use crate::control::Control;
use crate::leader::move_log::MoveLog;
use crate::leader::record::{Holding, LeaderRecord, SessionId, Version};
use crate::moment::Moment;
use crate::store::{Key, Revision};

/// Reads in a row that may show a root behind the base before it is doubted.
const BEHIND_MAX: u8 = 2;

/// What is under way with the root.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// It is being read, to build on it.
    Reading,
    /// Nothing: the next root may be made from the base.
    Ready,
    /// Chunks are being written, so many are not yet acknowledged.
    Chunks(Box<Draft>, usize),
    /// The root itself is being written, since this moment.
    Head(Box<Draft>, Moment),
    /// After a failure: wait, then read.
    Waiting,
}

/// The root that the next one replaces.
#[derive(Debug, Clone)]
pub(super) enum Base {
    /// There is none.
    Absent,
    Root(SeenRoot),
}

/// A beat that was sent, and not answered.
#[derive(Debug, Clone)]
pub(super) struct SentBeat {
    /// Which write it is.
    pub(super) serial: u64,
    pub(super) at: Moment,
    pub(super) record: LeaderRecord,
    /// The revision that it was to replace.
    pub(super) over: Revision,
}

/// A leader.
#[derive(Debug, Clone)]
pub(super) struct Leading {
    pub(super) epoch: u64,
    /// Of the record `leader`.
    pub(super) revision: Revision,
    pub(super) beat: u64,
    /// The beat under way.
    pub(super) beat_sent: Option<SentBeat>,
    /// Beats in a row that did not come to be.
    pub(super) beats_lost: u32,
    /// Where the record `leader` was found, behind what was known of it.
    pub(super) went_back: Option<Revision>,
    pub(super) stage: Stage,
    pub(super) base: Option<Base>,
    /// Which write of the root is under way, of all that this member made.
    pub(super) attempt: u64,
    /// How long it took to write the last root.
    pub(super) commit_took: Duration,
    /// Failures in a row, to wait longer after each.
    pub(super) failures: u32,
    /// Something changed that the root was not compared with.
    pub(super) dirty: bool,
    /// When the last listing of workers was asked for. Nothing until one
    /// arrives that was asked for after the base was read, if another leader
    /// wrote that: records of before may be of another past of the store.
    pub(super) listed: Option<Moment>,
    pub(super) based: Moment,
    /// How often in a row the root was found behind the base.
    behind: u8,
    /// The store was proved to have forgotten something.
    pub(super) has_forgotten: bool,
    /// Somebody seems to know of a newer root: the base is read again before
    /// anything is written.
    pub(super) verifies: bool,
    /// A root whose answer was lost, or that lost against another.
    pub(super) unconfirmed: Option<Box<Draft>>,
    /// The root of another leader, which is given time before it is
    /// replaced.
    contested: Option<Version>,
    /// The epoch whose quarantine is known to wait for a worker.
    pub(super) waits_told: Option<u64>,
    /// Somebody's word is waited for.
    pub(super) awaits_words: bool,
    pub(super) fencing: BTreeSet<Key>,
    /// Where partitions that are being moved shall go.
    pub(super) destined: BTreeMap<Box<str>, Box<str>>,
    /// Why partitions were asked back.
    pub(super) triggers: BTreeMap<Box<str>, Trigger>,
    /// Since when partitions that were asked back are, as far as this leader
    /// knows.
    pub(super) asked_back: BTreeMap<Box<str>, Moment>,
    /// Requests for a refresh that were answered, by session.
    pub(super) refreshes: BTreeMap<SessionId, u64>,
    pub(super) policy: Policy,
    pub(super) source: Source,
    pub(super) control: Control,
    pub(super) control_revision: Option<Revision>,
    /// The last read of what operators wish found nothing.
    pub(super) is_control_absent: bool,
    pub(super) moves: MoveLog,
    pub(super) garbage: Garbage,
}

impl Leading {
    pub(super) fn new(epoch: u64, revision: Revision, now: Moment) -> Self {
        Self {
            epoch,
            revision,
            beat: 1,
            beat_sent: None,
            beats_lost: 0,
            went_back: None,
            stage: Stage::Reading,
            base: None,
            attempt: 0,
            commit_took: Duration::ZERO,
            failures: 0,
            dirty: true,
            listed: None,
            based: now,
            behind: 0,
            has_forgotten: false,
            verifies: false,
            unconfirmed: None,
            contested: None,
            waits_told: None,
            awaits_words: false,
            fencing: BTreeSet::new(),
            destined: BTreeMap::new(),
            triggers: BTreeMap::new(),
            asked_back: BTreeMap::new(),
            refreshes: BTreeMap::new(),
            policy: Policy::new(now),
            source: Source::default(),
            control: Control::default(),
            control_revision: None,
            is_control_absent: false,
            moves: MoveLog::default(),
            garbage: Garbage::default(),
        }
    }

    /// Notes what the base is waiting for, and forgets what it is not.
    pub(super) fn weigh_base(&mut self, now: Moment) {
        let before = std::mem::take(&mut self.asked_back);
        let Some(Base::Root(seen)) = &self.base else {
            self.awaits_words = false;
            return;
        };
        let committed = &seen.committed;
        let is_revoking = |holding: &Holding| matches!(holding, Holding::Revoking { .. });
        let root = &committed.root;
        self.awaits_words = root.awaits_words();
        let asked = committed.partitions.iter().zip(&root.holdings);
        for (partition, _) in asked.filter(|(_, holding)| is_revoking(holding)) {
            let since = before.get(partition.as_str()).copied().unwrap_or(now);
            self.asked_back.insert(partition.as_str().into(), since);
        }
        let is_on_its_way = |partition: &str| {
            let index = committed.partitions.index_of(partition);
            index.is_some_and(|index| !matches!(root.holdings[index], Holding::Held { .. }))
        };
        self.destined
            .retain(|partition, _| is_on_its_way(partition));
        self.triggers
            .retain(|partition, _| is_on_its_way(partition));
    }

    /// Only a listing that is asked for from now on counts.
    pub(super) fn unlist(&mut self, now: Moment) {
        self.based = now;
        self.listed = None;
    }

    pub(super) fn base_root(&self) -> Option<&SeenRoot> {
        match &self.base {
            Some(Base::Root(seen)) => Some(seen),
            _ => None,
        }
    }
}

impl Member {
    /// Reads everything that a leader must know.
    pub(super) fn lead_begins(&mut self) {
        self.acknowledged(self.clock.now);
        let beat = self.clock.now + self.setup.settings.leader_beat();
        self.timers.set(Timer::Beat, beat);
        self.timers.set(Timer::Fence, self.clock.now);
        self.read_root();
        self.list_workers();
        self.ask_source();
        let (control, moves) = (self.keys.control.clone(), self.keys.moves.clone());
        self.read(control, Purpose::ReadControl);
        self.read(moves, Purpose::ReadMoves);
        let chunks = self.keys.chunks.clone();
        self.list(chunks, Purpose::ListChunks);
    }

    pub(super) fn touch(&mut self) {
        if let Some(leading) = &mut self.leading {
            leading.dirty = true;
        }
    }

    /// Whether a root is asked for to build on, whatever it is.
    pub(super) fn wants_base(&self) -> bool {
        let leading = self.leading.as_ref();
        leading.is_some_and(|leading| matches!(leading.stage, Stage::Reading))
    }

    /// A root was read that the next one may be built on.
    pub(super) fn base_found(&mut self, seen: SeenRoot) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let known = leading.base_root().map(|base| base.revision);
        if known == Some(seen.revision) {
            leading.behind = 0;
        }
        let is_newer = || known.is_some_and(|known| known < seen.revision);
        let wanted = match leading.stage {
            Stage::Reading => true,
            Stage::Ready => is_newer(),
            _ => false,
        };
        if !wanted || self.confirm(&seen) {
            return;
        }
        let version = seen.version();
        let above = self.epoch_above(version.epoch);
        let Some(leading) = &mut self.leading else {
            return;
        };
        let is_other = |base: &SeenRoot| base.revision != seen.revision;
        if leading.base_root().is_some_and(is_other) {
            // Somebody else's: whether it is balanced is not known here.
            leading.policy.unsettle();
        }
        if version.epoch > leading.epoch {
            // Another leads as well. Whether it shall, the record `leader` or
            // the agent says before two of them wear out the store.
            if leading.contested != Some(version) {
                leading.contested = Some(version);
                return self.yield_root();
            }
            leading.epoch = above;
        }
        self.doubt_source(&seen.committed.partitions);
        self.base_is(Base::Root(seen));
    }

    /// Leaves the root to another leader for a while.
    fn yield_root(&mut self) {
        if let Some(leading) = &mut self.leading {
            leading.stage = Stage::Waiting;
            let beat = self.setup.settings.leader_beat();
            let at = self.clock.now + beat + self.random.within(beat);
            self.timers.set(Timer::Root, at);
            self.read_leader();
        }
    }

    pub(super) fn root_absent(&mut self) {
        if self.wants_base() {
            return self.base_is(Base::Absent);
        }
        let is_lost = self.leading.as_ref().is_some_and(|leading| {
            matches!(leading.stage, Stage::Ready) && leading.base_root().is_some()
        });
        if is_lost {
            // It is looked at once more before anything is concluded.
            self.read_base_now();
        }
    }

    fn base_is(&mut self, base: Base) {
        let leading = self.leading.as_mut().expect("it wants a base");
        leading.base = Some(base);
        leading.unlist(self.clock.now);
        leading.behind = 0;
        leading.verifies = false;
        leading.stage = Stage::Ready;
        leading.dirty = true;
        leading.weigh_base(self.clock.now);
        self.find_garbage();
        self.list_workers();
    }

    /// Whether a listing that was asked for then shows records to judge the
    /// base by, and is the first that does.
    pub(super) fn is_first_listing(&self, asked: Moment) -> bool {
        let leading = self.leading.as_ref();
        leading.is_some_and(|leading| leading.listed.is_none() && asked >= leading.based)
    }

    /// The root was read and is older than the one that this leader wrote or
    /// built on. A stale read shows that once. If it shows it again, the store
    /// may have gone back: the root that is there becomes the base, and the
    /// quarantine that follows can be written over it only if it is true.
    pub(super) fn root_behind(&mut self, version: Version) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let is_behind = matches!(leading.stage, Stage::Ready)
            && leading
                .base_root()
                .is_some_and(|base| version < base.version());
        if !is_behind {
            return;
        }
        leading.behind += 1;
        if leading.behind >= BEHIND_MAX {
            self.read_base_now();
        }
    }

    /// The root could not be read: again in a while.
    pub(super) fn root_not_read(&mut self) {
        if self.wants_base() {
            self.read_base_later();
        }
    }

    /// After a failure: reads the root before anything is written again.
    pub(super) fn read_base_later(&mut self) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let failures = leading.failures;
        leading.failures = failures.saturating_add(1);
        leading.stage = Stage::Waiting;
        let wait = self.retry_wait("publishing an assignment", failures);
        self.timers.set(Timer::Root, self.clock.now + wait);
    }

    /// After a lost write: another root is there, which has to be read.
    pub(super) fn read_base_now(&mut self) {
        if let Some(leading) = &mut self.leading {
            leading.stage = Stage::Reading;
            // A read under way may have been answered before the write.
            let key = self.keys.root.clone();
            self.read(key, Purpose::ReadRoot);
        }
    }

    /// The next root, if one is needed and nothing is under way.
    pub(super) fn lead(&mut self) {
        let Some(leading) = &self.leading else { return };
        if !leading.dirty || !matches!(leading.stage, Stage::Ready) {
            return;
        }
        if leading.verifies || self.is_base_old() {
            return self.read_base_now();
        }
        if leading.listed.is_none() {
            return;
        }
        self.watch_windows();
        let Some(leading) = &mut self.leading else {
            return;
        };
        leading.dirty = false;
        if let Some(draft) = self.next_draft() {
            self.commit(draft);
        }
    }

    /// The committed root that a leader builds on.
    pub(super) fn base_committed(&self) -> Option<Arc<crate::leader::codec::Committed>> {
        let leading = self.leading.as_ref()?;
        Some(Arc::clone(&leading.base_root()?.committed))
    }
}
