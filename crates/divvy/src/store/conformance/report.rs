//! What came of a run.

use std::fmt;
use std::time::Duration;

/// The cases that a store has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What the store says that it is.
    pub store: String,
    /// The seed of the run.
    pub seed: u64,
    /// The cases that ran, in order.
    pub cases: Vec<CaseRun>,
    /// The cases that did not, because the subject does not offer what they
    /// need.
    pub not_offered: Vec<&'static str>,
}

/// A case that was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaseRun {
    /// Its name, which is the function's.
    pub name: &'static str,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    pub(super) const fn new(store: String, seed: u64) -> Self {
        Self {
            store,
            seed,
            cases: Vec::new(),
            not_offered: Vec::new(),
        }
    }

    /// The store, how many cases it has passed, and how long that took: one
    /// line.
    pub fn summary(&self) -> String {
        let total: Duration = self.cases.iter().map(|case| case.took).sum();
        let (count, seed) = (self.cases.len(), self.seed);
        let store = &self.store;
        format!("{store}: {count} cases in {total:.1?}, seed {seed}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        for case in &self.cases {
            write!(f, "\n  {:>7} ms  {}", case.took.as_millis(), case.name)?;
        }
        for name in &self.not_offered {
            write!(f, "\n  not offered {name}")?;
        }
        Ok(())
    }
}

/// A case that a store has not passed: which, why, and what was done before.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    case: &'static str,
    seed: u64,
    reason: String,
    history: Vec<String>,
}

impl Failure {
    pub(super) fn new(case: &'static str, seed: u64, reason: String, history: Vec<String>) -> Self {
        Self {
            case,
            seed,
            reason,
            history,
        }
    }

    /// The case, which is a function's name.
    pub const fn case(&self) -> &'static str {
        self.case
    }

    /// The seed of the run.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What was not as it has to be.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The last operations before, each with its result.
    pub fn history(&self) -> &[String] {
        &self.history
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (seed {}): {}", self.case, self.seed, self.reason)?;
        if !self.history.is_empty() {
            f.write_str("\nthe last operations were:")?;
        }
        for line in &self.history {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// As it is displayed: `expect` in a test shows this.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
