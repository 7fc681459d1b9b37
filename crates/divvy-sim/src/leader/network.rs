//! Operations on their way to the store and back.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::{Operation, OperationId, Reply, Watched};
use divvy_core::store::{Change, Expected, Key, Outcome, Prefix, Revision, StoreErrorKind};

use super::{LeaderMode, World};
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::ledger::{Record, chunks_of};
use crate::world::{Arrival, Flight, Happening};

type Request = crate::world::Request<LeaderMode>;

impl World {
    /// Sends an operation of a member.
    pub(super) fn send(
        &mut self,
        member: usize,
        id: OperationId,
        operation: Operation,
        timeout: Duration,
    ) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let sent = process.clock.at(self.now);
        let expires = process.clock.time_of(sent + timeout);
        let is_write = matches!(
            operation,
            Operation::CompareAndSet { .. } | Operation::Delete { .. }
        );
        process.flights.push(Flight {
            id,
            is_write,
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
            let reply = Reply::Failed(StoreErrorKind::Unavailable);
            self.answer(member, generation, id, reply, Duration::from_millis(1));
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
            let lease = self.profile.settings.heartbeat_ttl;
            let late = self.dice.span(Duration::ZERO, lease * 2);
            self.queue
                .push(expires + late, Happening::Request(Box::new(request)));
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
            self.after(delay, Happening::Request(Box::new(request)));
        }
        self.tell(&busy)
    }

    /// How long one way takes.
    pub(super) fn way(&mut self) -> Duration {
        let (least, most) = self.profile.latency;
        let usual = self.dice.span(least, most);
        if !self.dice.chance(self.weather.delayed) {
            return usual;
        }
        self.count(Mishap::OperationDelayed);
        let lease = self.profile.settings.heartbeat_ttl;
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
        generation: u32,
        id: OperationId,
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
        if self.reach.refuses_until > self.now {
            if waited_for {
                let back = self.way();
                let reply = Reply::Failed(StoreErrorKind::Unavailable);
                self.answer(member, generation, id, reply, back);
            }
            return Ok(());
        }
        let reply = self.carry_out(&request, current)?;
        if !waited_for {
            return Ok(());
        }
        let lost = self.dice.chance(self.weather.reply_lost);
        if lost {
            self.count(Mishap::ReplyLost);
        }
        let back = self.way();
        if lost || !self.processes[member].receives() || self.now + back > request.expires {
            self.expire(member, id);
        } else {
            self.answer(member, generation, id, reply, back);
        }
        Ok(())
    }

    fn carry_out(&mut self, request: &Request, current: bool) -> Result<Reply, Broken> {
        let is_write = matches!(request.operation, Operation::CompareAndSet { .. });
        if is_write && self.dice.chance(self.weather.spurious) {
            self.count(Mishap::SpuriousConflict);
            self.note(|| format!("store m{}: conflict with nobody", request.member));
            return Ok(Reply::Written(Outcome::Conflict));
        }
        if !is_write
            && self.dice.chance(self.weather.stale)
            && let Some(stale) = self.store.stale(&request.operation, &mut self.dice)
        {
            self.count(Mishap::StaleRead);
            self.note(|| format!("store m{}: a stale read", request.member));
            return Ok(stale);
        }
        let (reply, change) = self.store.apply(&request.operation);
        if let Some(change) = change {
            if let Change::Put(entry) = &change {
                let (key, revision) = (&entry.key, entry.revision);
                self.written(request, key, &entry.value, revision, !current)?;
            }
            self.spread(change);
        }
        Ok(reply)
    }

    /// A value was written: what it is, and whether that may be.
    fn written(
        &mut self,
        request: &Request,
        key: &Key,
        value: &[u8],
        revision: Revision,
        orphaned: bool,
    ) -> Result<(), Broken> {
        let by = request.member;
        self.note(|| format!("store m{by}: {key} is at revision {revision}"));
        let bytes = value.len();
        self.tell(&Fact::Stored { key, bytes })?;
        let record = self.ledger.read(key, value, chunks_of(&self.store.table));
        match &record {
            Record::Worker(id, record) => self.tell(&Fact::WorkerWritten {
                by,
                orphaned,
                life: request.generation,
                id,
                record,
                revision,
                sent: request.sent,
            })?,
            Record::Leader(record) => self.tell(&Fact::LeaderWritten {
                by,
                record,
                revision,
            })?,
            Record::Root(root) => {
                self.note(|| super::act::describe_root(root));
                self.count_moves(root);
                self.tell(&Fact::RootWritten { by, root, revision })?;
            }
            Record::Garbled(why) => self.tell(&Fact::Garbled { key, why })?,
            Record::Other => {}
        }
        self.ledger.enter(record, revision, self.now);
        Ok(())
    }

