//! A cluster of members over one table, driven by a deterministic loop: every
//! operation takes one round trip, watches see every change, hooks end after a
//! while. What goes wrong is up to the test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::{
    Action, Clock, Event, HookEnd, HookId, LeaderSettings, Life, Member, MemberSetup, Operation,
    Reply, Report, SelfDescription, SessionId, Shutdown, State, StoreOutage, Version, Watched,
    WorkerRecord,
};
use divvy_core::store::{Change, Entry, Incarnation, Key, KeyValueTable, Outcome, StoreErrorKind};
use divvy_core::{Balanced, Health, Moment, Partitions, Strategy};

pub(crate) const TRIP: Duration = Duration::from_millis(2);

/// Something that will happen.
#[derive(Debug)]
enum Due {
    /// An operation reaches the store.
    Store(usize, divvy_core::leader::OperationId, Operation),
    /// Something reaches a member.
    Member(usize, Event),
    /// An operation is given up by whoever waits for it.
    Lost(usize, divvy_core::leader::OperationId),
}

pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) is_up: bool,
    /// Nothing reaches the store, and nothing comes back.
    pub(crate) is_cut: bool,
    pub(crate) watched: Vec<Watched>,
    pub(crate) problems: Vec<String>,
    /// Why each of its sessions ended.
    pub(crate) sessions_ended: Vec<String>,
    /// Every state that it went through, after the first.
    pub(crate) states: Vec<State>,
    pub(crate) aborted: Option<String>,
    pub(crate) ended: bool,
    /// How long its hooks take; nothing for never.
    pub(crate) hook_time: Option<Duration>,
    /// Partitions whose start fails, and those whose start does not end.
    pub(crate) failing: BTreeSet<String>,
    pub(crate) stuck: BTreeSet<String>,
    /// Whether a start that does not end can be ended.
    pub(crate) yields: bool,
    /// Hooks that do not end by themselves.
    pub(crate) unended: Vec<HookId>,
    /// Partitions by text, with their token, as the hooks know them.
    pub(crate) runs: BTreeMap<String, i64>,
    pub(crate) starts: u64,
    pub(crate) source: Result<Partitions, String>,
    pub(crate) source_reads: u64,
}

pub(crate) struct Cluster {
    pub(crate) now: Duration,
    pub(crate) table: KeyValueTable,
    pub(crate) nodes: Vec<Node>,
    pub(crate) settings: LeaderSettings,
    pub(crate) partitions: Partitions,
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) incarnation: Incarnation,
    /// What wall clocks show at the beginning.
    pub(crate) unix_ms: u64,
    queue: BTreeMap<(Duration, u64), Due>,
    sequence: u64,
    /// Every start: partition, token, node.
    pub(crate) history: Vec<(String, i64, usize)>,
    /// Keys below which every write is refused, and when that was.
    pub(crate) refuses: Option<String>,
    pub(crate) refused: Vec<Duration>,
    pub(crate) operations: u64,
    pub(crate) writes: u64,
    /// What reads of its key find, and what makes every write of it conflict.
    pub(crate) replaced: Option<Entry>,
}

impl Cluster {
    pub(crate) fn new(settings: LeaderSettings, partitions: u32) -> Self {
        Self {
            now: Duration::from_secs(1),
            table: KeyValueTable::default(),
            nodes: Vec::new(),
            settings,
            partitions: Partitions::shards([("p", partitions)]).unwrap(),
            strategy: Arc::new(Balanced::new()),
            incarnation: Incarnation::new("first"),
            unix_ms: 1_700_000_000_000,
            queue: BTreeMap::new(),
            sequence: 0,
            history: Vec::new(),
            refuses: None,
            refused: Vec::new(),
            operations: 0,
            writes: 0,
            replaced: None,
        }
    }

    /// A cluster of so many members that has come to rest.
    pub(crate) fn settled(settings: LeaderSettings, members: usize, partitions: u32) -> Self {
        let mut cluster = Self::new(settings, partitions);
        for index in 0..members {
            cluster.join(&format!("host-{index}"));
        }
        cluster.settle();
        cluster
    }

    fn clock(&self) -> Clock {
        Clock {
            now: Moment::from_origin(self.now),
            unix_ms: self.unix_ms.saturating_add(self.now.as_millis() as u64),
        }
    }

