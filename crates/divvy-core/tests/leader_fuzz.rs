//! A member that is told anything, in any order, by a store that anybody
//! writes to: it never panics, never spins, and its hooks stay in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::{
    Action, Batches, Clock, Event, Holding, HookEnd, HookId, LeaderRecord, LeaderSettings, Life,
    Lifecycle, Member, MemberSetup, Operation, OperationId, Reply, Root, SelfDescription,
    SessionEntry, SessionId, Shutdown, Version, WorkerRecord, encode_root,
};
use divvy_core::store::{
    Change, Entry, Incarnation, Key, KeyValueTable, Outcome, Revision, StoreErrorKind, Token,
};
use divvy_core::{Balanced, Health, Moment, Partitions};
use proptest::prelude::*;

/// Partitions that there are at most.
const PARTITIONS: u32 = 12;
/// Actions that one event may bring: some for every partition, and those that
/// do not depend on them.
const ACTIONS_MAX: usize = 40 + 4 * PARTITIONS as usize;
/// Wake-ups in a row that may be due at once.
const WAKES_MAX: usize = 3;
const KEYS: [&str; 7] = [
    "leader", "root", "ctl", "moves", "w.host-0", "w.host-1", "w.host-2",
];

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    /// Everything goes well for so long.
    Peace(u16),
    /// Time passes, and the member is woken if that is due.
    Pass(u16),
    /// One of the operations under way is answered, truly or not.
    Answer(prop::sample::Index, Answer),
    /// Somebody writes to a key.
    Write(prop::sample::Index, Value),
    /// A key is deleted.
    Delete(prop::sample::Index),
    /// A watch shows a key, as it is or was never.
    Show(prop::sample::Index, Option<(Value, u64)>),
    HookEnds(prop::sample::Index, bool),
    Told(Told),
}

#[derive(Debug, Clone)]
enum Answer {
    True,
    /// It was done, or not, and nobody knows.
    Unknown(bool),
    Failed,
    Conflict,
    /// An answer to another question.
    Nothing,
    WrittenAt(u64),
    Got(Value, u64),
}

#[derive(Debug, Clone)]
enum Told {
    Start,
    Connected(u8),
    Missed,
    Partitions(Option<u32>),
    Suspended,
    Described(f64, bool),
    Refresh,
    Elected(bool),
    Stop(Option<u64>),
}

/// Something that stands in a store.
#[derive(Debug, Clone)]
enum Value {
    Garbage(Vec<u8>),
    Leader(Numbers, bool),
    Worker(Numbers, u8, bool),
    Root(Numbers, bool, Vec<(u8, u8)>),
}

/// Numbers of a record: small, around now, or at their end.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    epoch: u64,
    number: u32,
    other: u64,
}

impl Numbers {
    fn version(self) -> Version {
        Version {
            epoch: self.epoch,
            number: self.number,
        }
    }
}

struct Bench {
    member: Member,
    now: Duration,
    table: KeyValueTable,
    pending: Vec<(OperationId, Operation)>,
    hooks: Vec<HookId>,
    /// Partitions that were started and not told to stop, and whose hooks run.
    running: BTreeSet<String>,
    busy: BTreeMap<HookId, String>,
    asked: usize,
    is_over: bool,
}

impl Bench {
    fn new(seed: u64, external_election: bool) -> Self {
        let now = Duration::from_secs(1);
        let settings = LeaderSettings {
            worker_id_prefix: "host".into(),
            worker_id_max: 2,
            shutdown_timeout: Duration::from_secs(3),
            ..LeaderSettings::fast()
        };
        let setup = MemberSetup {
            settings,
            instance: "me".into(),
            strategy: Arc::new(Balanced::new()),
            previous: None,
            description: SelfDescription {
                health: Health::Healthy,
                weight: 1.0,
                zone: None,
            },
            seed,
            external_election,
            hooks_wait: seed.is_multiple_of(2),
            retries: divvy_core::leader::Retries::default(),
            value_bytes_max: 1 << 16,
            batches: Batches::default(),
        };
        assert_eq!(setup.check(), Ok(()));
        Self {
            member: Member::new(setup, clock(now)),
            now,
            table: KeyValueTable::default(),
            pending: Vec::new(),
            hooks: Vec::new(),
            running: BTreeSet::new(),
            busy: BTreeMap::new(),
            asked: 0,
            is_over: false,
        }
    }

