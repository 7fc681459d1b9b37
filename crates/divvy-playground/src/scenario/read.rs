//! Reads scenarios, and refuses what they may not have.

use divvy_core::Invalid;
use divvy_sim::Mode;
use serde_json::{Map, Value};
use serde_saphyr::{Error, MessageFormatter as _, UserMessageFormatter};

use super::{Bound, Number, SCENARIO_BYTES_MAX, Scenario, Step, Targets, neighbour_seed};
use crate::action::Action;
use crate::fields::{Fields, required};
use crate::setup::{PARTITIONS_MAX, PLACES_MAX, Setup, WORKERS_MAX};

/// Longest scenario, in milliseconds of its world.
const LASTS_MS_MAX: u64 = 3_600_000;
/// Most steps.
const STEPS_MAX: usize = 1000;
/// Most repetitions of a step.
const TIMES_MAX: u64 = 1000;
/// Longest text, in bytes.
const TEXT_BYTES_MAX: usize = 2000;
/// What a scenario cannot do.
const NEW_WORLD: [&str; 7] = ["settings", "mode", "reset", "run", "hold", "step", "speed"];
/// Largest bound.
const BOUND_MAX: f64 = 1e9;

pub(super) fn scenario(text: &str) -> Result<Scenario, Invalid> {
    if text.len() > SCENARIO_BYTES_MAX {
        let rule = format!("must be at most {SCENARIO_BYTES_MAX}");
        return Err(Invalid::new("scenario bytes", text.len(), rule));
    }
    let value: Value = serde_saphyr::from_str(text).map_err(|error| not_yaml(&error))?;
    let mut fields = Fields::of("scenario", value)?;
    let name = told("name", &mut fields)?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(is_plain) {
        let rule = "must be small letters, digits and -";
        return Err(Invalid::new("name", name, rule));
    }
    let title = told("title", &mut fields)?;
    let about = told("about", &mut fields)?;
    let lasts_ms = required("lasts_ms", fields.count("lasts_ms", 1..=LASTS_MS_MAX)?)?;
    let goal = required("goal", fields.take("goal"))?;
    let steps = fields.take("steps").unwrap_or_default();
    let neighbour = fields.take("neighbour");
    let setup = Setup::default().change(&mut fields)?;
    fields.finish()?;
    let neighbour = neighbour.map(|value| read_neighbour(value, &setup));
    let neighbour = neighbour.transpose()?;
    let (goal, bounds) = read_goal(goal)?;
    let of_nobody = bounds.iter().find(|bound| bound.number.is_neighbours());
    if let Some(bound) = of_nobody.filter(|_| neighbour.is_none()) {
        let rule = "needs a neighbour beside it";
        return Err(Invalid::new("numbers", bound.number.as_str(), rule));
    }
    let steps = match steps {
        Value::Null => Vec::new(),
        Value::Array(steps) => steps,
        other => return Err(Invalid::new("steps", other, "must be a list")),
    };
    if steps.len() > STEPS_MAX {
        let rule = format!("must be at most {STEPS_MAX}");
        return Err(Invalid::new("steps", steps.len(), rule));
    }
    let steps = (1..).zip(steps).map(|(number, step)| {
        read_step(number, step, &setup, lasts_ms)
            .map_err(|invalid| Invalid::new("step", number, invalid.to_string()))
    });
    let mut steps = steps.collect::<Result<Vec<Step>, Invalid>>()?;
    steps.sort_by_key(|step| step.at_ms);
    Ok(Scenario {
        name,
        title,
        about,
        setup,
        neighbour,
        lasts_ms,
        goal,
        bounds,
        steps,
    })
}

/// Where a document is not YAML, and why.
fn not_yaml(error: &Error) -> Invalid {
    let place = error.location().map_or_else(
        || "document".to_owned(),
        |at| format!("line {} column {}", at.line(), at.column()),
    );
    let why = UserMessageFormatter.format_message(error.without_snippet());
    Invalid::new("scenario", place, format!("must be YAML: {why}"))
}

/// Another cluster, in everything but its size like the first.
fn read_neighbour(value: Value, setup: &Setup) -> Result<Setup, Invalid> {
    let mut fields = Fields::of("neighbour", value)?;
    let mut neighbour = setup.clone();
    neighbour.seed = neighbour_seed(setup.seed);
    if let Some(workers) = fields.count("workers", 1..=WORKERS_MAX as u64)? {
        neighbour.workers = workers as usize;
    }
    if let Some(partitions) = fields.count("partitions", 1..=PARTITIONS_MAX as u64)? {
        neighbour.partitions = partitions as usize;
    }
    fields.finish()?;
    Ok(neighbour)
}

/// A text that must be there.
fn told(field: &'static str, fields: &mut Fields) -> Result<String, Invalid> {
    let text = required(field, fields.text(field)?)?;
    match (1..=TEXT_BYTES_MAX).contains(&text.len()) {
        true => Ok(text.trim().to_owned()),
        false => {
            let rule = format!("must have 1..={TEXT_BYTES_MAX} bytes");
            Err(Invalid::new(field, text, rule))
        }
    }
}