    /// A stranger writes what is no record. The ledger keeps what was there: it
    /// is who held the place before that must be known to have stopped.
    pub(super) fn scribble(&mut self, what: usize) {
        self.count(Mishap::Scribble);
        let entries = self.store.table.list(&Prefix::ALL);
        let records = entries.iter().filter(|entry| {
            let key = entry.key.as_str();
            // A root or a chunk that is lost cannot be made up for.
            key != "root" && !key.starts_with("c.")
        });
        let records: Vec<_> = records.collect();
        let stranger = Key::new(["w", "stranger"]).expect("a valid key");
        let target = records.get(what % (records.len() + 1));
        let (key, expected, mut value) = match target {
            Some(entry) => {
                let expected = Expected::from(Some(entry.revision));
                (entry.key.clone(), expected, entry.value.to_vec())
            }
            None => (stranger, Expected::Absent, b"hello".to_vec()),
        };
        match what / 7 % 3 {
            0 => value.truncate(value.len() / 2),
            1 => value.iter_mut().for_each(|byte| *byte ^= 0x55),
            _ => value.clear(),
        }
        self.note(|| format!("a stranger writes over {key}"));
        if key.as_str() == "leader" {
            // Nobody can tell any more which epoch it was.
            self.ledger.leader = None;
        }
        let operation = Operation::CompareAndSet {
            key,
            expected,
            value: value.into(),
        };
        if let (_, Some(change)) = self.store.apply(&operation) {
            self.spread(change);
        }
    }

    /// Lets all who watch know of a change, if nothing goes wrong.
    pub(super) fn spread(&mut self, change: Change) {
        let change = Arc::new(change);
        for member in 0..self.processes.len() {
            let process = &self.processes[member];
            let generation = process.generation;
            if process.connected.is_none() || !process.receives() {
                continue;
            }
            let watches = process.host.watched.iter().any(|watched| match watched {
                Watched::Key(key) => key == change.key(),
                Watched::Below(prefix) => prefix.holds(change.key()),
            });
            if !watches {
                continue;
            }
            if self.dice.chance(self.weather.watch_lost) {
                self.count(Mishap::WatchLost);
                continue;
            }
            let mut way = self
                .dice
                .span(self.profile.latency.0, self.profile.latency.1);
            if self.dice.chance(self.weather.watch_late) {
                self.count(Mishap::WatchLate);
                let lease = self.profile.settings.heartbeat_ttl;
                way += self.dice.span(Duration::ZERO, lease * 2);
            }
            let seen = Arrival::News(self.reach.life, self.reach.forgotten, Arc::clone(&change));
            if self.dice.chance(self.weather.watch_repeated) {
                self.count(Mishap::WatchRepeated);
                let again = Happening::Arrive(member, generation, seen.clone());
                self.after(way * 4, again);
            }
            self.after(way, Happening::Arrive(member, generation, seen));
        }
    }

    /// The connection of a member breaks: what is under way on it is lost.
    pub(super) fn disconnect(&mut self, member: usize) {
        let process = &mut self.processes[member];
        process.connected = None;
        let generation = process.generation;
        let flights: Vec<Flight> = process.flights.clone();
        for flight in flights {
            let reply = Reply::Failed(failure(flight.is_write));
            self.answer(
                member,
                generation,
                flight.id,
                reply,
                Duration::from_micros(50),
            );
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

/// What a caller is told of an operation that nobody heard of again.
pub(super) const fn failure(is_write: bool) -> StoreErrorKind {
    match is_write {
        true => StoreErrorKind::Unknown,
        false => StoreErrorKind::Unavailable,
    }
}
