//! The partitions of a member: what is granted, and what its hooks are doing.
//!
//! Hooks of one partition never overlap: whatever is granted or taken away
//! while one runs is looked at when it ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::hash;
use crate::leader::action::HookId;
use crate::leader::event::HookEnd;
use crate::moment::Moment;
use crate::partition::Partition;
use crate::store::Token;

/// What the hooks of a partition are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing runs.
    Idle,
    /// The start hook runs.
    Starting {
        hook: HookId,
        token: Token,
        /// Nothing while it waits for its turn.
        since: Option<Moment>,
    },
    /// It was started.
    Running { token: Token },
    /// The stop hook runs.
    Stopping {
        hook: HookId,
        token: Token,
        since: Option<Moment>,
    },
}

impl Phase {
    /// The token that it was started with, unless nothing runs.
    pub(super) const fn token(self) -> Option<Token> {
        match self {
            Self::Idle => None,
            Self::Starting { token, .. }
            | Self::Running { token }
            | Self::Stopping { token, .. } => Some(token),
        }
    }

    /// The token that it was started with, if its start hook has returned.
    pub(super) const fn started_with(self) -> Option<Token> {
        match self {
            Self::Running { token } | Self::Stopping { token, .. } => Some(token),
            Self::Idle | Self::Starting { .. } => None,
        }
    }

    /// Since when its hook runs, if it does.
    pub(super) const fn since(self) -> Option<Moment> {
        match self {
            Self::Starting { since, .. } | Self::Stopping { since, .. } => since,
            Self::Idle | Self::Running { .. } => None,
        }
    }

    /// How often something is done about a hook that does not end, each time a
    /// deadline later: it is told; a start is ended besides.
    pub(super) const fn reminders(self) -> u32 {
        match self {
            Self::Starting { .. } => 2,
            Self::Stopping { .. } => 1,
            Self::Idle | Self::Running { .. } => 0,
        }
    }
}

/// One partition.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) partition: Partition,
    pub(super) hash: u64,
    pub(super) phase: Phase,
    /// What the adopted root gives to this session.
    pub(super) granted: Option<Token>,
    /// Its start hook failed: not before this again.
    pub(super) not_before: Option<Moment>,
    /// How often its start failed in a row, and with which grant.
    pub(super) failures: u32,
    failed_with: Option<Token>,
    /// Its start was ended in the middle: what it began has to be stopped.
    is_cancelled: bool,
    /// How often something was done about its hook, which does not end.
    pub(super) reminded: u32,
}

/// What a slot needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Start(Token),
    /// Its start waits for its turn, and is not to be called any more.
    Withdraw(HookId),
    Stop,
}

impl Slot {
    /// What to do now, if work is allowed.
    pub(super) fn need(&self, may_work: bool, now: Moment) -> Option<Need> {
        let wanted = self.granted.filter(|_| may_work);
        match self.phase {
            Phase::Idle if self.not_before.is_some_and(|moment| moment > now) => None,
            Phase::Idle => wanted.map(Need::Start),
            Phase::Running { token } => {
                (self.is_cancelled || wanted != Some(token)).then_some(Need::Stop)
            }
            Phase::Starting {
                hook,
                token,
                since: None,
            } => (wanted != Some(token)).then_some(Need::Withdraw(hook)),
            Phase::Starting { .. } | Phase::Stopping { .. } => None,
        }
    }

    /// Whether nothing runs, and nothing is to run.
    fn is_over(&self) -> bool {
        self.phase == Phase::Idle && self.granted.is_none()
    }

    /// Whether something of a grant that is over may still be running.
    pub(super) fn is_giving_back(&self) -> bool {
        let token = self.phase.token();
        token.is_some() && token != self.granted
    }
}

/// All partitions that are granted or not yet stopped.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    slots: BTreeMap<Arc<str>, Slot>,
    hooks: BTreeMap<HookId, Arc<str>>,
    last_hook: u64,
    /// Something changed that no slot has been looked at for.
    pub(super) dirty: bool,
    /// Slots that something changed for, each alone: with many partitions, not
    /// all are looked at whenever a hook ends.
    touched: Vec<Arc<str>>,
    /// Slots that would start if fewer hooks ran.
    waiting: VecDeque<Arc<str>>,
    /// Slots whose start may have failed.
    failed: BTreeSet<Arc<str>>,
    /// Slots in which anything runs, and those in which a stop hook does.
    busy: usize,
    stops: usize,
}

