//! What runs where, as far as the hooks of members say.

use std::collections::BTreeMap;

use crate::member::line::Said;

/// A partition at a member.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Its own deadline, in lease mode.
    until: Option<u64>,
    /// A hook of it runs.
    is_changing: bool,
}

/// What runs where, after what was said so far.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// By partition and life.
    runs: BTreeMap<(u32, usize), Run>,
    /// By life, until when its grants are current, in leader mode.
    until: BTreeMap<usize, u64>,
}

impl Runs {
    /// A life says something.
    pub(super) fn follow(&mut self, life: usize, said: &Said) {
        match *said {
            Said::Starting {
                partition, until, ..
            } => {
                let run = Run {
                    until: (!self.is_led(life)).then_some(until),
                    is_changing: true,
                };
                self.runs.insert((partition, life), run);
            }
            Said::Started {
                partition,
                failed: true,
                ..
            }
            | Said::Stopped { partition, .. } => {
                self.runs.remove(&(partition, life));
            }
            Said::Started { partition, .. } => self.change(partition, life, false),
            Said::Stopping { partition, .. } => self.change(partition, life, true),
            Said::Deadline { until, .. } => {
                self.until.insert(life, until.unwrap_or(0));
            }
            Said::Deadlines {
                ref partitions,
                until,
                ..
            } => {
                for partition in partitions {
                    if let Some(run) = self.runs.get_mut(&(*partition, life)) {
                        run.until = Some(until.unwrap_or(0));
                    }
                }
            }
            Said::Done { .. } | Said::State { .. } | Said::Trouble { .. } => {}
        }
    }

    fn change(&mut self, partition: u32, life: usize, is_changing: bool) {
        if let Some(run) = self.runs.get_mut(&(partition, life)) {
            run.is_changing = is_changing;
        }
    }

    /// A life is over, and all that it ran.
    pub(super) fn gone(&mut self, life: usize) {
        self.runs.retain(|(_, other), _| *other != life);
        self.until.remove(&life);
    }

    /// Whether all of a life have one deadline.
    pub(super) fn is_led(&self, life: usize) -> bool {
        self.until.contains_key(&life)
    }

    /// Partitions that more than one works on at this time.
    pub(super) fn doubles(&self, now: u64) -> Vec<u32> {
        let current = self.runs.iter().filter(|((_, life), run)| {
            let until = run.until.or_else(|| self.until.get(life).copied());
            until.unwrap_or(0) > now
        });
        let mut doubles = Vec::new();
        let mut last = None;
        for ((partition, _), _) in current {
            if last == Some(*partition) && doubles.last() != last.as_ref() {
                doubles.push(*partition);
            }
            last = Some(*partition);
        }
        doubles
    }

    /// Partitions of which a hook runs.
    pub(super) fn changing(&self) -> impl Iterator<Item = u32> {
        let changing = self.runs.iter().filter(|(_, run)| run.is_changing);
        changing.map(|((partition, _), _)| *partition)
    }
}
