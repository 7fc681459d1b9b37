//! A world small enough that all of its futures can be taken.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::{
    Action, Batches, Event, Holding, HookEnd, HookId, LeaderSettings, Member, MemberSetup,
    Operation, OperationId, Reply, Report, SelfDescription, Watched,
};
use divvy_core::store::{Change, Incarnation, KeyValueTable, Outcome, StoreErrorKind};
use divvy_core::{Balanced, Health, Moment, Partitions, hash};

use super::Search;
use crate::clock::{MemberClock, RATE_ERROR_MAX_PPM};
use crate::fact::{Fact, Seen};
use crate::invariants::{Bounds, Broken, Invariants};
use crate::ledger::{Ledger, Record, Write, chunks_of};
use crate::time::TrueTime;
use crate::world::OPERATIONS_MAX;

/// Longest that the way to the first assignment may take.
const BEGIN_WITHIN: Duration = Duration::from_secs(20);

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The store applies this operation.
    Apply(usize),
    /// This reply arrives.
    Answer(usize),
    /// The caller of this operation is told that nobody knows.
    GiveUp(usize),
    /// This watch event arrives.
    Watch(usize),
    /// This hook returns.
    Hook(usize),
    /// Time goes on to the next thing that is due.
    Tick,
    /// This process ends.
    Crash(usize),
    /// This member stands still until its lease is over, the other goes on.
    Stall(usize),
}

#[derive(Debug, Clone)]
struct Place {
    machine: Option<Member>,
    clock: MemberClock,
    watched: Vec<Watched>,
}

/// An operation on its way, or its reply.
#[derive(Debug, Clone)]
struct Way {
    member: usize,
    id: OperationId,
    operation: Operation,
    sent: Moment,
    /// The caller has been told that nobody knows.
    given_up: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Small {
    now: TrueTime,
    places: Vec<Place>,
    table: KeyValueTable,
    ledger: Ledger,
    invariants: Invariants,
    requests: Vec<Way>,
    replies: Vec<(usize, OperationId, Reply)>,
    watches: Vec<(usize, Change)>,
    hooks: Vec<(usize, HookId, bool)>,
    losses: u8,
    crashes: u8,
    stalls: u8,
    pub(super) grants: usize,
}

impl Small {
    /// The world when the partition runs at one member that is not well and
    /// whose stop hook has just been called: the leader waits for its word.
    pub(super) fn begun(search: &Search) -> Result<Self, Broken> {
        let settings = LeaderSettings {
            cold_start_window: Duration::from_millis(300),
            planned_scale_window: Duration::ZERO,
            rebalance_cooldown: Duration::ZERO,
            ..LeaderSettings::fast()
        };
        let bounds = Bounds {
            lease: settings.heartbeat_ttl,
            is_exclusive: true,
            is_stale: true,
            is_calm: false,
            ends_late: true,
            leader_lease: settings.leader_lease,
            value_bytes_max: 1 << 20,
            operations_max: OPERATIONS_MAX,
            members_max: 2,
            partitions_max: 1,
            start_within: Duration::from_secs(1),
            beat_within: settings.leader_lease,
        };
        let mut small = Self {
            now: TrueTime::from_nanos(1_000_000_000),
            places: Vec::new(),
            table: KeyValueTable::default(),
            ledger: Ledger::default(),
            invariants: Invariants::new(&bounds),
            requests: Vec::new(),
            replies: Vec::new(),
            watches: Vec::new(),
            hooks: Vec::new(),
            losses: search.losses,
            crashes: search.crashes,
            stalls: search.stalls,
            grants: 0,
        };
        // The holder's clock is as slow, the other's as fast as allowed.
        for (number, rate) in [-RATE_ERROR_MAX_PPM, RATE_ERROR_MAX_PPM]
            .into_iter()
            .enumerate()
        {
            small.add(number, rate, &settings, search);
        }
        for member in 0..2 {
            small.hand(member, Event::Start)?;
            small.hand(member, Event::Connected(Incarnation::new("life-0")))?;
        }
        let end = small.now + BEGIN_WITHIN;
        while small.holder().is_none() || !small.hooks.is_empty() {
            assert!(small.now < end, "two members that are well start to work");
            small.first_come()?;
        }
        let holder = small.holder().expect("just waited for");
        let unwell = SelfDescription {
            health: Health::Unhealthy,
            ..well()
        };
        small.hand(holder, Event::Described(unwell))?;
        while small.hooks.is_empty() {
            assert!(small.now < end, "whoever is not well is asked to stop");
            small.first_come()?;
        }
        Ok(small)
    }