impl Work {
    /// Whether nothing runs, starts or stops.
    pub(super) fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// Whether any slot has to be looked at.
    pub(super) fn is_changed(&self) -> bool {
        self.dirty || !self.touched.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values()
    }

    pub(super) fn get(&self, partition: &str) -> Option<&Slot> {
        self.slots.get(partition)
    }

    pub(super) fn stop_hooks_running(&self) -> usize {
        self.stops
    }

    /// Takes every grant away.
    pub(super) fn revoke_all(&mut self) {
        for slot in self.slots.values_mut() {
            slot.granted = None;
        }
        self.dirty = true;
    }

    /// Adds a grant.
    pub(super) fn grant(&mut self, partition: &Partition, token: Token) {
        self.dirty = true;
        if let Some(slot) = self.slots.get_mut(partition.as_str()) {
            if slot.failed_with != Some(token) {
                slot.not_before = None;
                slot.failures = 0;
            }
            slot.granted = Some(token);
            return;
        }
        let slot = Slot {
            partition: partition.clone(),
            hash: hash::bytes64(partition.as_str().as_bytes(), 0),
            phase: Phase::Idle,
            granted: Some(token),
            not_before: None,
            failures: 0,
            failed_with: None,
            is_cancelled: false,
            reminded: 0,
        };
        self.slots.insert(partition.shared_text(), slot);
    }

    /// The partitions that need something now, whose hooks are then taken as
    /// called: starts while fewer than `hooks_max` run. `since` is when those
    /// begin.
    pub(super) fn begin(
        &mut self,
        may_work: bool,
        now: Moment,
        since: Option<Moment>,
        hooks_max: usize,
    ) -> Vec<(HookId, Partition, Need)> {
        let mut begun = Vec::new();
        let names: Vec<Arc<str>> = if std::mem::take(&mut self.dirty) {
            self.touched.clear();
            self.waiting.clear();
            self.slots.retain(|_, slot| !slot.is_over());
            self.slots.keys().cloned().collect()
        } else {
            let mut names = std::mem::take(&mut self.touched);
            let room = hooks_max.saturating_sub(self.hooks.len());
            names.extend(self.waiting.drain(..room.min(self.waiting.len())));
            names
        };
        for name in names {
            if let Some((hook, need)) = self.look(&name, may_work, now, since, hooks_max) {
                begun.push((hook, self.slots[&name].partition.clone(), need));
            } else if self.slots.get(&name).is_some_and(Slot::is_over) {
                self.slots.remove(&name);
            }
        }
        begun
    }

    /// Begins what one slot needs, if it needs anything.
    fn look(
        &mut self,
        name: &Arc<str>,
        may_work: bool,
        now: Moment,
        since: Option<Moment>,
        hooks_max: usize,
    ) -> Option<(HookId, Need)> {
        let slot = self.slots.get_mut(name)?;
        let need = slot.need(may_work, now)?;
        let hook = HookId(self.last_hook + 1);
        match need {
            Need::Withdraw(waiting) => return Some((waiting, need)),
            // What has to stop never waits for what may start.
            Need::Start(_) if self.hooks.len() >= hooks_max => {
                self.waiting.push_back(Arc::clone(name));
                return None;
            }
            Need::Start(token) => {
                slot.phase = Phase::Starting { hook, token, since };
                self.busy += 1;
            }
            Need::Stop => {
                let token = slot.phase.token().expect("only what runs is stopped");
                slot.phase = Phase::Stopping { hook, token, since };
                self.stops += 1;
            }
        }
        self.last_hook = hook.0;
        slot.reminded = 0;
        self.hooks.insert(hook, Arc::clone(name));
        Some((hook, need))
    }

