//! What tells the worlds of one mode from those of the other.

use std::fmt;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::lease::Ending;
use divvy_core::store::Token;

use super::WorldOf;
use super::course::{Course, Stage};
use super::driver::DriverPlan;
use super::machine::Machine;
use super::network::Request;
use super::process::Process;
use crate::coverage::Mishap;
use crate::fact::Seen;
use crate::hands::Room;
use crate::invariants::Broken;
use crate::mode::Mode;
use crate::time::TrueTime;

/// A kind of coordination, and what only worlds of it have.
pub(crate) trait Coordination: fmt::Debug + Clone {
    /// Which one it is.
    const MODE: Mode;
    /// Wall clocks are off by at most this, in milliseconds.
    const WALL_ERROR_MAX_MS: i64;
    /// Whether its machines judge for themselves what comes on a connection
    /// before the life of the store is known on it. Otherwise that is known as
    /// soon as there is a connection, and nothing comes from an earlier one.
    const KNOWS_CONNECTIONS: bool;
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

    /// What worlds of both modes take from their profile.
    fn frame(profile: &Self::Profile) -> Frame;

    /// A new place.
    fn host(profile: &Self::Profile, number: usize) -> Self::Host;

    /// Tells all invariants.
    fn observe(invariants: &mut Self::Invariants, seen: &Seen<'_>) -> Result<(), Broken>;

    /// The machine of a process that is started.
    fn machine(world: &mut WorldOf<Self>, member: usize) -> Self::Machine;

    /// A process is gone: what only those of this mode had is forgotten.
    fn forget(world: &mut WorldOf<Self>, member: usize);

    /// When the grant of a partition ends that was started, or waits to be;
    /// nothing if it has ended for good.
    fn grant_until(process: &Process<Self>, partition: usize) -> Option<Moment>;

    /// A start hook was called, and all invariants were told so.
    fn start_called(
        _world: &mut WorldOf<Self>,
        _member: usize,
        _partition: usize,
    ) -> Result<(), Broken> {
        Ok(())
    }

    /// A partition does not run any more.
    fn stopped(process: &mut Process<Self>, partition: usize);

    /// A machine has handled something, and its actions are done.
    fn stepped(_world: &WorldOf<Self>, _machine: &Self::Machine) {}

    /// Does what a machine asks for.
    fn act(
        world: &mut WorldOf<Self>,
        member: usize,
        machine: &Self::Machine,
        action: ActionOf<Self>,
    ) -> Result<(), Broken>;

    /// A process goes on after its machine slept.
    fn suspended(world: &mut WorldOf<Self>, member: usize) -> Result<(), Broken>;

    /// A member ended otherwise than in order. Gives after which time it comes
    /// back, if it does, and whether it had nothing left to stop.
    fn ended(
        _world: &mut WorldOf<Self>,
        _member: usize,
        ending: &Ending,
        _back: Option<Duration>,
    ) -> Result<(Option<Duration>, bool), Broken> {
        unreachable!("members of this mode end in order, and not so: {ending:?}")
    }

    /// How far what this member reads and watches lags behind.
    fn lag(_world: &WorldOf<Self>, _member: usize) -> Duration {
        Duration::ZERO
    }

    /// How a machine is told that watches have missed something, if it is.
    fn missed() -> Option<EventOf<Self>> {
        None
    }

    /// Whether a process listens to such news.
    fn listens(_process: &Process<Self>, _news: &NewsOf<Self>) -> bool {
        true
    }

    /// Whether the store cannot carry out an operation that it can be asked for
    /// again.
    fn is_unfit(_world: &mut WorldOf<Self>, _request: &Request<Self>) -> bool {
        false
    }

    /// Carries out an operation at the store. Gives whether the reply is lost,
    /// too.
    fn carry_out(
        world: &mut WorldOf<Self>,
        request: &Request<Self>,
    ) -> Result<(ReplyOf<Self>, bool), Broken>;

    /// Keeps what the store holds for a fault that will make it forget.
    fn remember(store: &mut Self::Store, fault: usize);

    /// The partitions of a process whose effects happen at `now`.
    fn working(process: &Process<Self>, now: TrueTime) -> impl Iterator<Item = (usize, Token)>;

    /// A fault begins.
    fn strike(world: &mut WorldOf<Self>, fault: usize) -> Result<(), Broken>;

    /// Everything is as the faults that last have it.
    fn settle_faults(world: &mut WorldOf<Self>) -> Result<(), Broken>;

    /// The stage that worlds begin with.
    fn first_stage(world: &WorldOf<Self>) -> Course;

    /// Ends a stage of a world and begins the next, if there is one.
    fn next_stage(world: &mut WorldOf<Self>, ended: Stage) -> Result<Option<Course>, Broken>;

    /// What a member is told that stops to come back.
    fn stop_to_return(profile: &Self::Profile) -> EventOf<Self>;
}

/// What worlds of both modes take from their profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// How many members there are at first.
    pub(crate) members: usize,
    /// Within which they are started.
    pub(crate) booted_within: Duration,
    /// Whether a process reaches the store before it begins.
    pub(crate) connects_at_once: bool,
    /// Whether clocks are not exact.
    pub(crate) drifting: bool,
    /// How far hands may let the world grow.
    pub(crate) room: Option<Room>,
    /// The time that one way to the store takes.
    pub(crate) latency: (Duration, Duration),
    /// The time that a sound hook takes.
    pub(crate) hook: (Duration, Duration),
    /// The time that a start hook may take.
    pub(crate) start_deadline: Duration,
    /// The time that a stop hook may take.
    pub(crate) stop_deadline: Duration,
    /// How long members may work without a word.
    pub(crate) lease: Duration,
    /// How often members say that they are there.
    pub(crate) beat: Duration,
    /// How drivers behave.
    pub(crate) driver: DriverPlan,
}

pub(crate) type ActionOf<C> = <<C as Coordination>::Machine as Machine>::Action;
pub(crate) type EventOf<C> = <<C as Coordination>::Machine as Machine>::Event;
pub(crate) type NewsOf<C> = <<C as Coordination>::Machine as Machine>::News;
pub(crate) type OperationOf<C> = <<C as Coordination>::Machine as Machine>::Operation;
pub(crate) type ReplyOf<C> = <<C as Coordination>::Machine as Machine>::Reply;
