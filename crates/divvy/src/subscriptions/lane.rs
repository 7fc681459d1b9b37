//! The messages of one partition, from its assignment to its revocation.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use divvy_core::store::StoreError;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use super::acks::Acks;
use super::consumer::{Found, Repair, Wanted};
use super::dead_letter::{DeadLetter, Origin};
use super::done::Done;
use super::health::{Gauges, count};
use super::in_flight::InFlight;
use super::inbox::{Inbox, Trouble};
use super::message::Message;
use super::policy::{Arrival, Ended, Known, Standing, Verdict};
use super::settings::{Mode, Retention};
use super::shared::Shared;
use super::work::{Means, Work};
use crate::manager::Grant;

const ACK: &[u8] = b"+ACK";
const NAK: &[u8] = b"-NAK";
/// Told to whoever listens to the server's advisories.
const TERM: &[u8] = b"+TERM a dead letter";

/// What a process remembers of a partition between two assignments.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// Of which stream, by the time that it was made.
    pub(super) stream: String,
    pub(super) done: Done,
}

/// One partition that is owned.
pub(super) struct Lane {
    pub(super) shared: Arc<Shared>,
    pub(super) wanted: Wanted,
    pub(super) grant: Grant,
    pub(super) gauges: Arc<Gauges>,
    pub(super) memory: Memory,
    /// When everything has to have ended, once the partition is asked back.
    pub(super) stop: watch::Receiver<Option<Instant>>,
    pub(super) acks: Acks,
    pub(super) means: Arc<Means>,
    pub(super) running: InFlight,
    /// The sequences of those.
    pub(super) in_hand: BTreeSet<u64>,
    /// When the consumer is looked at next.
    pub(super) reconcile: Pin<Box<Sleep>>,
}

impl Lane {
    /// Consumes until the partition is asked back or the grant is over.
    pub(super) async fn run(mut self) -> Memory {
        let mut failures = 0;
        while !self.is_stopping() {
            let why = match self.prepare().await {
                Ok(mut inbox) => {
                    failures = 0;
                    self.gauges.is_consuming.store(true, Ordering::Relaxed);
                    let trouble = self.consume(&mut inbox).await;
                    self.gauges.is_consuming.store(false, Ordering::Relaxed);
                    let Some(trouble) = trouble else {
                        self.finish(Some(inbox)).await;
                        return self.memory;
                    };
                    match trouble {
                        Trouble::Gone(words) => format!("the consumer is gone: {words}"),
                        Trouble::Refused(words) => {
                            format!("the consumer refuses requests: {words}")
                        }
                        Trouble::Foreign(message) => self.foreign(&message).await,
                        Trouble::Silent => "the server has gone silent".to_owned(),
                        Trouble::Fault(fault) => fault.to_string(),
                    }
                }
                Err(error) => error.to_string(),
            };
            self.wrong(why);
            let delay = self.retry_delay(failures);
            failures = match self.rest(delay).await {
                true => 0,
                false => failures + 1,
            };
        }
        self.finish(None).await;
        self.memory
    }

    fn is_stopping(&self) -> bool {
        self.stop.borrow().is_some() || !self.grant.is_current()
    }

    fn standing(&self) -> Standing {
        match (self.grant.is_current(), self.stop.borrow().is_some()) {
            (false, _) => Standing::Over,
            (true, true) => Standing::Leaving,
            (true, false) => Standing::Owner,
        }
    }

    fn wrong(&self, what: String) {
        tracing::warn!(partition = self.grant.partition().as_str(), "{what}");
        count(&self.shared.metrics.errors);
        self.gauges.wrong(what);
    }

    fn retry_delay(&self, failures: u32) -> Duration {
        let settings = &self.shared.settings;
        match failures < settings.max_retries {
            true => settings.retry().delay(failures),
            false => settings.reconcile_interval,
        }
    }

