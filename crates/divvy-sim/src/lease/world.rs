//! A world of lease mode: members, their store, and all that happens to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use divvy_core::lease::{Hashes, Member};
use divvy_core::store::{LeaseKey, Nonce, Token, WorkerId};

use super::course::Course;
use super::groups::Groups;
use super::network::Request;
use super::process::{Arrival, Process};
use super::profile::LeaseProfile;
use super::store::Store;
use super::wishes::Wishes;
use crate::clock::{MemberClock, RATE_ERROR_MAX_PPM};
use crate::coverage::Mishap;
use crate::dice::Dice;
use crate::fact::{Fact, Phase, Seen};
use crate::fault::{HookWeather, Weather};
use crate::hands::{Chronicle, Trace};
use crate::invariants::{Bounds, Broken, LeaseInvariants};
use crate::leader::{OPERATIONS_MAX, Observation, Observed, Tally};
use crate::lease::LeaseFaultKind;
use crate::ledger::Ledger;
use crate::queue::Queue;
use crate::resource::Resource;
use crate::time::TrueTime;

/// The cluster that all members belong to.
pub(super) const CLUSTER: &str = "c";
/// What the store's clock shows when the world begins: it can be set back.
const STORE_CLOCK_BASE: Duration = Duration::from_secs(1_000_000);

/// Something that will happen.
#[derive(Debug)]
pub(super) enum Happening {
    /// A process is started.
    Boot(usize),
    /// Something reaches a process of this generation.
    Arrive(usize, u32, Arrival),
    /// An operation reaches the store.
    Request(Box<Request>),
    /// A process that stands still goes on.
    Resume(usize),
    /// An effect that was decided on earlier reaches its resource.
    LateEffect(usize, Token),
    /// All running partitions do something.
    Effects,
    /// The store is remembered for a fault that will make it forget.
    Remember(usize),
    /// A fault begins.
    Strike(usize),
    /// A fault ends.
    Relent(usize),
    /// The next member of a rolling restart stops.
    Roll(usize),
    /// Whoever keeps the groups writes them into the store.
    WriteGroups,
    /// What operators wish is written.
    WriteWishes,
}

/// A world of lease mode.
#[derive(Debug)]
pub struct LeaseWorld {
    pub(super) profile: LeaseProfile,
    pub(super) now: TrueTime,
    pub(super) queue: Queue<Happening>,
    pub(super) dice: Dice,
    pub(super) processes: Vec<Process>,
    pub(super) store: Store,
    pub(super) groups: Groups,
    /// What members would all calculate by themselves, where hands let a world
    /// grow.
    pub(super) hashes: Arc<Hashes>,
    pub(super) wishes: Wishes,
    pub(super) resource: Resource,
    pub(super) phase: Phase,
    /// Faults that have begun and not ended.
    pub(super) active: Vec<usize>,
    pub(super) weather: Weather,
    pub(super) hook_weather: HookWeather,
    pub(super) tally: Tally,
    /// What each token of each partition was granted with.
    pub(super) nonces: BTreeMap<(usize, Token), Nonce>,
    /// When each process last kept its name, by name.
    pub(super) named: BTreeMap<WorkerId, BTreeMap<(usize, u32), TrueTime>>,
    /// Until when a name may be held by nobody: the store's clock was set.
    pub(super) names_linger: TrueTime,
    /// Partitions that were ever started.
    pub(super) started: BTreeSet<usize>,
    /// When a partition was last started or stopped.
    pub(super) moved: TrueTime,
    pub(super) observations: Vec<Observation>,
    invariants: LeaseInvariants,
    ledger: Ledger,
    pub(super) trace: Option<Trace>,
    /// What hands want to know; nothing where none reach into it.
    pub(super) chronicle: Option<Chronicle>,
    /// How far its course is, where somebody watches it run.
    pub(super) course: Option<Course>,
}

