//! What managers said, in the words of the invariants.

use std::time::Duration;

use divvy::manager::{EventKind, ManagerEvent};
use divvy_sim::{Happened, History};

#[derive(Default)]
pub(crate) struct Chronicle {
    pub(crate) history: History,
}

impl Chronicle {
    /// Something happened at a manager; each has its own number.
    pub(crate) fn say(&mut self, number: usize, event: &ManagerEvent) {
        if let Some(happened) = happened(&event.kind) {
            self.history.add(number, event.at, happened);
        }
    }

    /// It has to hold together, and nothing may have had two owners.
    pub(crate) fn check(&self, lease: Duration) {
        if let Err(broken) = self.history.check(lease) {
            panic!("{broken}");
        }
        let two_owners = self.history.two_owners();
        assert!(two_owners.is_zero(), "{two_owners:?}");
        assert_eq!(self.history.duplicate_ids(), 0);
    }
}

fn happened(kind: &EventKind) -> Option<Happened> {
    Some(match kind {
        EventKind::Assigned { partition, token } => {
            Happened::StartCalled(partition.to_string(), *token)
        }
        EventKind::Started { partition, failed } => {
            Happened::StartEnded(partition.to_string(), *failed)
        }
        EventKind::Revoked { partition } => Happened::StopCalled(partition.to_string()),
        EventKind::Stopped { partition } => Happened::StopEnded(partition.to_string()),
        EventKind::Deadline { identity, until } => {
            let identity = identity
                .as_ref()
                .map(|(id, session)| (id.to_string(), *session));
            Happened::Deadline(identity, *until)
        }
        EventKind::Adopted {
            session, version, ..
        } => Happened::Adopted(*session, *version),
        EventKind::Ended => Happened::Gone(true),
        _ => return None,
    })
}
