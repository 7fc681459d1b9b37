//! What only places of members in lease mode have.

use std::collections::BTreeMap;

use divvy_core::Moment;
use divvy_core::lease::{SelfDescription, TenureId};
use divvy_core::store::{Nonce, Token, WorkerId};

use super::{CLUSTER, LeaseMode};
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
}

impl Host {
    pub(super) fn new(name: &str, weight: f64) -> Self {
        Self {
            worker: WorkerId::new(CLUSTER, name).expect("a valid name"),
            booted: TrueTime::ZERO,
            lacks_scripts: false,
            tenures: BTreeMap::new(),
            description: SelfDescription {
                healthy: true,
                weight,
            },
        }
    }
}

impl Process<LeaseMode> {
    /// The partitions whose effects happen at `now`.
    pub(super) fn working(&self, now: TrueTime) -> impl Iterator<Item = (usize, Token)> {
        let now = self.clock.at(now);
        let running = self.running.iter();
        let working =
            running.filter(move |(_, running)| running.until.is_some_and(|until| now < until));
        working.map(|(&partition, running)| (partition, running.token))
    }

    /// The partitions that it has and has not been asked to stop.
    pub(super) fn owned(&self) -> impl Iterator<Item = usize> {
        let running = self.running.iter();
        let owned = running.filter(|(_, running)| !running.stopping);
        owned.map(|(&partition, _)| partition)
    }
}
