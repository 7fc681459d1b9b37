//! The next root: what has to change now, and who gets what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Member;
use super::keys::Keys;
use super::leading::Base;
use super::placement::{Answer, Question, Refusal};
use super::session::Session;
use super::sessions::SessionTable;
use super::sketch::{Sketch, Standing};
use super::timers::Timer;
use super::trigger::Trigger;
use crate::leader::action::{Handover, Report};
use crate::leader::codec::Committed;
use crate::leader::defect::Defect;
use crate::leader::record::{
    Holding, Life, Lifecycle, Root, SessionEntry, VERSION_NUMBER_MAX, Version,
};
use crate::leader::settings::LeaderSettings;
use crate::moves::{MOVES_MAX, MoveEntry};
use crate::store::{Expected, Key, Token};

/// A root that is to be written.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) expected: Expected,
    pub(super) head: Arc<[u8]>,
    pub(super) chunks: Vec<(Key, Arc<[u8]>)>,
    pub(super) committed: Arc<Committed>,
    pub(super) changes: Changes,
}

/// What a root changes, for those who look on.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    pub(super) granted: u32,
    pub(super) revoked: u32,
    pub(super) moves: Vec<MoveEntry>,
    pub(super) causes: BTreeMap<Box<str>, u64>,
    pub(super) handovers: BTreeMap<(Handover, Duration), u64>,
    /// Where what is asked back shall go: partition and worker.
    pub(super) destined: Vec<(Box<str>, Box<str>)>,
    /// Why partitions are asked back.
    pub(super) triggers: Vec<(Box<str>, Trigger)>,
    /// Moves for balance were considered, and perhaps made.
    pub(super) considered: bool,
    /// Something that nobody had planned was placed, with whomever that suited
    /// best as it was.
    pub(super) has_placed: bool,
    pub(super) has_moved: bool,
}

impl Member {
    /// The next root, if anything has to change.
    pub(super) fn next_draft(&mut self) -> Option<Draft> {
        let Base::Root(seen) = self.leading.as_ref()?.base.clone()? else {
            return self.first_root();
        };
        let root = &seen.committed.root;
        let is_ours = self.incarnation.as_ref() == Some(&root.incarnation);
        let has_forgotten = !is_ours
            || self.leading.as_ref()?.has_forgotten
            || self.is_outrun(&seen)
            || self.is_alarmed(root);
        let expected = Expected::At(seen.revision);
        if has_forgotten && self.defect != Some(Defect::IgnoreAmnesia) {
            return self.quarantine_root(&seen.committed, expected);
        }
        if self.session.as_ref().is_some_and(Session::is_in_doubt) {
            // Sessions that ended in a past that is lost may be alive: the next
            // renewal tells.
            self.touch();
            return None;
        }
        if root.quarantine {
            return self.quarantine_step(&seen.committed, expected);
        }
        self.ordinary_root(&seen.committed, expected)
    }

    /// The version after `last`: sealed anew if it is of an older leader.
    pub(super) fn next_version(&mut self, last: Version) -> Version {
        let leading = self.leading.as_mut().expect("a leader writes roots");
        let reused = self.defect == Some(Defect::VersionReused);
        if leading.epoch > last.epoch {
            return Version {
                epoch: leading.epoch,
                number: 0,
            };
        }
        if last.number < VERSION_NUMBER_MAX {
            let number = last.number + u32::from(!reused);
            return Version { number, ..last };
        }
        let epoch = self.epoch_above(last.epoch);
        self.leading.as_mut().expect("a leader writes roots").epoch = epoch;
        Version { epoch, number: 0 }
    }

    fn ordinary_root(&mut self, before: &Committed, expected: Expected) -> Option<Draft> {
        let version = self.next_version(before.root.version);
        let mut sketch = self.sketch(before, version);
        let mut changes = Changes::default();
        let restarts = self.is_restart();
        let leading = self.leading.as_ref()?;
        let policy = &leading.policy;
        let is_held = self.defect == Some(Defect::HoldCrashed) && policy.is_waiting();
        let may_place = policy.may_place && !restarts && !is_held;
        let may_move = policy.may_move && !restarts;
        let is_settled = policy.is_settled;
        self.ask_back(&mut sketch, &mut changes);
        let is_answered = self.place(&mut sketch, &mut changes, before, may_place, may_move);
        let has_source = leading_knows(self, &sketch);
        let lifecycle = match before.root.lifecycle {
            _ if restarts => Lifecycle::ColdStart,
            Lifecycle::ColdStart if may_place && has_source && is_answered => {
                Lifecycle::PostColdStart
            }
            Lifecycle::PostColdStart if is_settled => Lifecycle::Stable,
            same => same,
        };
        let is_sealed = before.root.version.epoch == version.epoch;
        let same_store = self.incarnation.as_ref() == Some(&before.root.incarnation);
        let needed = sketch.is_changed() || lifecycle != before.root.lifecycle;
        if !needed && is_sealed && same_store {
            self.draft_needless(&changes, &sketch);
            return None;
        }
        self.finish_draft(sketch, changes, before, lifecycle, expected)
    }