impl LeaseWorld {
    /// The world of this profile, before anything has happened.
    pub fn new(profile: LeaseProfile, traced: bool) -> Self {
        let mut dice = Dice::new(!profile.seed);
        let rate = match profile.drifting {
            true => dice.between(-RATE_ERROR_MAX_PPM, RATE_ERROR_MAX_PPM),
            false => 0,
        };
        let clock = MemberClock::new(STORE_CLOCK_BASE, rate, 0);
        let groups = Groups::new(&profile);
        let mut world = Self {
            now: TrueTime::ZERO,
            queue: Queue::new(),
            dice,
            processes: Vec::new(),
            store: Store::new(clock, profile.fresh),
            resource: Resource::new(groups.partitions_max()),
            invariants: LeaseInvariants::new(&bounds(&profile, &groups)),
            groups,
            hashes: Arc::default(),
            wishes: Wishes::default(),
            phase: Phase::Faults,
            active: Vec::new(),
            weather: Weather::default(),
            hook_weather: HookWeather::default(),
            tally: Tally::default(),
            nonces: BTreeMap::new(),
            named: BTreeMap::new(),
            names_linger: TrueTime::ZERO,
            started: BTreeSet::new(),
            moved: TrueTime::ZERO,
            observations: Vec::new(),
            ledger: Ledger::default(),
            trace: traced.then(|| Trace::new(profile.room.is_some())),
            chronicle: profile.room.map(|_| Chronicle::default()),
            course: None,
            profile,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.groups.write(&mut self.store.table);
        for _ in 0..self.profile.members {
            let member = self.add_place();
            let stagger = match self.profile.faults.is_empty() {
                true => Duration::from_millis(20),
                false => self.profile.settings.heartbeat_ttl,
            };
            let at = self.now + self.dice.span(Duration::ZERO, stagger);
            self.queue.push(at, Happening::Boot(member));
        }
        self.share_hashes();
        for (index, fault) in self.profile.faults.iter().enumerate() {
            if self.profile.without.contains(&index) {
                continue;
            }
            self.queue.push(fault.at, Happening::Strike(index));
            if let LeaseFaultKind::RestartBehind(Some(back)) = fault.kind {
                let nanos = fault.at.nanos().saturating_sub(back.as_nanos() as u64);
                let at = TrueTime::from_nanos(nanos);
                self.queue.push(at, Happening::Remember(index));
            }
        }
        let every = self.profile.settings.heartbeat_interval;
        self.queue.push(self.now + every, Happening::Effects);
    }

    /// A new place for a member, with a clock of its own.
    pub(super) fn add_place(&mut self) -> usize {
        let number = self.processes.len();
        let name = match self.profile.room {
            Some(_) => format!("host-{number}"),
            None => format!("w{number}"),
        };
        let worker = WorkerId::new(CLUSTER, &name).expect("a valid name");
        let rate = match self.profile.drifting {
            true => self.dice.between(-RATE_ERROR_MAX_PPM, RATE_ERROR_MAX_PPM),
            false => 0,
        };
        let offset = self
            .dice
            .span(Duration::from_secs(1), Duration::from_secs(1000));
        let clock = MemberClock::new(offset, rate, 0);
        let weight = self.profile.plan_of(number).weight;
        self.processes.push(Process::new(worker, clock, weight));
        number
    }

    /// Calculates for all members what each would for itself, where there may
    /// be many of them.
    pub(super) fn share_hashes(&mut self) {
        if self.profile.room.is_none() {
            return;
        }
        let mut hashes = (*self.hashes).clone();
        for group in self.groups.present() {
            for process in &self.processes {
                hashes.add(&group, &process.worker);
            }
        }
        self.hashes = Arc::new(hashes);
        for process in &mut self.processes {
            if let Some(machine) = &mut process.machine {
                machine.share(Arc::clone(&self.hashes));
            }
        }
    }

    /// Lets everything happen that is due by `until`.
    pub fn run_until(&mut self, until: TrueTime) -> Result<(), Broken> {
        while let Some((at, happening)) = self.queue.pop(until) {
            self.begin_at(at);
            self.happen(happening)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Something happens now.
    pub(super) fn begin_at(&mut self, at: TrueTime) {
        debug_assert!(at >= self.now, "time goes on");
        self.now = at;
        self.tally.events += 1;
    }

    pub(super) fn happen(&mut self, happening: Happening) -> Result<(), Broken> {
        match happening {
            Happening::Boot(member) => self.boot(member),
            Happening::Arrive(member, generation, arrival) => {
                if self.processes[member].generation != generation {
                    return Ok(());
                }
                self.arrive(member, arrival)
            }
            Happening::Request(request) => self.request_arrives(request),
            Happening::Resume(member) => self.resume(member),
            Happening::LateEffect(partition, token) => {
                self.late_effect(partition, token);
                Ok(())
            }
            Happening::Effects => self.effects(),
            Happening::Remember(fault) => {
                self.store.remember(fault);
                Ok(())
            }
            Happening::Strike(fault) => self.strike(fault),
            Happening::Relent(fault) => self.relent(fault),
            Happening::Roll(member) => {
                self.roll(member);
                Ok(())
            }
            Happening::WriteWishes => {
                self.write_wishes();
                Ok(())
            }
            Happening::WriteGroups => {
                self.write_groups();
                Ok(())
            }
        }
    }

    /// Tells all invariants.
    pub(super) fn tell(&mut self, fact: &Fact<'_>) -> Result<(), Broken> {
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.hear(self.now, fact);
        }
        self.invariants.observe(&Seen {
            at: self.now,
            fact,
            ledger: &self.ledger,
        })
    }

    /// Writes a line of the trace, if there is one.
    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(self.now, line());
        }
    }

