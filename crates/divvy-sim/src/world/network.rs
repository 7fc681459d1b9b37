//! Operations on their way to the store and back.

use divvy_core::Moment;
use divvy_core::leader::OperationId;

use super::coordination::{Coordination, OperationOf};
use crate::time::TrueTime;

/// An operation on its way to the store.
#[derive(Debug, Clone)]
pub(crate) struct Request<C: Coordination> {
    pub(crate) member: usize,
    pub(crate) generation: u32,
    pub(crate) id: OperationId,
    pub(crate) operation: OperationOf<C>,
    /// When it was sent, on the clock of its sender.
    pub(crate) sent: Moment,
    /// The life of the store that its connection leads to.
    pub(crate) life: u32,
    /// How often the store had forgotten when it was sent.
    pub(crate) forgotten: u32,
    pub(crate) expires: TrueTime,
    /// Nobody waits for a reply: it was sent again, or given up.
    pub(crate) unanswered: bool,
}