    /// Waits, while what runs goes on; whether there is a new connection, with
    /// which everything may be well again.
    async fn rest(&mut self, delay: Duration) -> bool {
        let until = Instant::now() + delay;
        let mut connection = self.shared.jetstream.link.events().report.subscribe();
        let mut stop = self.stop.clone();
        let grant = self.grant.clone();
        loop {
            tokio::select! {
                () = asked_back(&mut stop) => return false,
                () = grant.ended() => return false,
                Some(ended) = self.running.ended() => self.settle(ended).await,
                changed = connection.changed() => match changed {
                    Ok(()) if connection.borrow().up => return true,
                    Ok(()) => {}
                    Err(_closed) => return false,
                },
                () = tokio::time::sleep_until(until) => return false,
            }
        }
    }

    /// Sees to it that the consumer is there and right, and opens an inbox.
    async fn prepare(&mut self) -> Result<Inbox, StoreError> {
        self.reconcile().await?;
        let shared = &self.shared;
        let settings = &shared.settings;
        // In order, one request serves many messages, one after another.
        let batch = match settings.mode {
            Mode::Ordered => settings.batch,
            Mode::Concurrent => settings.batch.min(settings.max_in_flight),
        };
        let jetstream = Arc::clone(&shared.jetstream);
        let gauges = Arc::clone(&self.gauges);
        let opened = Inbox::open(jetstream, &self.wanted, batch, shared.heartbeat, gauges).await;
        opened.map_err(|fault| fault.of_read("an inbox"))
    }

    /// Looks at the consumer, and repairs it.
    async fn reconcile(&mut self) -> Result<(), StoreError> {
        self.look_later();
        let (jetstream, name) = (Arc::clone(&self.shared.jetstream), self.wanted.name.clone());
        let found = jetstream.find(&name).await;
        let found = found.map_err(|fault| jetstream.explained(fault, &name))?;
        if found.is_none() {
            self.look_at_stream().await?;
            self.shared.check_subject(&self.wanted.filter)?;
        }
        let config = found.as_ref().map(|found| &found.config);
        let (retention, done) = (self.shared.retention(), self.memory.done.floor());
        let repair = self.wanted.judge(config, retention, done);
        if repair == Repair::Nothing {
            if let Some(found) = &found {
                self.memory.done.acknowledged(found.ack_floor.stream_seq);
                self.note(found);
            }
            return Ok(());
        }
        let is_first = matches!(repair, Repair::Create(_)) && self.memory.done.is_empty();
        let is_new = matches!(repair, Repair::Create(_) | Repair::Replace(_));
        tracing::info!(consumer = name, ?repair, "repairing");
        let repaired = match repair {
            Repair::Nothing => unreachable!("it was looked at above"),
            Repair::Create(begin) => jetstream.create(&self.wanted, begin).await,
            Repair::Update => jetstream.update(&self.wanted).await,
            Repair::Replace(begin) => match jetstream.delete(&name).await {
                Ok(()) => jetstream.create(&self.wanted, begin).await,
                Err(fault) => Err(fault),
            },
            Repair::Refuse(why) => return Err(StoreError::unfit(why)),
        };
        let repaired = repaired.map_err(|fault| jetstream.explained(fault, &name))?;
        if !is_first {
            count(&self.gauges.repaired);
            count(&self.shared.metrics.repaired);
        }
        if is_new {
            self.memory.done.consumer_is_new();
        }
        self.note(&repaired);
        Ok(())
    }

    /// Whether it is the stream that it was: in another one, nothing has been
    /// handled yet.
    async fn look_at_stream(&mut self) -> Result<(), StoreError> {
        let created = self.shared.look_at_stream().await?;
        if created != self.memory.stream {
            self.memory = Memory {
                stream: created,
                done: Done::default(),
            };
        }
        Ok(())
    }

    fn note(&self, found: &Found) {
        let lag = found.num_pending + found.num_ack_pending;
        self.gauges.lag.store(lag, Ordering::Relaxed);
    }

    /// Lets go of a message that is not of this partition, because somebody has
    /// edited the consumer; says what happened.
    async fn foreign(&self, message: &Message) -> String {
        let jetstream = &self.shared.jetstream;
        match self.shared.retention() {
            // Acknowledged, it would be gone for its owner, too. Without its
            // consumer, it waits for that.
            Retention::Workqueue => {
                let _kept = jetstream.delete(&self.wanted.name).await;
            }
            Retention::Limits | Retention::Interest => {
                jetstream.say(message, ACK.to_vec()).await;
            }
        }
        format!("the consumer gave out a message of '{}'", message.subject())
    }