    /// Nothing has to be written; what was considered is settled, and who
    /// crashed had nothing that waits to be handed on.
    fn draft_needless(&mut self, changes: &Changes, sketch: &Sketch) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if changes.considered {
            leading.policy.considered(None);
        }
        let is_with_somebody =
            |standing: &Standing| matches!(standing, Standing::Held(_) | Standing::Waiting);
        if sketch.standings.iter().all(is_with_somebody) {
            leading.policy.placed();
        }
    }

    /// Takes back what its holder may not keep, and what is pinned elsewhere.
    fn ask_back(&self, sketch: &mut Sketch, changes: &mut Changes) {
        let Some(leading) = &self.leading else { return };
        for index in 0..sketch.standings.len() {
            let Standing::Held(place) = sketch.standings[index] else {
                continue;
            };
            let partition = sketch.partitions.as_slice()[index].as_str();
            let pinned = leading.control.pinned.get(partition);
            let pinned = pinned.and_then(|id| sketch.roster.place_of(id));
            let pinned = pinned.filter(|pin| sketch.roster.takes(*pin, partition));
            if let Some(pin) = pinned.filter(|pin| *pin != place) {
                let to = sketch.roster.candidates[pin].id.clone();
                changes.destined.push((partition.into(), to));
                changes.note_pinned(partition);
                sketch.revoke(index);
            } else if !sketch.roster.candidates[place].may_keep
                || self.is_unstartable(sketch, place, partition)
            {
                self.note_unfit(sketch, changes, partition, place);
                sketch.revoke(index);
            }
        }
    }

    /// Whether its holder cannot start a partition, and another may.
    fn is_unstartable(&self, sketch: &Sketch, holder: usize, partition: &str) -> bool {
        let roster = &sketch.roster;
        roster.candidates[holder].is_unable(partition)
            && roster.takers(partition).next().is_some()
            && self.defect != Some(Defect::KeepUnstartable)
    }

    /// Places what is free, and moves what balance asks for. Whether the
    /// strategy had an answer, if it was asked.
    fn place(
        &mut self,
        sketch: &mut Sketch,
        changes: &mut Changes,
        before: &Committed,
        may_place: bool,
        may_move: bool,
    ) -> bool {
        let is_free = |standing: &Standing| matches!(standing, Standing::Free(_));
        let has_free = sketch.standings.iter().zip(&sketch.is_dropped);
        let has_free = has_free
            .into_iter()
            .any(|(standing, dropped)| is_free(standing) && !dropped);
        if !(may_place && has_free || may_move) {
            return true;
        }
        let inherited = self.inherited(sketch, before);
        let (is_open, mut owners, pins) = self.question_of(sketch, before);
        for (owner, heir) in owners.iter_mut().zip(&inherited) {
            *owner = owner.or(*heir);
        }
        let question = Question {
            roster: &sketch.roster,
            partitions: &sketch.partitions,
            is_open: &is_open,
            owners: &owners,
        };
        let answer = match question.ask(&*self.setup.strategy) {
            Ok(answer) => answer,
            Err(Refusal::Unfinished) => {
                let again = self.clock.now + self.setup.settings.heartbeat_interval / 4;
                self.timers.set_earlier(Timer::Round, again);
                return false;
            }
            Err(Refusal::Failed(why)) => {
                let again = self.clock.now + self.setup.settings.heartbeat_ttl;
                self.timers.set_earlier(Timer::Round, again);
                self.report(Report::Problem(why.into()));
                return false;
            }
        };
        let Some(mut answer) = answer else {
            return true;
        };
        if self.defect != Some(Defect::KeepUnstartable) {
            answer.spare_the_unable(&question);
        }
        answer.inherit(inherited);
        if may_place {
            for (index, pin) in pins.iter().enumerate() {
                if !is_free(&sketch.standings[index]) || sketch.is_dropped[index] {
                    continue;
                }
                if let Some(place) = pin.or(answer.targets[index]) {
                    changes.has_placed |= owners[index] != Some(place);
                    self.note_move(sketch, changes, before, index, place, &answer);
                    sketch.grants.push((index, place));
                }
            }
        }
        if may_move {
            changes.considered = true;
            self.rebalance(sketch, changes, &owners, &answer);
        }
        true
    }

    /// What the strategy has a say in, who has it, and where it is pinned.
    fn question_of(
        &self,
        sketch: &Sketch,
        before: &Committed,
    ) -> (Vec<bool>, Vec<Option<usize>>, Vec<Option<usize>>) {
        let leading = self.leading.as_ref().expect("a leader asks");
        let roster = &sketch.roster;
        let eligible = |place: &usize| roster.candidates[*place].is_eligible;
        let mut is_open = Vec::with_capacity(sketch.standings.len());
        let mut owners = Vec::with_capacity(sketch.standings.len());
        let mut pins = Vec::with_capacity(sketch.standings.len());
        for (index, partition) in sketch.partitions.iter().enumerate() {
            let name = partition.as_str();
            let pinned = leading.control.pinned.get(name);
            let takes = |place: &usize| roster.takes(*place, name);
            let pin = pinned.and_then(|id| roster.place_of(id)).filter(takes);
            let destined = leading.destined.get(name);
            let destined = destined.and_then(|id| roster.place_of(id)).filter(eligible);
            let (open, owner) = match sketch.standings[index] {
                Standing::Held(place) if eligible(&place) => (true, Some(place)),
                Standing::Held(place) => (!roster.candidates[place].may_keep, None),
                Standing::Free(last) => {
                    let last = last.map(|session| &before.root.sessions[session as usize].worker);
                    let last = last.and_then(|id| roster.place_of(id)).filter(eligible);
                    (true, destined.or(last))
                }
                Standing::Waiting => (true, destined),
                Standing::Fixed => (false, None),
            };
            is_open.push(open && pin.is_none() && !sketch.is_dropped[index]);
            owners.push(owner);
            pins.push(pin);
        }
        (is_open, owners, pins)
    }

    /// Moves partitions of those who go on, if it is worth it.
    fn rebalance(
        &self,
        sketch: &mut Sketch,
        changes: &mut Changes,
        owners: &[Option<usize>],
        answer: &Answer,
    ) {
        let granted: BTreeMap<usize, usize> = sketch.grants.iter().copied().collect();
        let now = |index: usize| granted.get(&index).copied().or(owners[index]);
        let then = |index: usize| answer.targets[index].or_else(|| now(index));
        // What the source no longer names is no load to balance.
        let is_kept = |index: usize| !sketch.is_dropped[index];
        let current = Loads::new(sketch, |index| now(index).filter(|_| is_kept(index)));
        let target = Loads::new(sketch, |index| then(index).filter(|_| is_kept(index)));
        let threshold = self.setup.settings.min_rebalance_threshold;
        let is_uneven = current.imbalance() > threshold && target.imbalance() < current.imbalance();
        let restless = self.defect == Some(Defect::MoveForNothing);
        if !is_uneven && !target.lifts_empty(&current) && !restless {
            return;
        }
        for index in 0..owners.len() {
            let (Standing::Held(from), Some(mut to)) =
                (sketch.standings[index], answer.targets[index])
            else {
                continue;
            };
            if restless && from == to {
                to = (from + 1) % sketch.roster.candidates.len();
            }
            if from == to || !matches!(sketch.holdings[index], Holding::Held { .. }) {
                continue;
            }
            let partition: Box<str> = sketch.partitions.as_slice()[index].as_str().into();
            changes.has_moved = true;
            if self.defect == Some(Defect::MoveInOneWrite) {
                sketch.grants.push((index, to));
                continue;
            }
            changes.note_moved(&partition, answer);
            changes
                .destined
                .push((partition, sketch.roster.candidates[to].id.clone()));
            sketch.revoke(index);
        }
    }

    /// Counts why, and logs it for people: of very many at once, the first that
    /// the log has room for.
    fn note_move(
        &self,
        sketch: &Sketch,
        changes: &mut Changes,
        before: &Committed,
        index: usize,
        place: usize,
        answer: &Answer,
    ) {
        let partition = sketch.partitions.as_slice()[index].as_str();
        let session = sketch.holdings[index].session();
        let from = session.map(|session| before.root.sessions[session as usize].worker.clone());
        let to = sketch.roster.candidates[place].id.clone();
        let is_unable = |id: &str| {
            let place = sketch.roster.place_of(id);
            place.is_some_and(|place| sketch.roster.candidates[place].is_unable(partition))
        };
        let holder = session.map(|session| &before.root.sessions[session as usize]);
        let (trigger, considered) = self.trigger(partition, holder, answer);
        let is_inherited = answer.inherited.get(index) == Some(&Some(place));
        let cause = match &from {
            None if is_inherited => "its worker had it before this cluster began".to_owned(),
            Some(from) if *from == to => "its worker came back".to_owned(),
            Some(from) if is_unable(from) => "its worker could not start it".to_owned(),
            _ => trigger,
        };
        *changes.causes.entry(cause.as_str().into()).or_default() += 1;
        if let Some(handover) = holder.and_then(|holder| self.handover(partition, holder)) {
            *changes.handovers.entry(handover).or_default() += 1;
        }
        if changes.moves.len() == MOVES_MAX {
            return;
        }
        changes.moves.push(MoveEntry {
            partition: partition.into(),
            from: from.map(Into::into),
            to: Some(to.into()),
            cause,
            version: Some(sketch.version.to_string()),
            token: sketch.version.token().map(|token| token.to_string()),
            unix_ms: self.clock.unix_ms,
            considered,
        });
    }

    /// How a partition left its last holder, and how long ago that began.
    pub(super) fn handover(
        &self,
        partition: &str,
        holder: &SessionEntry,
    ) -> Option<(Handover, Duration)> {
        let now = self.clock.now;
        if let Some(since) = self.leading.as_ref()?.asked_back.get(partition) {
            return Some((Handover::AskedBack, now.since(*since)));
        }
        let observed = self.observation.get(&Keys::worker(&holder.worker))?;
        let known_for = now.since(observed.since);
        match observed.record.life {
            Life::Left { .. } => Some((Handover::Left, known_for)),
            Life::Fenced => {
                // It had been silent for that long when it was fenced.
                let silent = LeaderSettings::observed(observed.record.lease);
                Some((Handover::Crashed, silent + known_for))
            }
            Life::Live => None,
        }
    }

    /// The draft of a sketch.
    fn finish_draft(
        &mut self,
        mut sketch: Sketch,
        mut changes: Changes,
        before: &Committed,
        lifecycle: Lifecycle,
        expected: Expected,
    ) -> Option<Draft> {
        let token = match self.defect {
            Some(Defect::TokenFromClock) => Token::new((self.clock.unix_ms as i64) << 20),
            _ => sketch.version.token(),
        }?;
        for &(index, _) in &sketch.grants {
            sketch.holdings[index] = Holding::None;
        }
        let mut table = SessionTable::new(&before.root.sessions, &sketch.holdings);
        for &(index, place) in &sketch.grants {
            let session = table.index_of(&sketch.roster.candidates[place]);
            sketch.holdings[index] = Holding::Held { session, token };
        }
        changes.granted = sketch.grants.len() as u32;
        changes.revoked = sketch.revoked;
        let sessions = table.finish(&sketch.roster);
        let root = Root {
            incarnation: self.incarnation.clone()?,
            version: sketch.version,
            lifecycle,
            quarantine: false,
            answered: before.root.answered,
            lease: self.longest_lease(&sessions, before.root.lease),
            sessions,
            holdings: sketch.holdings,
        };
        self.encode_draft(root, &sketch.partitions, Some(before), expected, changes)
    }
}

