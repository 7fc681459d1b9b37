//! What a member has, and what is not where it should be, for those who look.

use super::Member;
use super::taking::Room;
use super::tenure::Phase;
use super::units::{Seen, Unit};
use crate::lease::action::{StopReason, TenureId};
use crate::moment::Moment;
use crate::store::{LeaseKey, Nonce, Token, WorkerId};

/// A partition that this worker has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub key: LeaseKey,
    /// Its tenure.
    pub tenure: TenureId,
    /// Its token.
    pub token: Token,
    /// Since when.
    pub since: Moment,
    /// Until when its grant is current, unless it is renewed; nothing if it
    /// has ended.
    pub until: Option<Moment>,
    /// Whether its start hook has not returned yet.
    pub is_starting: bool,
    /// Whether its start hook has returned and it has not been asked to stop.
    pub is_running: bool,
    /// Why it stops, if it does.
    pub stopping: Option<StopReason>,
    /// Whether its stop was not confirmed in time: its lease is no longer
    /// renewed.
    pub is_unconfirmed: bool,
}

/// A partition that is not where it should be, as this worker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misaligned {
    /// Which.
    pub key: LeaseKey,
    /// The worker that should have it; nobody, where all who may have as many
    /// as they may.
    pub desired: Option<Box<str>>,
    /// What keeps it from there.
    pub why: Misalignment,
}

/// What keeps a partition from where it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misalignment {
    /// Another worker holds it.
    HeldBy(Box<str>),
    /// It was moved a short while ago.
    Cooldown,
    /// It has not run long enough here.
    MinRuntime,
    /// The worker that has it would have too few.
    Minimum,
    /// The worker that should have it has no room, or all who may have none.
    Cap,
    /// The store fails, or its start did.
    Backoff,
    /// It was given up before, and its new owner did not come.
    InVain,
    /// It waits for its turn.
    Pace,
    /// It is about to move.
    Moving,
    /// Its stop was not confirmed in time, and its lease is left to expire.
    StopNotConfirmed,
    /// The store grants nothing yet.
    Quarantine,
    /// An operator has cordoned this worker: it keeps what it has, and takes
    /// nothing more.
    Cordoned,
    /// Giving up is switched off.
    Off,
}

impl Misalignment {
    /// Its name in metrics and events.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::HeldBy(_) => "held_by_another",
            Self::Cooldown => "cooldown",
            Self::MinRuntime => "min_runtime",
            Self::Minimum => "minimum",
            Self::Cap => "cap",
            Self::Backoff => "backoff",
            Self::InVain => "in_vain",
            Self::Pace => "pace",
            Self::Moving => "moving",
            Self::StopNotConfirmed => "stop_not_confirmed",
            Self::Quarantine => "quarantine",
            Self::Cordoned => "cordoned",
            Self::Off => "off",
        }
    }
}

impl Member {
    /// This worker.
    pub const fn worker(&self) -> &WorkerId {
        &self.setup.worker
    }

    /// Its session, while it has one.
    pub const fn session(&self) -> Option<Nonce> {
        self.open_nonce()
    }

    /// Whether the store has failed so lately that nothing is taken or given
    /// up.
    pub fn backoff_active(&self) -> bool {
        self.backoff.is_active(self.now)
    }

    /// Whether operators wish that this worker gives up everything.
    pub fn is_drained_by_wish(&self) -> bool {
        self.wishes.is_drained(self.setup.worker.name.as_str())
    }

    /// The partitions that this worker has.
    pub fn held(&self) -> impl Iterator<Item = Held> {
        self.tenures.iter().map(|tenure| Held {
            key: tenure.key.clone(),
            tenure: tenure.id,
            token: tenure.token,
            since: tenure.since,
            until: (!tenure.is_void).then_some(tenure.until),
            is_starting: matches!(tenure.phase(), Phase::Starting(..)),
            is_running: tenure.phase() == Phase::Running && tenure.stop.is_none(),
            stopping: tenure.stop,
            is_unconfirmed: tenure.is_unconfirmed,
        })
    }

