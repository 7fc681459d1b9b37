//! What can be done to a playground, read from a request or from a step of a
//! scenario.

use std::time::Duration;

use divvy_core::Invalid;
use divvy_sim::{Isolation, Mode, StoreState};
use serde_json::Value;

use crate::fields::{Fields, required};
use crate::setup::{MODES, PARTITIONS_MAX, PLACES_MAX, Setup};

/// Most workers that are added at once.
const ADDED_MAX: u64 = 200;
/// Largest weight of a worker here.
const WORKER_WEIGHT_MAX: f64 = 1_000.0;
/// Smallest weight that is not 0.
const WORKER_WEIGHT_MIN: f64 = 0.001;
/// Largest weight of a partition here: what a partition weighs is 1.
const PARTITION_WEIGHT_MAX: f64 = 1_000.0;
/// Smallest weight of a partition here.
const PARTITION_WEIGHT_MIN: f64 = 0.01;
/// Longest name of a worker or a zone, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Longest that a worker asks its place to be kept, in milliseconds.
const KEEP_MS_MAX: u64 = 3_600_000;
/// Longest step, in milliseconds.
const STEP_MS_MAX: u64 = 60_000;
/// Slowest and fastest time.
pub(crate) const SPEEDS: std::ops::RangeInclusive<f64> = 0.1..=100.0;

/// Ways to be cut off, by name.
pub(crate) const ISOLATIONS: [(&str, Isolation); 4] = [
    ("full", Isolation::Full),
    ("store", Isolation::Store),
    ("outward", Isolation::Outward),
    ("inward", Isolation::Inward),
];
/// States of the store, by name.
pub(crate) const STORE_STATES: [(&str, StoreState); 3] = [
    ("up", StoreState::Up),
    ("down", StoreState::Down),
    ("slow", StoreState::Slow),
];

/// Something that can be done. Workers are named by their number.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Workers join.
    Add {
        /// How many.
        count: usize,
        /// Their weight.
        weight: Option<f64>,
        /// Their zone.
        zone: Option<String>,
        /// The name of one.
        name: Option<String>,
    },
    /// A worker is asked to stop.
    Stop {
        /// Which.
        worker: usize,
        /// For how long its place is to be kept.
        keep: Option<Duration>,
    },
    /// A worker's process ends, as a crash ends it.
    Kill(usize),
    /// A worker that is gone is started again.
    Restart(usize),
    /// A worker's process stands still.
    Pause(usize),
    /// It goes on.
    Resume(usize),
    /// A worker is cut off.
    Isolate(usize, Isolation),
    /// It is not any more.
    Reconnect(usize),
    /// A worker's hooks are slow, or not.
    Slow(usize, bool),
    /// A worker's start hooks fail, or not.
    Broken(usize, bool),
    /// A worker is unhealthy, or not.
    Unhealthy(usize, bool),
    /// A worker keeps what it has and gets nothing more.
    Cordon(usize),
    /// A worker gives everything back and gets nothing.
    Drain(usize),
    /// A worker gets its share again.
    Uncordon(usize),
    /// A worker's weight changes.
    Weight(usize, f64),
    /// A worker's zone changes.
    Zone(usize, Option<String>),
    /// A partition shall be with a worker.
    Pin(String, usize),
    /// A partition shall be where it belongs.
    Unpin(String),
    /// There are so many partitions.
    Partitions(usize),
    /// A partition's weight changes.
    PartitionWeight(String, f64),
    /// The store is like that.
    Store(StoreState),
    /// The store forgets everything.
    Amnesia {
        /// Whether it says so.
        announced: bool,
    },
    /// Another world, with other settings or another size.
    Renew(Box<Setup>),
    /// Time passes so fast.
    Speed(f64),
    /// Time passes.
    Run,
    /// Time stands still.
    Hold,
    /// So much time passes at once.
    Step(Duration),
    /// All workers look at everything.
    Refresh,
}

