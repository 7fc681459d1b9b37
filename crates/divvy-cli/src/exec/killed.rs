//! Why a command was killed, in words.

use std::time::Duration;

/// Why a command was killed that was asked to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Killed {
    /// Its grace was over.
    Late,
    /// Its lease was over before it could be asked.
    AtOnce,
    /// Its lease ended before its grace.
    Early(Duration),
}

impl Killed {
    pub(super) fn describe(self, grace: Duration) -> String {
        match self {
            Self::Late => format!("it did not end in time (--grace {grace:?}): it was killed"),
            Self::AtOnce => "its lease is gone: it was killed at once".to_owned(),
            Self::Early(after) => format!(
                "its lease ends: it was killed after {:.1} s of --grace {grace:?}",
                after.as_secs_f64()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_command_was_killed_tells_its_lease_from_its_grace() {
        let grace = Duration::from_secs(10);
        let described = [
            (
                Killed::Late,
                "it did not end in time (--grace 10s): it was killed",
            ),
            (Killed::AtOnce, "its lease is gone: it was killed at once"),
            (
                Killed::Early(Duration::from_millis(1004)),
                "its lease ends: it was killed after 1.0 s of --grace 10s",
            ),
        ];
        for (killed, words) in described {
            assert_eq!(killed.describe(grace), words);
        }
    }
}
