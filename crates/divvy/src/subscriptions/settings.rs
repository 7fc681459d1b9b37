//! Settings of subscriptions, as a file holds them.

mod document;

use std::time::Duration;

use divvy_core::store::encode_part;
use divvy_core::{Error, Invalid, Partition};
use serde::{Deserialize, Serialize};

use self::document::Document;
use crate::manager::Retry;

/// Longest name of a stream or consumer that servers take, in bytes: it is the
/// name of a directory there.
const NAME_BYTES_MAX: usize = 255;
/// Longest name of a subscription, in bytes, before it is encoded.
const OWN_NAME_BYTES_MAX: usize = 64;
/// Between the name of a subscription and that of a partition: no encoded name
/// has it, and servers take it.
const NAME_SEPARATOR: char = '@';
const IN_FLIGHT_MAX: u32 = 10_000;
const BATCH_MAX: u32 = 1_000;
const HANDLERS_MAX: usize = 1 << 16;
const DELIVER_MAX: u32 = 1_000;
const DAY: Duration = Duration::from_hours(24);
const HOUR: Duration = Duration::from_hours(1);
/// Steepness and ceiling of delays between retries.
const RETRY_GROWTH: f64 = 2.0;
const RETRY_LONGEST: Duration = Duration::from_secs(30);

/// When a stream forgets its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    /// By age, count or size, whoever has read them.
    Limits,
    /// When every consumer has acknowledged them; at once where there is none.
    /// So all consumers must be there before the first message is: see
    /// [`Subscriptions::ensure`](super::Subscriptions::ensure).
    Interest,
    /// When one consumer has acknowledged them.
    Workqueue,
}

impl Retention {
    /// As servers spell it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::Interest => "interest",
            Self::Workqueue => "workqueue",
        }
    }
}

/// How messages of one partition follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One at a time: later ones wait until a failing one is acknowledged or
    /// among the dead letters.
    #[default]
    Ordered,
    /// Up to `max_in_flight` at once, in any order.
    Concurrent,
}

/// Where messages go that cannot be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// The stream that keeps them, made if it is missing. By default the
    /// stream's name and `-dead`.
    pub stream: String,
    /// What their subjects begin with: `PREFIX.STREAM.SUBJECT`, by default with
    /// the prefix `dead`.
    pub prefix: String,
}

/// Settings of subscriptions. In JSON and YAML all but `stream` and `prefix`
/// are optional, times are texts such as `30s`, and an unknown field is an
/// error:
///
/// ```
/// use divvy::subscriptions::{Mode, SubscriptionSettings};
///
/// let settings = SubscriptionSettings::from_yaml(r#"
/// stream: orders
/// prefix: work
/// mode: concurrent
/// max_in_flight: 16
/// ack_wait: 3s
/// "#)?;
/// assert_eq!(settings.mode, Mode::Concurrent);
///
/// let wrong = SubscriptionSettings::from_yaml("{stream: a, prefix: b, max_deliver: 0}");
/// assert_eq!(wrong.unwrap_err().to_string(), "max_deliver '0': must be in 1..=1000");
/// # Ok::<(), divvy::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct SubscriptionSettings {
    /// The stream to read.
    pub stream: String,
    /// What the stream's retention has to be. Where it is set, a missing
    /// stream is made, with the subjects below `prefix`.
    pub retention: Option<Retention>,
    /// Whose position in the stream this is. Services that each want every
    /// message choose different names; workers of one service share it.
    pub name: String,
    /// What subjects begin with.
    pub prefix: String,
    /// How a partition becomes a subject: see
    /// [`Partition::subject_from`].
    pub template: String,
    /// How messages of one partition follow each other.
    pub mode: Mode,
    /// Messages of one partition that may be unacknowledged at once in
    /// concurrent mode, 1 to 10,000. In ordered mode it is always 1.
    pub max_in_flight: u32,
    /// Messages that are asked for at once, 1 to 1000. Small ones cost
    /// requests; large ones wait in this process while handlers are busy, but
    /// never more than may be in flight.
    pub batch: u32,
    /// Handlers that run at once in this process, over all partitions, 1 to
    /// 65,536. Messages beyond wait, and the server sends no more of them.
    pub max_handlers: usize,
    /// How long the server waits for a sign of a message before it gives it
    /// out again, 200 ms to 1 hour. While a handler runs it gets one every
    /// third of this, so handlers may take longer. The lease of the worker is
    /// a good choice: much longer, and what a crashed worker had begun waits
    /// after its partitions were handed on; much shorter, and a short stall
    /// has messages sent twice.
    pub ack_wait: Duration,
    /// How often a message is given to handlers before it goes to the dead
    /// letters, 1 to 1000. Also one that never comes to an end, because it
    /// takes the process with it, goes there, after twice as many.
    pub max_deliver: u32,
    /// How long a message that failed for the first time waits; each further
    /// failure doubles it.
    pub redeliver_delay: Duration,
    /// The longest that it waits, at most a day.
    pub redeliver_delay_max: Duration,
    /// How long handlers may go on when their partition is asked back, 1 ms to
    /// 1 hour. Below the manager's `stop_deadline`, or that will report it.
    pub drain_timeout: Duration,
    /// How often a failed request, for a consumer for example, is repeated
    /// before the partition counts as failing, at most 100. It is tried again
    /// every `reconcile_interval` all the same.
    pub max_retries: u32,
    /// The ceiling of the delay before the first retry; each further one
    /// doubles it, up to 30 s.
    pub retry_backoff: Duration,
    /// How often each consumer is looked at, and repaired if somebody deleted
    /// or edited it; 50 ms to 24 hours.
    pub reconcile_interval: Duration,
    /// Where messages go that cannot be handled.
    pub dead_letters: DeadLetters,
}