    fn add(&mut self, number: usize, rate: i64, settings: &LeaderSettings, search: &Search) {
        let clock = MemberClock::new(Duration::from_secs(5), rate, 0);
        let setup = MemberSetup {
            settings: settings.clone(),
            instance: format!("host-{number}").into(),
            strategy: Arc::new(Balanced::new()),
            previous: None,
            description: well(),
            seed: number as u64 + 1,
            external_election: true,
            hooks_wait: false,
            retries: divvy_core::leader::Retries::default(),
            value_bytes_max: 1 << 20,
            batches: Batches::default(),
        };
        let now = clock.both_at(self.now);
        let machine = match search.defect {
            Some(defect) => Member::planted(setup, now, defect),
            None => Member::new(setup, now),
        };
        self.places.push(Place {
            machine: Some(machine),
            clock,
            watched: Vec::new(),
        });
    }

    /// Where the partition runs, if it does.
    fn holder(&self) -> Option<usize> {
        let runs = |place: &Place| {
            let machine = place.machine.as_ref();
            machine.is_some_and(|machine| machine.running().next().is_some())
        };
        self.places.iter().position(runs)
    }

    /// What may happen next.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        choices.extend((0..self.requests.len()).map(Choice::Apply));
        choices.extend((0..self.replies.len()).map(Choice::Answer));
        choices.extend((0..self.watches.len()).map(Choice::Watch));
        choices.extend((0..self.hooks.len()).map(Choice::Hook));
        if self.losses > 0 {
            let open = self.requests.iter().enumerate();
            let open = open.filter(|(_, way)| !way.given_up);
            choices.extend(open.map(|(index, _)| Choice::GiveUp(index)));
        }
        let alive = |&member: &usize| self.places[member].machine.is_some();
        if self.crashes > 0 {
            choices.extend((0..2).filter(alive).map(Choice::Crash));
        }
        if self.stalls > 0 {
            choices.extend((0..2).filter(alive).map(Choice::Stall));
        }
        choices.push(Choice::Tick);
        choices
    }

    /// Lets it happen.
    pub(super) fn take(&mut self, choice: Choice) -> Result<(), Broken> {
        match choice {
            Choice::Apply(index) => self.apply(index),
            Choice::Answer(index) => {
                let (member, id, reply) = self.replies.remove(index);
                self.hand(member, Event::Reply(id, reply))
            }
            Choice::GiveUp(index) => {
                self.losses -= 1;
                self.requests[index].given_up = true;
                let (member, id) = (self.requests[index].member, self.requests[index].id);
                let reply = Reply::Failed(StoreErrorKind::Unknown);
                self.hand(member, Event::Reply(id, reply))
            }
            Choice::Watch(index) => {
                let (member, change) = self.watches.remove(index);
                self.hand(member, Event::Seen(change))
            }
            Choice::Hook(index) => self.end_hook(index),
            Choice::Tick => self.tick(None),
            Choice::Crash(member) => {
                self.crashes -= 1;
                self.places[member].machine = None;
                self.replies.retain(|(of, _, _)| *of != member);
                self.watches.retain(|(of, _)| *of != member);
                self.hooks.retain(|(of, _, _)| *of != member);
                self.tell(&Fact::Gone {
                    member,
                    in_order: false,
                })
            }
            Choice::Stall(member) => self.stall(member),
        }
    }

