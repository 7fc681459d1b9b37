//! A cluster of members over the reference table, in time that is handed in:
//! answers take a millisecond, hooks none, unless a test says otherwise.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use divvy_core::leader::{HookEnd, HookId};
use divvy_core::lease::{
    Action, Batches, Ending, Event, Group, LeaseSettings, Member, MemberSetup, Operation, Reply,
    Report, SelfDescription, TenureId,
};
use divvy_core::store::{
    Beaten, Incarnation, LeaseKey, LeaseName, LeaseNotice, LeaseTable, QuarantineId,
    StoreErrorKind, StoreTime, Token, WorkerId,
};
use divvy_core::{Moment, MoveEntry};

const WAY: Duration = Duration::from_millis(1);
pub(crate) const CLUSTER: &str = "c";

/// One worker of a test.
pub(crate) struct Place {
    pub(crate) member: Member,
    pub(crate) is_up: bool,
    /// Nothing reaches the store, and nothing comes back.
    pub(crate) is_cut_off: bool,
    /// The store grants leases to it, and the answers are lost.
    pub(crate) loses_grants: bool,
    /// The store refuses its acquires, and nothing else.
    pub(crate) refuses_acquires: bool,
    /// How long an answer to a wish for leases takes.
    pub(crate) grants_take: Duration,
    pub(crate) running: BTreeMap<LeaseKey, Token>,
    pub(crate) ended: Option<Ending>,
    pub(crate) reports: Vec<Report>,
    /// Start hooks of these fail.
    pub(crate) fails: BTreeSet<LeaseKey>,
    /// Start hooks do not return. Where hooks wait for their turn, they wait.
    pub(crate) holds_starts: bool,
    pub(crate) starts_held: Vec<(HookId, TenureId)>,
    hooks_wait: bool,
    /// Stop hooks do not return until they are let go.
    pub(crate) holds_stops: bool,
    pub(crate) stops_held: Vec<(HookId, LeaseKey)>,
    pub(crate) most: usize,
    /// How many releases and marks of moves it has sent.
    pub(crate) given_back_by: usize,
}

enum Due {
    Reply(usize, divvy_core::leader::OperationId, Operation),
    Event(usize, Event),
}