impl Action {
    /// The names of the actions that a replay takes.
    pub(crate) const REPLAY: [&'static str; 7] =
        ["run", "hold", "step", "speed", "reset", "mode", "settings"];

    /// Whether a replay takes it.
    pub(crate) const fn is_of_replay(&self) -> bool {
        matches!(
            self,
            Self::Run | Self::Hold | Self::Step(_) | Self::Speed(_) | Self::Renew(_)
        )
    }

    /// The names of the actions of a mode.
    pub fn names(mode: Mode) -> Vec<&'static str> {
        let mut names = vec![
            "add",
            "stop",
            "kill",
            "restart",
            "pause",
            "resume",
            "isolate",
            "reconnect",
            "slow",
            "broken",
            "unhealthy",
            "cordon",
            "uncordon",
            "drain",
            "weight",
            "pin",
            "unpin",
            "partitions",
            "store",
            "amnesia",
            "settings",
            "mode",
            "reset",
            "speed",
            "run",
            "hold",
            "step",
            "refresh",
        ];
        if mode == Mode::Leader {
            names.extend(["zone", "partition_weight"]);
        }
        names
    }

    /// Reads a request; `setup` is what a new world would be like.
    pub(crate) fn read(value: Value, setup: &Setup) -> Result<Self, Invalid> {
        let mut fields = Fields::of("body", value)?;
        let name = required("action", fields.text("action")?)?;
        let action = Self::of(&name, &mut fields, setup)?;
        fields.finish()?;
        Ok(action)
    }

    /// The action of this name with what it takes of the fields.
    pub(crate) fn of(name: &str, fields: &mut Fields, setup: &Setup) -> Result<Self, Invalid> {
        Ok(match name {
            "add" => add(fields)?,
            "stop" => Self::Stop {
                worker: worker(fields)?,
                keep: fields
                    .count("return_within_ms", 1..=KEEP_MS_MAX)?
                    .map(Duration::from_millis),
            },
            "kill" => Self::Kill(worker(fields)?),
            "restart" => Self::Restart(worker(fields)?),
            "pause" => Self::Pause(worker(fields)?),
            "resume" => Self::Resume(worker(fields)?),
            "isolate" => {
                let how = required("how", fields.word("how", &ISOLATIONS)?)?;
                Self::Isolate(worker(fields)?, how)
            }
            "reconnect" => Self::Reconnect(worker(fields)?),
            "slow" => Self::Slow(worker(fields)?, on(fields)?),
            "broken" => Self::Broken(worker(fields)?, on(fields)?),
            "unhealthy" => Self::Unhealthy(worker(fields)?, on(fields)?),
            "cordon" => Self::Cordon(worker(fields)?),
            "uncordon" => Self::Uncordon(worker(fields)?),
            "drain" => Self::Drain(worker(fields)?),
            "weight" => Self::Weight(worker(fields)?, required("weight", weight(fields)?)?),
            "zone" => Self::Zone(worker(fields)?, zone(fields)?),
            "pin" => Self::Pin(partition(fields)?, worker(fields)?),
            "unpin" => Self::Unpin(partition(fields)?),
            "partitions" => {
                let count = fields.count("count", 1..=PARTITIONS_MAX as u64)?;
                Self::Partitions(required("count", count)? as usize)
            }
            "partition_weight" => {
                let bounds = PARTITION_WEIGHT_MIN..=PARTITION_WEIGHT_MAX;
                let weight = fields.number("weight", bounds)?;
                Self::PartitionWeight(partition(fields)?, required("weight", weight)?)
            }
            "store" => {
                let state = fields.word("state", &STORE_STATES)?;
                Self::Store(required("state", state)?)
            }
            "amnesia" => Self::Amnesia {
                announced: fields.flag("announced")?.unwrap_or(true),
            },
            _ => return Self::of_time(name, fields, setup),
        })
    }

