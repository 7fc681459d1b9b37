//! Bringing a root into force: grants are started, what is gone is stopped.

use std::sync::Arc;

use super::Member;
use crate::leader::action::Report;
use crate::leader::defect::Defect;
use crate::leader::record::Holding;

impl Member {
    /// Looks at the newest root again, after any change of it or of ourselves.
    /// Only one that is newer than what is in force here counts.
    pub(super) fn adopt(&mut self) {
        let (Some(session), Some(seen)) = (&mut self.session, &self.view.newest) else {
            return;
        };
        let root = &seen.committed.root;
        let older_counts = self.defect == Some(Defect::AdoptOlderRoot);
        let is_newer = session.adopted.is_none_or(|(version, _)| {
            root.version > version || (older_counts && root.version < version)
        });
        if !is_newer {
            return;
        }
        session.adopted = Some((root.version, root.lifecycle));
        self.adopted_max = self.adopted_max.max(root.version);
        let committed = Arc::clone(&seen.committed);
        self.bring_into_force(&committed);
    }

    fn bring_into_force(&mut self, committed: &crate::leader::codec::Committed) {
        let root = &committed.root;
        let session = self.session.as_ref().expect("a session adopts");
        let named = root
            .sessions
            .iter()
            .position(|entry| entry.session == session.id && entry.worker == session.worker);
        let mut owes_word = root.quarantine;
        if let Some(mine) = named {
            self.work.revoke_all();
            let partitions = committed.partitions.as_slice();
            for (partition, holding) in partitions.iter().zip(&root.holdings) {
                match *holding {
                    Holding::Held { session, token } if session as usize == mine => {
                        self.token_max = self.token_max.max(Some(token));
                        self.work.grant(partition, token);
                    }
                    Holding::Revoking { session, .. } if session as usize == mine => {
                        let slot = self.work.get(partition.as_str());
                        let runs = slot.is_some_and(|slot| slot.phase.token().is_some());
                        owes_word |= !runs;
                    }
                    _ => {}
                }
            }
        } else if self.work.iter().next().is_some() && self.defect != Some(Defect::KeepUnnamed) {
            self.work.revoke_all();
        }
        self.report(Report::Adopted {
            version: root.version,
            lifecycle: root.lifecycle,
        });
        if owes_word {
            self.acknowledge();
        }
    }

    pub(super) fn adopts_older(&self) -> bool {
        self.defect == Some(Defect::AdoptOlderRoot)
    }
}
