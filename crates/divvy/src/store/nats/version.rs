//! Which servers will do.

use std::fmt;

use divvy_core::store::StoreError;

/// The oldest server for a bucket of one copy: the oldest that is tested.
const OLDEST: Version = Version::release(2, 10, 26);
/// The oldest server for copies, the same way: before 2.11.7, a conditional write
/// could slip through.
const OLDEST_REPLICATED: Version = Version::release(2, 11, 11);

/// A server's version, ordered by age. A preview comes before its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    numbers: [u32; 3],
    is_release: bool,
}

impl Version {
    const fn release(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            numbers: [major, minor, patch],
            is_release: true,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (numbers, preview) = match text.split_once(['-', '+']) {
            Some((numbers, preview)) => (numbers, Some(preview)),
            None => (text, None),
        };
        let mut parts = numbers.trim_start_matches('v').split('.');
        let mut number = || parts.next()?.parse().ok();
        let numbers = [number()?, number()?, number()?];
        Some(Self {
            numbers,
            is_release: preview.is_none(),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Refuses a server that is too old for so many copies.
pub(crate) fn check(version: &str, replicas: u8) -> Result<(), StoreError> {
    let oldest = if replicas > 1 {
        OLDEST_REPLICATED
    } else {
        OLDEST
    };
    if Version::parse(version).is_some_and(|found| found >= oldest) {
        return Ok(());
    }
    Err(StoreError::unfit(format_args!(
        "NATS server version '{version}': must be at least {oldest} for {replicas} replica(s)"
    )))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use divvy_testbed::NatsVersion;

    use super::*;

    #[test]
    fn guides_and_test_servers_have_the_same_minimum() {
        let (oldest, replicated) = (OLDEST.to_string(), OLDEST_REPLICATED.to_string());
        for (document, versions) in [
            ("../../docs/operating.md", &[&oldest, &replicated][..]),
            ("../../docs/protocol.md", &[&replicated]),
            ("src/store/nats.rs", &[&oldest, &replicated]),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
            let text = std::fs::read_to_string(path).unwrap();
            for version in versions {
                assert!(text.contains(*version), "{document} lacks {version}");
            }
        }
        assert_eq!(NatsVersion::Lowest.number(), oldest);
        assert_eq!(NatsVersion::LowestReplicated.number(), replicated);
    }

    #[test]
    fn servers_below_the_minimum_are_refused_with_both_versions_named() {
        for (version, replicas, fits) in [
            ("2.9.10", 1, false),
            ("2.10.25", 1, false),
            ("2.10.26-RC.1", 1, false),
            ("2.10.26", 1, true),
            ("2.10.26", 3, false),
            ("2.11.10", 3, false),
            ("2.11.11", 3, true),
            ("2.12.0-preview.2", 3, true),
            ("3.0.0", 5, true),
            ("10.0.0", 1, true),
            ("", 1, false),
            ("newest", 1, false),
            ("2.11", 1, false),
        ] {
            let checked = check(version, replicas);
            assert_eq!(checked.is_ok(), fits, "{version} with {replicas}");
            if let Err(error) = checked {
                let oldest = if replicas > 1 { "2.11.11" } else { "2.10.26" };
                let text = error.to_string();
                assert!(text.contains(oldest) && text.contains(&format!("'{version}'")));
            }
        }
    }
}
