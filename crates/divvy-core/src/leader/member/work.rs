//! The partitions of a member: what is granted, and what its hooks are doing.
//!
//! Hooks of one partition never overlap: whatever is granted or taken away
//! while one runs is looked at when it ends.

use std::collections::BTreeMap;

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
        since: Moment,
    },
    /// It was started.
    Running { token: Token },
    /// The stop hook runs.
    Stopping {
        hook: HookId,
        token: Token,
        since: Moment,
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

    pub(super) const fn hook(self) -> Option<(HookId, Moment)> {
        match self {
            Self::Starting { hook, since, .. } | Self::Stopping { hook, since, .. } => {
                Some((hook, since))
            }
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
    /// Something changed that slots have not been looked at for.
    pub(super) dirty: bool,
}

impl Work {
    /// Whether nothing runs, starts or stops.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.values().all(|slot| slot.phase == Phase::Idle)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values()
    }

    pub(super) fn get(&self, partition: &str) -> Option<&Slot> {
        self.slots.get(partition)
    }

    pub(super) fn hooks_running(&self) -> usize {
        self.hooks.len()
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

    /// The partitions that need something now, which is then taken as begun:
    /// at most as many as hooks may run at once.
    pub(super) fn begin(&mut self, may_work: bool, now: Moment) -> Vec<(HookId, Partition, Need)> {
        let mut begun = Vec::new();
        for (name, slot) in &mut self.slots {
            let Some(need) = slot.need(may_work, now) else {
                continue;
            };
            // What has to stop never waits for what may start.
            if need != Need::Stop && self.hooks.len() >= HOOKS_MAX {
                continue;
            }
            self.last_hook += 1;
            let hook = HookId(self.last_hook);
            slot.phase = match need {
                Need::Start(token) => Phase::Starting {
                    hook,
                    token,
                    since: now,
                },
                Need::Stop => Phase::Stopping {
                    hook,
                    token: slot.phase.token().expect("only what runs is stopped"),
                    since: now,
                },
            };
            slot.reported = false;
            self.hooks.insert(hook, name.clone());
            begun.push((hook, slot.partition.clone(), need));
        }
        let idle = |slot: &Slot| slot.phase == Phase::Idle && slot.granted.is_none();
        self.slots.retain(|_, slot| !idle(slot));
        self.dirty = self.hooks.len() >= HOOKS_MAX;
        begun
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
        self.dirty = true;
        match before {
            Phase::Starting { .. } if failed => {
                slot.phase = Phase::Idle;
                slot.not_before = Some(retry);
            }
            Phase::Starting { token, .. } => slot.phase = Phase::Running { token },
            _ => slot.phase = Phase::Idle,
        }
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
    pub(super) fn next_retry(&self) -> Option<Moment> {
        let waiting = self.slots.values().filter(|slot| slot.phase == Phase::Idle);
        waiting.filter_map(|slot| slot.not_before).min()
    }

    /// For planted mistakes only: the partition counts as stopped already.
    pub(super) fn abandon(&mut self, partition: &str) {
        if let Some(slot) = self.slots.get_mut(partition) {
            slot.phase = Phase::Idle;
            self.dirty = true;
        }
    }
}
