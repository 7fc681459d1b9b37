//! Scenarios: a world, what is done to it and when, and a goal in numbers.

mod builtin;
mod read;
mod run;

use divvy_core::Invalid;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::action::Action;
use crate::fields::Fields;
use crate::setup::Setup;

pub use builtin::{builtin, builtins};
pub use run::Outcome;
pub(crate) use run::Run;

/// Longest document of a scenario, in bytes.
pub const SCENARIO_BYTES_MAX: usize = 256 * 1024;

/// A scenario that has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    name: String,
    title: String,
    about: String,
    setup: Setup,
    /// Another cluster on the same store.
    neighbour: Option<Setup>,
    lasts_ms: u64,
    goal: String,
    bounds: Vec<Bound>,
    steps: Vec<Step>,
}

impl Scenario {
    /// Reads a scenario from YAML.
    pub fn from_yaml(text: &str) -> Result<Self, Invalid> {
        read::scenario(text)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What it is about.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The world that it is played in.
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Another cluster on the same store, if there is one.
    pub(crate) const fn neighbour(&self) -> Option<&Setup> {
        self.neighbour.as_ref()
    }

    /// The same with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.setup.seed = seed;
        if let Some(neighbour) = &mut self.neighbour {
            neighbour.seed = neighbour_seed(seed);
        }
        self
    }

    /// How long it takes, in milliseconds.
    pub const fn lasts_ms(&self) -> u64 {
        self.lasts_ms
    }

    /// What is to be reached, in a sentence.
    pub fn goal(&self) -> &str {
        &self.goal
    }
}

/// A scenario as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    name: String,
    title: String,
    about: String,
    mode: &'static str,
    goal: String,
    lasts_ms: u64,
}

impl From<&Scenario> for Listed {
    fn from(scenario: &Scenario) -> Self {
        Self {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            about: scenario.about.clone(),
            mode: scenario.setup.mode.as_str(),
            goal: scenario.goal.clone(),
            lasts_ms: scenario.lasts_ms,
        }
    }
}

/// A number that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Number {
    /// Partitions with an owner, at the end.
    Owned,
    /// Partitions without one, at the end.
    Unowned,
    /// Partitions that went from one worker to another.
    Moves,
    /// The most load in relation to its share, at the end.
    Imbalance,
    /// Partitions without an owner at once, at most.
    MostUnowned,
    /// How long a partition had no owner, at most.
    LongestUnownedMs,
    /// Partitions with two owners at once, at most.
    TwoOwners,
    /// How long after the last step everything is where it should be.
    ConvergedAfterMs,
    /// How often another worker began to lead.
    Leaders,
    /// Partitions of the worker with the most, at the end.
    MostOwned,
    /// Partitions of the worker with the least, of those that are there.
    LeastOwned,
    /// Partitions with an owner in the other cluster, at the end.
    NeighbourOwned,
    /// Its partitions with two owners at once, at most.
    NeighbourTwoOwners,
    /// Its partitions that went from one worker to another.
    NeighbourMoves,
}

impl Number {
    pub(crate) const ALL: [(&'static str, Self); 14] = [
        ("owned", Self::Owned),
        ("unowned", Self::Unowned),
        ("moves", Self::Moves),
        ("imbalance", Self::Imbalance),
        ("most_unowned", Self::MostUnowned),
        ("longest_unowned_ms", Self::LongestUnownedMs),
        ("two_owners", Self::TwoOwners),
        ("converged_after_ms", Self::ConvergedAfterMs),
        ("leaders", Self::Leaders),
        ("most_owned", Self::MostOwned),
        ("least_owned", Self::LeastOwned),
        ("neighbour_owned", Self::NeighbourOwned),
        ("neighbour_two_owners", Self::NeighbourTwoOwners),
        ("neighbour_moves", Self::NeighbourMoves),
    ];

    /// Whether it is of the other cluster.
    pub(crate) const fn is_neighbours(self) -> bool {
        matches!(
            self,
            Self::NeighbourOwned | Self::NeighbourTwoOwners | Self::NeighbourMoves
        )
    }

    pub(crate) fn as_str(self) -> &'static str {
        let mut names = Self::ALL.iter();
        let name = names.find(|(_, number)| *number == self);
        name.expect("all numbers have names").0
    }
}

/// Another cluster's chance is its own.
pub(crate) const fn neighbour_seed(seed: u64) -> u64 {
    seed ^ 1
}

/// What a number must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    pub(crate) number: Number,
    pub(crate) is_most: bool,
    pub(crate) value: f64,
}

/// Whom a step is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Targets {
    /// No worker.
    None,
    /// These.
    These(Vec<usize>),
    /// Whoever leads.
    Leader,
    /// Whoever does not.
    Followers,
    /// All that there were at first.
    All,
    /// The first half of those that are there.
    Half,
    /// Those that stand still.
    Paused,
    /// Those that are gone.
    Gone,
    /// Those in this zone.
    Zone(String),
}

/// Something that is done at its time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    /// Which of the document it is, counted from 1.
    pub(crate) number: usize,
    pub(crate) at_ms: u64,
    pub(crate) name: String,
    pub(crate) targets: Targets,
    /// How long after one worker the next one is done.
    pub(crate) each_after_ms: u64,
    /// How often it is done.
    pub(crate) times: u64,
    pub(crate) every_ms: u64,
    pub(crate) fields: Map<String, Value>,
}

impl Step {
    /// The action of this step for one worker, or for none.
    pub(crate) fn action(&self, worker: Option<usize>, setup: &Setup) -> Result<Action, Invalid> {
        let mut map = self.fields.clone();
        if let Some(worker) = worker {
            map.insert("worker".into(), worker.into());
        }
        let mut fields = Fields::of("step", Value::Object(map))?;
        let action = Action::of(&self.name, &mut fields, setup)?;
        fields.finish_beside(&Self::FIELDS)?;
        Ok(action)
    }

    /// Its own fields, beside those of its action.
    const FIELDS: [&'static str; 7] = [
        "at_ms",
        "do",
        "worker",
        "workers",
        "each_after_ms",
        "times",
        "every_ms",
    ];
}
