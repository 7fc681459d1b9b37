//! What can go wrong with placement, and what to do about it.

use std::fmt;

/// Longest piece of an offending value that an error repeats, in characters.
const VALUE_CHARS_MAX: usize = 60;
/// Longest rule or message of another library that an error repeats; some of
/// them hold names.
const MESSAGE_CHARS_MAX: usize = 400;

/// Why a placement could not be made. Nothing was changed: whatever assignment
/// the caller had before is still the one to use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody can own anything: there is no worker, or none that is healthy
    /// and has a weight above 0. Wait for a worker, or add one.
    #[error("no workers: {}", describe_no_workers(*given, *unhealthy, *weightless))]
    NoWorkers {
        /// How many workers were handed in.
        given: usize,
        /// How many of them are unhealthy.
        unhealthy: usize,
        /// How many healthy ones have a weight of 0.
        weightless: usize,
    },

    /// The input breaks a rule. Fix the field that the message names.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// A document, such as the JSON form of an assignment, cannot be read. Fix
    /// it at the place that the message names.
    #[error("{document}: {message}")]
    Document {
        /// What kind of document it is.
        document: &'static str,
        /// What is wrong with it, and where.
        message: String,
    },

    /// The limits of all workers together are below the number of partitions.
    /// Add workers, or raise their limits.
    #[error("no room: {partitions} partitions, and the workers may own {room} together")]
    NoRoom {
        /// How many partitions there are.
        partitions: usize,
        /// How many the workers may own together.
        room: u64,
    },

    /// A strategy could not do its work. This is how a user's own
    /// [`Strategy`](crate::Strategy) reports failure.
    #[error("strategy {strategy}: {message}")]
    Strategy {
        /// The name of the strategy.
        strategy: String,
        /// What went wrong.
        message: String,
    },

    /// A strategy that calculates elsewhere has no answer yet. Ask the same
    /// again a little later.
    #[error("strategy {strategy}: is still calculating")]
    Unfinished {
        /// The name of the strategy.
        strategy: String,
    },
}

fn describe_no_workers(given: usize, unhealthy: usize, weightless: usize) -> String {
    if given == 0 {
        "at least 1 is needed, 0 were given".to_owned()
    } else {
        format!(
            "none of {given} can take partitions ({unhealthy} unhealthy, {weightless} of weight 0)"
        )
    }
}

impl Error {
    /// A document that a parser refused.
    pub(crate) fn document(document: &'static str, error: impl fmt::Display) -> Self {
        Self::Document {
            document,
            message: shown(&error.to_string(), MESSAGE_CHARS_MAX),
        }
    }
}

/// `text` cut to a length and with control characters escaped, so that a
/// hostile value can neither flood a log nor steer a terminal.
pub(crate) fn shown(text: &str, chars_max: usize) -> String {
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == chars_max {
            shown.push('…');
            break;
        }
        match c {
            '\'' | '"' | '\\' => shown.push(c),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

/// One input value that breaks a rule: which field, which value, which bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    field: &'static str,
    value: String,
    rule: String,
}

impl Invalid {
    /// A violation of `rule` by `value` in `field`. A long value is shortened,
    /// so that a hostile one cannot flood a log.
    pub fn new(field: &'static str, value: impl fmt::Display, rule: impl Into<String>) -> Self {
        Self {
            field,
            value: shown(&value.to_string(), VALUE_CHARS_MAX),
            rule: shown(&rule.into(), MESSAGE_CHARS_MAX),
        }
    }

    /// The field that holds the value, such as `worker weight`.
    pub fn field(&self) -> &str {
        self.field
    }

    /// The offending value, shortened and with control characters escaped.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The rule that it breaks, with its bound.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}': {}", self.field, self.value, self.rule)
    }
}

impl std::error::Error for Invalid {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_value_is_shortened_and_escaped() {
        let error = Invalid::new("worker id", "\u{1b}[31m".repeat(1000), "must be short");
        let text = error.to_string();
        assert!(text.len() < 400, "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(
            text.starts_with("worker id '") && text.ends_with("must be short"),
            "{text}"
        );
    }

    #[test]
    fn no_workers_says_why_each_was_passed_over() {
        let none = Error::NoWorkers {
            given: 0,
            unhealthy: 0,
            weightless: 0,
        };
        assert_eq!(
            none.to_string(),
            "no workers: at least 1 is needed, 0 were given"
        );
        let all_out = Error::NoWorkers {
            given: 3,
            unhealthy: 2,
            weightless: 1,
        };
        assert_eq!(
            all_out.to_string(),
            "no workers: none of 3 can take partitions (2 unhealthy, 1 of weight 0)"
        );
    }
}
