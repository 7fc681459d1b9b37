//! What operations on the store are for.

use super::tenure::Attempt;
use crate::lease::action::TenureId;
use crate::moment::Moment;
use crate::store::Nonce;

/// What an operation is for, so that its reply finds its way.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    /// Taking the worker's name for this session.
    Open(Nonce),
    /// A heartbeat of this session.
    Beat(Nonce),
    /// Leaving.
    Leave,
    /// The live workers.
    Members,
    /// The documents of groups.
    Groups,
    /// Who holds these units.
    Look(Vec<u32>),
    /// Whether these tenures' units were moved lately.
    Cooling(Vec<TenureId>),
    /// Wishes for leases, sent at this moment.
    Acquire(Vec<Attempt>, Moment),
    /// A renewal of what an unanswered wish seems to have been granted.
    Adopt(Attempt, Moment),
    /// Renewals, sent at this moment.
    Renew(Vec<TenureId>, Moment),
    /// Giving back.
    Release(Vec<TenureId>),
    /// Marking as moved.
    Mark,
    /// Adding to the log of moves.
    Log,
}
