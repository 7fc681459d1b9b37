//! What only places of members in leader mode have.

use divvy_core::leader::{SelfDescription, Watched};
use divvy_core::store::Token;
use divvy_core::{Health, Moment};

use super::LeaderMode;
use crate::time::TrueTime;
use crate::world::Process;

/// What a member cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lameness {
    EveryOther,
    Everything,
}

impl Lameness {
    pub(super) const fn prevents(self, partition: usize) -> bool {
        match self {
            Self::EveryOther => partition.is_multiple_of(2),
            Self::Everything => true,
        }
    }
}

/// A partition that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(super) token: Token,
    /// Its grant is over, and a later deadline is not for it.
    pub(super) void: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(super) instance: String,
    pub(super) watched: Vec<Watched>,
    pub(super) deadline: Option<Moment>,
    pub(super) description: SelfDescription,
    /// The alarm that its machine had last.
    pub(super) alarm: u64,
}

impl Host {
    pub(super) fn new(number: usize) -> Self {
        let zone = format!("zone-{}", number % 3);
        Self {
            instance: format!("host-{number}"),
            watched: Vec::new(),
            deadline: None,
            alarm: 0,
            description: SelfDescription {
                health: Health::Healthy,
                weight: 1.0,
                zone: Some(zone.into()),
            },
        }
    }
}

impl Process<LeaderMode> {
    /// The partitions whose effects happen at `now`.
    pub(super) fn working(&self, now: TrueTime) -> impl Iterator<Item = (usize, Token)> {
        let before = |deadline| self.clock.at(now) < deadline;
        let has_authority = self.is_alive() && self.host.deadline.is_some_and(before);
        let running = self.running.iter();
        let working = running.filter(move |(partition, running)| {
            has_authority && !running.void && !self.awaits_start(**partition)
        });
        working.map(|(&partition, running)| (partition, running.token))
    }
}
