//! Hands that reach into a world: what somebody who plays with it can do and
//! see, whichever mode it is of.
//!
//! A world with [`Room`] has no end and no faults of its own. Whatever happens
//! to it is done by hands, and all invariants that hold while faults happen are
//! checked after every step, as for every other world.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use divvy_core::lease::Outlook;
use divvy_core::store::Token;
use divvy_core::{Control, Health, Partitions};

use crate::fact::Fact;
use crate::fault::{HookWeather, Isolation};
use crate::invariants::Broken;
use crate::time::TrueTime;
use crate::world::Life;

/// Lines of a trace that are kept where hands reach into a world.
pub const TRACE_LINES_MAX: usize = 20_000;
/// Longest of these lines, in bytes.
const TRACE_LINE_BYTES_MAX: usize = 2_000;
/// Deeds that are kept until somebody takes them.
const DEEDS_MAX: usize = 200_000;

/// How far hands may let a world grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Places for members, gone ones included.
    pub members: usize,
    /// Partitions.
    pub partitions: usize,
}

/// A member that shall join.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Newcomer {
    /// What it is called; by its number if nothing is said.
    pub name: Option<String>,
    /// Its weight; 1 if nothing is said.
    pub weight: Option<f64>,
    /// Its zone, where zones matter.
    pub zone: Option<String>,
}

/// What a member is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceState {
    /// Its process is gone.
    Gone,
    /// It looks for its name, a leader or its first partitions.
    Joining,
    /// It works.
    Stable,
    /// It leads, and waits before it moves anything.
    Scaling,
    /// It leads, and moves what a plan moves.
    Rebalancing,
    /// It leads, and hands on what a lost worker had.
    Emergency,
    /// The store fails it.
    Backoff,
    /// It stops.
    Stopping,
}

impl PlaceState {
    /// Its name in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Joining => "joining",
            Self::Stable => "stable",
            Self::Scaling => "scaling",
            Self::Rebalancing => "rebalancing",
            Self::Emergency => "emergency",
            Self::Backoff => "backoff",
            Self::Stopping => "stopping",
        }
    }
}

/// A place for a member, and who is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// What its host is called.
    pub name: String,
    /// By which id placement knows it, once it has one.
    pub id: Option<String>,
    /// What it is doing.
    pub state: PlaceState,
    /// Whether it leads, as far as it knows.
    pub is_leader: bool,
    /// Whether it may own partitions.
    pub health: Health,
    /// Its capacity in relation to the others.
    pub weight: f64,
    /// Its zone.
    pub zone: Option<String>,
    /// Whether its process stands still.
    pub is_paused: bool,
    /// What it cannot reach.
    pub isolation: Option<Isolation>,
    /// How its own hooks fare.
    pub hooks: HookWeather,
    /// How long it may work on without a renewal; nothing if it may not, or
    /// for as long as it likes.
    pub lease_left: Option<Duration>,
    /// Whether it is not heard of and its lease is over: others get what it
    /// has, even where it works on.
    pub is_lapsed: bool,
    /// How long that is at most.
    pub lease: Duration,
}

impl Place {
    /// Whether there is a process.
    pub fn is_alive(&self) -> bool {
        self.state != PlaceState::Gone
    }
}

/// How a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// It answers.
    Up,
    /// It takes its time, as much as leases bear.
    Slow,
    /// It refuses whatever it is asked.
    Down,
}

/// A store as hands see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreView {
    /// How it is.
    pub state: StoreState,
    /// How long one way to it takes at most.
    pub latency: Duration,
    /// Which life it is in.
    pub incarnation: String,
}

/// Something that was done, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// When.
    pub at: TrueTime,
    /// What.
    pub deed: Deed,
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// The start hook of a partition has returned: it runs.
    Started {
        /// Where.
        place: usize,
        /// Which.
        partition: usize,
        /// With which token.
        token: Token,
    },
    /// A start hook failed.
    StartFailed {
        /// Where.
        place: usize,
        /// Which.
        partition: usize,
    },
    /// The stop hook of a partition was called.
    Stopping {
        /// Where.
        place: usize,
        /// Which.
        partition: usize,
        /// Why, where its member says so.
        why: Option<&'static str>,
    },
    /// A partition has stopped.
    Stopped {
        /// Where.
        place: usize,
        /// Which.
        partition: usize,
    },
    /// A process is gone.
    Gone {
        /// Which.
        place: usize,
        /// Whether it had nothing left to stop.
        in_order: bool,
    },
    /// A member began to lead.
    Leads {
        /// Which.
        place: usize,
    },
    /// A member says that something failed.
    Problem {
        /// Which.
        place: usize,
        /// What, in words.
        text: String,
    },
}

/// A world that somebody plays with. Places, and the numbers of partitions, are
/// those of the world; who asks for one that there is not panics.
pub trait Hands: Life + fmt::Debug + Send {
    /// A place, and who is there.
    fn place(&self, place: usize) -> Place;

    /// How many partitions there are: their numbers are below it.
    fn count_partitions(&self) -> usize;

    /// Whether there is a partition of this number: some may be left out.
    fn is_wanted(&self, partition: usize) -> bool {
        partition < self.count_partitions()
    }

