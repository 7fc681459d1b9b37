//! Operations on their way to the store and back.

use std::time::Duration;

use divvy_core::leader::{OperationId, SessionId};
use divvy_core::lease::{Operation, Reply};
use divvy_core::store::{
    Acquired, Claim, LeaseNotice, Nonce, SessionStart, StoreErrorKind, Tenure,
};

use super::trace::{describe_operation, describe_reply};
use super::{LeaseMode, LeaseWorld};
use crate::coverage::Mishap;
use crate::fact::{Fact, LeaseWish};
use crate::invariants::Broken;
use crate::world::{Arrival, Flight, Happening};

type Request = crate::world::Request<LeaseMode>;

impl LeaseWorld {
    /// Sends an operation of a member.
    pub(super) fn send(
        &mut self,
        member: usize,
        id: OperationId,
        operation: Operation,
        timeout: Duration,
    ) -> Result<(), Broken> {
        self.tell_sent(member, &operation)?;
        let process = &mut self.processes[member];
        let sent = process.clock.at(self.now);
        let expires = process.clock.time_of(sent + timeout);
        process.flights.push(Flight {
            id,
            is_write: is_write(&operation),
            expiring: false,
            expires,
        });
        let busy = Fact::Busy {
            member,
            operations: process.flights.len(),
            hooks: process.calls.len(),
        };
        let generation = process.generation;
        let Some(life) = process.connected else {
            let after = Duration::from_millis(1);
            self.answer(
                member,
                (generation, id),
                unavailable("no connection"),
                after,
            );
            return self.tell(&busy);
        };
        let sends = process.sends();
        let mut request = Request {
            member,
            generation,
            id,
            operation,
            sent,
            life,
            forgotten: self.reach.forgotten,
            expires,
            unanswered: false,
        };
        if !sends {
            self.expire(member, id);
        } else if self.dice.chance(self.weather.dropped) {
            self.count(Mishap::OperationDropped);
            self.expire(member, id);
        } else if self.dice.chance(self.weather.late) {
            self.count(Mishap::OperationLate);
            self.expire(member, id);
            request.unanswered = true;
            let lease = self.profile.settings.lease_ttl;
            let late = self.dice.span(Duration::ZERO, lease * 2);
            self.queue
                .push(expires + late, Happening::Request(Box::new(request)));
        } else {
            let delay = self.way();
            self.after(delay, Happening::Request(Box::new(request)));
        }
        self.tell(&busy)
    }

    /// Tells of every lease that an operation names, and which of them a
    /// member gives back.
    fn tell_sent(&mut self, member: usize, operation: &Operation) -> Result<(), Broken> {
        let (claims, wish): (&[Claim], _) = match operation {
            Operation::Acquire { claims, .. } => (claims, LeaseWish::Acquire),
            Operation::Renew { claims, .. } => (claims, LeaseWish::Renew),
            Operation::Release { claims } => (claims, LeaseWish::Release),
            _ => return Ok(()),
        };
        let life = self.processes[member].generation;
        for claim in claims {
            self.tell(&Fact::LeaseSent {
                by: member,
                life,
                key: &claim.key,
                nonce: claim.nonce,
                wish,
            })?;
            if wish != LeaseWish::Release {
                continue;
            }
            let partition = self.partition_of(&claim.key);
            let running = self.processes[member].running.get(&partition);
            if running.is_some_and(|running| running.nonce == Some(claim.nonce)) {
                self.tell(&Fact::GivenBack { member, partition })?;
            }
        }
        Ok(())
    }

    /// How long one way takes.
    pub(super) fn way(&mut self) -> Duration {
        let (least, most) = self.profile.latency;
        let usual = self.dice.span(least, most);
        if !self.dice.chance(self.weather.delayed) {
            return usual;
        }
        self.count(Mishap::OperationDelayed);
        let lease = self.profile.settings.lease_ttl;
        usual + self.dice.span(usual, lease / 2)
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
        (generation, id): (u32, OperationId),
        reply: Reply,
        after: Duration,
    ) {
        let arrival = Arrival::Answer(id, reply);
        self.after(after, Happening::Arrive(member, generation, arrival));
    }