    pub(crate) fn setup(&self, instance: &str) -> MemberSetup {
        MemberSetup {
            settings: self.settings.clone(),
            instance: instance.into(),
            strategy: Arc::clone(&self.strategy),
            previous: None,
            description: SelfDescription {
                health: Health::Healthy,
                weight: 1.0,
                zone: None,
            },
            seed: divvy_core::hash::bytes64(instance.as_bytes(), self.nodes.len() as u64),
            external_election: false,
            hooks_wait: false,
            retries: divvy_core::leader::Retries::default(),
            value_bytes_max: 1 << 20,
            batches: divvy_core::leader::Batches::default(),
        }
    }

    /// Starts a member, and gives its number.
    pub(crate) fn join(&mut self, instance: &str) -> usize {
        let setup = self.setup(instance);
        self.join_with(setup)
    }

    pub(crate) fn join_with(&mut self, setup: MemberSetup) -> usize {
        self.nodes.push(Node {
            member: Member::new(setup, self.clock()),
            is_up: true,
            is_cut: false,
            watched: Vec::new(),
            problems: Vec::new(),
            sessions_ended: Vec::new(),
            states: Vec::new(),
            aborted: None,
            ended: false,
            hook_time: Some(Duration::from_millis(1)),
            failing: BTreeSet::new(),
            stuck: BTreeSet::new(),
            yields: true,
            unended: Vec::new(),
            runs: BTreeMap::new(),
            starts: 0,
            source: Ok(self.partitions.clone()),
            source_reads: 0,
        });
        let node = self.nodes.len() - 1;
        self.tell(node, Event::Start);
        self.tell(node, Event::Connected(self.incarnation.clone()));
        node
    }

    pub(crate) fn tell(&mut self, node: usize, event: Event) {
        if !self.nodes[node].is_up {
            return;
        }
        let clock = self.clock();
        self.nodes[node].member.handle(clock, event);
        self.act(node);
    }

    fn after(&mut self, delay: Duration, due: Due) {
        self.sequence += 1;
        self.queue.insert((self.now + delay, self.sequence), due);
    }

    fn act(&mut self, node: usize) {
        while let Some(action) = self.nodes[node].member.next_action() {
            match action {
                Action::Store {
                    id,
                    operation,
                    timeout,
                } => {
                    if !self.nodes[node].is_cut {
                        self.after(TRIP / 2, Due::Store(node, id, operation));
                    }
                    self.after(timeout, Due::Lost(node, id));
                }
                Action::Watch(keys) => self.nodes[node].watched = keys,
                Action::ListPartitions => {
                    self.nodes[node].source_reads += 1;
                    let answer = Event::Partitions(self.nodes[node].source.clone());
                    self.after(TRIP, Due::Member(node, answer));
                }
                Action::StartPartition {
                    id,
                    partition,
                    token,
                } => {
                    self.start(node, id, partition.to_string(), token.get());
                }
                Action::CancelStart(id) => {
                    if self.nodes[node].yields {
                        self.nodes[node].unended.retain(|unended| *unended != id);
                        let end = Event::HookEnded(id, HookEnd::Cancelled);
                        self.after(TRIP, Due::Member(node, end));
                    }
                }
                Action::WithdrawStart(_) => {}
                Action::StopPartition { id, partition, .. } => {
                    let stopped = self.nodes[node].runs.remove(partition.as_str());
                    assert!(
                        stopped.is_some(),
                        "{partition} stops without having started"
                    );
                    self.end_hook(node, id);
                }
                Action::Report(Report::Problem(text)) => {
                    self.nodes[node].problems.push(text.into());
                }
                Action::Report(Report::SessionEnded(why)) => {
                    self.nodes[node].sessions_ended.push(why.into());
                }
                Action::Report(Report::State { to, .. }) => self.nodes[node].states.push(to),
                Action::Abort(why) => {
                    self.nodes[node].aborted = Some(why);
                    self.kill(node);
                }
                Action::Ended => {
                    self.nodes[node].ended = true;
                    self.kill(node);
                }
                Action::Deadline(_)
                | Action::RequestLeadership
                | Action::ReleaseLeadership
                | Action::Report(_) => {}
            }
        }
    }

