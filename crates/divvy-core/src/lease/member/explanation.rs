//! Why a partition is where it is, as one member sees it.

use super::Member;
use super::placement::{self, Standing};
use super::taking::Room;
use super::units::Seen;
use super::view::Misalignment;
use crate::moves::Considered;
use crate::store::{LeaseKey, Token};

/// Where a partition is and should be, as one worker sees it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explained {
    /// Which.
    pub key: LeaseKey,
    /// The token, if this worker has it.
    pub token: Option<Token>,
    /// Who has it; nobody, where this worker has looked and found nobody.
    pub holder: Option<Box<str>>,
    /// Whether this worker has looked: one that may have nothing, or is not
    /// among the first for it, does not.
    pub is_holder_known: bool,
    /// Who should have it; nothing while that is not known, or nobody may.
    pub desired: Option<Box<str>>,
    /// What keeps it from there, if that is this worker's business.
    pub why: Option<Misalignment>,
    /// All live workers, the first for it first.
    pub ranking: Vec<Considered>,
}

impl Member {
    /// Why a partition is where it is; nothing if this worker does not know
    /// it.
    pub fn explain(&self, key: &LeaseKey) -> Option<Explained> {
        let unit = self.units.get(self.units.find(key)?);
        let served = unit
            .group
            .and_then(|at| self.groups.served().get(at as usize));
        let name = |peer: u32| self.roster.peers()[peer as usize].name.clone();
        let tenure = unit.tenure.and_then(|id| self.tenures.get(id));
        if served.is_none() && tenure.is_none() {
            return None;
        }
        let holder = match (&unit.seen, tenure) {
            (_, Some(_)) => Some(name(self.roster.me())),
            (Seen::Held { by, .. }, None) => {
                let known = self.roster.find(by).map(name);
                Some(known.unwrap_or_else(|| by.clone()))
            }
            (Seen::Unknown | Seen::Free { .. }, None) => None,
        };
        let is_holder_known = tenure.is_some() || unit.seen != Seen::Unknown;
        let is_mine = unit.place.desired.map(|peer| peer == self.roster.me());
        let is_unconfirmed = tenure.is_some_and(|tenure| tenure.is_unconfirmed);
        let why = match (is_mine, unit.tenure) {
            // Whoever should have it, and where nobody should.
            _ if is_unconfirmed => Some(Misalignment::StopNotConfirmed),
            (Some(true), None) => Some(self.why_not_taken(unit, &Room::of(self))),
            (Some(false), Some(tenure)) => Some(self.why_not_given_up(unit, tenure)),
            (None, Some(tenure)) if self.surplus().contains(&tenure) => {
                Some(self.why_not_given_up(unit, tenure))
            }
            (None, None) if unit.place.is_capped && holder.is_none() => Some(Misalignment::Cap),
            _ => None,
        };
        let ranking = served.map_or_else(Vec::new, |group| {
            let mut place = unit.place;
            place.is_capped &= holder.is_none();
            let standing = Standing {
                taker: holder.as_deref(),
                place,
                ..Standing::default()
            };
            let seen = (&self.roster, &self.wishes);
            placement::explain(group, key.number, seen, &standing)
        });
        Some(Explained {
            key: key.clone(),
            token: tenure.map(|tenure| tenure.token),
            holder,
            is_holder_known,
            desired: unit.place.desired.map(name),
            why,
            ranking,
        })
    }
}