    /// An operation reaches the store.
    pub(super) fn request_arrives(&mut self, request: Box<Request>) -> Result<(), Broken> {
        let (member, generation, id) = (request.member, request.generation, request.id);
        let current = self.processes[member].generation == generation;
        let waited_for = current && !request.unanswered;
        if request.life != self.reach.life {
            // The connection that it was on is gone.
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
        let process = &mut self.processes[member];
        let unscripted = needs_script(&request.operation) && process.host.lacks_scripts;
        if unscripted || self.reach.refuses_until > self.now {
            process.host.lacks_scripts &= !unscripted;
            if waited_for {
                let back = self.way();
                self.answer(member, (generation, id), unavailable("refused"), back);
            }
            return Ok(());
        }
        let lost = waited_for && self.dice.chance(self.weather.reply_lost);
        let mut most = usize::MAX;
        if lost {
            self.count(Mishap::ReplyLost);
            // The connection may break in the midst of it.
            if self.dice.chance(0.3) {
                most = self.dice.below(4);
            }
        }
        let reply = self.carry_out(&request, current, most)?;
        if !waited_for {
            return Ok(());
        }
        let back = self.way();
        if lost || !self.processes[member].receives() || self.now + back > request.expires {
            self.expire(member, id);
        } else {
            self.answer(member, (generation, id), reply, back);
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        request: &Request,
        current: bool,
        most: usize,
    ) -> Result<Reply, Broken> {
        let worker = &self.processes[request.member].host.worker;
        let (reply, notices) = self.store.apply(self.now, worker, &request.operation, most);
        if is_write(&request.operation) {
            self.note(|| {
                let (what, outcome) = (describe_operation(&request.operation), &reply);
                let outcome = describe_reply(outcome);
                format!("store m{}: {what}: {outcome}", request.member)
            });
        }
        self.judge(request, &reply, current)?;
        for notice in &notices {
            self.spread(notice);
        }
        Ok(reply)
    }

    /// Tells what an operation came to at the store.
    fn judge(&mut self, request: &Request, reply: &Reply, current: bool) -> Result<(), Broken> {
        match (&request.operation, reply) {
            (Operation::Acquire { claims, ttl }, Reply::Acquired(outcomes)) => {
                for (claim, outcome) in claims.iter().zip(outcomes) {
                    match outcome {
                        Acquired::Granted(token) => {
                            self.tally.grants += 1;
                            let partition = self.partition_of(&claim.key);
                            self.own.nonces.insert((partition, *token), claim.nonce);
                            self.forget_nonces(partition);
                            self.tell(&Fact::LeaseGranted {
                                name: &claim.key.to_string(),
                                token: *token,
                            })?;
                            self.kept(request, claim, *ttl, current)?;
                        }
                        Acquired::Quarantined(_) => self.count(Mishap::Quarantine),
                        Acquired::Held => {}
                    }
                }
                Ok(())
            }
            (Operation::Renew { claims, ttl }, Reply::Tenures(outcomes)) => {
                for (claim, outcome) in claims.iter().zip(outcomes) {
                    if *outcome == Tenure::Current {
                        self.kept(request, claim, *ttl, current)?;
                    }
                }
                Ok(())
            }
            (Operation::OpenSession { session, ttl }, Reply::Session(SessionStart::Opened))
            | (
                Operation::Beat {
                    session,
                    session_ttl: ttl,
                    ..
                },
                Reply::Beaten(Tenure::Current),
            ) => self.named(request, *session, *ttl, current),
            (Operation::Leave { session }, Reply::Beaten(Tenure::Current)) => {
                self.named(request, *session, Duration::ZERO, current)
            }
            _ => Ok(()),
        }
    }

    fn kept(
        &mut self,
        request: &Request,
        claim: &Claim,
        ttl: Duration,
        current: bool,
    ) -> Result<(), Broken> {
        if !current {
            return Ok(());
        }
        let partition = self.partition_of(&claim.key);
        self.tell(&Fact::LeaseKept {
            member: request.member,
            partition,
            sent: request.sent,
            ttl,
        })
    }

    fn named(
        &mut self,
        request: &Request,
        session: Nonce,
        ttl: Duration,
        current: bool,
    ) -> Result<(), Broken> {
        let worker = self.processes[request.member].host.worker.clone();
        // What was given up and keeps a name all the same is nobody's.
        let generation = match request.unanswered {
            true => u32::MAX,
            false => request.generation,
        };
        let who = (request.member, generation);
        let named = self.own.named.entry(worker.clone()).or_default();
        named.insert(who, self.now);
        if !current {
            return Ok(());
        }
        let bits = u128::from_str_radix(&session.to_string(), 16);
        self.tell(&Fact::SessionKept {
            member: request.member,
            id: worker.name.as_str(),
            session: SessionId(bits.expect("nonces are written in hexadecimal digits")),
            until: self.store.after(self.now, ttl),
        })
    }

    /// Lets all who listen know of something, if nothing goes wrong.
    pub(super) fn spread(&mut self, notice: &LeaseNotice) {
        for member in 0..self.processes.len() {
            let process = &self.processes[member];
            let generation = process.generation;
            if process.connected != Some(self.reach.life) || !process.receives() {
                continue;
            }
            if process.is_deaf || self.dice.chance(self.weather.watch_lost) {
                self.count(Mishap::NoticeLost);
                continue;
            }
            let (least, most) = self.profile.latency;
            let mut way = self.dice.span(least, most);
            if self.dice.chance(self.weather.watch_late) {
                self.count(Mishap::NoticeLate);
                let lease = self.profile.settings.lease_ttl;
                way += self.dice.span(Duration::ZERO, lease * 2);
            }
            let heard = Arrival::News(self.reach.life, self.reach.forgotten, notice.clone());
            if self.dice.chance(self.weather.watch_repeated) {
                self.count(Mishap::NoticeRepeated);
                let again = Happening::Arrive(member, generation, heard.clone());
                self.after(way * 4, again);
            }
            self.after(way, Happening::Arrive(member, generation, heard));
        }
    }

    /// The connection of a member breaks: what is under way on it is lost to
    /// it.
    pub(super) fn disconnect(&mut self, member: usize) {
        let process = &mut self.processes[member];
        process.connected = None;
        let generation = process.generation;
        for flight in process.flights.clone() {
            let reply = Reply::Failed(failure(flight.is_write), "the connection broke".into());
            let after = Duration::from_micros(50);
            self.answer(member, (generation, flight.id), reply, after);
        }
    }

    /// A member reaches the store again after a while, if it can.
    pub(super) fn reconnect(&mut self, member: usize, after: Duration) {
        let generation = self.processes[member].generation;
        self.after(
            after,
            Happening::Arrive(member, generation, Arrival::Connect),
        );
    }
}

fn unavailable(why: &str) -> Reply {
    Reply::Failed(StoreErrorKind::Unavailable, why.into())
}

const fn is_write(operation: &Operation) -> bool {
    !matches!(
        operation,
        Operation::Members | Operation::Groups | Operation::Holders(_) | Operation::Cooling(_)
    )
}

/// Whether it takes more than one plain command.
const fn needs_script(operation: &Operation) -> bool {
    is_write(operation) && !matches!(operation, Operation::MarkMoved { .. })
}

/// What a caller is told of an operation that nobody heard of again.
pub(super) const fn failure(is_write: bool) -> StoreErrorKind {
    match is_write {
        true => StoreErrorKind::Unknown,
        false => StoreErrorKind::Unavailable,
    }
}
