//! The log of moves: what this worker took and lost, and why, for people.

use super::Member;
use super::operations::Purpose;
use super::placement::{self, Standing};
use super::tenure::Tenure;
use super::units::{Seen, Unit};
use crate::lease::action::{Operation, StopReason};
use crate::moves::{CONSIDERED_MAX, Considered, MOVE_BYTES_MAX, MoveEntry};
use crate::store::{MOVES_PER_CALL_MAX, Token};

impl Member {
    /// Remembers that a unit was granted, as it was seen before.
    pub(super) fn log_taken(&mut self, unit: &Unit, token: Token) {
        if self.is_log_full() {
            return;
        }
        let me = self.roster.me();
        let is_desired = unit.place.desired == Some(me);
        let from = match &unit.seen {
            Seen::Free { lapsed, .. } => lapsed.as_deref(),
            Seen::Held { by, .. } => Some(&**by),
            Seen::Unknown => None,
        };
        let from = from.map(|id| self.name_of(id));
        let lapsed = match &unit.seen {
            Seen::Free { lapsed, .. } => lapsed.as_deref(),
            _ => None,
        };
        let standing = Standing {
            taker: Some(self.setup.worker.name.as_str()),
            place: unit.place,
            was_free: true,
            lapsed,
        };
        let considered = self.considered(unit, &standing);
        let cause = match (is_desired, &from) {
            _ if from.as_deref() == Some(self.setup.worker.name.as_str()) => {
                "its worker came back".to_owned()
            }
            (true, _) if self.is_pinned_here(unit) => "an operator pinned it here".to_owned(),
            (_, Some(from)) => {
                format!("{from} let its lease run out, and this worker is next in rank")
            }
            (true, None) => match considered.first() {
                Some(first) if first.worker != self.setup.worker.name.as_str() => {
                    let why = first.rejected.as_deref().unwrap_or("may not take it");
                    format!(
                        "it was free, and {}, which is first in rank, {why}",
                        first.worker
                    )
                }
                _ => "it was free, and this worker is first in rank".to_owned(),
            },
            (false, None) => "nobody who comes before this worker took it".to_owned(),
        };
        let entry = MoveEntry {
            partition: unit.key.to_string(),
            from,
            to: Some(self.setup.worker.name.to_string()),
            cause,
            version: None,
            token: Some(token.to_string()),
            unix_ms: granted_at(token),
            considered,
        };
        self.log(&entry);
    }

    /// Remembers that a unit is no longer this worker's.
    pub(super) fn log_ended(&mut self, tenure: &Tenure, reason: StopReason) {
        if self.is_log_full() {
            return;
        }
        let unit = self.units.get(tenure.unit);
        let desired = unit.place.desired.filter(|_| unit.group.is_some());
        let desired = desired.map(|peer| &*self.roster.peers()[peer as usize].name);
        let desired = desired.filter(|name| *name != self.setup.worker.name.as_str());
        let cause = match (tenure.has_failed, reason) {
            (true, _) => "its start failed".to_owned(),
            (_, StopReason::Shed) => match desired {
                Some(other) => format!("{other} should have it"),
                None => "another worker should have it".to_owned(),
            },
            (_, StopReason::Lost) => "its lease was gone when it was to be renewed".to_owned(),
            (_, StopReason::Unrenewed) => "its lease could not be renewed in time".to_owned(),
            (_, StopReason::Unwanted) => "it is no part of a workload any more".to_owned(),
            (_, StopReason::Unhealthy) => "its worker is not healthy".to_owned(),
            (_, StopReason::Drained) => "an operator drained its worker".to_owned(),
            (_, StopReason::Shutdown) => "its worker stopped".to_owned(),
        };
        let considered = match reason {
            StopReason::Shed | StopReason::Unhealthy | StopReason::Drained => {
                let standing = Standing {
                    taker: desired,
                    place: unit.place,
                    ..Standing::default()
                };
                self.considered(unit, &standing)
            }
            _ => Vec::new(),
        };
        // The machine knows no wall clock: what the grant says of it, and how
        // long it lasted, do.
        let lasted = self.now.since(tenure.since).as_millis();
        let lasted = u64::try_from(lasted).unwrap_or_default();
        let entry = MoveEntry {
            partition: tenure.key.to_string(),
            from: Some(self.setup.worker.name.to_string()),
            to: None,
            cause,
            version: None,
            token: Some(tenure.token.to_string()),
            unix_ms: granted_at(tenure.token).saturating_add(lasted),
            considered,
        };
        self.log(&entry);
    }

    /// Whether as many wait as are written at once: of very many moves, the
    /// rest is not worth its ranking.
    const fn is_log_full(&self) -> bool {
        self.unlogged.len() >= MOVES_PER_CALL_MAX
    }

    fn log(&mut self, entry: &MoveEntry) {
        let line = entry.to_line();
        // Names can be long, and this is for people.
        if line.len() <= MOVE_BYTES_MAX {
            self.unlogged.push(line);
        }
    }

    /// Writes what was not written yet, all that has come together since the
    /// last time.
    pub(super) fn write_log(&mut self) {
        let is_writing = self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Log));
        if self.unlogged.is_empty() || is_writing || self.backoff.is_active(self.now) {
            return;
        }
        let moves = std::mem::take(&mut self.unlogged);
        let timeout = self.setup.settings.operation_timeout;
        self.send(Purpose::Log, Operation::LogMoves(moves), timeout);
    }

    /// The first in rank for a unit.
    fn considered(&self, unit: &Unit, standing: &Standing<'_>) -> Vec<Considered> {
        let Some(group) = unit
            .group
            .map(|group| &self.groups.served()[group as usize])
        else {
            return Vec::new();
        };
        let seen = (&self.roster, &self.wishes);
        let mut ranking = placement::explain(group, unit.key.number, seen, standing);
        ranking.truncate(CONSIDERED_MAX);
        ranking
    }

    fn is_pinned_here(&self, unit: &Unit) -> bool {
        let group = unit
            .group
            .map(|group| &self.groups.served()[group as usize]);
        let pins = group.map(|group| self.wishes.pins(group));
        let pinned = pins.and_then(|pins| pins.get(&unit.key.number).copied());
        pinned == Some(self.setup.worker.name.as_str())
    }

    /// A worker's name, of its id.
    fn name_of(&self, id: &str) -> String {
        let cluster = self.setup.worker.cluster.as_str();
        let name = id
            .strip_prefix(cluster)
            .and_then(|rest| rest.strip_prefix(':'));
        name.unwrap_or(id).to_owned()
    }
}

/// When a token was granted, by the store's wall clock in milliseconds.
fn granted_at(token: Token) -> u64 {
    u64::try_from(token.get() / 1024).unwrap_or_default()
}