    fn apply(&mut self, index: usize) -> Result<(), Broken> {
        let way = self.requests.remove(index);
        let reply = match &way.operation {
            Operation::Get(key) => Reply::Got(self.table.get(key)),
            Operation::List(prefix) => Reply::Listed(self.table.list(prefix)),
            Operation::CompareAndSet {
                key,
                expected,
                value,
            } => {
                let outcome = self.table.compare_and_set(key, *expected, value);
                if let Outcome::Done(_) = outcome {
                    let entry = self.table.get(key).expect("just written");
                    self.written(&way, &entry)?;
                    self.spread(Change::Put(entry));
                }
                Reply::Written(outcome)
            }
            Operation::Delete { key, revision } => {
                Reply::Deleted(self.table.delete(key, *revision))
            }
        };
        if !way.given_up && self.places[way.member].machine.is_some() {
            self.replies.push((way.member, way.id, reply));
        }
        Ok(())
    }

    fn written(&mut self, way: &Way, entry: &divvy_core::store::Entry) -> Result<(), Broken> {
        let (by, revision) = (way.member, entry.revision);
        let record = self
            .ledger
            .read(&entry.key, &entry.value, chunks_of(&self.table));
        if let Record::Root(root) = &record {
            let held = |holding: &&Holding| matches!(holding, Holding::Held { .. });
            self.grants += root.root.holdings.iter().filter(held).count();
        }
        let write = Write {
            by,
            orphaned: self.places[by].machine.is_none(),
            // Nobody comes back here.
            life: 0,
            sent: way.sent,
            revision,
        };
        if let Some(fact) = record.fact(&entry.key, &write) {
            self.tell(&fact)?;
        }
        self.ledger.enter(record, revision, self.now);
        Ok(())
    }

    /// An event for everyone who watches, in place of one that has not come.
    fn spread(&mut self, change: Change) {
        for (member, place) in self.places.iter().enumerate() {
            let watches = place.watched.iter().any(|watched| match watched {
                Watched::Key(key) => key == change.key(),
                Watched::Below(prefix) => prefix.holds(change.key()),
            });
            if watches && place.machine.is_some() {
                self.watches
                    .retain(|(of, other)| *of != member || other.key() != change.key());
                self.watches.push((member, change.clone()));
            }
        }
    }

    fn end_hook(&mut self, index: usize) -> Result<(), Broken> {
        let (member, id, starts) = self.hooks.remove(index);
        let partition = 0;
        match starts {
            true => self.tell(&Fact::StartEnded {
                member,
                partition,
                failed: false,
            })?,
            false => self.tell(&Fact::StopEnded { member, partition })?,
        }
        self.hand(member, Event::HookEnded(id, HookEnd::Done))
    }

    /// When the next member, but for `still`, is due.
    fn due(&self, still: Option<usize>) -> Option<(TrueTime, usize)> {
        let places = self.places.iter().enumerate();
        let due = places.filter_map(|(member, place)| {
            let moment = place.machine.as_ref()?.next_wake()?;
            let soonest = self.now + Duration::from_micros(1);
            (Some(member) != still).then(|| (place.clock.time_of(moment).max(soonest), member))
        });
        due.min()
    }

    fn tick(&mut self, still: Option<usize>) -> Result<(), Broken> {
        let Some((at, member)) = self.due(still) else {
            return Ok(());
        };
        self.now = at;
        let place = &mut self.places[member];
        let clock = place.clock.both_at(at);
        if let Some(machine) = &mut place.machine {
            machine.wake(clock);
        }
        self.drain(member)
    }

    /// A member stands still until its lease is over for the other, which goes
    /// on; what it has sent is still on its way.
    fn stall(&mut self, member: usize) -> Result<(), Broken> {
        self.stalls -= 1;
        let end = self.now + Duration::from_millis(1200);
        while self.now < end {
            let next = self.requests.iter().position(|way| way.member != member);
            if let Some(index) = next {
                self.apply(index)?;
            } else if let Some(index) = self.replies.iter().position(|(of, _, _)| *of != member) {
                self.take(Choice::Answer(index))?;
            } else if let Some(index) = self.hooks.iter().position(|(of, _, _)| *of != member) {
                self.end_hook(index)?;
            } else if self.due(Some(member)).is_some() {
                self.tick(Some(member))?;
            } else {
                self.now = end;
            }
        }
        Ok(())
    }