pub(crate) struct Cluster {
    pub(crate) now: Moment,
    pub(crate) table: LeaseTable,
    pub(crate) places: Vec<Place>,
    pub(crate) is_down: bool,
    /// How often a partition was started, and when last.
    pub(crate) starts: BTreeMap<LeaseKey, (u32, Moment)>,
    due: VecDeque<(Moment, Due)>,
    name: LeaseName,
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn key(group: &str, number: u32) -> LeaseKey {
    LeaseKey::new(group, number).unwrap()
}

pub(crate) fn settings() -> LeaseSettings {
    LeaseSettings {
        reconcile_jitter: 0.0,
        ..LeaseSettings::default()
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self {
            now: Moment::from_origin(Duration::from_secs(1000)),
            table: LeaseTable::default(),
            places: Vec::new(),
            is_down: false,
            starts: BTreeMap::new(),
            due: VecDeque::new(),
            name: LeaseName::new("cluster", CLUSTER).unwrap(),
        }
    }

    pub(crate) fn setup(
        name: &str,
        groups: &[(&str, u32)],
        settings: LeaseSettings,
    ) -> MemberSetup {
        let groups = groups.iter();
        MemberSetup {
            settings,
            worker: WorkerId::new(CLUSTER, name).unwrap(),
            groups: groups
                .map(|(name, partitions)| Group::new(name, *partitions).unwrap())
                .collect(),
            dynamic: false,
            description: SelfDescription {
                healthy: true,
                weight: 1.0,
            },
            seed: name
                .bytes()
                .fold(7, |seed, byte| seed * 31 + u64::from(byte)),
            batches: Batches::default(),
            hooks_wait: false,
        }
    }

    /// Starts a worker; gives its number.
    pub(crate) fn start(&mut self, setup: MemberSetup) -> usize {
        setup.check().unwrap();
        let hooks_wait = setup.hooks_wait;
        let member = Member::new(setup, self.now);
        self.places.push(Place {
            member,
            is_up: true,
            is_cut_off: false,
            loses_grants: false,
            refuses_acquires: false,
            grants_take: WAY,
            running: BTreeMap::new(),
            ended: None,
            reports: Vec::new(),
            fails: BTreeSet::new(),
            holds_starts: false,
            starts_held: Vec::new(),
            hooks_wait,
            holds_stops: false,
            stops_held: Vec::new(),
            most: 0,
            given_back_by: 0,
        });
        let place = self.places.len() - 1;
        self.hand(place, Event::Connected(Incarnation::new("first")));
        self.hand(place, Event::Start);
        place
    }

    pub(crate) fn kill(&mut self, place: usize) {
        self.places[place].is_up = false;
        self.places[place].running.clear();
    }

    pub(crate) fn hand(&mut self, place: usize, event: Event) {
        if !self.places[place].is_up {
            return;
        }
        let now = self.now;
        self.places[place].member.handle(now, event);
        self.act(place);
    }

    fn act(&mut self, place: usize) {
        while let Some(action) = self.places[place].member.next_action() {
            let at = self.now + WAY;
            match action {
                Action::Store { id, operation, .. } => {
                    let gives_back = matches!(
                        operation,
                        Operation::Release { .. } | Operation::MarkMoved { .. }
                    );
                    self.places[place].given_back_by += usize::from(gives_back);
                    let at = match operation {
                        Operation::Acquire { .. } => self.now + self.places[place].grants_take,
                        _ => at,
                    };
                    self.due.push_back((at, Due::Reply(place, id, operation)));
                }
                Action::StartPartition { id, tenure, .. } if self.places[place].holds_starts => {
                    self.places[place].starts_held.push((id, tenure));
                }
                Action::StartPartition { id, key, token, .. } => {
                    if self.places[place].hooks_wait {
                        let begun = Due::Event(place, Event::HookBegun(id));
                        self.due.push_back((self.now, begun));
                    }
                    self.started(place, id, key, token);
                }
                Action::StopPartition { id, key, .. } => self.stopped(place, id, key),
                Action::Report(report) => self.places[place].reports.push(report),
                Action::Ended(ending) => {
                    let may_run = matches!(ending, Ending::Late | Ending::NameTaken);
                    assert!(self.places[place].running.is_empty() || may_run);
                    self.places[place].ended = Some(ending);
                    self.places[place].is_up = false;
                }
                Action::Deadline { tenures, until } => {
                    if until.is_none() && self.places[place].hooks_wait {
                        self.end_waiting(place, &tenures);
                    }
                }
                Action::Abort(why) => panic!("{why}"),
            }
        }
    }

    fn started(&mut self, place: usize, id: HookId, key: LeaseKey, token: Token) {
        for (other, at) in self.places.iter().enumerate() {
            if at.is_up && !at.is_cut_off {
                let runs = at.running.contains_key(&key);
                assert!(!runs, "{key} runs at {other} and starts at {place}");
            }
        }
        let fails = self.places[place].fails.contains(&key);
        let at = self.now + WAY;
        let end = if fails {
            HookEnd::Failed
        } else {
            HookEnd::Done
        };
        if !fails {
            let entry = self.starts.entry(key.clone()).or_insert((0, self.now));
            *entry = (entry.0 + 1, self.now);
            self.places[place].running.insert(key, token);
            let most = self.places[place].running.len();
            self.places[place].most = self.places[place].most.max(most);
        }
        let event = Event::HookEnded(id, end);
        self.due.push_back((at, Due::Event(place, event)));
    }

    /// Starts that wait for their turn and whose grants have ended are not
    /// called.
    fn end_waiting(&mut self, place: usize, tenures: &[TenureId]) {
        let held = &mut self.places[place].starts_held;
        for (id, _) in held.extract_if(.., |(_, tenure)| tenures.contains(tenure)) {
            let event = Event::HookEnded(id, HookEnd::Failed);
            self.due
                .push_back((self.now + WAY, Due::Event(place, event)));
        }
    }

    fn stopped(&mut self, place: usize, id: HookId, key: LeaseKey) {
        if self.places[place].holds_stops {
            self.places[place].stops_held.push((id, key));
            return;
        }
        self.places[place].running.remove(&key);
        let event = Event::HookEnded(id, HookEnd::Done);
        self.due
            .push_back((self.now + WAY, Due::Event(place, event)));
    }

    /// Stop hooks that were held return.
    pub(crate) fn let_go(&mut self, place: usize) {
        self.places[place].holds_stops = false;
        for (id, key) in std::mem::take(&mut self.places[place].stops_held) {
            self.stopped(place, id, key);
        }
    }

    /// Lets so much time pass.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let events = self.due.iter().map(|(at, _)| *at).min();
            let wakes = self.places.iter().filter(|place| place.is_up);
            let wakes = wakes.filter_map(|place| place.member.next_wake()).min();
            let next = [events, wakes].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
    }

