//! Partitions handed to a service by HTTP: a POST for each start and each
//! stop, signed with a secret that both sides have.
//!
//! [`address`] says what may be shown, [`target`] sends one request,
//! [`signature`] signs it; here is what becomes of the answers.

mod address;
mod signature;
mod target;

pub(crate) use self::address::{has_secret, origin, typed};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use divvy::Partition;
use divvy::manager::{Grant, HookError};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout_at};

use self::signature::Signer;
use self::target::{Answered, Target};
use crate::args::WebhookArgs;
use crate::failure::Failure;
use crate::http::read_secret;
use crate::voice::say;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);
/// Delays between two requests for the same thing.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(5);
/// Why a start is not sent, or not sent again.
const LEASE_ENDED: &str = "its lease ended before it was started";

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    pub(crate) start: Duration,
    pub(crate) stop: Duration,
}

/// A service that works on partitions.
#[derive(Debug)]
pub(crate) struct Webhook {
    target: Target,
    signer: Signer,
    cluster: String,
    deadlines: Deadlines,
}

/// What is sent. Its fields are documented, and none goes away.
#[derive(Debug, Serialize)]
struct Message<'a> {
    event: &'static str,
    cluster: &'a str,
    worker: &'a str,
    partition: &'a str,
    workload: &'a str,
    unit: &'a str,
    /// As text, for JavaScript would round it.
    token: String,
    attempt: u32,
    /// How long this is tried for, from now on.
    deadline_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// Why a service has not taken what it was sent.
enum Unaccepted {
    /// It said no, so nothing runs.
    Refused(String),
    /// It may have taken it.
    Unknown(String),
}

impl Unaccepted {
    fn of(why: String, is_doubtful: bool) -> Self {
        if is_doubtful {
            Self::Unknown(why)
        } else {
            Self::Refused(why)
        }
    }
}

impl Webhook {
    /// What was asked for.
    pub(crate) fn new(
        url: &str,
        args: &WebhookArgs,
        cluster: &str,
        deadlines: Deadlines,
    ) -> Result<Self, Failure> {
        let Some(path) = &args.webhook_secret_file else {
            let text = "--webhook-secret-file is missing: what is sent has to be signed";
            return Err(Failure::Usage(text.to_owned()));
        };
        Ok(Self {
            target: Target::parse(url)?,
            signer: Signer::new(&read_secret("webhook-secret-file", path)?),
            cluster: cluster.to_owned(),
            deadlines,
        })
    }

    /// A partition that the service is to work on.
    pub(crate) fn begin(
        self: &Arc<Self>,
        worker: &str,
        partition: &Partition,
        grant: Grant,
    ) -> Hooked {
        Hooked {
            webhook: Arc::clone(self),
            worker: worker.into(),
            partition: partition.clone(),
            grant,
        }
    }
}

/// A partition that a service works on.
#[derive(Debug)]
pub(crate) struct Hooked {
    webhook: Arc<Webhook>,
    worker: Box<str>,
    partition: Partition,
    grant: Grant,
}

impl Hooked {
    /// Has it started: within the deadline for that and while its lease lasts,
    /// or it is not. A start that the service may have taken does not fail
    /// before its stop is accepted: as long as this runs, the partition is
    /// nobody else's, unless its lease expires.
    pub(crate) async fn start(&self) -> Result<(), HookError> {
        // The last third is for taking back what may have been accepted.
        let until = Instant::now() + self.webhook.deadlines.start * 2 / 3;
        match self.deliver("start", None, Some(until)).await {
            Ok(()) => Ok(()),
            Err(Unaccepted::Refused(why)) => Err(why.into()),
            Err(Unaccepted::Unknown(why)) => {
                let partition = &self.partition;
                say!(
                    "the webhook for start of {partition}: {why}; the service may have taken it, \
                     so it is sent stops until it accepts one"
                );
                self.stop(Some("start_failed")).await?;
                Err(why.into())
            }
        }
    }

    /// Has it stopped. Returns when that is accepted, however long it takes:
    /// whether to wait any longer is not decided here.
    pub(crate) async fn stop(&self, reason: Option<&'static str>) -> Result<(), HookError> {
        match self.deliver("stop", reason, None).await {
            Ok(()) => Ok(()),
            Err(Unaccepted::Refused(why) | Unaccepted::Unknown(why)) => Err(why.into()),
        }
    }

