//! Tenures: leases that this worker has, and what their hooks are doing.

use std::collections::BTreeMap;

use crate::leader::HookId;
use crate::lease::action::{StopReason, TenureId};
use crate::moment::Moment;
use crate::store::{LeaseKey, Nonce, Token};

/// A wish for a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    /// The unit that it is for.
    pub(super) unit: u32,
    pub(super) nonce: Nonce,
    /// The token that it seems to have been granted, once known.
    pub(super) token: Option<Token>,
}

/// What the hooks of a tenure are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The start hook runs, since then, or waits for its turn.
    Starting(HookId, Option<Moment>),
    /// It was started.
    Running,
    /// The stop hook runs, since then, or waits for its turn.
    Stopping(HookId, Option<Moment>),
    /// Nothing runs any more: the lease is to be given back.
    Stopped,
    /// The lease is being given back.
    Releasing,
}

/// One tenure.
#[derive(Debug, Clone)]
pub(super) struct Tenure {
    pub(super) id: TenureId,
    pub(super) unit: u32,
    pub(super) key: LeaseKey,
    pub(super) nonce: Nonce,
    pub(super) token: Token,
    pub(super) since: Moment,
    /// When the grant ends, by the last renewal.
    pub(super) until: Moment,
    /// The grant has ended, for good.
    pub(super) is_void: bool,
    /// The lease is known to be no longer this tenure's.
    pub(super) is_lost: bool,
    pub(super) is_renewing: bool,
    /// Changed by [`Tenures::turn`] only.
    phase: Phase,
    /// Why it stops, once it has to.
    pub(super) stop: Option<StopReason>,
    /// Its start hook failed.
    pub(super) has_failed: bool,
    /// Its hook was reported as overdue.
    pub(super) is_reported: bool,
    /// Its stop hook has run for so long that its lease is left to expire.
    pub(super) is_unconfirmed: bool,
}

impl Tenure {
    /// One that was granted at `since` and ends at `until`; nothing runs.
    pub(super) fn new(
        id: TenureId,
        (unit, key): (u32, LeaseKey),
        (nonce, token): (Nonce, Token),
        (since, until): (Moment, Moment),
    ) -> Self {
        Self {
            id,
            unit,
            key,
            nonce,
            token,
            since,
            until,
            is_void: false,
            is_lost: false,
            is_renewing: false,
            phase: Phase::Stopped,
            stop: None,
            has_failed: false,
            is_reported: false,
            is_unconfirmed: false,
        }
    }

    /// What its hooks are doing.
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether its hooks run, or what they started does.
    pub(super) const fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Stopped | Phase::Releasing)
    }

    /// Whether it can be asked to stop: it runs, or its start hook waits for its
    /// turn, and it does not stop already.
    pub(super) const fn can_stop(&self) -> bool {
        self.stop.is_none() && matches!(self.phase, Phase::Running | Phase::Starting(_, None))
    }

    /// Since when its hook runs, if it does.
    pub(super) const fn hook_since(&self) -> Option<Moment> {
        match self.phase {
            Phase::Starting(_, since) | Phase::Stopping(_, since) => since,
            Phase::Running | Phase::Stopped | Phase::Releasing => None,
        }
    }
}

/// All tenures that have not come to an end.
#[derive(Debug, Clone, Default)]
pub(super) struct Tenures {
    all: BTreeMap<TenureId, Tenure>,
    hooks: BTreeMap<HookId, TenureId>,
    /// How many have stopped, and how many stop.
    stopped: usize,
    stopping: usize,
    last: u64,
    last_hook: u64,
}

impl Tenures {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many have stopped, and are to be given back.
    pub(super) const fn stopped(&self) -> usize {
        self.stopped
    }

    /// How many are being stopped.
    pub(super) const fn stopping(&self) -> usize {
        self.stopping
    }

    /// What the hooks of a tenure are doing is this now.
    pub(super) fn turn(&mut self, id: TenureId, phase: Phase) {
        if let Some(tenure) = self.all.get_mut(&id) {
            let before = std::mem::replace(&mut tenure.phase, phase);
            self.uncount(before);
            self.count(phase);
        }
    }

    const fn count(&mut self, phase: Phase) {
        match phase {
            Phase::Stopped => self.stopped += 1,
            Phase::Stopping(..) => self.stopping += 1,
            Phase::Starting(..) | Phase::Running | Phase::Releasing => {}
        }
    }

    const fn uncount(&mut self, phase: Phase) {
        match phase {
            Phase::Stopped => self.stopped -= 1,
            Phase::Stopping(..) => self.stopping -= 1,
            Phase::Starting(..) | Phase::Running | Phase::Releasing => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Tenure> {
        self.all.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Tenure> {
        self.all.values_mut()
    }

    pub(super) fn get(&self, id: TenureId) -> Option<&Tenure> {
        self.all.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: TenureId) -> Option<&mut Tenure> {
        self.all.get_mut(&id)
    }

    /// Adds a tenure whose hook has not been called.
    pub(super) fn add(&mut self, make: impl FnOnce(TenureId) -> Tenure) -> TenureId {
        self.last += 1;
        let id = TenureId(self.last);
        let tenure = make(id);
        self.count(tenure.phase);
        self.all.insert(id, tenure);
        id
    }

    pub(super) fn remove(&mut self, id: TenureId) -> Option<Tenure> {
        let removed = self.all.remove(&id)?;
        self.uncount(removed.phase);
        Some(removed)
    }

    /// A hook of this tenure is called.
    pub(super) fn call(&mut self, id: TenureId) -> HookId {
        self.last_hook += 1;
        let hook = HookId(self.last_hook);
        self.hooks.insert(hook, id);
        hook
    }

    /// The tenure whose hook this is, which has begun.
    pub(super) fn hook_begun(&mut self, hook: HookId, now: Moment) -> Option<TenureId> {
        let id = *self.hooks.get(&hook)?;
        if let Some(Tenure {
            phase: Phase::Starting(_, since) | Phase::Stopping(_, since),
            ..
        }) = self.all.get_mut(&id)
        {
            since.get_or_insert(now);
        }
        Some(id)
    }

    /// The tenure whose hook this was.
    pub(super) fn hook_ended(&mut self, hook: HookId) -> Option<TenureId> {
        self.hooks.remove(&hook)
    }
}