    /// Takes messages in until nothing more may begin, or something is wrong.
    async fn consume(&mut self, inbox: &mut Inbox) -> Option<Trouble> {
        let limit = self.shared.settings.in_flight() as usize;
        let mut stop = self.stop.clone();
        let grant = self.grant.clone();
        let over = grant.ended();
        tokio::pin!(over);
        loop {
            let is_full = self.running.len() >= limit;
            tokio::select! {
                biased;
                () = asked_back(&mut stop) => return None,
                () = &mut over => return None,
                Some(ended) = self.running.ended() => {
                    self.settle(ended).await;
                    if is_full {
                        inbox.rested();
                    }
                }
                next = inbox.next(), if !is_full => match next {
                    Ok(message) => self.arrived(message).await,
                    Err(trouble) => return Some(trouble),
                },
                () = &mut self.reconcile => {
                    self.look_again().await;
                }
            }
        }
    }

    fn look_later(&mut self) {
        let next = Instant::now() + self.shared.reconcile_delay();
        self.reconcile.as_mut().reset(next);
    }

    /// Looks at what nobody has told of.
    async fn look_again(&mut self) {
        if self.shared.jetstream.link.check_up().is_err() {
            // Whoever waits for messages says so already.
            self.look_later();
            return;
        }
        if let Err(error) = self.reconcile().await {
            self.wrong(error.to_string());
        }
        self.repeat_doubtful().await;
    }

    async fn arrived(&mut self, message: Message) {
        let position = message.position();
        self.gauges.lag.store(position.pending, Ordering::Relaxed);
        if position.deliveries > 1 {
            count(&self.gauges.redelivered);
            count(&self.shared.metrics.redelivered);
        }
        self.repeat_doubtful().await;
        let mode = self.shared.settings.mode;
        let known = match self.memory.done.came(mode, position) {
            true => Known::Done,
            false if self.in_hand.contains(&position.sequence) => Known::InHand,
            false => Known::New,
        };
        let arrival = self
            .shared
            .policy
            .arrived(position.deliveries, known, self.standing());
        match arrival {
            Arrival::Handle => self.begin(Arc::new(message)).await,
            Arrival::AcknowledgeAgain => self.shared.jetstream.say(&message, ACK.to_vec()).await,
            Arrival::DeadLetter(why) => self.dead_letter(&message, &why).await,
            Arrival::GiveBack => self.shared.jetstream.say(&message, NAK.to_vec()).await,
            Arrival::Ignore | Arrival::Abandon => {}
        }
    }

    async fn begin(&mut self, message: Arc<Message>) {
        self.gauges.in_flight.fetch_add(1, Ordering::Relaxed);
        self.in_hand.insert(message.sequence());
        let means = Arc::clone(&self.means);
        if let Some(handled) = self.running.begin(Work { means, message }).await {
            self.settle(Ok(handled)).await;
        }
    }

    async fn settle(&mut self, ended: Result<(Arc<Message>, Ended), tokio::task::JoinError>) {
        self.gauges.in_flight.fetch_sub(1, Ordering::Relaxed);
        // Handlers' panics are caught; else only a runtime that ends does this.
        let Ok((message, ended)) = ended else { return };
        self.in_hand.remove(&message.sequence());
        if let Ended::Failed(why) | Ended::Poison(why) = &ended {
            count(&self.gauges.failed);
            count(&self.shared.metrics.failed);
            self.wrong(format!("message {}: {why}", message.sequence()));
        }
        let deliveries = message.deliveries();
        match self
            .shared
            .policy
            .handled(ended, deliveries, self.standing())
        {
            Verdict::Acknowledge => {
                self.finished(&message);
                self.shared.jetstream.say(&message, ACK.to_vec()).await;
                self.acks.sent(message.reply());
                count(&self.gauges.handled);
                count(&self.shared.metrics.handled);
            }
            Verdict::Retry(after) => self.shared.jetstream.say(&message, later(after)).await,
            Verdict::DeadLetter(why) => self.dead_letter(&message, &why).await,
            Verdict::GiveBack => self.shared.jetstream.say(&message, NAK.to_vec()).await,
            Verdict::Abandon => {}
        }
    }