/// Whether the list of partitions is one that somebody vouches for.
fn leading_knows(member: &Member, sketch: &Sketch) -> bool {
    let leading = member.leading.as_ref();
    let believed = leading.is_some_and(|leading| leading.source.believed.is_some());
    believed || !sketch.partitions.is_empty()
}

/// Loads of the workers that may be given partitions.
struct Loads {
    loads: Vec<(u64, f64)>,
}

impl Loads {
    fn new(sketch: &Sketch, owner_of: impl Fn(usize) -> Option<usize>) -> Self {
        let candidates = &sketch.roster.candidates;
        let mut loads: Vec<(u64, f64)> = candidates
            .iter()
            .map(|candidate| {
                (
                    0,
                    if candidate.is_eligible {
                        candidate.weight
                    } else {
                        0.0
                    },
                )
            })
            .collect();
        for (index, load) in sketch.partitions.loads().enumerate() {
            if let Some(owner) = owner_of(index) {
                loads[owner].0 += load;
            }
        }
        Self { loads }
    }

    /// The largest load over the mean, each in relation to what its worker can
    /// bear, minus 1.
    fn imbalance(&self) -> f64 {
        let able = || self.loads.iter().filter(|(_, weight)| *weight > 0.0);
        let total: u64 = able().map(|(load, _)| load).sum();
        let weight: f64 = able().map(|(_, weight)| weight).sum();
        if total == 0 {
            return 0.0;
        }
        let mean = total as f64 / weight;
        let most = able().map(|(load, weight)| *load as f64 / weight);
        most.fold(0.0, f64::max) / mean - 1.0
    }

    /// Whether somebody has something here and nothing before.
    fn lifts_empty(&self, before: &Self) -> bool {
        let pairs = self.loads.iter().zip(&before.loads);
        pairs
            .into_iter()
            .any(|(after, before)| before.1 > 0.0 && before.0 == 0 && after.0 > 0)
    }
}