    /// What a partition is called.
    fn name_of(&self, partition: usize) -> String;

    /// What a partition weighs.
    fn weight_of(&self, partition: usize) -> i64;

    /// All of them.
    fn list(&self) -> Partitions;

    /// A member joins; gives its place.
    fn add(&mut self, newcomer: &Newcomer) -> usize;

    /// A member is asked to stop. Where it says for how long, its partitions
    /// are kept for it, as far as its mode knows that.
    fn ask_to_stop(&mut self, place: usize, keep: Option<Duration>);

    /// What a member says of itself changes.
    fn set_description(
        &mut self,
        place: usize,
        health: Health,
        weight: f64,
        zone: Option<&str>,
    ) -> Result<(), Broken>;

    /// There are so many partitions from now on, and everybody is told to look.
    fn set_partitions(&mut self, count: usize) -> Result<(), Broken>;

    /// A partition weighs that from now on, where its mode knows weights.
    fn set_weight(&mut self, partition: usize, weight: i64) -> Result<(), Broken>;

    /// Operators wish this from now on.
    fn wish(&mut self, control: &Control);

    /// The store is like that from now on.
    fn set_store(&mut self, state: StoreState);

    /// The cluster that scores are made of, where they are made of one.
    fn cluster(&self) -> Option<&'static str> {
        None
    }

    /// The same world once more, to see what would become of it; nothing where
    /// that cannot be had. It writes no trace.
    fn fork(&self) -> Option<Box<dyn Hands>> {
        None
    }

    /// The store forgets everything; where announced, it says so by another
    /// incarnation.
    fn forget_all(&mut self, announced: bool) -> Result<(), Broken>;

    /// What keeps a partition from where it should be, as the member at this
    /// place sees it, where members know that by themselves.
    fn held_back(&self, place: usize, partition: usize) -> Option<&'static str>;

    /// Who should have what if just the members at these places were there,
    /// where everybody comes to that by itself.
    fn outlook(&self, places: &[usize]) -> Option<Outlook>;

    /// Within which the partitions of a lost worker run elsewhere.
    fn handed_on_within(&self) -> Duration;

    /// How long after one plan the next may move something, and how long a
    /// change is waited with for others.
    fn pace(&self) -> (Duration, Duration);
}

/// What hands want to know of a world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chronicle {
    done: Vec<Done>,
    told: u64,
    /// Why partitions stop whose stop hook was not called yet, by place and
    /// partition.
    why: BTreeMap<(usize, usize), &'static str>,
    /// By place and partition, the tokens of those that are being started.
    starting: BTreeMap<(usize, usize), Token>,
}

impl Chronicle {
    /// Notes a fact, if it is a deed.
    pub(crate) fn hear(&mut self, at: TrueTime, fact: &Fact<'_>) {
        self.told += 1;
        let deed = match *fact {
            Fact::StartCalled {
                member,
                partition,
                token,
                ..
            } => {
                self.starting.insert((member, partition), token);
                return;
            }
            Fact::StartEnded {
                member,
                partition,
                failed,
            } => match self.starting.remove(&(member, partition)) {
                Some(token) if !failed => Deed::Started {
                    place: member,
                    partition,
                    token,
                },
                _ => Deed::StartFailed {
                    place: member,
                    partition,
                },
            },
            Fact::StopCalled { member, partition } => Deed::Stopping {
                place: member,
                partition,
                why: self.why.remove(&(member, partition)),
            },
            Fact::StopEnded { member, partition } => Deed::Stopped {
                place: member,
                partition,
            },
            Fact::Gone { member, in_order } => {
                self.starting.retain(|(place, _), _| *place != member);
                self.why.retain(|(place, _), _| *place != member);
                Deed::Gone {
                    place: member,
                    in_order,
                }
            }
            _ => return,
        };
        self.note(at, deed);
    }

    /// Notes a deed. Whoever takes none does not need the memory.
    pub(crate) fn note(&mut self, at: TrueTime, deed: Deed) {
        if self.done.len() < DEEDS_MAX {
            self.done.push(Done { at, deed });
        }
    }

    /// Why a partition will stop.
    pub(crate) fn stops_because(&mut self, place: usize, partition: usize, why: &'static str) {
        self.why.insert((place, partition), why);
    }

    pub(crate) fn take(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    pub(crate) const fn told(&self) -> u64 {
        self.told
    }
}

/// The lines of a trace: all, or the last.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    lines: VecDeque<String>,
    is_bounded: bool,
}

impl Trace {
    pub(crate) const fn new(is_bounded: bool) -> Self {
        Self {
            lines: VecDeque::new(),
            is_bounded,
        }
    }

    pub(crate) fn push(&mut self, at: TrueTime, line: String) {
        let mut line = format!("{at} {line}");
        if self.is_bounded {
            if line.len() > TRACE_LINE_BYTES_MAX {
                line.truncate(line.floor_char_boundary(TRACE_LINE_BYTES_MAX));
                line.push('…');
            }
            if self.lines.len() == TRACE_LINES_MAX {
                self.lines.pop_front();
            }
        }
        self.lines.push_back(line);
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}
