//! The records `ctl` and `moves` in a leader's hands.

use super::Member;
use super::operations::Purpose;
use crate::control::Control;
use crate::leader::action::Report;
use crate::leader::event::Reply;
use crate::moves::MoveEntry;
use crate::store::{Entry, Expected, Outcome, Revision};

impl Member {
    pub(super) fn control_answered(&mut self, reply: Reply) {
        match reply {
            Reply::Got(Some(entry)) => self.control_found(&entry),
            Reply::Got(None) => self.control_absent(),
            _ => {}
        }
    }

    /// Nothing was there, which a read of the past also says: it counts from
    /// the second time on.
    fn control_absent(&mut self) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading.control_revision.is_none() {
            return;
        }
        if !std::mem::replace(&mut leading.is_control_absent, true) {
            return;
        }
        leading.control_revision = None;
        leading.control = Control::default();
        leading.dirty = true;
    }

    /// Operators have taken back all that they wished.
    pub(super) fn control_deleted(&mut self, revision: Revision) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading
            .control_revision
            .is_some_and(|known| known < revision)
        {
            leading.control_revision = Some(revision);
            leading.control = Control::default();
            leading.dirty = true;
        }
    }

    /// What operators wish has changed. What cannot be read changes nothing.
    pub(super) fn control_found(&mut self, entry: &Entry) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading
            .control_revision
            .is_some_and(|known| known >= entry.revision)
        {
            leading.is_control_absent &= leading.control_revision != Some(entry.revision);
            return;
        }
        leading.control_revision = Some(entry.revision);
        leading.is_control_absent = false;
        match Control::decode(&entry.value) {
            Ok(control) => {
                let is_refresh = control.refresh > leading.control.refresh;
                leading.control = control;
                leading.dirty = true;
                if is_refresh {
                    self.ask_source();
                }
            }
            Err(invalid) => {
                let key = &self.keys.control;
                let text =
                    format!("what operators wish, the key {key}, is not readable: {invalid}");
                self.report(Report::Problem(text.into()));
            }
        }
    }

    pub(super) fn log_moves(&mut self, moves: Vec<MoveEntry>) {
        let Some(leading) = self.leading.as_mut().filter(|_| !moves.is_empty()) else {
            return;
        };
        leading.moves.push(moves);
        self.write_moves();
    }

    fn write_moves(&mut self) {
        let bytes_max = self.setup.value_bytes_max / 2;
        let Some(leading) = &mut self.leading else {
            return;
        };
        let log = &mut leading.moves;
        if !log.is_known || log.is_writing || log.unwritten == 0 {
            return;
        }
        log.is_writing = true;
        let value = log.encode(bytes_max);
        let expected: Expected = log.revision.into();
        log.unwritten = 0;
        let key = self.keys.moves.clone();
        let timeout = self.setup.settings.operation_timeout;
        self.write_within(key, expected, value, Purpose::WriteMoves, timeout);
    }

    pub(super) fn moves_read(&mut self, reply: Reply) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let (revision, entries) = match reply {
            Reply::Got(Some(entry)) => {
                let entries = MoveEntry::decode_log(&entry.value).unwrap_or_default();
                (Some(entry.revision), entries)
            }
            Reply::Got(None) => (None, Vec::new()),
            _ => return,
        };
        leading.moves.found(revision, entries);
        self.write_moves();
    }

    pub(super) fn moves_written(&mut self, reply: &Reply) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        leading.moves.is_writing = false;
        if let Reply::Written(Outcome::Done(revision)) = reply {
            leading.moves.revision = Some(*revision);
            self.write_moves();
        } else {
            // The log is for people: what was in this write is not sent again.
            leading.moves.is_known = false;
            let key = self.keys.moves.clone();
            self.read(key, Purpose::ReadMoves);
        }
    }
}
