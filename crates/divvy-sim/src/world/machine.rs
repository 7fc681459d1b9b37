//! A machine that runs in production, as a world drives it.

use std::fmt;

use divvy_core::Moment;
use divvy_core::leader::{Clock, HookEnd, HookId, OperationId};
use divvy_core::store::{Incarnation, StoreErrorKind};

/// A member of one mode.
pub(crate) trait Machine: fmt::Debug + Clone {
    /// What it is told.
    type Event: fmt::Debug + Clone;
    /// What it asks for.
    type Action;
    /// What it asks a store for.
    type Operation: fmt::Debug + Clone;
    /// What a store answers.
    type Reply: fmt::Debug + Clone;
    /// What a store tells those who listen.
    type News: fmt::Debug + Clone;

    /// Lets it do what is due.
    fn wake(&mut self, clock: Clock);

    /// Tells it something.
    fn handle(&mut self, clock: Clock, event: Self::Event);

    /// Tells it what came from the store, on the connection of this number.
    fn hear(&mut self, clock: Clock, connection: u64, event: Self::Event);

    /// What it asks for next.
    fn next_action(&mut self) -> Option<Self::Action>;

    /// When something is due.
    fn next_wake(&self) -> Option<Moment>;

    /// How it is told what machines of both modes are told.
    fn event(occasion: Occasion<Self>) -> Self::Event;

    /// Whether an operation changes something.
    fn is_write(operation: &Self::Operation) -> bool;

    /// Whether an answer grants something that is over after a while.
    fn is_grant(_reply: &Self::Reply) -> bool {
        false
    }

    /// The answer to an operation that failed; why, in words.
    fn failed(kind: StoreErrorKind, why: &str) -> Self::Reply;

    /// Whether it leads, as far as it knows.
    fn leads(&self) -> bool {
        false
    }

    /// How an event is told in a trace.
    fn describe_event(event: &Self::Event) -> String;

    /// How an action is told in a trace.
    fn describe_action(action: &Self::Action) -> String;
}

/// What machines of both modes are told.
#[derive(Debug)]
pub(crate) enum Occasion<M: Machine> {
    Start,
    Connected(Incarnation),
    News(M::News),
    Reply(OperationId, M::Reply),
    HookBegun(HookId),
    HookEnded(HookId, HookEnd),
    Refresh,
}
