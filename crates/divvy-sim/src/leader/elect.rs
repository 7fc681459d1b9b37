//! The external election agent, honest or not.

use std::time::Duration;

use divvy_core::leader::Event;

use super::World;
use crate::coverage::Mishap;
use crate::fault::FaultKind;
use crate::profile::Election;
use crate::time::TrueTime;
use crate::world::{Arrival, Happening};

/// Who may lead, where an agent says so.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    election: Election,
    /// Whom it let lead, and until when.
    leaders: Vec<(usize, TrueTime)>,
}

impl Agent {
    pub(super) const fn new(election: Election) -> Self {
        Self {
            election,
            leaders: Vec::new(),
        }
    }

    pub(super) fn is_used(&self) -> bool {
        self.election != Election::Store
    }

    pub(super) fn forget(&mut self, member: usize) {
        self.leaders.retain(|&(leader, _)| leader != member);
    }

    /// From now on one leads at a time.
    pub(super) fn turn_honest(&mut self) {
        if self.is_used() {
            self.election = Election::Agent;
        }
        self.leaders.clear();
    }
}

impl World {
    /// A member asks to lead, or to go on leading.
    pub(super) fn request_leadership(&mut self, member: usize) {
        let lease = self.profile.settings.leader_lease;
        let now = self.now;
        self.own.agent.leaders.retain(|&(_, until)| until > now);
        let most = match self.own.agent.election {
            Election::Store | Election::Agent => 1,
            Election::TwoLead => 2,
            Election::AllLead => usize::MAX,
        };
        let lies = self.lies_about_elections();
        let leaders = &mut self.own.agent.leaders;
        let others = leaders.len();
        let known = leaders.iter_mut().find(|(leader, _)| *leader == member);
        let elected = match known {
            Some((_, until)) => {
                *until = now + lease;
                true
            }
            None if others < most || lies => {
                leaders.push((member, now + lease));
                if others > 0 {
                    self.count(Mishap::FalseElection);
                }
                true
            }
            None => false,
        };
        if self.processes[member].isolation == Some(crate::fault::Isolation::Full) {
            return;
        }
        let generation = self.processes[member].generation;
        let after = self.way() + Duration::from_micros(100);
        let arrival = Arrival::Event(Event::Elected(elected));
        self.after(after, Happening::Arrive(member, generation, arrival));
    }

    fn lies_about_elections(&self) -> bool {
        let mut active = self.active.iter();
        active.any(|&index| self.profile.faults[index].kind == FaultKind::FalseElection)
    }

    pub(super) fn release_leadership(&mut self, member: usize) {
        self.own.agent.forget(member);
    }
}
