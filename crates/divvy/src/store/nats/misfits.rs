//! What is wrong with a bucket's settings.

use std::fmt;
use std::time::Duration;

use super::api::StreamConfig;

/// Settings that are not as they must be, each with its value and what is
/// wanted.
#[derive(Debug, Default)]
pub(super) struct Misfits(Vec<String>);

impl Misfits {
    /// All of a bucket that is to have these subjects and so many replicas.
    ///
    /// Bounds on its size are none: with `discard` as it must be, a full bucket
    /// refuses what is new and keeps what is there.
    pub(super) fn of(found: &StreamConfig, subjects: &[String], replicas: u8) -> Self {
        let mut misfits = Self::default();
        misfits.look_for_loss(found);
        misfits.look_at_writes(found);
        misfits.must_be("replicas", found.num_replicas, u64::from(replicas));
        misfits.must_be("subjects", found.subjects.as_slice(), subjects);
        misfits
    }

    pub(super) const fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether what was written stays.
    fn look_for_loss(&mut self, found: &StreamConfig) {
        let history = "history (max_msgs_per_subject)";
        self.must_be(history, found.max_msgs_per_subject, 1);
        let age = Duration::from_nanos(found.max_age.unsigned_abs());
        if !age.is_zero() {
            self.0.push(format!("max_age is {age:?}, must be 0"));
        }
        self.must_be("storage", found.storage.as_str(), "file");
        self.must_be("discard", found.discard.as_str(), "new");
        self.must_be("retention", found.retention.as_str(), "limits");
        let persist_mode = found.persist_mode.as_deref().unwrap_or("default");
        self.must_be("persist_mode", persist_mode, "default");
        // Direct reads are served by replicas, which may lag.
        self.must_be("allow_direct", found.allow_direct, false);
    }

    /// Whether writes are possible and acknowledged, and only ours are there.
    fn look_at_writes(&mut self, found: &StreamConfig) {
        let refuses_updates = found.discard_new_per_subject;
        self.must_be("discard_new_per_subject", refuses_updates, false);
        self.must_be("no_ack", found.no_ack, false);
        self.must_be("sealed", found.sealed, false);
        self.must_be("allow_msg_counter", found.allow_msg_counter, false);
        self.must_be("mirror", found.mirror.is_some(), false);
        let sources = found.sources.as_ref().map_or(0, Vec::len);
        self.must_be("sources", sources, 0);
        let transform = found.subject_transform.is_some();
        self.must_be("subject_transform", transform, false);
    }

    fn must_be<T: PartialEq + fmt::Debug>(&mut self, field: &str, is: T, wanted: T) {
        if is != wanted {
            self.0
                .push(format!("{field} is {is:?}, must be {wanted:?}"));
        }
    }
}

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}