    /// The partitions whose stop was not confirmed in time.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = String> {
        let left = self.tenures.iter().filter(|tenure| tenure.is_unconfirmed);
        left.map(|tenure| tenure.key.to_string())
    }

    /// How many it has.
    pub fn held_count(&self) -> usize {
        self.tenures.len()
    }

    /// Partitions that this worker has and should not, and that it should have
    /// and has not, or would have if anybody had room for them.
    pub fn misaligned(&self) -> impl Iterator<Item = Misaligned> {
        let me = self.roster.me();
        let (room, surplus) = (Room::of(self), self.surplus());
        let served = self
            .units
            .iter()
            .filter(|(_, unit)| unit.group.is_some())
            .map(|(_, unit)| unit);
        served.filter_map(move |unit| {
            let desired = unit.place.desired;
            let is_mine = desired.map(|desired| desired == me);
            let why = match (is_mine, unit.tenure) {
                (Some(true), None) => self.why_not_taken(unit, &room),
                (Some(false), Some(tenure)) => self.why_not_given_up(unit, tenure),
                (None, Some(tenure)) if surplus.contains(&tenure) => {
                    self.why_not_given_up(unit, tenure)
                }
                // Each is told by one worker, so that they can be added up.
                (None, None) if unit.place.is_capped && is_first_for(unit) => Misalignment::Cap,
                _ => return None,
            };
            let peer = desired.map(|desired| &self.roster.peers()[desired as usize]);
            Some(Misaligned {
                key: unit.key.clone(),
                desired: peer.map(|peer| peer.name.clone()),
                why,
            })
        })
    }

    /// How many partitions nobody has, as far as this worker sees: of those
    /// that it is the first for, so that what all workers see can be added up.
    pub fn unowned(&self) -> usize {
        let units = self.units.iter().filter(|(_, unit)| {
            unit.group.is_some() && unit.tenure.is_none() && is_first_for(unit)
        });
        units
            .filter(|(_, unit)| matches!(unit.seen, Seen::Free { .. }))
            .count()
    }

    pub(super) fn why_not_taken(&self, unit: &Unit, room: &Room) -> Misalignment {
        let is_waiting = unit.not_before.is_some_and(|until| self.now < until);
        match &unit.seen {
            Seen::Held { by, .. } => Misalignment::HeldBy(by.clone()),
            _ if is_waiting || self.backoff_active() => Misalignment::Backoff,
            _ if self.is_quarantined() => Misalignment::Quarantine,
            Seen::Free { .. } if !unit.is_wished && !room.is_there(unit) => Misalignment::Cap,
            _ => Misalignment::Moving,
        }
    }

    pub(super) fn why_not_given_up(&self, unit: &Unit, tenure: TenureId) -> Misalignment {
        let settings = &self.setup.settings;
        let Some(tenure) = self.tenures.get(tenure) else {
            return Misalignment::Moving;
        };
        if tenure.is_unconfirmed {
            Misalignment::StopNotConfirmed
        } else if tenure.phase() != Phase::Running || tenure.stop.is_some() {
            Misalignment::Moving
        } else if !settings.shedding {
            Misalignment::Off
        } else if self.is_cordoned() {
            Misalignment::Cordoned
        } else if self.backoff_active() {
            Misalignment::Backoff
        } else if self.now.since(tenure.since) < settings.min_runtime {
            Misalignment::MinRuntime
        } else if unit.keep_until.is_some_and(|until| self.now < until) {
            Misalignment::InVain
        } else if self.kept() <= settings.min_partitions as usize {
            Misalignment::Minimum
        } else if unit.is_cooling {
            Misalignment::Cooldown
        } else {
            Misalignment::Pace
        }
    }
}

/// Whether nobody comes before this worker for a unit that it may have.
fn is_first_for(unit: &Unit) -> bool {
    let is_held = matches!(unit.seen, Seen::Held { .. });
    unit.place.rank == Some(0) && !is_held
}
