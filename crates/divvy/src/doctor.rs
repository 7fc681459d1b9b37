//! Whether a store will do: its server and settings, what this client may do
//! there, clocks, and how quickly it answers; each with what to change.
//!
//! ```no_run
//! # async fn run() -> Result<(), divvy::Invalid> {
//! use divvy::doctor::{Verdict, examine};
//! use divvy::store::StoreSettings;
//!
//! let url = "redis://localhost:6379".parse()?;
//! for finding in examine(&url, &StoreSettings::default(), &[]).await? {
//!     if finding.verdict == Verdict::Bad {
//!         println!("{}: {}", finding.check, finding.found);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod latency;
mod trial;

use std::time::Duration;

use divvy_core::Invalid;
use divvy_core::store::{StoreError, StoreErrorKind};
use serde::Serialize;

use crate::observer::Mode;
use crate::store::{StoreKind, StoreSettings, StoreUrl};

/// How far a server's clock may be from ours without being mentioned.
#[cfg(any(feature = "nats", feature = "redis"))]
const CLOCKS_APART_MS: u64 = 1000;

/// What was found out about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// What that means.
    pub verdict: Verdict,
    /// What is there.
    pub found: String,
    /// What to change, where something is to be changed.
    pub advice: Option<String>,
}

/// What a finding means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is as it should be.
    Good,
    /// It works, and whoever runs it should know.
    Note,
    /// It does not do.
    Bad,
}

impl Verdict {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

impl Finding {
    pub(crate) fn good(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            verdict: Verdict::Good,
            found: found.into(),
            advice: None,
        }
    }

    pub(crate) fn note(check: &'static str, found: impl Into<String>, advice: &str) -> Self {
        Self {
            verdict: Verdict::Note,
            advice: Some(advice.to_owned()),
            ..Self::good(check, found)
        }
    }

    pub(crate) fn bad(check: &'static str, found: impl Into<String>, advice: &str) -> Self {
        Self {
            verdict: Verdict::Bad,
            ..Self::note(check, found, advice)
        }
    }

    /// Something that failed, which says by itself what is the matter.
    pub(crate) fn failed(check: &'static str, error: &StoreError) -> Self {
        let advice = match error.kind() {
            StoreErrorKind::Unavailable | StoreErrorKind::Unknown => {
                "see that the server runs at this address, and that nothing on the way refuses it"
            }
            StoreErrorKind::Unfit if wants_login(error) => {
                "give --user and --password-file, or DIVVY_STORE=redis://USER:PASSWORD@HOST:PORT"
            }
            StoreErrorKind::Unfit => "mend what it names; docs/operating.md has the templates",
            _ => "give another value",
        };
        Self::bad(check, error.to_string(), advice)
    }
}

/// Whether nothing is wrong but that nobody has logged in.
fn wants_login(error: &StoreError) -> bool {
    #[cfg(feature = "redis")]
    return error.to_string().contains(crate::store::redis::NO_LOGIN);
    #[cfg(not(feature = "redis"))]
    {
        let _unused = error;
        false
    }
}

/// Looks at a store and, unless something is bad, tries what members of these
/// modes do there, all that it can serve if none is named. A file or bucket that is missing is made, as
/// the first member would; what trials write is taken away again.
pub async fn examine(
    url: &StoreUrl,
    settings: &StoreSettings,
    modes: &[Mode],
) -> Result<Vec<Finding>, Invalid> {
    examine_for(url, settings, modes, None).await
}

/// The same, for members whose leases are as long as this.
pub async fn examine_for(
    url: &StoreUrl,
    settings: &StoreSettings,
    modes: &[Mode],
    lease: Option<Duration>,
) -> Result<Vec<Finding>, Invalid> {
    settings.check()?;
    if url.kind() == StoreKind::Memory {
        let rule = "is in the process that uses it: there is nothing to examine";
        return Err(Invalid::new("store", url, rule));
    }
    if url.kind() == StoreKind::Nats && modes.contains(&Mode::Lease) {
        let rule = "has no leases; lease mode runs on memory, file and redis stores";
        return Err(Invalid::new("store", url, rule));
    }
    let mut findings = looked_at(url, settings).await?;
    // Members would be refused for the same reasons.
    if findings
        .iter()
        .any(|finding| finding.verdict == Verdict::Bad)
    {
        return Ok(findings);
    }
    // Only files and buckets are made, and what else is said then was found out
    // above.
    let settings = &StoreSettings {
        create: settings.create && url.kind() != StoreKind::Redis,
        ..settings.clone()
    };
    let all = match url.kind() {
        StoreKind::Nats => &[Mode::Leader][..],
        _ => &[Mode::Leader, Mode::Lease],
    };
    let wanted = if modes.is_empty() { all } else { modes };
    if wanted.contains(&Mode::Leader) {
        findings.extend(trial::of_records(url, settings, lease).await);
    }
    if wanted.contains(&Mode::Lease) {
        findings.extend(trial::of_leases(url, settings, lease).await);
    }
    Ok(findings)
}

/// The check that fails where nothing else can be looked at.
#[cfg(any(feature = "file", feature = "nats", feature = "redis"))]
pub(crate) const REACHED: &str = "reached";

/// What the store says of itself.
async fn looked_at(url: &StoreUrl, settings: &StoreSettings) -> Result<Vec<Finding>, Invalid> {
    match url.kind() {
        #[cfg(feature = "file")]
        StoreKind::File => Ok(crate::store::file::examine(url)),
        #[cfg(feature = "nats")]
        StoreKind::Nats => Ok(crate::store::nats::examine(url, settings).await),
        #[cfg(feature = "redis")]
        StoreKind::Redis => Ok(crate::store::redis::examine(url, settings).await),
        #[allow(unreachable_patterns)] // with all features there is no other kind
        _ => {
            let _unused = settings;
            let rule = "needs a feature without which this program was built";
            Err(Invalid::new("store", url, rule))
        }
    }
}

/// How far the server's clock is from ours, by its answer to a question that
/// was sent and answered at these times.
#[cfg(any(feature = "nats", feature = "redis"))]
pub(crate) fn clocks(asked_ms: u64, theirs_ms: u64, answered_ms: u64) -> Finding {
    // It may have answered at any time between.
    let apart = match theirs_ms {
        early if early < asked_ms => asked_ms - early,
        late => late.saturating_sub(answered_ms),
    };
    if apart <= CLOCKS_APART_MS {
        return Finding::good("clock", "the server's and ours agree");
    }
    let side = if theirs_ms < asked_ms {
        "behind"
    } else {
        "ahead of"
    };
    let found = format!("the server's clock is {apart} ms {side} ours");
    let advice = "keep clocks in step by NTP, and slew them: leases and tokens survive clocks that \
                  differ, but a step of a Redis server's clock ends leases early or late";
    Finding::note("clock", found, advice)
}

#[cfg(test)]
#[cfg(any(feature = "nats", feature = "redis"))]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_within_the_time_that_the_answer_took() {
        for (theirs, verdict, words) in [
            (5_000, Verdict::Good, "agree"),
            (9_000, Verdict::Good, "agree"),
            (4_000, Verdict::Good, "agree"),
            (3_999, Verdict::Note, "1001 ms behind"),
            (10_001, Verdict::Note, "1001 ms ahead"),
        ] {
            let finding = clocks(5_000, theirs, 9_000);
            assert_eq!(finding.verdict, verdict, "{theirs}");
            assert!(finding.found.contains(words), "{finding:?}");
        }
    }
}