    /// Lets the oldest thing happen: how all goes when nothing goes wrong.
    fn first_come(&mut self) -> Result<(), Broken> {
        if !self.requests.is_empty() {
            self.apply(0)
        } else if !self.replies.is_empty() {
            self.take(Choice::Answer(0))
        } else if !self.watches.is_empty() {
            self.take(Choice::Watch(0))
        } else if !self.hooks.is_empty() {
            self.end_hook(0)
        } else {
            self.tick(None)
        }
    }

    fn hand(&mut self, member: usize, event: Event) -> Result<(), Broken> {
        let place = &mut self.places[member];
        let clock = place.clock.both_at(self.now);
        if let Some(machine) = &mut place.machine {
            machine.handle(clock, event);
        }
        self.drain(member)
    }

    fn drain(&mut self, member: usize) -> Result<(), Broken> {
        let mut soon = Vec::new();
        let Some(mut machine) = self.places[member].machine.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        while let Some(action) = machine.next_action() {
            outcome = outcome.and_then(|()| self.act(member, &machine, action, &mut soon));
        }
        self.places[member].machine = Some(machine);
        outcome?;
        let now = self.places[member].clock.at(self.now);
        self.tell(&Fact::Stepped { member, now })?;
        for event in soon {
            self.hand(member, event)?;
        }
        Ok(())
    }

    fn act(
        &mut self,
        member: usize,
        machine: &Member,
        action: Action,
        soon: &mut Vec<Event>,
    ) -> Result<(), Broken> {
        let partition = 0;
        match action {
            Action::Store { id, operation, .. } => {
                let sent = self.places[member].clock.at(self.now);
                self.requests.push(Way {
                    member,
                    id,
                    operation,
                    sent,
                    given_up: false,
                });
                Ok(())
            }
            Action::Watch(watched) => {
                self.places[member].watched = watched;
                Ok(())
            }
            Action::ListPartitions => {
                let one = Partitions::shards([("p", 1)]).expect("a valid name");
                soon.push(Event::Partitions(Ok(one)));
                Ok(())
            }
            Action::StartPartition {
                id,
                token,
                partition: granted,
            } => {
                self.hooks.push((member, id, true));
                self.tell(&Fact::StartCalled {
                    member,
                    partition,
                    name: granted.as_str(),
                    token,
                })
            }
            Action::StopPartition { id, .. } => {
                self.hooks.push((member, id, false));
                self.tell(&Fact::StopCalled { member, partition })
            }
            Action::Deadline(deadline) => {
                let clock = self.places[member].clock;
                self.tell(&Fact::Deadline {
                    member,
                    identity: machine.worker_id().zip(machine.session()),
                    until: deadline.map(|moment| clock.time_of(moment)),
                    until_local: deadline,
                })
            }
            Action::RequestLeadership => {
                soon.push(Event::Elected(true));
                Ok(())
            }
            Action::Report(Report::Adopted { version, .. }) => self.tell(&Fact::Adopted {
                member,
                session: machine.session(),
                version,
            }),
            Action::ReleaseLeadership
            | Action::CancelStart(_)
            | Action::WithdrawStart(_)
            | Action::Report(_)
            | Action::Abort(_)
            | Action::Ended => Ok(()),
        }
    }

    fn tell(&mut self, fact: &Fact<'_>) -> Result<(), Broken> {
        self.invariants.observe(&Seen {
            at: self.now,
            fact,
            ledger: &self.ledger,
        })
    }

    /// Two states of one fingerprint have the same future.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut text = String::with_capacity(1 << 14);
        write!(text, "{self:?}").expect("a string takes anything");
        let high = hash::bytes64(text.as_bytes(), 1);
        u128::from(high) << 64 | u128::from(hash::bytes64(text.as_bytes(), 2))
    }
}

fn well() -> SelfDescription {
    SelfDescription {
        health: Health::Healthy,
        weight: 1.0,
        zone: None,
    }
}
