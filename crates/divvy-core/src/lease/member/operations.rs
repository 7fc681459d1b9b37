//! What operations on the store are for.

use super::tenure::Attempt;
use crate::lease::action::TenureId;
use crate::lease::event::Reply;
use crate::moment::Moment;
use crate::store::{Acquired, Nonce};

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

impl Purpose {
    /// Whether such operations go on while all else pauses because the store
    /// has failed.
    pub(super) const fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::Open(_) | Self::Beat(_) | Self::Renew(..) | Self::Release(_)
        )
    }

    /// Whether a reply proves that the store does such operations. A lease that
    /// another holds is read, and not written.
    pub(super) fn is_proved_by(&self, reply: &Reply) -> bool {
        match reply {
            Reply::Failed(..) => false,
            Reply::Acquired(answers) => answers
                .iter()
                .any(|answer| matches!(answer, Acquired::Granted(_))),
            _ => true,
        }
    }
}
