//! Writing a root: chunks first, then the root itself over the very one that
//! it was made from. Whatever else happens, the root is read again before
//! anything is written: never is a root sent twice.

use std::sync::Arc;

use super::Member;
use super::draft::{Changes, Draft};
use super::leading::{Base, Stage};
use super::operations::Purpose;
use super::root_view::SeenRoot;
use crate::leader::action::Report;
use crate::leader::codec::{Committed, encode_root};
use crate::leader::defect::Defect;
use crate::leader::event::Reply;
use crate::leader::record::Root;
use crate::partition::Partitions;
use crate::store::{Expected, Outcome, Revision};

impl Member {
    pub(super) fn encode_draft(
        &mut self,
        root: Root,
        partitions: &Partitions,
        previous: Option<&Committed>,
        expected: Expected,
        changes: Changes,
    ) -> Option<Draft> {
        let last = previous.map(|previous| previous.root.version);
        if last >= Some(root.version) && self.defect != Some(Defect::VersionReused) {
            let text = format!("no root can follow {}: epochs are used up", root.version);
            self.report(Report::Problem(text.into()));
            return None;
        }
        let nonce = self.random.next_wide();
        // Half of what the store takes, so that headers and names fit too.
        let bytes_max = self.setup.value_bytes_max / 2;
        let encoded = match encode_root(root, partitions, previous, nonce, bytes_max) {
            Ok(encoded) => encoded,
            Err(invalid) => {
                let text = format!("the root cannot be written: {invalid}");
                self.report(Report::Problem(text.into()));
                return None;
            }
        };
        let chunks = encoded.chunks.into_iter();
        Some(Draft {
            expected,
            head: encoded.head.into(),
            chunks: chunks.map(|(key, bytes)| (key, bytes.into())).collect(),
            committed: Arc::new(encoded.committed),
            changes,
        })
    }

    pub(super) fn commit(&mut self, draft: Draft) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        self.serial += 1;
        let attempt = self.serial;
        leading.attempt = attempt;
        if draft.chunks.is_empty() {
            return self.write_head(Box::new(draft));
        }
        let chunks = draft.chunks.clone();
        leading.stage = Stage::Chunks(Box::new(draft), chunks.len());
        let timeout = self.setup.settings.operation_timeout;
        for (key, value) in chunks {
            let purpose = Purpose::WriteChunk(attempt, key.clone());
            self.write_bytes(key, Expected::Absent, value, purpose, timeout);
        }
    }

    pub(super) fn chunk_written(&mut self, attempt: u64, key: crate::store::Key, reply: &Reply) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if let Reply::Written(Outcome::Done(revision)) = reply {
            leading.garbage.written(key, *revision);
        }
        if leading.attempt != attempt {
            return;
        }
        let Stage::Chunks(_, left) = &mut leading.stage else {
            return;
        };
        if !matches!(reply, Reply::Written(Outcome::Done(_))) {
            return self.read_base_later();
        }
        *left -= 1;
        if *left > 0 {
            return;
        }
        if self.is_base_old() {
            return self.read_base_now();
        }
        let leading = self.leading.as_mut().expect("it writes chunks");
        if let Stage::Chunks(draft, _) = std::mem::replace(&mut leading.stage, Stage::Ready) {
            self.write_head(draft);
        }
    }

    fn write_head(&mut self, draft: Box<Draft>) {
        let now = self.clock.now;
        let key = self.keys.root.clone();
        let Some(leading) = &mut self.leading else {
            return;
        };
        let purpose = Purpose::WriteRoot(leading.attempt);
        let (expected, head) = (draft.expected, Arc::clone(&draft.head));
        leading.stage = Stage::Head(draft, now);
        let timeout = self.setup.settings.renewal_timeout();
        self.write_bytes(key, expected, head, purpose, timeout);
    }

    pub(super) fn root_written(&mut self, attempt: u64, reply: Reply) {
        let Some(leading) = self
            .leading
            .as_mut()
            .filter(|leading| leading.attempt == attempt)
        else {
            return;
        };
        let Stage::Head(draft, sent) = std::mem::replace(&mut leading.stage, Stage::Ready) else {
            return;
        };
        match reply {
            Reply::Written(Outcome::Done(revision)) => {
                leading.commit_took = self.clock.now.since(sent);
                self.acknowledged(sent);
                if matches!(draft.expected, Expected::At(before) if before >= revision) {
                    return self.store_forgot("a root was acknowledged below an earlier one");
                }
                self.committed(*draft, revision);
            }
            Reply::Written(Outcome::Conflict) => {
                leading.unconfirmed = Some(draft);
                self.read_base_now();
            }
            _failed => {
                leading.unconfirmed = Some(draft);
                self.read_base_later();
            }
        }
    }

    /// Whether a root that was read is the one whose answer was lost.
    pub(super) fn confirm(&mut self, seen: &SeenRoot) -> bool {
        let Some(leading) = &mut self.leading else {
            return false;
        };
        let Some(mut draft) = leading.unconfirmed.take() else {
            return false;
        };
        if draft.head == seen.value {
            self.committed(*draft, seen.revision);
            return true;
        }
        if self.defect == Some(Defect::ResendRoot) {
            draft.expected = Expected::At(seen.revision);
            self.serial += 1;
            leading.attempt = self.serial;
            self.write_head(draft);
            return true;
        }
        false
    }

    /// The root is this one from now on.
    fn committed(&mut self, draft: Draft, revision: Revision) {
        let now = self.clock.now;
        let Some(leading) = &mut self.leading else {
            return;
        };
        let seen = SeenRoot {
            revision,
            value: draft.head,
            committed: draft.committed,
        };
        let version = seen.version();
        leading.base = Some(Base::Root(seen.clone()));
        leading.stage = Stage::Ready;
        leading.dirty = true;
        leading.failures = 0;
        // A root that was under way when the store was found to have forgotten
        // answers nothing.
        if seen.committed.root.quarantine {
            leading.has_forgotten = false;
        }
        let changes = draft.changes;
        if changes.considered {
            leading.policy.considered(changes.has_moved.then_some(now));
        } else if changes.has_placed {
            leading.policy.unsettle();
        }
        leading.policy.placed();
        for (partition, to) in changes.destined {
            leading.destined.insert(partition, to);
        }
        leading.triggers.extend(changes.triggers);
        leading.weigh_base(now);
        self.find_garbage();
        self.root_is_newest(seen);
        self.log_moves(changes.moves);
        self.report(Report::Committed {
            version,
            granted: changes.granted,
            revoked: changes.revoked,
            causes: changes.causes.into_iter().collect(),
            handovers: changes
                .handovers
                .into_iter()
                .map(|((why, took), count)| (why, took, count))
                .collect(),
        });
    }
}
