//! Times as people type them.

use std::fmt;
use std::time::Duration;

/// Units with their lengths in milliseconds, longest first.
const UNITS: [(&str, u128); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A time in the form of settings: `24h`, `1m30s`, `500ms`, `0s`. Of what is
/// finer than a millisecond, it shows whole milliseconds.
///
/// ```
/// use divvy_core::Spelled;
/// use std::time::Duration;
///
/// assert_eq!(Spelled(Duration::from_secs(90)).to_string(), "1m30s");
/// assert_eq!(Spelled(Duration::ZERO).to_string(), "0s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelled(pub Duration);

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_millis();
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, length) in UNITS {
            if rest >= length {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}