    /// The actions on time and on the whole world.
    fn of_time(name: &str, fields: &mut Fields, setup: &Setup) -> Result<Self, Invalid> {
        Ok(match name {
            "settings" => {
                let is_any = ["preset", "strategy", "exclusive"]
                    .iter()
                    .any(|field| fields.has(field));
                if !is_any {
                    let rule = "must name preset, strategy or exclusive";
                    return Err(Invalid::new("settings", "nothing", rule));
                }
                for field in ["workers", "partitions", "seed", "mode"] {
                    if fields.has(field) {
                        return Err(Invalid::new("field", field, "belongs to the action reset"));
                    }
                }
                Self::Renew(Box::new(setup.change(fields)?))
            }
            "mode" => {
                let mode = required("mode", fields.word("mode", &MODES)?)?;
                Self::Renew(Box::new(setup.in_mode(mode)))
            }
            "reset" => Self::Renew(Box::new(setup.change(fields)?)),
            "speed" => Self::Speed(required("speed", fields.number("speed", SPEEDS)?)?),
            "run" => Self::Run,
            "hold" => Self::Hold,
            "step" => {
                let ms = required("ms", fields.count("ms", 1..=STEP_MS_MAX)?)?;
                Self::Step(Duration::from_millis(ms))
            }
            "refresh" => Self::Refresh,
            unknown => {
                let known = Self::names(Mode::Leader).join(", ");
                return Err(Invalid::new(
                    "action",
                    unknown,
                    format!("must be one of {known}"),
                ));
            }
        })
    }

    /// Whether a mode knows it.
    pub(crate) const fn is_of(&self, mode: Mode) -> bool {
        match self {
            Self::Zone(..) | Self::PartitionWeight(..) => matches!(mode, Mode::Leader),
            _ => true,
        }
    }
}

fn add(fields: &mut Fields) -> Result<Action, Invalid> {
    let count = fields.count("count", 1..=ADDED_MAX)?.unwrap_or(1) as usize;
    let name = fields.text("name")?;
    if let Some(name) = &name {
        check_name("name", name)?;
        if count > 1 {
            let rule = "must be 1 where a name is given";
            return Err(Invalid::new("count", count, rule));
        }
    }
    Ok(Action::Add {
        count,
        weight: weight(fields)?,
        zone: zone(fields)?,
        name,
    })
}

fn worker(fields: &mut Fields) -> Result<usize, Invalid> {
    let number = fields.count("worker", 0..=PLACES_MAX as u64)?;
    Ok(required("worker", number)? as usize)
}

fn on(fields: &mut Fields) -> Result<bool, Invalid> {
    required("on", fields.flag("on")?)
}

fn weight(fields: &mut Fields) -> Result<Option<f64>, Invalid> {
    let weight = fields.number("weight", 0.0..=WORKER_WEIGHT_MAX)?;
    match weight {
        Some(weight) if weight > 0.0 && weight < WORKER_WEIGHT_MIN => {
            let rule = format!("must be 0 or in {WORKER_WEIGHT_MIN}..={WORKER_WEIGHT_MAX}");
            Err(Invalid::new("weight", weight, rule))
        }
        weight => Ok(weight),
    }
}

fn zone(fields: &mut Fields) -> Result<Option<String>, Invalid> {
    let zone = fields.text("zone")?;
    if let Some(zone) = &zone {
        check_name("zone", zone)?;
    }
    Ok(zone)
}

fn partition(fields: &mut Fields) -> Result<String, Invalid> {
    required("partition", fields.text("partition")?)
}

/// Names are what every store and both modes take.
fn check_name(field: &'static str, name: &str) -> Result<(), Invalid> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_plain) {
        true => Ok(()),
        false => {
            let rule = format!("must be 1..={NAME_BYTES_MAX} letters, digits, -, _ and .");
            Err(Invalid::new(field, name, rule))
        }
    }
}