    /// It will not be handled again.
    fn finished(&mut self, message: &Message) {
        self.memory
            .done
            .add(self.shared.settings.mode, message.position());
    }

    /// Puts a message aside, and only then tells the server that it is done.
    async fn dead_letter(&mut self, message: &Message, why: &str) {
        let shared = Arc::clone(&self.shared);
        let settings = &shared.settings;
        let origin = Origin {
            stream: &settings.stream,
            consumer: &self.wanted.name,
            partition: self.grant.partition(),
        };
        let letter = DeadLetter::new(
            &settings.dead_letters.prefix,
            &origin,
            message,
            why,
            shared.jetstream.link.message_bytes_max(),
        );
        let DeadLetter {
            subject,
            headers,
            payload,
        } = letter;
        match shared.jetstream.store(&subject, headers, payload).await {
            Ok(()) => {
                self.finished(message);
                self.shared.jetstream.say(message, TERM.to_vec()).await;
                self.acks.sent(message.reply());
                count(&self.gauges.dead_lettered);
                count(&shared.metrics.dead_lettered);
            }
            Err(fault) => {
                self.wrong(format!(
                    "cannot put aside message {}: {fault}",
                    message.sequence()
                ));
                self.shared
                    .jetstream
                    .say(message, later(shared.policy.delay(message.deliveries())))
                    .await;
            }
        }
    }

    /// On a new connection, acknowledgements are repeated that may have been
    /// lost with the old one.
    async fn repeat_doubtful(&mut self) {
        let jetstream = &self.shared.jetstream;
        for subject in self.acks.doubtful(jetstream.link.connects()) {
            jetstream.say_to(subject, ACK.to_vec()).await;
        }
    }

    /// Lets what runs come to an end, gives the rest back, and makes sure that
    /// the server knows what was done.
    async fn finish(&mut self, inbox: Option<Inbox>) {
        let bound = self.shared.jetstream.deadline();
        let closing = async {
            match inbox {
                Some(inbox) => inbox.close(bound).await,
                None => Vec::new(),
            }
        };
        let settling = async {
            // Handlers end by themselves at the deadline, or with the grant.
            while let Some(ended) = self.running.ended().await {
                self.settle(ended).await;
            }
        };
        let (left, ()) = tokio::join!(closing, settling);
        for message in left {
            self.arrived(message).await;
        }
        if self.grant.is_current() {
            // Handlers may have taken all the time that they had.
            self.confirm(self.shared.jetstream.deadline()).await;
        }
    }

    /// Waits until the server has seen the last acknowledgement: then it has
    /// seen all, and the next owner gets none of these messages.
    async fn confirm(&mut self, deadline: Instant) {
        let shared = Arc::clone(&self.shared);
        let link = &shared.jetstream.link;
        while let Some(last) = self.acks.last() {
            self.repeat_doubtful().await;
            let asking = link.request(deadline, &last, Default::default(), ACK.to_vec());
            match asking.await {
                Ok(_seen) if self.acks.doubtful(link.connects()).is_empty() => {
                    self.acks.confirmed();
                }
                _ if Instant::now() >= deadline || !self.grant.is_current() => {
                    self.wrong("what was handled last may come again: no answer".to_owned());
                    return;
                }
                _ => {
                    let _elapsed = timeout_at(deadline, sleep(shared.heartbeat / 10)).await;
                }
            }
        }
    }
}

async fn asked_back(stop: &mut watch::Receiver<Option<Instant>>) {
    // Also when nobody is left who could ask.
    let _gone = stop.wait_for(Option::is_some).await.is_err();
}

/// Has a message come again after so long.
fn later(after: Duration) -> Vec<u8> {
    format!("-NAK {{\"delay\": {}}}", after.as_nanos()).into_bytes()
}
