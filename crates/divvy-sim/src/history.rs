//! What real members said that happened, held against the same invariants as
//! simulated worlds.
//!
//! Members are on one machine, whose clock they share: that is what makes
//! their words comparable.

mod attempt;
mod written;

pub use attempt::{Answer, Attempt};

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::leader::{SessionId, Version};
use divvy_core::store::{Entry, Revision, Token};
use divvy_core::{Moment, Partitions};

use self::attempt::Attempts;
use self::written::{Replay, Write};
use crate::fact::{Fact, Seen};
use crate::invariants::{Bounds, Broken, OwnershipInvariants, RecordedInvariants};
use crate::ledger::Ledger;
use crate::time::TrueTime;

/// What a member said that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Happened {
    /// It called the start hook of a partition.
    StartCalled(String, Token),
    /// A start hook returned; whether it failed.
    StartEnded(String, bool),
    /// It called the stop hook of a partition.
    StopCalled(String),
    /// A stop hook returned.
    StopEnded(String),
    /// Its grants are current until then, as this worker in this session.
    Deadline(Option<(String, SessionId)>, Option<Moment>),
    /// It adopted a root.
    Adopted(Option<SessionId>, Version),
    /// It is gone; whether it ended in order.
    Gone(bool),
}

/// Everything that several members said, and what they wrote where that was
/// recorded.
#[derive(Debug, Clone, Default)]
pub struct History {
    said: Vec<(Moment, usize, Happened)>,
    attempts: Attempts,
    listed: Vec<(Moment, Partitions)>,
    forgot: Vec<Moment>,
    allows_overlap: bool,
}