    /// Lets time pass until the condition holds; gives how much did.
    pub(crate) fn until(&mut self, bound: Duration, holds: impl Fn(&Self) -> bool) -> Duration {
        let start = self.now;
        while !holds(self) {
            assert!(
                self.now.since(start) <= bound,
                "not within {bound:?}: {:?}",
                self.shares()
            );
            self.pass(WAY);
        }
        self.now.since(start)
    }

    fn step(&mut self) {
        let now = self.now;
        let at = self.due.iter().position(|(at, _)| *at <= now);
        if let Some((_, due)) = at.and_then(|at| self.due.remove(at)) {
            match due {
                Due::Event(place, event) => self.hand(place, event),
                Due::Reply(place, id, operation) => {
                    let is_lost = self.places[place].loses_grants
                        && matches!(operation, Operation::Acquire { .. });
                    let mut reply = self.apply(place, operation);
                    if is_lost {
                        reply = Reply::Failed(StoreErrorKind::Unknown, "no answer".into());
                    }
                    self.hand(place, Event::Reply(id, reply));
                }
            }
            return;
        }
        for place in 0..self.places.len() {
            let is_due = |next: Moment| next <= now;
            if self.places[place].is_up && self.places[place].member.next_wake().is_some_and(is_due)
            {
                self.places[place].member.wake(now);
                self.act(place);
            }
        }
    }

    /// The store is restarted: with its data, or empty.
    pub(crate) fn restart_store(&mut self, life: &str, keeps_data: bool) {
        if !keeps_data {
            self.table = LeaseTable::default();
        }
        self.table.begin_quarantine(QuarantineId::new(life));
    }

    /// Members notice that the store was restarted.
    pub(crate) fn reconnect(&mut self, life: &str) {
        for place in 0..self.places.len() {
            if !self.places[place].is_cut_off {
                self.hand(place, Event::Connected(Incarnation::new(life)));
            }
        }
    }

    fn notify(&mut self, notice: &LeaseNotice) {
        for place in 0..self.places.len() {
            if self.places[place].is_up && !self.places[place].is_cut_off {
                let event = Event::Noticed(notice.clone());
                self.due
                    .push_back((self.now + WAY, Due::Event(place, event)));
            }
        }
    }

    pub(crate) fn time(&self) -> StoreTime {
        StoreTime {
            now: self.now,
            unix_ms: 1_000,
        }
    }

