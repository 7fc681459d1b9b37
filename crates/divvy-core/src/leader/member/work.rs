//! The partitions of a member: what is granted, and what its hooks are doing.
//!
//! Hooks of one partition never overlap: whatever is granted or taken away
//! while one runs is looked at when it ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::hash;
use crate::leader::action::HookId;
use crate::moment::Moment;
use crate::partition::Partition;
use crate::store::Token;

/// Most hooks that run at once.
pub(super) const HOOKS_MAX: usize = 1024;

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

    /// Since when its hook runs, if it does.
    pub(super) const fn since(self) -> Option<Moment> {
        match self {
            Self::Starting { since, .. } | Self::Stopping { since, .. } => since,
            Self::Idle | Self::Running { .. } => None,
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
    /// Its hook was reported as overdue.
    pub(super) reported: bool,
}

/// What a slot needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Start(Token),
    Stop,
}

impl Slot {
    /// What to do now, if work is allowed.
    pub(super) fn need(&self, may_work: bool, now: Moment) -> Option<Need> {
        let wanted = self.granted.filter(|_| may_work);
        match self.phase {
            Phase::Idle if self.not_before.is_some_and(|moment| moment > now) => None,
            Phase::Idle => wanted.map(Need::Start),
            Phase::Running { token } => (wanted != Some(token)).then_some(Need::Stop),
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
    slots: BTreeMap<Box<str>, Slot>,
    hooks: BTreeMap<HookId, Box<str>>,
    last_hook: u64,
    /// Something changed that no slot has been looked at for.
    pub(super) dirty: bool,
    /// Slots that something changed for, each alone: with many partitions, not
    /// all are looked at whenever a hook ends.
    touched: Vec<Box<str>>,
    /// Slots that would start if fewer hooks ran.
    waiting: VecDeque<Box<str>>,
    /// Slots whose start may have failed.
    failed: BTreeSet<Box<str>>,
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
            if slot.granted != Some(token) {
                slot.not_before = None;
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
            reported: false,
        };
        self.slots.insert(partition.as_str().into(), slot);
    }

    /// The partitions that need something now, whose hooks are then taken as
    /// called: at most as many as may run at once. `since` is when those begin.
    pub(super) fn begin(
        &mut self,
        may_work: bool,
        now: Moment,
        since: Option<Moment>,
    ) -> Vec<(HookId, Partition, Need)> {
        let mut begun = Vec::new();
        let names: Vec<Box<str>> = if std::mem::take(&mut self.dirty) {
            self.touched.clear();
            self.waiting.clear();
            self.slots.retain(|_, slot| !slot.is_over());
            self.slots.keys().cloned().collect()
        } else {
            let mut names = std::mem::take(&mut self.touched);
            let room = HOOKS_MAX.saturating_sub(self.hooks.len());
            names.extend(self.waiting.drain(..room.min(self.waiting.len())));
            names
        };
        for name in names {
            if let Some((hook, need)) = self.look(&name, may_work, now, since) {
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
        name: &str,
        may_work: bool,
        now: Moment,
        since: Option<Moment>,
    ) -> Option<(HookId, Need)> {
        let slot = self.slots.get_mut(name)?;
        let need = slot.need(may_work, now)?;
        // What has to stop never waits for what may start.
        if need != Need::Stop && self.hooks.len() >= HOOKS_MAX {
            self.waiting.push_back(name.into());
            return None;
        }
        self.last_hook += 1;
        let hook = HookId(self.last_hook);
        slot.phase = match need {
            Need::Start(token) => Phase::Starting { hook, token, since },
            Need::Stop => Phase::Stopping {
                hook,
                token: slot.phase.token().expect("only what runs is stopped"),
                since,
            },
        };
        slot.reported = false;
        match need {
            Need::Start(_) => self.busy += 1,
            Need::Stop => self.stops += 1,
        }
        self.hooks.insert(hook, name.into());
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

    /// A hook ended; `retry` is when a failed start may be tried again. What
    /// the partition was doing, if this was its hook.
    pub(super) fn hook_ended(
        &mut self,
        hook: HookId,
        failed: bool,
        retry: Moment,
    ) -> Option<(&Slot, Phase)> {
        let name = self.hooks.remove(&hook)?;
        let slot = self.slots.get_mut(&name)?;
        let before = slot.phase;
        match before {
            Phase::Starting { .. } if failed => {
                slot.phase = Phase::Idle;
                slot.not_before = Some(retry);
                self.failed.insert(name.clone());
            }
            Phase::Starting { token, .. } => slot.phase = Phase::Running { token },
            _ => slot.phase = Phase::Idle,
        }
        self.busy -= usize::from(before != Phase::Idle && slot.phase == Phase::Idle);
        self.stops -= usize::from(matches!(before, Phase::Stopping { .. }));
        self.touched.push(name);
        Some((slot, before))
    }

    /// Hooks that have run since before `limit(phase)`; each is told once.
    pub(super) fn overdue(
        &mut self,
        mut is_overdue: impl FnMut(Phase) -> bool,
    ) -> Vec<(Partition, Phase)> {
        let slots = self.slots.values_mut();
        slots
            .filter(|slot| !slot.reported && is_overdue(slot.phase))
            .map(|slot| {
                slot.reported = true;
                (slot.partition.clone(), slot.phase)
            })
            .collect()
    }

    /// When the earliest start that failed may be tried again.
    pub(super) fn next_retry(&mut self) -> Option<Moment> {
        let slots = &self.slots;
        let retry_of = |name: &str| {
            let slot = slots.get(name).filter(|slot| slot.phase == Phase::Idle)?;
            slot.not_before
        };
        self.failed.retain(|name| retry_of(name).is_some());
        self.failed.iter().filter_map(|name| retry_of(name)).min()
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