    /// Sends it until it is accepted, or refused, or its time is over. A stop
    /// cannot be refused, and needs no lease.
    async fn deliver(
        &self,
        event: &'static str,
        reason: Option<&'static str>,
        until: Option<Instant>,
    ) -> Result<(), Unaccepted> {
        let planned = Instant::now() + self.webhook.deadlines.stop;
        let is_start = event == "start";
        let mut pause = RETRY_FIRST;
        let mut is_doubtful = false;
        for attempt in 1.. {
            let left = until.unwrap_or(planned);
            let left = left.saturating_duration_since(Instant::now());
            let body = self.body(event, reason, attempt, left);
            let answered = if is_start {
                self.send_start(body, until).await
            } else {
                self.send(body, until).await
            };
            let is_over = is_start && !self.grant.is_current();
            let why = match answered {
                Answered::Accepted if is_over => {
                    return Err(Unaccepted::Unknown(LEASE_ENDED.to_owned()));
                }
                Answered::Accepted => return Ok(()),
                Answered::Refused(why) if is_start => return Err(Unaccepted::of(why, is_doubtful)),
                Answered::Refused(why) | Answered::Unheard(why) => why,
                Answered::Unclear(why) => {
                    is_doubtful = true;
                    why
                }
            };
            if is_over {
                return Err(Unaccepted::of(LEASE_ENDED.to_owned(), is_doubtful));
            }
            if until.is_some_and(|until| Instant::now() + pause >= until) {
                let attempts = match attempt {
                    1 => "1 attempt".to_owned(),
                    more => format!("{more} attempts"),
                };
                let why = format!("not accepted in {attempts}: {why}");
                return Err(Unaccepted::of(why, is_doubtful));
            }
            let partition = &self.partition;
            say!("the webhook for {event} of {partition}: {why}; again in {pause:?}");
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_LONGEST);
        }
        unreachable!("attempts do not end by themselves")
    }

    /// Sends a start only while its lease lasts. The grant is looked at whenever
    /// something can go on: also right before the request is written, when the
    /// connection stands.
    async fn send_start(&self, body: String, until: Option<Instant>) -> Answered {
        if !self.grant.is_current() {
            return Answered::Unheard(LEASE_ENDED.to_owned());
        }
        let is_written = AtomicBool::new(false);
        let sent = self
            .grant
            .run(async |_token| self.send_noting(body, until, &is_written).await);
        let sent = sent.await;
        sent.unwrap_or_else(|_over| unanswered(&is_written, LEASE_ENDED))
    }

    fn body(
        &self,
        event: &'static str,
        reason: Option<&'static str>,
        attempt: u32,
        left: Duration,
    ) -> String {
        let name = self.partition.as_str();
        let (workload, unit) = name.rsplit_once(':').unwrap_or((name, ""));
        let message = Message {
            event,
            cluster: &self.webhook.cluster,
            worker: &self.worker,
            partition: name,
            workload,
            unit,
            token: self.grant.token().to_string(),
            attempt,
            deadline_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            reason,
        };
        serde_json::to_string(&message).expect("texts and numbers have a JSON form")
    }

    async fn send(&self, body: String, until: Option<Instant>) -> Answered {
        self.send_noting(body, until, &AtomicBool::new(false)).await
    }

    /// Sends it, and notes when the service may begin to hear it.
    async fn send_noting(
        &self,
        body: String,
        until: Option<Instant>,
        is_written: &AtomicBool,
    ) -> Answered {
        let limit = Instant::now() + REQUEST;
        let limit = until.map_or(limit, |until| until.min(limit));
        let signature = self.webhook.signer.sign(&body);
        let sent = self.webhook.target.post(body, &signature, is_written);
        let answered = timeout_at(limit, sent).await;
        answered.unwrap_or_else(|_elapsed| unanswered(is_written, "no answer in time"))
    }
}

/// What became of a request that was not waited for any longer.
fn unanswered(is_written: &AtomicBool, why: &str) -> Answered {
    if is_written.load(Ordering::Relaxed) {
        Answered::Unclear(why.to_owned())
    } else {
        Answered::Unheard(why.to_owned())
    }
}
