//! Operations on their way to the store and back.

use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::OperationId;
use divvy_core::store::StoreErrorKind;

use super::coordination::{Coordination, NewsOf, OperationOf, ReplyOf};
use super::machine::Machine;
use super::process::{Arrival, Flight};
use super::{Happening, WorldOf};
use crate::coverage::Mishap;
use crate::invariants::Broken;
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
    pub(crate) connection: u64,
    /// How often the store had forgotten when it was sent.
    pub(crate) forgotten: u32,
    pub(crate) expires: TrueTime,
    /// Nobody waits for a reply: it was sent again, or given up.
    pub(crate) unanswered: bool,
}

impl<C: Coordination> WorldOf<C> {
    /// Sends an operation of a member, if its driver may on the connection that
    /// it has.
    pub(crate) fn send(
        &mut self,
        member: usize,
        id: OperationId,
        operation: OperationOf<C>,
        timeout: Duration,
        may_send: bool,
    ) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let sent = process.clock.at(self.now);
        let expires = process.clock.time_of(sent + timeout);
        process.flights.push(Flight {
            id,
            is_write: C::Machine::is_write(&operation),
            expiring: false,
            expires,
        });
        let generation = process.generation;
        let Some(life) = process.connected.filter(|_| may_send) else {
            let reply = C::Machine::failed(StoreErrorKind::Unavailable, "no connection");
            self.answer(member, generation, id, reply, Duration::from_millis(1));
            return self.tell_busy(member);
        };
        let (sends, connection) = (process.sends(), process.connection);
        let request = Request {
            member,
            generation,
            id,
            operation,
            sent,
            life,
            connection,
            forgotten: self.reach.forgotten,
            expires,
            unanswered: false,
        };
        match sends {
            true => self.send_off(request),
            false => self.expire(member, id),
        }
        self.tell_busy(member)
    }

    /// Lets an operation go its way, as the weather has it.
    fn send_off(&mut self, mut request: Request<C>) {
        if self.dice.chance(self.weather.dropped) {
            self.count(Mishap::OperationDropped);
            self.expire(request.member, request.id);
        } else if self.dice.chance(self.weather.late) {
            self.count(Mishap::OperationLate);
            self.expire(request.member, request.id);
            request.unanswered = true;
            let late = self.dice.span(Duration::ZERO, self.frame().lease * 2);
            let at = request.expires + late;
            self.queue.push(at, Happening::Request(Box::new(request)));
        } else {
            if self.dice.chance(self.weather.duplicated) {
                self.count(Mishap::OperationDuplicated);
                let again = Request {
                    unanswered: true,
                    ..request.clone()
                };
                let delay = self.way() + self.way() * 3;
                self.after(delay, Happening::Request(Box::new(again)));
            }
            let delay = self.way();
            if self.now + delay > request.expires {
                self.expire(request.member, request.id);
            }
            self.after(delay, Happening::Request(Box::new(request)));
        }
    }

    /// How long one way takes.
    pub(crate) fn way(&mut self) -> Duration {
        let frame = self.frame();
        let (least, most) = frame.latency;
        let usual = self.dice.span(least, most);
        if !self.dice.chance(self.weather.delayed) {
            return usual;
        }
        self.count(Mishap::OperationDelayed);
        usual + self.dice.span(usual, frame.lease / 2)
    }

    /// Tells a caller in time that nobody knows what became of its operation.
    fn expire(&mut self, member: usize, id: OperationId) {
        let process = &mut self.processes[member];
        let generation = process.generation;
        let flight = process.flights.iter_mut().find(|flight| flight.id == id);
        let Some(flight) = flight.filter(|flight| !flight.expiring) else {
            return;
        };
        flight.expiring = true;
        let at = flight.expires.max(self.now);
        let arrival = Arrival::Expire(id);
        self.queue
            .push(at, Happening::Arrive(member, generation, arrival));
    }

    fn answer(
        &mut self,
        member: usize,
        generation: u32,
        id: OperationId,
        reply: ReplyOf<C>,
        after: Duration,
    ) {
        let connection = self.processes[member].connection;
        let arrival = Arrival::Answer(id, reply, connection);
        self.after(after, Happening::Arrive(member, generation, arrival));
    }

    /// Whether the process that sent it is still there.
    pub(crate) fn is_current(&self, request: &Request<C>) -> bool {
        self.processes[request.member].generation == request.generation
    }

    fn is_waited_for(&self, request: &Request<C>) -> bool {
        self.is_current(request) && !request.unanswered
    }

    /// An operation reaches the store.
    pub(crate) fn request_arrives(&mut self, request: Box<Request<C>>) -> Result<(), Broken> {
        let (member, generation, id) = (request.member, request.generation, request.id);
        let waited_for = self.is_waited_for(&request);
        if request.life != self.reach.life {
            // The connection that it was on is gone.
            return Ok(());
        }
        if request.forgotten != self.reach.forgotten {
            // What was on its way to a store that goes back is lost with the
            // rest: no compare-and-set could tell it from what comes after.
            if waited_for {
                self.expire(member, id);
            }
            return Ok(());
        }
        if self.reach.stalled_until > self.now {
            if waited_for {
                self.expire(member, id);
            }
            let (until, jitter) = (self.reach.stalled_until, self.way());
            self.queue.push(until + jitter, Happening::Request(request));
            return Ok(());
        }
        let is_unfit = C::is_unfit(self, &request);
        if is_unfit || self.reach.refuses_until > self.now {
            if waited_for {
                let back = self.way();
                let reply = C::Machine::failed(StoreErrorKind::Unavailable, "refused");
                self.answer(member, generation, id, reply, back);
            }
            return Ok(());
        }
        let (reply, lost) = C::carry_out(self, &request)?;
        if !waited_for {
            return Ok(());
        }
        let back = self.way();
        if lost || !self.processes[member].receives() || self.now + back > request.expires {
            self.expire(member, id);
        } else {
            let arrival = Arrival::Answer(id, reply, request.connection);
            self.after(back, Happening::Arrive(member, generation, arrival));
        }
        Ok(())
    }

    /// Whether the reply to an operation is lost, if somebody waits for it.
    pub(crate) fn loses_reply(&mut self, request: &Request<C>) -> bool {
        let lost = self.is_waited_for(request) && self.dice.chance(self.weather.reply_lost);
        if lost {
            self.count(Mishap::ReplyLost);
        }
        lost
    }

    /// Lets all who listen know of something, if nothing goes wrong.
    pub(crate) fn spread(&mut self, news: &NewsOf<C>) {
        let frame = self.frame();
        for member in 0..self.processes.len() {
            let process = &self.processes[member];
            let (generation, connection) = (process.generation, process.connection);
            if process.connected != Some(self.reach.life)
                || !process.receives()
                || !C::listens(process, news)
            {
                continue;
            }
            if process.is_deaf || self.dice.chance(self.weather.watch_lost) {
                self.count(C::NEWS_LOST);
                self.maybe_missed(member);
                continue;
            }
            let (least, most) = frame.latency;
            let mut way = self.dice.span(least, most) + C::lag(self, member);
            if self.dice.chance(self.weather.watch_late) {
                self.count(C::NEWS_LATE);
                way += self.dice.span(Duration::ZERO, frame.lease * 2);
            }
            let heard = Arrival::News(connection, self.reach.forgotten, news.clone());
            if self.dice.chance(self.weather.watch_repeated) {
                self.count(C::NEWS_REPEATED);
                let again = Happening::Arrive(member, generation, heard.clone());
                self.after(way * 4, again);
            }
            self.after(way, Happening::Arrive(member, generation, heard));
        }
    }

    /// A watch may find out that it has missed something.
    fn maybe_missed(&mut self, member: usize) {
        let Some(missed) = C::missed().filter(|_| self.dice.chance(0.5)) else {
            return;
        };
        self.count(Mishap::WatchMissed);
        let generation = self.processes[member].generation;
        let after = self.way();
        let arrival = Arrival::Event(missed);
        self.after(after, Happening::Arrive(member, generation, arrival));
    }

    /// The connection of a member breaks: what is under way on it is lost to
    /// it.
    pub(crate) fn disconnect(&mut self, member: usize) {
        let process = &mut self.processes[member];
        process.connected = None;
        let generation = process.generation;
        for flight in process.flights.clone() {
            let reply = C::Machine::failed(failure(flight.is_write), "the connection broke");
            let after = Duration::from_micros(50);
            self.answer(member, generation, flight.id, reply, after);
        }
    }

    /// A member reaches the store again after a while, if it can.
    pub(crate) fn reconnect(&mut self, member: usize, after: Duration) {
        let generation = self.processes[member].generation;
        let arrival = Arrival::Connect;
        self.after(after, Happening::Arrive(member, generation, arrival));
    }
}

/// What a caller is told of an operation that nobody heard of again.
pub(crate) const fn failure(is_write: bool) -> StoreErrorKind {
    match is_write {
        true => StoreErrorKind::Unknown,
        false => StoreErrorKind::Unavailable,
    }
}