    fn tell(&mut self, event: Event) {
        self.member.handle(clock(self.now), event);
        self.act();
    }

    /// Takes all actions, and checks what must hold after each event.
    fn act(&mut self) {
        let mut count = 0;
        while let Some(action) = self.member.next_action() {
            count += 1;
            assert!(!self.is_over, "{action:?} after the end");
            match action {
                Action::Store { id, operation, .. } => self.pending.push((id, operation)),
                Action::ListPartitions => self.asked += 1,
                Action::StartPartition { id, partition, .. } => {
                    let name = partition.to_string();
                    assert!(!self.busy.values().any(|busy| *busy == name), "{name}");
                    assert!(self.running.insert(name.clone()), "{name} starts twice");
                    self.busy.insert(id, name);
                    self.hooks.push(id);
                }
                Action::StopPartition { id, partition, .. } => {
                    let name = partition.to_string();
                    assert!(!self.busy.values().any(|busy| *busy == name), "{name}");
                    assert!(self.running.remove(&name), "{name} stops twice");
                    self.busy.insert(id, name);
                    self.hooks.push(id);
                }
                Action::Ended => {
                    self.is_over = true;
                    assert!(self.running.is_empty(), "{:?} still run", self.running);
                }
                Action::Abort(_) => self.is_over = true,
                _ => {}
            }
        }
        assert!(count <= ACTIONS_MAX, "{count} actions");
        assert!(
            self.pending.len() < 1000,
            "{} operations",
            self.pending.len()
        );
        assert_eq!(
            self.is_over,
            self.member.next_wake().is_none() && self.is_over
        );
    }

    fn pass(&mut self, span: Duration) {
        self.now += span;
        for _ in 0..WAKES_MAX {
            let now = Moment::from_origin(self.now);
            if self.member.next_wake().is_none_or(|at| at > now) {
                return;
            }
            self.member.wake(clock(self.now));
            self.act();
        }
        let next = self.member.next_wake().map(Moment::to_origin);
        assert!(
            next.is_none_or(|at| at > self.now),
            "it wants to wake again"
        );
    }

    fn operate(&mut self, operation: Operation) -> Reply {
        match operation {
            Operation::Get(key) => Reply::Got(self.table.get(&key)),
            Operation::List(prefix) => Reply::Listed(self.table.list(&prefix)),
            Operation::CompareAndSet {
                key,
                expected,
                value,
            } => {
                assert!(value.len() <= 1 << 15, "half of what the store takes");
                Reply::Written(self.table.compare_and_set(&key, expected, &value))
            }
            Operation::Delete { key, revision } => {
                Reply::Deleted(self.table.delete(&key, revision))
            }
        }
    }

    fn end_hook(&mut self, at: usize, failed: bool) {
        let id = self.hooks.swap_remove(at);
        let name = self.busy.remove(&id).expect("it runs");
        let end = match failed {
            true => HookEnd::Failed,
            false => HookEnd::Done,
        };
        // A start that failed leaves nothing running.
        if failed {
            self.running.remove(&name);
        }
        self.tell(Event::HookBegun(id));
        self.tell(Event::HookEnded(id, end));
    }

