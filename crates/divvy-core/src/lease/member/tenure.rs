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
    pub(super) phase: Phase,
    /// Why it stops, once it has to.
    pub(super) stop: Option<StopReason>,
    /// Its start hook failed.
    pub(super) has_failed: bool,
    /// Its hook was reported as overdue.
    pub(super) is_reported: bool,
}

impl Tenure {
    /// Whether its hooks run, or what they started does.
    pub(super) const fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Stopped | Phase::Releasing)
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
    last: u64,
    last_hook: u64,
}

impl Tenures {
    pub(super) fn len(&self) -> usize {
        self.all.len()
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
        self.all.insert(id, make(id));
        id
    }

    pub(super) fn remove(&mut self, id: TenureId) -> Option<Tenure> {
        self.all.remove(&id)
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