    /// A hook that waited begins. Whether it stops its partition, if there is
    /// one.
    pub(super) fn hook_begun(&mut self, hook: HookId, now: Moment) -> Option<bool> {
        let slot = self.slots.get_mut(self.hooks.get(&hook)?)?;
        match &mut slot.phase {
            Phase::Starting { since, .. } | Phase::Stopping { since, .. } => {
                since.get_or_insert(now);
            }
            Phase::Idle | Phase::Running { .. } => return None,
        }
        Some(matches!(slot.phase, Phase::Stopping { .. }))
    }

    /// A hook ended; `retry` says when a start that has failed so often may be
    /// tried again. What the partition was doing, if this was its hook.
    pub(super) fn hook_ended(
        &mut self,
        hook: HookId,
        end: HookEnd,
        retry: impl Fn(u32) -> Moment,
    ) -> Option<(&Slot, Phase)> {
        let name = self.hooks.remove(&hook)?;
        let slot = self.slots.get_mut(&name)?;
        let before = slot.phase;
        let has_begun = before.since().is_some();
        if let (Phase::Starting { token, .. }, HookEnd::Failed | HookEnd::Cancelled) = (before, end)
            && has_begun
        {
            slot.failures = slot.failures.saturating_add(1);
            slot.failed_with = Some(token);
            slot.not_before = Some(retry(slot.failures));
            slot.is_cancelled = end == HookEnd::Cancelled;
        }
        slot.phase = match before {
            Phase::Starting { .. } if end == HookEnd::Failed => Phase::Idle,
            Phase::Starting { token, .. } => Phase::Running { token },
            _ => Phase::Idle,
        };
        if end == HookEnd::Done && matches!(before, Phase::Starting { .. }) {
            slot.failures = 0;
            slot.not_before = None;
        }
        slot.is_cancelled &= slot.phase != Phase::Idle;
        if slot.phase == Phase::Idle && slot.not_before.is_some() {
            self.failed.insert(Arc::clone(&name));
        }
        self.busy -= usize::from(before != Phase::Idle && slot.phase == Phase::Idle);
        self.stops -= usize::from(matches!(before, Phase::Stopping { .. }));
        self.touched.push(name);
        Some((slot, before))
    }

    /// Hooks that something has to be done about: those that have run for so
    /// many deadlines as `is_due` says, one more than last time.
    pub(super) fn overdue(&mut self, mut is_due: impl FnMut(Phase, u32) -> bool) -> Vec<Slot> {
        let slots = self.slots.values_mut();
        slots
            .filter(|slot| {
                let next = slot.reminded + 1;
                next <= slot.phase.reminders() && is_due(slot.phase, next)
            })
            .map(|slot| {
                slot.reminded += 1;
                slot.clone()
            })
            .collect()
    }

    /// When the earliest start that failed may be tried again. One that may be
    /// by now waits for a hook to end.
    pub(super) fn next_retry(&mut self, now: Moment) -> Option<Moment> {
        let slots = &self.slots;
        let retry_of = |name: &str| {
            let slot = slots.get(name).filter(|slot| slot.phase == Phase::Idle)?;
            slot.not_before
        };
        self.failed.retain(|name| retry_of(name).is_some());
        let retries = self.failed.iter().filter_map(|name| retry_of(name));
        retries.filter(|retry| *retry > now).min()
    }

    /// For planted mistakes only: a start counts as that of the present grant.
    pub(super) fn reuse_start(&mut self, hook: HookId) {
        let name = self.hooks.get(&hook);
        let slot = name.and_then(|name| self.slots.get_mut(name));
        if let Some(slot) = slot
            && let (Phase::Starting { token, .. }, Some(granted)) = (&mut slot.phase, slot.granted)
        {
            *token = granted;
        }
    }

    /// For planted mistakes only: the partition counts as stopped already.
    pub(super) fn abandon(&mut self, partition: &str) {
        if let Some(slot) = self.slots.get_mut(partition) {
            self.busy -= usize::from(slot.phase != Phase::Idle);
            self.stops -= usize::from(matches!(slot.phase, Phase::Stopping { .. }));
            slot.phase = Phase::Idle;
            self.dirty = true;
        }
    }
}