impl SubscriptionSettings {
    /// The default settings for a stream and the prefix of its subjects.
    pub fn new(stream: impl Into<String>, prefix: impl Into<String>) -> Self {
        let stream = stream.into();
        Self {
            retention: None,
            name: "divvy".to_owned(),
            prefix: prefix.into(),
            template: "{prefix}.{keys}.completed".to_owned(),
            mode: Mode::Ordered,
            max_in_flight: 64,
            batch: 64,
            max_handlers: 1024,
            ack_wait: Duration::from_secs(6),
            max_deliver: 5,
            redeliver_delay: Duration::from_secs(1),
            redeliver_delay_max: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(5),
            max_retries: 3,
            retry_backoff: Duration::from_secs(1),
            reconcile_interval: Duration::from_secs(30),
            dead_letters: DeadLetters {
                stream: format!("{stream}-dead"),
                prefix: "dead".to_owned(),
            },
            stream,
        }
    }

    /// Reads settings, and checks them.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let read: Document = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        Ok(Self::try_from(read)?)
    }

    /// Reads settings, and checks them.
    pub fn from_yaml(text: &str) -> Result<Self, Error> {
        let read: Document = serde_saphyr::from_str(text).map_err(|error| unreadable(&error))?;
        Ok(Self::try_from(read)?)
    }

    /// Whether all values are inside their bounds and fit together.
    pub fn check(&self) -> Result<(), Error> {
        check_stream("stream", &self.stream)?;
        check_stream("dead_letters.stream", &self.dead_letters.stream)?;
        if self.stream == self.dead_letters.stream {
            let rule = "must be another stream than that of the messages";
            return Err(Invalid::new("dead_letters.stream", &self.stream, rule).into());
        }
        if !(1..=OWN_NAME_BYTES_MAX).contains(&self.name.len()) {
            let rule = format!("must have 1..={OWN_NAME_BYTES_MAX} bytes");
            return Err(Invalid::new("name", &self.name, rule).into());
        }
        let sample = Partition::shard("p", 0)?;
        sample.subject_from(&self.template, &self.prefix)?;
        sample.subject_from("{prefix}.{keys}", &self.dead_letters.prefix)?;
        self.check_counts()?;
        self.check_spans()?;
        Ok(())
    }

    fn check_counts(&self) -> Result<(), Invalid> {
        let counts = [
            (
                "max_in_flight",
                self.max_in_flight as usize,
                IN_FLIGHT_MAX as usize,
            ),
            ("batch", self.batch as usize, BATCH_MAX as usize),
            ("max_handlers", self.max_handlers, HANDLERS_MAX),
            (
                "max_deliver",
                self.max_deliver as usize,
                DELIVER_MAX as usize,
            ),
        ];
        for (field, count, most) in counts {
            if !(1..=most).contains(&count) {
                return Err(Invalid::new(field, count, format!("must be in 1..={most}")));
            }
        }
        self.retry().check()
    }

    fn check_spans(&self) -> Result<(), Invalid> {
        let ms = Duration::from_millis;
        let spans = [
            ("ack_wait", self.ack_wait, ms(200), HOUR),
            (
                "redeliver_delay",
                self.redeliver_delay,
                ms(1),
                self.redeliver_delay_max,
            ),
            ("redeliver_delay_max", self.redeliver_delay_max, ms(1), DAY),
            ("drain_timeout", self.drain_timeout, ms(1), HOUR),
            ("retry_backoff", self.retry_backoff, ms(1), RETRY_LONGEST),
            ("reconcile_interval", self.reconcile_interval, ms(50), DAY),
        ];
        for (field, span, least, most) in spans {
            if !(least..=most).contains(&span) {
                let rule = format!("must be in {least:?}..={most:?}");
                return Err(Invalid::new(field, format!("{span:?}"), rule));
            }
        }
        Ok(())
    }

    /// The subject of a partition: what its consumer is for. Never a pattern,
    /// so no two partitions' consumers overlap.
    pub fn subject(&self, partition: &Partition) -> Result<String, Error> {
        partition.subject_from(&self.template, &self.prefix)
    }

    /// The durable consumer of a partition.
    pub fn consumer(&self, partition: &Partition) -> Result<String, Error> {
        let name = format!("{}{}", self.consumers(), encode_part(partition.as_str()));
        if name.len() > NAME_BYTES_MAX {
            let rule = format!(
                "makes a consumer's name of {} bytes, servers take {NAME_BYTES_MAX}",
                name.len()
            );
            return Err(Invalid::new("partition", partition, rule).into());
        }
        Ok(name)
    }

    /// What the names of all consumers of this subscription begin with.
    pub(super) fn consumers(&self) -> String {
        format!("{}{NAME_SEPARATOR}", encode_part(&self.name))
    }

    /// The subjects of a stream that has to be made; nothing where the
    /// template does not tell.
    pub(super) fn stream_subjects(&self) -> Option<String> {
        let is_below = self.template.starts_with("{prefix}.");
        is_below.then(|| format!("{}.>", self.prefix))
    }

    /// Of one partition, how many messages may be unacknowledged.
    pub(super) fn in_flight(&self) -> u32 {
        match self.mode {
            Mode::Ordered => 1,
            Mode::Concurrent => self.max_in_flight,
        }
    }

    /// How failed requests are repeated.
    pub(super) fn retry(&self) -> Retry {
        Retry {
            max_retries: self.max_retries,
            initial_delay: self.retry_backoff,
            max_delay: RETRY_LONGEST.max(self.retry_backoff),
            backoff: RETRY_GROWTH,
        }
    }
}