    fn start(&mut self, node: usize, id: HookId, name: String, token: i64) {
        let is_running = self.nodes[node].runs.contains_key(&name);
        assert!(!is_running, "{name} starts twice");
        self.check_alone(node, &name);
        self.nodes[node].starts += 1;
        self.history.push((name.clone(), token, node));
        if self.nodes[node].failing.contains(&name) {
            let end = Event::HookEnded(id, HookEnd::Failed);
            return self.after(TRIP, Due::Member(node, end));
        }
        let is_stuck = self.nodes[node].stuck.contains(&name);
        self.nodes[node].runs.insert(name, token);
        match is_stuck {
            true => self.nodes[node].unended.push(id),
            false => self.end_hook(node, id),
        }
    }

    /// Nobody else may have authority over what starts here.
    fn check_alone(&self, node: usize, partition: &str) {
        if self.settings.store_outage == StoreOutage::Overlap {
            return;
        }
        let now = Moment::from_origin(self.now);
        for (other, peer) in self.nodes.iter().enumerate() {
            let has = peer.is_up && peer.member.holds_authority(partition, now);
            assert!(
                other == node || !has,
                "{partition} is with {other} and starts at {node}"
            );
        }
    }

    fn end_hook(&mut self, node: usize, id: HookId) {
        if let Some(time) = self.nodes[node].hook_time {
            self.after(time, Due::Member(node, Event::HookEnded(id, HookEnd::Done)));
        } else {
            self.nodes[node].unended.push(id);
        }
    }

    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].is_up = false;
        self.nodes[node].runs.clear();
    }

    pub(crate) fn stop(&mut self, node: usize, how: Shutdown) {
        self.tell(node, Event::Stop(how));
    }

    /// Runs for so long.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let event = self.queue.keys().next().map(|(at, _)| *at);
            let wakes = self.nodes.iter().filter(|node| node.is_up);
            let wake = wakes.filter_map(|node| node.member.next_wake()).min();
            let wake = wake.map(|moment| moment.to_origin());
            let Some(next) = [event, wake]
                .into_iter()
                .flatten()
                .min()
                .filter(|at| *at <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            if event.is_some_and(|at| at <= self.now) {
                let (_, due) = self.queue.pop_first().expect("one is due");
                self.happen(due);
            } else {
                self.wake_due();
            }
        }
        self.now = end;
    }

    fn wake_due(&mut self) {
        let clock = self.clock();
        for node in 0..self.nodes.len() {
            let due = self.nodes[node].member.next_wake();
            if self.nodes[node].is_up && due.is_some_and(|at| at <= clock.now) {
                self.nodes[node].member.wake(clock);
                self.act(node);
            }
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Member(node, event) => {
                let is_reply = matches!(event, Event::Reply(..) | Event::Seen(_));
                if !(is_reply && self.nodes[node].is_cut) {
                    self.tell(node, event);
                }
            }
            Due::Lost(node, id) => {
                let unknown = Reply::Failed(StoreErrorKind::Unknown);
                self.tell(node, Event::Reply(id, unknown));
            }
            Due::Store(node, id, operation) => {
                self.operations += 1;
                let reply = self.operate(operation);
                self.after(TRIP / 2, Due::Member(node, Event::Reply(id, reply)));
            }
        }
    }

    fn operate(&mut self, operation: Operation) -> Reply {
        let replaced = self.replaced.as_ref();
        match operation {
            Operation::Get(key) => match replaced.filter(|entry| entry.key == key) {
                Some(entry) => Reply::Got(Some(entry.clone())),
                None => Reply::Got(self.table.get(&key)),
            },
            Operation::CompareAndSet { key, .. }
                if replaced.is_some_and(|entry| entry.key == key) =>
            {
                Reply::Written(Outcome::Conflict)
            }
            Operation::List(prefix) => Reply::Listed(self.table.list(&prefix)),
            Operation::CompareAndSet {
                key,
                expected,
                value,
            } => {
                let refuses = self.refuses.as_deref();
                if refuses.is_some_and(|prefix| key.as_str().starts_with(prefix)) {
                    self.refused.push(self.now);
                    return Reply::Failed(StoreErrorKind::Unavailable);
                }
                let outcome = self.table.compare_and_set(&key, expected, &value);
                if let Outcome::Done(revision) = outcome {
                    self.writes += 1;
                    self.show(&Entry {
                        key,
                        value,
                        revision,
                    });
                }
                Reply::Written(outcome)
            }
            Operation::Delete { key, revision } => {
                Reply::Deleted(self.table.delete(&key, revision))
            }
        }
    }

    /// Writes as an operator would.
    pub(crate) fn write(&mut self, key: &Key, value: &[u8]) {
        let expected = self.table.get(key).map(|entry| entry.revision).into();
        let outcome = self.table.compare_and_set(key, expected, value);
        let Outcome::Done(revision) = outcome else {
            panic!("nobody else writes")
        };
        let value = value.into();
        self.show(&Entry {
            key: key.clone(),
            value,
            revision,
        });
    }

    /// Deletes as an operator would; watches may see it or not.
    pub(crate) fn delete(&mut self, key: &Key, is_seen: bool) {
        let entry = self.table.get(key).expect("it is there");
        let Outcome::Done(revision) = self.table.delete(key, entry.revision) else {
            panic!("nobody else writes")
        };
        if is_seen {
            self.spread(&Change::Deleted(key.clone(), revision));
        }
    }

    /// All is gone, and the store says so.
    pub(crate) fn forget(&mut self, life: &str) {
        self.table = KeyValueTable::default();
        self.incarnation = Incarnation::new(life);
        for node in 0..self.nodes.len() {
            if !self.nodes[node].is_cut {
                self.tell(node, Event::Connected(self.incarnation.clone()));
            }
        }
    }

    fn show(&mut self, entry: &Entry) {
        self.spread(&Change::Put(entry.clone()));
    }

    fn spread(&mut self, change: &Change) {
        for node in 0..self.nodes.len() {
            let watches = self.nodes[node]
                .watched
                .iter()
                .any(|watched| match watched {
                    Watched::Key(key) => key == change.key(),
                    Watched::Below(prefix) => prefix.holds(change.key()),
                });
            if watches && self.nodes[node].is_up {
                let event = Event::Seen(change.clone());
                self.after(TRIP / 2, Due::Member(node, event));
            }
        }
    }

    /// Runs until everything is owned, and a while longer.
    pub(crate) fn settle(&mut self) {
        let patience = self.settings.cold_start_window * 2 + self.settings.heartbeat_ttl * 6;
        let step = self.settings.heartbeat_interval / 4;
        let mut waited = Duration::ZERO;
        while !self.is_owned() {
            assert!(
                waited < patience,
                "not everything is owned after {waited:?}"
            );
            self.run(step);
            waited += step;
        }
        self.run(self.settings.planned_scale_window * 4 + self.settings.rebalance_cooldown * 2);
        assert!(self.is_owned(), "something lost its owner again");
    }

    /// Whether every partition runs, with authority, at exactly one member.
    pub(crate) fn is_owned(&self) -> bool {
        let now = Moment::from_origin(self.now);
        self.partitions.iter().all(|partition| {
            let name = partition.as_str();
            let owners = self.nodes.iter().filter(|node| {
                node.is_up && node.runs.contains_key(name) && node.member.holds_authority(name, now)
            });
            owners.count() == 1
        })
    }

    pub(crate) fn leader(&self) -> Option<usize> {
        let leads = |node: &Node| node.is_up && node.member.is_leader();
        self.nodes.iter().position(leads)
    }

    /// How many partitions run at each member.
    pub(crate) fn counts(&self) -> Vec<usize> {
        self.nodes.iter().map(|node| node.runs.len()).collect()
    }

    /// Who runs what.
    pub(crate) fn owners(&self) -> BTreeMap<String, String> {
        let mut owners = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| node.is_up) {
            for name in node.runs.keys() {
                let id = node.member.worker_id().unwrap_or_default().to_owned();
                owners.insert(name.clone(), id);
            }
        }
        owners
    }
}

/// The record of a worker that is there and does nothing else.
pub(crate) fn stranger(session: u128) -> WorkerRecord {
    let lease = LeaderSettings::fast().heartbeat_ttl;
    WorkerRecord {
        instance: "stranger".into(),
        session: SessionId(session),
        beat: 2,
        lease,
        life: Life::Live,
        acked: Version::default(),
        stopping: Vec::new(),
        adopted: Version::default(),
        token_max: None,
        health: Health::Healthy,
        weight: 1.0,
        zone: None,
        refresh: 0,
        alarm: 0,
        unable: Vec::new(),
        longest: lease,
    }
}
