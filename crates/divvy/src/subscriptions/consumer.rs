//! The consumer that a partition has to have, and what to do about the one
//! that it has.

use std::time::Duration;

use divvy_core::{Error, Partition};
use serde::Deserialize;
use serde_json::{Value, json};

use super::settings::{Retention, SubscriptionSettings};

/// The key of the metadata that says, to people, whose consumer it is.
const PARTITION_KEY: &str = "divvy.partition";

/// What a partition's consumer has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) filter: String,
    partition: String,
    ack_wait: Duration,
    max_ack_pending: i64,
}

/// A consumer as the server describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Found {
    pub(super) config: FoundConfig,
    #[serde(default)]
    pub(super) num_pending: u64,
    #[serde(default)]
    pub(super) num_ack_pending: u64,
    #[serde(default)]
    pub(super) ack_floor: AckFloor,
}

/// Up to where everything was acknowledged.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct AckFloor {
    pub(super) stream_seq: u64,
}

/// The settings of a consumer that matter here; times are in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct FoundConfig {
    pub(super) durable_name: String,
    pub(super) filter_subject: String,
    pub(super) filter_subjects: Vec<String>,
    pub(super) deliver_subject: String,
    pub(super) ack_policy: String,
    pub(super) ack_wait: u64,
    pub(super) max_deliver: i64,
    pub(super) max_ack_pending: i64,
    pub(super) inactive_threshold: u64,
    pub(super) headers_only: bool,
    pub(super) backoff: Vec<u64>,
    /// Limits of a request for messages.
    pub(super) max_batch: u64,
    pub(super) max_expires: u64,
    pub(super) max_bytes: u64,
    pub(super) priority_groups: Vec<String>,
}

/// Where a new consumer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// With everything that the stream holds.
    All,
    /// With this sequence: all before was handled.
    At(u64),
}

/// What to do about a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repair {
    Nothing,
    Create(Begin),
    /// Set it back to what it has to be; its position stays.
    Update,
    /// Its position cannot be trusted: another one takes its place.
    Replace(Begin),
    /// Only a person can tell what it is for.
    Refuse(String),
}

impl Wanted {
    pub(super) fn new(
        settings: &SubscriptionSettings,
        partition: &Partition,
    ) -> Result<Self, Error> {
        Ok(Self {
            name: settings.consumer(partition)?,
            filter: settings.subject(partition)?,
            partition: partition.to_string(),
            ack_wait: settings.ack_wait,
            max_ack_pending: i64::from(settings.in_flight()),
        })
    }

    /// The request that makes it, or sets it back.
    pub(super) fn config(&self, begin: Begin) -> Value {
        let mut config = json!({
            "name": self.name,
            "durable_name": self.name,
            "filter_subject": self.filter,
            "ack_policy": "explicit",
            "ack_wait": nanos(self.ack_wait),
            // We decide when to give up, so that nothing is dropped in silence.
            "max_deliver": -1,
            "max_ack_pending": self.max_ack_pending,
            "replay_policy": "instant",
            "deliver_policy": "all",
            "metadata": { PARTITION_KEY: self.partition },
        });
        if let Begin::At(sequence) = begin {
            config["deliver_policy"] = json!("by_start_sequence");
            config["opt_start_seq"] = json!(sequence);
        }
        config
    }

