//! P5: a leader exists in time, and goes on leading.

use std::time::Duration;

use divvy_core::leader::SessionId;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Phase, Seen};
use crate::time::TrueTime;

#[derive(Debug, Clone)]
pub(super) struct LeaderExists {
    quiet: bool,
    /// When the leader renewed last, and which it was.
    renewed: Option<(TrueTime, SessionId)>,
    within: Duration,
}

impl LeaderExists {
    pub(super) const fn new(bounds: &Bounds) -> Self {
        Self {
            quiet: false,
            renewed: None,
            within: bounds.beat_within,
        }
    }
}

impl Invariant for LeaderExists {
    const NUMBER: &'static str = "P5";
    const PROPERTY: &'static str = "a leader exists within LL(1+rho)/(1-rho) + jitter";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Entered(phase) => {
                self.quiet = phase == Phase::Quiet;
                Ok(())
            }
            Fact::LeaderWritten { by, record, .. } => {
                let last = self.renewed.replace((seen.at, record.session));
                match last {
                    Some((_, before)) if self.quiet && before != record.session => {
                        Err(format!("m{by} took over from a leader that was well"))
                    }
                    _ => Ok(()),
                }
            }
            Fact::Surveyed(survey) => {
                if survey.leaders.len() != 1 {
                    return Err(format!("{:?} believe to lead", survey.leaders));
                }
                let silent = self.renewed.map(|(at, _)| seen.at.since(at));
                match silent.is_some_and(|silent| silent <= self.within) {
                    true => Ok(()),
                    false => Err(format!("the leader's last renewal is {silent:?} ago")),
                }
            }
            _ => Ok(()),
        }
    }
}