/// Something that happened, or was written.
#[derive(Debug, Clone, Copy)]
enum Item<'a> {
    Forgot,
    Listed(&'a Partitions),
    Wrote(&'a Write),
    Said(usize, &'a Happened),
}

/// A member's hold of a partition.
#[derive(Debug, Clone, Copy)]
struct Hold {
    since: Moment,
    until: Moment,
}

impl History {
    /// Adds what a member said. Members are numbered anew with every start.
    pub fn add(&mut self, member: usize, at: Moment, happened: Happened) {
        self.said.push((at, member, happened));
    }

    /// Adds an attempt to write. Where one is recorded, all have to be.
    pub fn tried(&mut self, attempt: Attempt) {
        self.attempts.tried.push(attempt);
    }

    /// Adds a value that somebody has found in the store: it tells who wrote
    /// what was never answered.
    pub fn found(&mut self, entry: &Entry) {
        let found = (entry.key.clone(), entry.value.as_ref().into());
        self.attempts.found.insert(entry.revision, found);
    }

    /// Adds what the source of partitions gave.
    pub fn listed(&mut self, at: Moment, partitions: Partitions) {
        self.listed.push((at, partitions));
    }

    /// The store lost everything at this moment, and says so by a new
    /// incarnation.
    pub fn forgot(&mut self, at: Moment) {
        self.forgot.push(at);
    }

    /// Members go on working without the store: they promise less.
    pub const fn allow_overlap(&mut self) {
        self.allows_overlap = true;
    }

    /// How much was said.
    pub fn len(&self) -> usize {
        self.said.len()
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// In order of time; of one moment, in the order that it was said in.
    fn in_order(&self) -> Vec<&(Moment, usize, Happened)> {
        let mut said: Vec<_> = self.said.iter().collect();
        said.sort_by_key(|(at, ..)| *at);
        said
    }

    /// All together, in order of time; of one moment, what was written before
    /// what was said.
    fn items<'a>(&'a self, writes: &'a BTreeMap<Revision, Write>) -> Vec<(Moment, Item<'a>)> {
        let listed = self.listed.iter();
        let mut items: Vec<_> = listed
            .map(|(at, partitions)| (*at, Item::Listed(partitions)))
            .collect();
        items.extend(self.forgot.iter().map(|at| (*at, Item::Forgot)));
        let writes = written::in_order(writes).into_iter();
        items.extend(writes.map(|(at, write)| (at, Item::Wrote(write))));
        let said = self.in_order().into_iter();
        items.extend(said.map(|(at, member, happened)| (*at, Item::Said(*member, happened))));
        items.sort_by_key(|(at, _)| *at);
        items
    }

    fn bounds(&self, lease: Duration, partitions: usize) -> Bounds {
        let said = self.said.iter().map(|(_, member, _)| member + 1);
        let tried = self.attempts.tried.iter();
        let wrote = tried.map(|attempt| attempt.by + 1);
        Bounds {
            lease,
            is_exclusive: !self.allows_overlap,
            is_stale: true,
            is_calm: false,
            ends_late: true,
            leader_lease: lease,
            value_bytes_max: usize::MAX,
            operations_max: usize::MAX,
            members_max: said.chain(wrote).max().unwrap_or(0),
            partitions_max: partitions,
            start_within: lease,
            beat_within: lease,
        }
    }

    /// Whether the invariants hold, for leases of this length: those of
    /// ownership, and where writes were recorded those of records, too.
    pub fn check(&self, lease: Duration) -> Result<(), Broken> {
        let mut numbers = BTreeMap::new();
        for (_, _, happened) in &self.said {
            if let Some(name) = happened.partition() {
                let next = numbers.len();
                numbers.entry(name).or_insert(next);
            }
        }
        let bounds = self.bounds(lease, numbers.len());
        let writes = self.attempts.writes();
        let items = self.items(&writes);
        if self.attempts.tried.is_empty() {
            let mut invariants = OwnershipInvariants::new(&bounds);
            return replay(items, &numbers, |seen| invariants.observe(seen));
        }
        let mut invariants = RecordedInvariants::new(&bounds);
        replay(items, &numbers, |seen| invariants.observe(seen))
    }

    /// For how long partitions had two owners at once, added up.
    pub fn two_owners(&self) -> Duration {
        let mut holds = Holds::default();
        for (at, member, happened) in self.in_order() {
            match happened {
                Happened::StartCalled(name, _) => {
                    holds.running.insert((*member, name), *at);
                }
                Happened::StartEnded(name, true) | Happened::StopEnded(name) => {
                    holds.end(*member, name, *at);
                }
                Happened::Deadline(_, Some(moment)) => {
                    holds.until.insert(*member, *moment);
                }
                Happened::Deadline(_, None) | Happened::Gone(_) => holds.end_all(*member, *at),
                Happened::StartEnded(_, false)
                | Happened::StopCalled(_)
                | Happened::Adopted(..) => {}
            }
        }
        holds.ended.into_values().map(overlap).sum()
    }
}

impl History {
    /// How often two sessions had one stable id at the same time.
    pub fn duplicate_ids(&self) -> usize {
        let mut sessions: BTreeMap<(&str, SessionId), Hold> = BTreeMap::new();
        let mut current: BTreeMap<usize, (&str, SessionId)> = BTreeMap::new();
        for (at, member, happened) in self.in_order() {
            let before = current.get(member).copied();
            let now = match happened {
                Happened::Deadline(Some((id, session)), Some(until)) => {
                    let key = (id.as_str(), *session);
                    let first = Hold {
                        since: *at,
                        until: *until,
                    };
                    sessions.entry(key).or_insert(first).until = *until;
                    current.insert(*member, key);
                    Some(key)
                }
                Happened::Deadline(..) | Happened::Gone(_) => current.remove(member).and(None),
                _ => continue,
            };
            if let Some(ended) = before.filter(|before| Some(*before) != now)
                && let Some(hold) = sessions.get_mut(&ended)
            {
                hold.until = hold.until.min(*at);
            }
        }
        let mut by_id: BTreeMap<&str, Vec<Hold>> = BTreeMap::new();
        for ((id, _), hold) in sessions {
            by_id.entry(id).or_default().push(hold);
        }
        by_id.into_values().map(overlaps).sum()
    }
}

/// Shows everything that happened to invariants.
fn replay(
    items: Vec<(Moment, Item<'_>)>,
    numbers: &BTreeMap<&str, usize>,
    mut observe: impl FnMut(&Seen<'_>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut replay = Replay::default();
    for (at, item) in items {
        let at = true_time(at);
        let mut tell = |fact: &Fact<'_>, ledger: &Ledger| observe(&Seen { at, fact, ledger });
        match item {
            Item::Forgot => {
                replay = Replay::default();
                tell(&Fact::Forgot { announced: true }, &replay.ledger)?;
            }
            Item::Listed(partitions) => tell(&Fact::Sourced { partitions }, &replay.ledger)?,
            Item::Wrote(write) => replay.apply(at, write, tell)?,
            Item::Said(member, happened) => {
                let fact = happened.fact(member, |name| numbers[name]);
                tell(&fact, &replay.ledger)?;
            }
        }
    }
    Ok(())
}

/// How many holds begin before another has ended.
fn overlaps(mut holds: Vec<Hold>) -> usize {
    holds.sort_by_key(|hold| hold.since);
    let mut reach = Moment::default();
    let mut count = 0;
    for hold in holds {
        count += usize::from(hold.since < reach);
        reach = reach.max(hold.until);
    }
    count
}

/// Who held what, as it becomes known.
#[derive(Debug, Default)]
struct Holds<'a> {
    /// What runs where, and since when.
    running: BTreeMap<(usize, &'a str), Moment>,
    until: BTreeMap<usize, Moment>,
    ended: BTreeMap<&'a str, Vec<Hold>>,
}

impl<'a> Holds<'a> {
    fn end(&mut self, member: usize, name: &'a str, at: Moment) {
        if let Some(since) = self.running.remove(&(member, name)) {
            // Beyond its deadline nothing that it did counts.
            let until = self.until.get(&member).map_or(at, |until| at.min(*until));
            self.ended
                .entry(name)
                .or_default()
                .push(Hold { since, until });
        }
    }

    fn end_all(&mut self, member: usize, at: Moment) {
        let mine = self.running.keys().filter(|(who, _)| *who == member);
        for (_, name) in mine.copied().collect::<Vec<_>>() {
            self.end(member, name, at);
        }
    }
}

/// For how long more than one hold at once lasts.
fn overlap(mut holds: Vec<Hold>) -> Duration {
    holds.sort_by_key(|hold| hold.since);
    let mut total = Duration::ZERO;
    let mut reach = Moment::default();
    for hold in holds {
        total += reach.min(hold.until).since(hold.since);
        reach = reach.max(hold.until);
    }
    total
}

impl Happened {
    fn partition(&self) -> Option<&str> {
        match self {
            Self::StartCalled(name, _)
            | Self::StartEnded(name, _)
            | Self::StopCalled(name)
            | Self::StopEnded(name) => Some(name),
            Self::Deadline(..) | Self::Adopted(..) | Self::Gone(_) => None,
        }
    }

    fn fact(&self, member: usize, number: impl Fn(&str) -> usize) -> Fact<'_> {
        match self {
            Self::StartCalled(name, token) => Fact::StartCalled {
                member,
                partition: number(name),
                name,
                token: *token,
            },
            Self::StartEnded(name, failed) => Fact::StartEnded {
                member,
                partition: number(name),
                failed: *failed,
            },
            Self::StopCalled(name) => Fact::StopCalled {
                member,
                partition: number(name),
            },
            Self::StopEnded(name) => Fact::StopEnded {
                member,
                partition: number(name),
            },
            Self::Deadline(identity, until) => Fact::Deadline {
                member,
                identity: identity
                    .as_ref()
                    .map(|(id, session)| (id.as_str(), *session)),
                until: until.map(true_time),
                until_local: *until,
            },
            Self::Adopted(session, version) => Fact::Adopted {
                member,
                session: *session,
                version: *version,
            },
            Self::Gone(in_order) => Fact::Gone {
                member,
                in_order: *in_order,
            },
        }
    }
}

fn true_time(moment: Moment) -> TrueTime {
    let nanos = moment.to_origin().as_nanos();
    TrueTime::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(ms))
    }

    fn two_owners(second_starts: u64) -> History {
        let token = |number| Token::new(number).unwrap();
        let identity = |id: &str, session| Some((id.to_owned(), SessionId(session)));
        let mut history = History::default();
        for member in 0..2_usize {
            let deadline =
                Happened::Deadline(identity(["a", "b"][member], member as u128), Some(at(1000)));
            history.add(member, at(1), deadline);
        }
        history.add(0, at(10), Happened::StartCalled("p".into(), token(1)));
        history.add(
            1,
            at(second_starts),
            Happened::StartCalled("p".into(), token(2)),
        );
        history.add(0, at(50), Happened::StartEnded("p".into(), false));
        history.add(0, at(60), Happened::StopCalled("p".into()));
        history.add(0, at(100), Happened::StopEnded("p".into()));
        history.add(1, at(500), Happened::Gone(false));
        history
    }

    #[test]
    fn two_sessions_of_one_id_are_counted_only_if_they_overlap() {
        let session = |number, until| {
            let identity = ("worker-0".to_owned(), SessionId(number));
            Happened::Deadline(Some(identity), Some(at(until)))
        };
        let mut history = History::default();
        history.add(0, at(1), session(1, 100));
        history.add(0, at(50), session(1, 150));
        history.add(0, at(60), Happened::Gone(false));
        history.add(1, at(61), session(2, 200));
        assert_eq!(history.duplicate_ids(), 0);
        history.add(2, at(199), session(3, 300));
        assert_eq!(history.duplicate_ids(), 1);
    }

    #[test]
    fn a_second_owner_is_seen_and_its_time_is_counted() {
        let lease = Duration::from_secs(1);
        let sound = two_owners(101);
        assert_eq!(sound.check(lease), Ok(()));
        assert_eq!(sound.two_owners(), Duration::ZERO);
        let broken = two_owners(70);
        assert_eq!(broken.check(lease).unwrap_err().invariant, "I1");
        assert_eq!(broken.two_owners(), Duration::from_millis(30));
    }

    /// A worker that claims its id, renews its lease, and works as long as
    /// `works_until`.
    fn one_worker(works_until: u64) -> History {
        use divvy_core::leader::{Life, WorkerRecord};
        use divvy_core::store::{Expected, Key};
        let session = SessionId(7);
        let mut history = History::default();
        let mut last = None;
        for (beat, sent) in [(1, 100), (2, 300)] {
            let record = WorkerRecord {
                instance: "a".into(),
                session,
                beat,
                lease: Duration::from_secs(1),
                life: Life::Live,
                acked: Version::default(),
                stopping: Vec::new(),
                adopted: Version::default(),
                token_max: None,
                health: divvy_core::Health::Healthy,
                weight: 1.0,
                zone: None,
                refresh: 0,
                alarm: 0,
                unable: Vec::new(),
                longest: Duration::from_secs(1),
            };
            let revision = Revision::new(beat).unwrap();
            history.tried(Attempt {
                by: 0,
                sent: at(sent),
                key: Key::new(["w", "worker-0"]).unwrap(),
                expected: Expected::from(last.replace(revision)),
                value: Some(record.encode().into()),
                answer: Answer::Made(revision),
            });
        }
        let identity = Some(("worker-0".to_owned(), session));
        let deadline = Happened::Deadline(identity, Some(at(works_until)));
        history.add(0, at(310), deadline);
        history
    }

    #[test]
    fn a_deadline_has_to_be_earned_by_a_write() {
        let lease = Duration::from_secs(1);
        assert_eq!(one_worker(1250).check(lease), Ok(()));
        assert_eq!(one_worker(1251).check(lease).unwrap_err().invariant, "I5");
    }
}