fn read_goal(value: Value) -> Result<(String, Vec<Bound>), Invalid> {
    let mut fields = Fields::of("goal", value)?;
    let says = told("says", &mut fields)?;
    let mut bounds = Vec::new();
    let numbers = required("numbers", fields.take("numbers"))?;
    fields.finish()?;
    let mut numbers = Fields::of("numbers", numbers)?;
    for (name, number) in Number::ALL {
        let Some(value) = numbers.take(name) else {
            continue;
        };
        let mut bound = Fields::of(name, value)?;
        let before = bounds.len();
        for (rule, is_most) in [("at_most", true), ("at_least", false)] {
            if let Some(value) = bound.number(rule, 0.0..=BOUND_MAX)? {
                bounds.push(Bound {
                    number,
                    is_most,
                    value,
                });
            }
        }
        bound.finish()?;
        if bounds.len() == before {
            return Err(Invalid::new(
                name,
                "nothing",
                "must have at_most or at_least",
            ));
        }
    }
    numbers.finish()?;
    match bounds.is_empty() {
        true => Err(Invalid::new("numbers", "nothing", "must have one at least")),
        false => Ok((says, bounds)),
    }
}

fn read_step(number: usize, value: Value, setup: &Setup, lasts_ms: u64) -> Result<Step, Invalid> {
    let Value::Object(mut map) = value else {
        return Err(Invalid::new("step", value, "must be an object"));
    };
    let mut own = Map::new();
    for field in Step::FIELDS {
        if let Some(value) = map.remove(field) {
            own.insert(field.to_owned(), value);
        }
    }
    let mut own = Fields::of("step", Value::Object(own))?;
    let step = Step {
        number,
        at_ms: required("at_ms", own.count("at_ms", 0..=lasts_ms)?)?,
        name: required("do", own.text("do")?)?,
        targets: targets(&mut own)?,
        each_after_ms: own.count("each_after_ms", 0..=lasts_ms)?.unwrap_or(0),
        times: own.count("times", 1..=TIMES_MAX)?.unwrap_or(1),
        every_ms: own.count("every_ms", 0..=lasts_ms)?.unwrap_or(0),
        fields: map,
    };
    own.finish()?;
    check_name(&step.name, setup.mode)?;
    // What cannot be read now could not be done then.
    let worker = (step.targets != Targets::None).then_some(0);
    step.action(worker, setup)?;
    Ok(step)
}

/// Whether a scenario of this mode can do it.
fn check_name(name: &str, mode: Mode) -> Result<(), Invalid> {
    if NEW_WORLD.contains(&name) {
        let rule = "cannot be done in a scenario, which has one world and its own time";
        return Err(Invalid::new("do", name, rule));
    }
    let names = Action::names(mode).into_iter();
    let names: Vec<&str> = names.filter(|name| !NEW_WORLD.contains(name)).collect();
    match names.contains(&name) {
        true => Ok(()),
        false => {
            let rule = format!("must be one of {} in {mode} mode", names.join(", "));
            Err(Invalid::new("do", name, rule))
        }
    }
}

fn targets(fields: &mut Fields) -> Result<Targets, Invalid> {
    let rule = "must be a number, a list of numbers, leader, followers, all, half, paused, gone or \
                zone:NAME";
    let several = fields.take("workers");
    let one = fields.take("worker");
    let value = match (one, several) {
        (None, None) => return Ok(Targets::None),
        (Some(one), None) => one,
        (None, Some(several)) => several,
        (Some(one), Some(_)) => {
            return Err(Invalid::new(
                "worker",
                one,
                "cannot be given beside workers",
            ));
        }
    };
    let numbers: Option<Vec<u64>> = match &value {
        Value::Number(number) => number.as_u64().map(|number| vec![number]),
        Value::Array(numbers) => numbers.iter().map(Value::as_u64).collect(),
        _ => None,
    };
    if let Some(numbers) = numbers {
        let is_any = !numbers.is_empty() && numbers.iter().all(|n| *n < PLACES_MAX as u64);
        let these = numbers.into_iter().map(|number| number as usize);
        return match is_any {
            true => Ok(Targets::These(these.collect())),
            false => Err(Invalid::new("workers", value, rule)),
        };
    }
    match value.as_str() {
        Some("leader") => Ok(Targets::Leader),
        Some("followers") => Ok(Targets::Followers),
        Some("all") => Ok(Targets::All),
        Some("half") => Ok(Targets::Half),
        Some("paused") => Ok(Targets::Paused),
        Some("gone") => Ok(Targets::Gone),
        Some(text) if text.starts_with("zone:") => Ok(Targets::Zone(text[5..].to_owned())),
        _ => Err(Invalid::new("workers", value, rule)),
    }
}
