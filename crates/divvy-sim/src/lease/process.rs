//! What only places of members in lease mode have.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::lease::{SelfDescription, TenureId};
use divvy_core::store::{Nonce, Token, WorkerId};

use super::{CLUSTER, LeaseMode, PlacePlan, WorkerLimits};
use crate::time::TrueTime;
use crate::world::Process;

/// A partition that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(super) token: Token,
    pub(super) tenure: TenureId,
    /// What its lease was taken with.
    pub(super) nonce: Option<Nonce>,
    /// Until when its effects count; nothing if no longer.
    pub(super) until: Option<Moment>,
    pub(super) since: Moment,
    /// It was asked to stop.
    pub(super) stopping: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(super) worker: WorkerId,
    pub(super) booted: TrueTime,
    /// The store has forgotten the scripts that this member would use.
    pub(super) lacks_scripts: bool,
    pub(super) tenures: BTreeMap<TenureId, usize>,
    pub(super) description: SelfDescription,
    /// What its settings let it have, and what they did when it last read them.
    pub(super) limits: WorkerLimits,
    pub(super) limits_read: WorkerLimits,
    /// For how long it goes when it has asked for leases, if it does then.
    pub(super) leaves_asking: Option<Duration>,
}

impl Host {
    pub(super) fn new(name: &str, plan: &PlacePlan) -> Self {
        Self {
            worker: WorkerId::new(CLUSTER, name).expect("a valid name"),
            booted: TrueTime::ZERO,
            lacks_scripts: false,
            tenures: BTreeMap::new(),
            description: SelfDescription {
                healthy: true,
                weight: plan.weight,
            },
            limits: plan.limits,
            limits_read: plan.limits,
            leaves_asking: None,
        }
    }
}

impl Process<LeaseMode> {
    /// The partitions whose effects happen at `now`.
    pub(super) fn working(&self, now: TrueTime) -> impl Iterator<Item = (usize, Token)> {
        let now = self.clock.at(now);
        let running = self.running.iter();
        let working = running.filter(move |(partition, running)| {
            let is_current = running.until.is_some_and(|until| now < until);
            is_current && !self.awaits_start(**partition)
        });
        working.map(|(&partition, running)| (partition, running.token))
    }

    /// The partitions that it has and has not been asked to stop.
    pub(super) fn owned(&self) -> impl Iterator<Item = usize> {
        let running = self.running.iter();
        let owned = running.filter(|(_, running)| !running.stopping);
        owned.map(|(&partition, _)| partition)
    }
}