    /// What to do about what was found; `done` is the sequence up to which
    /// everything was acknowledged, as far as this process has heard.
    pub(super) fn judge(
        &self,
        found: Option<&FoundConfig>,
        retention: Retention,
        done: Option<u64>,
    ) -> Repair {
        let begin = match (retention, done) {
            // A work queue holds only what nobody has handled, and takes no
            // other consumers.
            (Retention::Limits | Retention::Interest, Some(done)) => Begin::At(done + 1),
            _ => Begin::All,
        };
        let Some(found) = found else {
            return Repair::Create(begin);
        };
        if found.ack_policy != "explicit" || !found.deliver_subject.is_empty() {
            let how = match found.deliver_subject.is_empty() {
                true => format!("acknowledges '{}'", found.ack_policy),
                false => "is pushed".to_owned(),
            };
            return Repair::Refuse(format!(
                "consumer '{}' {how}, and must be pulled with explicit acknowledgement: delete it, \
                 or choose another name",
                self.name
            ));
        }
        if found.filter_subject != self.filter || !found.filter_subjects.is_empty() {
            // It may have passed over messages of this partition. A stream of
            // interest would drop what it holds with its consumer.
            return match retention {
                Retention::Limits | Retention::Workqueue => Repair::Replace(begin),
                Retention::Interest => Repair::Update,
            };
        }
        let is_as_wanted = found.ack_wait == nanos(self.ack_wait)
            && found.max_deliver == -1
            && found.max_ack_pending == self.max_ack_pending
            && found.inactive_threshold == 0
            && !found.headers_only
            && found.backoff.is_empty()
            && (found.max_batch, found.max_expires, found.max_bytes) == (0, 0, 0)
            && found.priority_groups.is_empty();
        match is_as_wanted {
            true => Repair::Nothing,
            false => Repair::Update,
        }
    }
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        let settings = SubscriptionSettings::new("orders", "work");
        Wanted::new(&settings, &"tool:1".parse().unwrap()).unwrap()
    }

    /// As a server gives back what it was asked to make.
    fn made() -> FoundConfig {
        serde_json::from_value(wanted().config(Begin::All)).unwrap()
    }

    #[test]
    fn what_was_made_as_wanted_is_left_alone() {
        for retention in [Retention::Limits, Retention::Interest, Retention::Workqueue] {
            for done in [None, Some(7)] {
                let repair = wanted().judge(Some(&made()), retention, done);
                assert_eq!(repair, Repair::Nothing);
            }
        }
    }

    #[test]
    fn a_missing_one_goes_on_after_what_was_handled() {
        let judge = |retention, done| wanted().judge(None, retention, done);
        assert_eq!(judge(Retention::Limits, None), Repair::Create(Begin::All));
        assert_eq!(
            judge(Retention::Limits, Some(7)),
            Repair::Create(Begin::At(8))
        );
        assert_eq!(
            judge(Retention::Workqueue, Some(7)),
            Repair::Create(Begin::All)
        );
        let config = wanted().config(Begin::At(8));
        assert_eq!(config["opt_start_seq"], 8);
        assert_eq!(config["deliver_policy"], "by_start_sequence");
    }

    #[test]
    fn every_edit_that_matters_is_undone() {
        type Edit = fn(&mut FoundConfig);
        let edits: [Edit; 10] = [
            |c| c.ack_wait += 1,
            |c| c.max_deliver = 3,
            |c| c.max_ack_pending = 1000,
            |c| c.inactive_threshold = 1,
            |c| c.headers_only = true,
            |c| c.backoff = vec![1],
            |c| c.max_batch = 1,
            |c| c.max_expires = 1,
            |c| c.max_bytes = 1,
            |c| c.priority_groups = vec!["a".into()],
        ];
        for edit in edits {
            let mut found = made();
            edit(&mut found);
            let repair = wanted().judge(Some(&found), Retention::Limits, Some(7));
            assert_eq!(repair, Repair::Update, "{found:?}");
        }
    }

    #[test]
    fn another_filter_costs_the_position_unless_messages_would_be_lost_with_it() {
        let wider = FoundConfig {
            filter_subject: "work.>".into(),
            ..made()
        };
        let judge = |retention| wanted().judge(Some(&wider), retention, Some(7));
        assert_eq!(judge(Retention::Limits), Repair::Replace(Begin::At(8)));
        assert_eq!(judge(Retention::Workqueue), Repair::Replace(Begin::All));
        assert_eq!(judge(Retention::Interest), Repair::Update);
        let empty = FoundConfig {
            filter_subject: String::new(),
            ..made()
        };
        let repair = wanted().judge(Some(&empty), Retention::Limits, None);
        assert_eq!(repair, Repair::Replace(Begin::All));
    }

    #[test]
    fn what_somebody_else_made_under_the_name_is_refused() {
        let pushed = FoundConfig {
            deliver_subject: "x".into(),
            ..made()
        };
        let unacked = FoundConfig {
            ack_policy: "none".into(),
            ..made()
        };
        for (found, told) in [(pushed, "is pushed"), (unacked, "acknowledges 'none'")] {
            let repair = wanted().judge(Some(&found), Retention::Limits, None);
            assert!(
                matches!(&repair, Repair::Refuse(why) if why.contains(told)),
                "{repair:?}"
            );
        }
    }
}