fn check_stream(field: &'static str, name: &str) -> Result<(), Invalid> {
    let is_bad =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '.' | '*' | '>' | '/' | '\\');
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || name.contains(is_bad) {
        let rule = format!(
            "must have 1..={NAME_BYTES_MAX} bytes, without '.', '*', '>', slashes and white space"
        );
        return Err(Invalid::new(field, name, rule));
    }
    Ok(())
}

fn unreadable(error: &dyn std::fmt::Display) -> Error {
    Error::Document {
        document: "subscription settings",
        message: Invalid::new("", "", error.to_string()).rule().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(text: &str) -> Partition {
        text.parse().unwrap()
    }

    #[test]
    fn a_wrong_value_is_named_with_its_bound() {
        type Change = fn(&mut SubscriptionSettings);
        let cases: [(Change, &str); 9] = [
            (
                |s| s.stream = "a.b".into(),
                "stream 'a.b': must have 1..=255 bytes",
            ),
            (
                |s| s.name = String::new(),
                "name '': must have 1..=64 bytes",
            ),
            (|s| s.prefix = String::new(), "subject '.p.0.completed'"),
            (
                |s| s.prefix = "work.*".into(),
                "subject 'work.*.p.0.completed'",
            ),
            (
                |s| s.template = "{prefix}".into(),
                "subject template '{prefix}': must hold {keys}",
            ),
            (|s| s.batch = 0, "batch '0': must be in 1..=1000"),
            (
                |s| s.ack_wait = Duration::from_millis(20),
                "ack_wait '20ms': must be in 200ms..=3600s",
            ),
            (
                |s| s.redeliver_delay = HOUR,
                "redeliver_delay '3600s': must be in 1ms..=30s",
            ),
            (
                |s| s.dead_letters.stream = "orders".into(),
                "dead_letters.stream 'orders': must be another",
            ),
        ];
        for (change, told) in cases {
            let mut settings = SubscriptionSettings::new("orders", "work");
            settings.check().unwrap();
            change(&mut settings);
            let error = settings.check().unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }

    #[test]
    fn names_of_consumers_are_different_and_inside_their_alphabet() {
        let settings = SubscriptionSettings::new("orders", "work");
        let other = SubscriptionSettings {
            name: "divvy@a".into(),
            ..settings.clone()
        };
        let texts = [
            "a:b", "a_b", "a", "a:b:c", "A:b", "ä:*", "a=3Ab", "a@b", "a b",
        ];
        let mut names: Vec<_> = texts
            .iter()
            .flat_map(|text| [&settings, &other].map(|s| s.consumer(&partition(text)).unwrap()))
            .collect();
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "_-=@".contains(c);
        assert!(
            names.iter().all(|name| name.chars().all(is_fit)),
            "{names:?}"
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2 * texts.len());
        let long = partition(&"x".repeat(120))
            .segments()
            .next()
            .unwrap()
            .to_owned();
        let long = Partition::new([&long, &long, &long]).unwrap();
        let told = settings.consumer(&long).unwrap_err().to_string();
        assert!(told.contains("servers take 255"), "{told}");
    }

    #[test]
    fn settings_are_read_back_as_they_were_written() {
        let mut settings = SubscriptionSettings::new("orders", "work");
        settings.retention = Some(Retention::Workqueue);
        settings.ack_wait = Duration::from_millis(1500);
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(SubscriptionSettings::from_json(&text).unwrap(), settings);
        let told = SubscriptionSettings::from_json(r#"{"stream": "a", "prefix": "b", "bach": 1}"#);
        assert!(told.unwrap_err().to_string().contains("bach"));
    }
}
