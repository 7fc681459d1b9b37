//! The form of settings in JSON and YAML.

use std::time::Duration;

use divvy_core::Invalid;
use serde::{Deserialize, Serialize};

use super::{DeadLetters, Mode, Retention, SubscriptionSettings};
use crate::manager::settings::span::Span;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DeadLettersDocument {
    stream: Option<String>,
    prefix: Option<String>,
}

/// Settings as a file holds them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    stream: String,
    prefix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retention: Option<Retention>,
    name: Option<String>,
    template: Option<String>,
    mode: Option<Mode>,
    max_in_flight: Option<u32>,
    batch: Option<u32>,
    max_handlers: Option<usize>,
    ack_wait: Option<Span>,
    max_deliver: Option<u32>,
    redeliver_delay: Option<Span>,
    redeliver_delay_max: Option<Span>,
    drain_timeout: Option<Span>,
    max_retries: Option<u32>,
    retry_backoff: Option<Span>,
    reconcile_interval: Option<Span>,
    #[serde(default)]
    dead_letters: DeadLettersDocument,
}

impl TryFrom<Document> for SubscriptionSettings {
    type Error = Invalid;

    fn try_from(read: Document) -> Result<Self, Invalid> {
        let base = Self::new(read.stream, read.prefix);
        let span = |given: Option<Span>, base: Duration| given.map_or(base, |Span(span)| span);
        let settings = Self {
            retention: read.retention,
            name: read.name.unwrap_or(base.name),
            template: read.template.unwrap_or(base.template),
            mode: read.mode.unwrap_or(base.mode),
            max_in_flight: read.max_in_flight.unwrap_or(base.max_in_flight),
            batch: read.batch.unwrap_or(base.batch),
            max_handlers: read.max_handlers.unwrap_or(base.max_handlers),
            ack_wait: span(read.ack_wait, base.ack_wait),
            max_deliver: read.max_deliver.unwrap_or(base.max_deliver),
            redeliver_delay: span(read.redeliver_delay, base.redeliver_delay),
            redeliver_delay_max: span(read.redeliver_delay_max, base.redeliver_delay_max),
            drain_timeout: span(read.drain_timeout, base.drain_timeout),
            max_retries: read.max_retries.unwrap_or(base.max_retries),
            retry_backoff: span(read.retry_backoff, base.retry_backoff),
            reconcile_interval: span(read.reconcile_interval, base.reconcile_interval),
            dead_letters: DeadLetters {
                stream: read.dead_letters.stream.unwrap_or(base.dead_letters.stream),
                prefix: read.dead_letters.prefix.unwrap_or(base.dead_letters.prefix),
            },
            stream: base.stream,
            prefix: base.prefix,
        };
        match settings.check() {
            Ok(()) => Ok(settings),
            Err(divvy_core::Error::Invalid(invalid)) => Err(invalid),
            Err(other) => Err(Invalid::new("settings", "", other.to_string())),
        }
    }
}

impl From<SubscriptionSettings> for Document {
    fn from(settings: SubscriptionSettings) -> Self {
        let span = |duration| Some(Span(duration));
        Self {
            stream: settings.stream,
            prefix: settings.prefix,
            retention: settings.retention,
            name: Some(settings.name),
            template: Some(settings.template),
            mode: Some(settings.mode),
            max_in_flight: Some(settings.max_in_flight),
            batch: Some(settings.batch),
            max_handlers: Some(settings.max_handlers),
            ack_wait: span(settings.ack_wait),
            max_deliver: Some(settings.max_deliver),
            redeliver_delay: span(settings.redeliver_delay),
            redeliver_delay_max: span(settings.redeliver_delay_max),
            drain_timeout: span(settings.drain_timeout),
            max_retries: Some(settings.max_retries),
            retry_backoff: span(settings.retry_backoff),
            reconcile_interval: span(settings.reconcile_interval),
            dead_letters: DeadLettersDocument {
                stream: Some(settings.dead_letters.stream),
                prefix: Some(settings.dead_letters.prefix),
            },
        }
    }
}
