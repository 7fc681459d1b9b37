//! What operations on the store are for.

use crate::leader::record::SessionId;
use crate::moment::Moment;
use crate::store::{Key, Revision};

/// What an operation is for, so that its reply finds its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// All worker records, asked for then.
    ListWorkers(Moment),
    /// The same, after a lease that had ended was renewed, then.
    ListAfterLoss(Moment),
    /// The root after that.
    RootAfterLoss(Moment),
    /// The claim of an id.
    Claim,
    /// Whether a claim whose reply was lost was written.
    ReadClaim,
    /// What was found, told in the record of a session that has ended.
    Alarm(Key),
    /// A renewal, by session and beat.
    Renew(SessionId, u64),
    /// Whether a renewal whose reply was lost was written.
    ReadRenewal(SessionId),
    /// The root.
    ReadRoot,
    /// A chunk of the root with this revision.
    ReadChunk(Revision, Key),
    /// Who leads.
    ReadLeader,
    /// Taking the lead, by session and epoch.
    Take(SessionId, u64),
    /// A renewal of the lead, by its serial.
    Beat(u64),
    /// Giving up the lead.
    Resign,
    /// Ending a session that was not renewed, by its record's key.
    Fence(Key),
    /// A record that the root names and that is missing, to be created.
    Restore(Key),
    /// A record that is replaced by one that nobody can read.
    StrikeOut(Key),
    /// A record that could not be fenced.
    ReadWorker(Key),
    /// A chunk of the root to be, by the serial of the attempt.
    WriteChunk(u64, Key),
    /// The root itself, by the serial of the attempt.
    WriteRoot(u64),
    /// What operators wish.
    ReadControl,
    /// The log of moves.
    ReadMoves,
    /// The log of moves, with what happened since.
    WriteMoves,
    /// All chunks.
    ListChunks,
    /// A chunk that no root names.
    DeleteChunk,
}