    /// All is answered, at once and truly.
    fn peace(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..2_000 {
            if let Some((id, operation)) = self.pending.pop() {
                let reply = self.operate(operation);
                self.tell(Event::Reply(id, reply));
            } else if !self.hooks.is_empty() {
                self.end_hook(0, false);
            } else if self.asked > 0 {
                self.asked -= 1;
                let list = Partitions::shards([("p", PARTITIONS)]).unwrap();
                self.tell(Event::Partitions(Ok(list)));
            } else {
                let next = self.member.next_wake().map(Moment::to_origin);
                match next.filter(|at| *at <= end) {
                    Some(at) => self.pass(at.saturating_sub(self.now)),
                    None => {
                        self.now = end.max(self.now);
                        return;
                    }
                }
            }
        }
        panic!("it never comes to rest");
    }

    fn session(&self, is_own: bool) -> SessionId {
        let own = self.member.session().filter(|_| is_own);
        own.unwrap_or(SessionId(7))
    }

    fn bytes(&self, value: &Value) -> Vec<u8> {
        match value {
            Value::Garbage(bytes) => bytes.clone(),
            Value::Leader(numbers, is_own) => LeaderRecord {
                epoch: numbers.epoch,
                session: self.session(*is_own),
                beat: numbers.other,
                lease: Duration::from_millis(numbers.other % 1000),
            }
            .encode(),
            Value::Worker(numbers, life, is_own) => WorkerRecord {
                instance: if *is_own { "me" } else { "other" }.into(),
                session: self.session(*is_own),
                beat: numbers.other,
                lease: Duration::from_millis(700),
                life: match life % 3 {
                    0 => Life::Live,
                    1 => Life::Fenced,
                    _ => Life::Left {
                        keep_for: Duration::from_nanos(numbers.other),
                    },
                },
                acked: numbers.version(),
                stopping: vec![numbers.other; (numbers.other % 3) as usize],
                adopted: numbers.version(),
                token_max: numbers.version().token().or(Token::new(i64::MAX)),
                health: Health::Healthy,
                weight: f64::from(*life % 4),
                zone: None,
                refresh: numbers.other,
                alarm: if life % 5 == 0 { numbers.epoch } else { 0 },
                unable: vec![numbers.other; (numbers.other % 2) as usize],
                longest: Duration::from_millis(700 + numbers.other % 2),
            }
            .encode(),
            Value::Root(numbers, quarantine, holdings) => {
                let version = numbers.version();
                let holding = |(kind, session): &(u8, u8)| {
                    let session = u32::from(session % 3);
                    match (kind % 3, version.token()) {
                        (1, Some(token)) => Holding::Held { session, token },
                        (2, _) => Holding::Revoking {
                            session,
                            since: Version {
                                epoch: 3,
                                number: 4,
                            },
                        },
                        _ => Holding::None,
                    }
                };
                let worker = |index: u64| SessionEntry {
                    session: self.session(index == 0),
                    worker: ["host-0", "host-1", ""][index as usize].into(),
                    seen: Revision::new(1 + numbers.other % 9).unwrap(),
                };
                let root = Root {
                    incarnation: Incarnation::new("life 0"),
                    version,
                    lifecycle: Lifecycle::Stable,
                    quarantine: *quarantine,
                    answered: 0,
                    lease: Duration::from_millis(700),
                    sessions: (0..2 + numbers.other % 2).map(worker).collect(),
                    holdings: holdings.iter().map(holding).collect(),
                };
                let list = Partitions::shards([("p", holdings.len() as u32)]).unwrap();
                encode_root(root, &list, None, 1, 1 << 16).unwrap().head
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Peace(ms) => self.peace(Duration::from_millis(u64::from(*ms))),
            Step::Pass(ms) => self.pass(Duration::from_millis(u64::from(*ms))),
            Step::Answer(index, answer) => {
                if !self.pending.is_empty() {
                    let at = index.index(self.pending.len());
                    self.answer(at, answer);
                }
            }
            Step::Write(index, value) => {
                let key = key(*index);
                let expected = self.table.get(&key).map(|entry| entry.revision).into();
                let bytes = self.bytes(value);
                let _ = self.table.compare_and_set(&key, expected, &bytes);
            }
            Step::Delete(index) => {
                let key = key(*index);
                if let Some(entry) = self.table.get(&key) {
                    let _ = self.table.delete(&key, entry.revision);
                    self.tell(Event::Seen(Change::Deleted(key, entry.revision)));
                }
            }
            Step::Show(index, other) => {
                let key = key(*index);
                let entry = match other {
                    Some((value, revision)) => Some(self.entry(&key, value, *revision)),
                    None => self.table.get(&key),
                };
                if let Some(entry) = entry {
                    self.tell(Event::Seen(Change::Put(entry)));
                }
            }
            Step::HookEnds(index, failed) => {
                if !self.hooks.is_empty() {
                    self.end_hook(index.index(self.hooks.len()), *failed);
                }
            }
            Step::Told(told) => self.told(told),
        }
    }

    fn entry(&self, key: &Key, value: &Value, revision: u64) -> Entry {
        Entry {
            key: key.clone(),
            value: self.bytes(value).into(),
            revision: Revision::new(revision.max(1)).unwrap(),
        }
    }

    fn answer(&mut self, at: usize, answer: &Answer) {
        let (id, operation) = self.pending.swap_remove(at);
        let reply = match answer {
            Answer::True => self.operate(operation),
            Answer::Unknown(is_done) => {
                if *is_done {
                    let _ = self.operate(operation);
                }
                Reply::Failed(StoreErrorKind::Unknown)
            }
            Answer::Failed => Reply::Failed(StoreErrorKind::Unfit),
            Answer::Conflict => Reply::Written(Outcome::Conflict),
            Answer::Nothing => Reply::Got(None),
            Answer::WrittenAt(revision) => {
                let revision = Revision::new((*revision).max(1)).unwrap();
                Reply::Written(Outcome::Done(revision))
            }
            Answer::Got(value, revision) => {
                let key = match operation {
                    Operation::Get(key) => key,
                    _ => Key::parse(KEYS[0]).unwrap(),
                };
                Reply::Got(Some(self.entry(&key, value, *revision)))
            }
        };
        self.tell(Event::Reply(id, reply));
    }

    fn told(&mut self, told: &Told) {
        self.tell(match told {
            Told::Start => Event::Start,
            Told::Connected(life) => Event::Connected(Incarnation::new(format!("life {life}"))),
            Told::Missed => Event::Missed,
            Told::Partitions(None) => Event::Partitions(Err("no".to_owned())),
            Told::Partitions(Some(count)) => {
                Event::Partitions(Ok(Partitions::shards([("p", *count)]).unwrap()))
            }
            Told::Suspended => Event::Suspended,
            Told::Described(weight, is_well) => Event::Described(SelfDescription {
                health: match is_well {
                    true => Health::Healthy,
                    false => Health::Unhealthy,
                },
                weight: *weight,
                zone: None,
            }),
            Told::Refresh => Event::RefreshRequested,
            Told::Elected(may_lead) => Event::Elected(*may_lead),
            Told::Stop(None) => Event::Stop(Shutdown::Leave),
            Told::Stop(Some(seconds)) => Event::Stop(Shutdown::Return {
                within: Duration::from_secs(*seconds),
            }),
        });
    }
}

fn clock(now: Duration) -> Clock {
    Clock {
        now: Moment::from_origin(now),
        unix_ms: 1_700_000_000_000 + now.as_millis() as u64,
    }
}

fn key(index: prop::sample::Index) -> Key {
    Key::parse(KEYS[index.index(KEYS.len())]).unwrap()
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let epoch = prop_oneof![
        0..5_u64,
        1_700_000_000_000..1_700_000_100_000_u64,
        (1_u64 << 42) - 2..(1 << 42) + 2,
        (1_u64 << 43) - 3..1 << 43,
    ];
    let number = prop_oneof![0..4_u32, (1_u32 << 20) - 2..1 << 20];
    let other = prop_oneof![0..5_u64, any::<u64>()];
    (epoch, number, other).prop_map(|(epoch, number, other)| Numbers {
        epoch,
        number,
        other,
    })
}

fn values() -> impl Strategy<Value = Value> {
    let holdings = prop::collection::vec((any::<u8>(), any::<u8>()), 0..PARTITIONS as usize);
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Garbage),
        2 => (numbers(), any::<bool>()).prop_map(|(n, own)| Value::Leader(n, own)),
        3 => (numbers(), any::<u8>(), any::<bool>())
            .prop_map(|(n, life, own)| Value::Worker(n, life, own)),
        3 => (numbers(), any::<bool>(), holdings).prop_map(|(n, q, h)| Value::Root(n, q, h)),
    ]
}

