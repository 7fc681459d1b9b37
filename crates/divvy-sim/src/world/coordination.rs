//! What tells the worlds of one mode from those of the other.

use std::fmt;
use std::time::Duration;

use divvy_core::store::StoreErrorKind;

use super::network::Request;
use super::process::Process;
use super::{Happening, WorldOf};
use crate::coverage::Mishap;
use crate::fact::Seen;
use crate::hands::Room;
use crate::invariants::Broken;

/// A machine that runs in production, as a world drives it.
pub(crate) trait Machine: fmt::Debug + Clone {
    /// What it is told.
    type Event: fmt::Debug + Clone;
    /// What it asks for.
    type Action;
    /// What it asks a store for.
    type Operation: fmt::Debug + Clone;
    /// What a store answers.
    type Reply: fmt::Debug + Clone;

    /// Whether an operation changes something.
    fn is_write(operation: &Self::Operation) -> bool;

    /// The answer to an operation that failed; why, in words.
    fn failed(kind: StoreErrorKind, why: &str) -> Self::Reply;
}

/// A kind of coordination, and what only worlds of it have.
pub(crate) trait Coordination: fmt::Debug + Clone {
    /// Wall clocks are off by at most this, in milliseconds.
    const WALL_ERROR_MAX_MS: i64;
    /// What it is that news never come.
    const NEWS_LOST: Mishap;
    /// What it is that they come late.
    const NEWS_LATE: Mishap;
    /// What it is that they come twice.
    const NEWS_REPEATED: Mishap;

    /// What its members are.
    type Machine: Machine;
    /// What a seed decides before a world begins.
    type Profile: fmt::Debug + Clone;
    /// What must hold.
    type Invariants: fmt::Debug + Clone;
    /// The store, while it is reached.
    type Store: fmt::Debug + Clone;
    /// What only places of its members have.
    type Host: fmt::Debug + Clone;
    /// A partition that runs.
    type Running: fmt::Debug + Clone;
    /// What a store tells those who listen.
    type News: fmt::Debug + Clone;
    /// How far a world has come.
    type Course: fmt::Debug + Clone;

    /// What worlds of both modes take from their profile.
    fn frame(profile: &Self::Profile) -> Frame;

    /// A new place.
    fn host(profile: &Self::Profile, number: usize) -> Self::Host;

    /// Tells all invariants.
    fn observe(invariants: &mut Self::Invariants, seen: &Seen<'_>) -> Result<(), Broken>;

    /// A process is gone: what only those of this mode had is forgotten.
    fn forget(process: &mut Process<Self>);

    /// Whether a process listens to such news.
    fn listens(process: &Process<Self>, news: &Self::News) -> bool;

    /// Whether the store cannot carry out an operation that it can be asked for
    /// again.
    fn is_unfit(world: &mut WorldOf<Self>, request: &Request<Self>) -> bool;

    /// Carries out an operation at the store. Gives whether the reply is lost,
    /// too.
    fn carry_out(
        world: &mut WorldOf<Self>,
        request: &Request<Self>,
    ) -> Result<(ReplyOf<Self>, bool), Broken>;

    /// Something happens.
    fn happen(world: &mut WorldOf<Self>, happening: Happening<Self>) -> Result<(), Broken>;
}

/// What worlds of both modes take from their profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// How many members there are at first.
    pub(crate) members: usize,
    /// Within which they are started.
    pub(crate) booted_within: Duration,
    /// Whether clocks are not exact.
    pub(crate) drifting: bool,
    /// How far hands may let the world grow.
    pub(crate) room: Option<Room>,
    /// The time that one way to the store takes.
    pub(crate) latency: (Duration, Duration),
    /// How long members may work without a word.
    pub(crate) lease: Duration,
    /// How often members say that they are there.
    pub(crate) beat: Duration,
}

pub(crate) type EventOf<C> = <<C as Coordination>::Machine as Machine>::Event;
pub(crate) type OperationOf<C> = <<C as Coordination>::Machine as Machine>::Operation;
pub(crate) type ReplyOf<C> = <<C as Coordination>::Machine as Machine>::Reply;