    pub(super) fn after(&mut self, span: Duration, happening: Happening) {
        self.queue.push(self.now + span, happening);
    }

    pub(super) fn count(&mut self, mishap: Mishap) {
        self.tally.coverage.count(mishap);
    }

    pub(super) fn observed(&mut self, what: Observed) {
        if self.chronicle.is_some() {
            return;
        }
        let at = self.now;
        self.observations.push(Observation { at, what });
    }

    /// The number of the partition that a lease is for.
    pub(super) fn partition_of(&self, key: &LeaseKey) -> usize {
        self.groups
            .partition_of(key)
            .expect("members know only groups that there are")
    }

    /// What can be counted so far.
    pub fn tally(&self) -> Tally {
        Tally {
            lasted: self.now.elapsed(),
            effects: self.resource.effects,
            ..self.tally.clone()
        }
    }

    /// Takes the lines of the trace.
    pub fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().map_or_else(Vec::new, Trace::into_lines)
    }

    /// Takes what figures are made from.
    pub fn take_observations(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.observations)
    }

    pub(super) fn trace_lines(&self) -> Vec<String> {
        self.trace.as_ref().map_or_else(Vec::new, Trace::lines)
    }

    /// Writes why it ended as the last line of the trace.
    pub(crate) fn note_end(&mut self, why: &str) {
        self.note(|| format!("broken: {why}"));
    }

    /// What it is now.
    pub const fn now(&self) -> TrueTime {
        self.now
    }

    /// The machine at a place, if its process is alive.
    pub fn member(&self, place: usize) -> Option<&Member> {
        self.processes.get(place)?.machine.as_deref()
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.processes.len()
    }
}

fn bounds(profile: &LeaseProfile, groups: &Groups) -> Bounds {
    let settings = &profile.settings;
    Bounds {
        lease: settings.lease_ttl,
        is_exclusive: true,
        is_calm: profile.is_calm(),
        ends_late: false,
        leader_lease: settings.lease_ttl,
        value_bytes_max: usize::MAX,
        // Beside those of one each, a mark and a release for each partition.
        operations_max: OPERATIONS_MAX + groups.partitions_max() * 2,
        members_max: profile.members_max(),
        partitions_max: groups.partitions_max(),
        start_within: settings.lease_ttl,
        beat_within: settings.lease_ttl,
    }
}