fn answers() -> impl Strategy<Value = Answer> {
    let revisions = || prop_oneof![1..40_u64, Just(u64::MAX)];
    prop_oneof![
        6 => Just(Answer::True),
        2 => any::<bool>().prop_map(Answer::Unknown),
        1 => Just(Answer::Failed),
        1 => Just(Answer::Conflict),
        1 => Just(Answer::Nothing),
        1 => revisions().prop_map(Answer::WrittenAt),
        2 => (values(), revisions()).prop_map(|(value, at)| Answer::Got(value, at)),
    ]
}

fn tellings() -> impl Strategy<Value = Told> {
    prop_oneof![
        2 => Just(Told::Start),
        3 => (0..2_u8).prop_map(Told::Connected),
        2 => Just(Told::Missed),
        3 => prop::option::of(0..PARTITIONS).prop_map(Told::Partitions),
        1 => Just(Told::Suspended),
        2 => (prop_oneof![Just(0.0), Just(2.0), Just(f64::NAN)], any::<bool>())
            .prop_map(|(weight, well)| Told::Described(weight, well)),
        2 => Just(Told::Refresh),
        2 => any::<bool>().prop_map(Told::Elected),
        1 => prop::option::of(prop_oneof![Just(2), Just(u64::MAX)]).prop_map(Told::Stop),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let shown = prop::option::of((values(), prop_oneof![1..40_u64, Just(u64::MAX)]));
    prop_oneof![
        3 => (0..3_000_u16).prop_map(Step::Peace),
        4 => (0..500_u16).prop_map(Step::Pass),
        8 => (index(), answers()).prop_map(|(at, answer)| Step::Answer(at, answer)),
        4 => (index(), values()).prop_map(|(at, value)| Step::Write(at, value)),
        1 => index().prop_map(Step::Delete),
        4 => (index(), shown).prop_map(|(at, other)| Step::Show(at, other)),
        3 => (index(), any::<bool>()).prop_map(|(at, failed)| Step::HookEnds(at, failed)),
        3 => tellings().prop_map(Step::Told),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_events_in_any_order_make_a_member_panic_or_spin(
        seed in any::<u64>(),
        external in any::<bool>(),
        begins in any::<bool>(),
        steps in prop::collection::vec(steps(), 1..80),
    ) {
        let mut bench = Bench::new(seed, external);
        if begins {
            bench.told(&Told::Start);
            bench.told(&Told::Connected(0));
            bench.told(&Told::Elected(true));
            bench.peace(Duration::from_secs(4));
        }
        for step in &steps {
            bench.step(step);
        }
        bench.told(&Told::Stop(None));
        bench.peace(Duration::from_secs(4));
        prop_assert!(bench.is_over, "it was told to stop");
    }
}

#[test]
fn in_peace_a_member_alone_gets_to_work() {
    let mut bench = Bench::new(1, false);
    bench.told(&Told::Start);
    bench.told(&Told::Connected(0));
    bench.peace(Duration::from_secs(4));
    assert_eq!(bench.running.len(), PARTITIONS as usize);
}