    fn apply(&mut self, place: usize, operation: Operation) -> Reply {
        let failed = Reply::Failed(StoreErrorKind::Unknown, "no answer".into());
        if self.is_down || self.places[place].is_cut_off || !self.places[place].is_up {
            return failed;
        }
        if self.places[place].refuses_acquires && matches!(operation, Operation::Acquire { .. }) {
            return Reply::Failed(StoreErrorKind::Unfit, "memory is full".into());
        }
        let worker = self.places[place].member.worker().clone();
        let time = self.time();
        let table = &mut self.table;
        match operation {
            Operation::OpenSession { session, ttl } => {
                Reply::Session(table.open_session(time, &worker, session, ttl))
            }
            Operation::Beat(heartbeat) => {
                let before = table.members(time, &self.name);
                let json = heartbeat.info.to_json().unwrap();
                let ttls = (heartbeat.heartbeat_ttl, heartbeat.session_ttl);
                let tenure = table.beat(time, &worker, heartbeat.session, &json, ttls);
                let quarantine = table.report(&heartbeat.report);
                if table.members(time, &self.name) != before {
                    self.notify(&LeaseNotice::Members);
                }
                Reply::Beaten(Beaten { tenure, quarantine })
            }
            Operation::Leave { session } => {
                let tenure = table.leave(time, &worker, session);
                self.notify(&LeaseNotice::Members);
                Reply::Left(tenure)
            }
            Operation::Members => {
                Reply::Members(table.members(time, &self.name), table.wishes(&self.name))
            }
            Operation::Groups => Reply::Groups(table.groups()),
            Operation::Holders(keys) => {
                Reply::Holders(keys.iter().map(|key| table.holder(time, key)).collect())
            }
            Operation::Cooling(keys) => {
                Reply::Cooling(keys.iter().map(|key| table.is_cooling(time, key)).collect())
            }
            Operation::Acquire { claims, ttl } => {
                let acquire = |claim| table.acquire(time, &worker, claim, ttl);
                Reply::Acquired(claims.iter().map(acquire).collect())
            }
            Operation::Renew { claims, ttl } => {
                let renew = |claim| table.renew(time, &worker, claim, ttl);
                Reply::Tenures(claims.iter().map(renew).collect())
            }
            Operation::Release { claims } => {
                let release = |claim| table.release(time, &worker, claim);
                let tenures = claims.iter().map(release).collect();
                for claim in claims {
                    self.notify(&LeaseNotice::Released(claim.key));
                }
                Reply::Tenures(tenures)
            }
            Operation::MarkMoved { keys, cooldown } => {
                for key in keys {
                    table.mark_moved(time, &key, cooldown);
                }
                Reply::Done
            }
            Operation::LogMoves(moves) => {
                table.log_moves(&self.name, &moves);
                Reply::Done
            }
        }
    }

    /// Writes a group's document, and says so.
    /// Operators wish this from now on.
    pub(crate) fn wish(&mut self, wishes: &str) {
        let before = self.table.wishes(&self.name);
        let name = self.name.clone();
        assert!(self.table.set_wishes(&name, before.as_deref(), wishes));
        self.notify(&LeaseNotice::Members);
    }

    /// The log of moves.
    pub(crate) fn moves(&self) -> Vec<MoveEntry> {
        let lines = self.table.moves(&self.name);
        let entries = lines.iter().map(|line| MoveEntry::from_line(line));
        entries.map(Result::unwrap).collect()
    }

    pub(crate) fn set_group(&mut self, name: &str, json: &str) {
        let name = LeaseName::new("group", name).unwrap();
        self.table.set_group(&name, json);
        self.notify(&LeaseNotice::Group(name.to_string()));
    }

    /// How many partitions each worker runs.
    pub(crate) fn shares(&self) -> Vec<usize> {
        self.places
            .iter()
            .map(|place| place.running.len())
            .collect()
    }

    /// How many run anywhere.
    pub(crate) fn running(&self) -> usize {
        self.shares().iter().sum()
    }

    /// Whether each worker has what it should and nothing else.
    pub(crate) fn is_settled(&self) -> bool {
        let up = self.places.iter().filter(|place| place.is_up);
        up.into_iter()
            .all(|place| place.member.misaligned().next().is_none())
    }

    pub(crate) fn problems(&self, place: usize) -> Vec<String> {
        let reports = self.places[place].reports.iter();
        let problems = reports.filter_map(|report| match report {
            Report::Problem(words) => Some(words.to_string()),
            _ => None,
        });
        problems.collect()
    }
}
