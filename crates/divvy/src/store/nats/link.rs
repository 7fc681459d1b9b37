//! The connection to a server: requests with deadlines, and why it cannot be
//! had.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_nats::connection::State;
use async_nats::rustls;
use async_nats::{
    Client, ConnectError, ConnectErrorKind, HeaderMap, Message, PublishError, ServerError,
    ServerInfo, Subscriber,
};
use divvy_core::store::{StoreError, StoreErrorKind};
use futures_util::StreamExt;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::events::{Events, shortened};
use super::fault::Fault;
use super::plan::Plan;

/// A connection, which the client keeps up as long as this lives.
pub(crate) struct Link {
    client: Client,
    events: Arc<Events>,
    inbox: String,
    listening: JoinHandle<()>,
}

impl Link {
    /// Connects once to one of the servers.
    pub(crate) async fn connect(plan: &Plan) -> Result<Self, StoreError> {
        let events = Arc::new(Events::new());
        let connecting = plan.options(&events).connect(plan.addresses());
        let client = connecting.await.map_err(|error| explained(&error))?;
        let answers = client.subscribe(format!("{}.r.*", plan.inbox)).await;
        let mut answers = answers.map_err(|error| {
            StoreError::unavailable(format_args!("cannot listen for answers: {error}"))
        })?;
        let told = Arc::clone(&events);
        let listening = tokio::spawn(async move {
            while let Some(message) = answers.next().await {
                told.replies.answered(message);
            }
        });
        Ok(Self {
            client,
            events,
            inbox: plan.inbox.clone(),
            listening,
        })
    }

    /// The client, which stays connected as long as anybody has it.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// What the server said of itself when it was reached last.
    pub(crate) fn server(&self) -> ServerInfo {
        self.client.server_info()
    }

    /// The largest message that the server takes, in bytes.
    pub(crate) fn message_bytes_max(&self) -> usize {
        self.client.max_payload()
    }

    /// How often a server has been reached. It grows before the first request
    /// goes out on a new connection.
    pub(crate) fn connects(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Acquire)
    }

    /// Refuses while there is surely no connection, so that nothing is queued
    /// and sent when nobody waits for it any more.
    pub(crate) fn check_up(&self) -> Result<(), Fault> {
        if self.client.connection_state() == State::Connected {
            return Ok(());
        }
        let connection = self.events.report.subscribe();
        let reason = connection.borrow().lost_by.clone();
        let reason = reason.as_deref().unwrap_or("the connection ended");
        Err(Fault::NotSent(format!("not connected, {reason}")))
    }

    /// Asks and waits for the answer.
    pub(crate) async fn request(
        &self,
        deadline: Instant,
        subject: &str,
        headers: HeaderMap,
        payload: Vec<u8>,
    ) -> Result<Message, Fault> {
        self.check_up()?;
        let mut pending = self.events.replies.expect(subject)?;
        let reply = format!("{}.r.{}", self.inbox, pending.token());
        let asked = async {
            self.send(subject, reply, headers, payload).await?;
            pending.answer().await
        };
        timeout_at(deadline, asked)
            .await
            .unwrap_or(Err(Fault::TimedOut))
    }

    /// Sends what has no answer here, or answers to a subscription.
    pub(crate) async fn send(
        &self,
        subject: &str,
        reply: String,
        headers: HeaderMap,
        payload: Vec<u8>,
    ) -> Result<(), Fault> {
        let subject = subject.to_owned();
        let sent = if headers.is_empty() {
            let publishing = self
                .client
                .publish_with_reply(subject, reply, payload.into());
            publishing.await
        } else {
            let publishing =
                self.client
                    .publish_with_reply_and_headers(subject, reply, headers, payload.into());
            publishing.await
        };
        sent.map_err(|error: PublishError| Fault::NotSent(error.kind().to_string()))
    }

    /// Sends without any interest in the answer.
    pub(crate) async fn tell(&self, subject: &str) {
        let nobody = format!("{}.r.nobody", self.inbox);
        // Whoever tells has no use for the outcome.
        let _sent = self
            .send(subject, nobody, HeaderMap::new(), Vec::new())
            .await;
    }

    /// Listens on new subjects of our own, which begin with what is given.
    pub(crate) async fn listen(&self) -> Result<(String, Subscriber), Fault> {
        let subject = format!("{}.c.{:016x}", self.inbox, fastrand::u64(..));
        let listening = self.client.subscribe(format!("{subject}.*")).await;
        let subscriber = listening.map_err(|error| Fault::NotSent(error.to_string()))?;
        Ok((subject, subscriber))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // It holds the client, which stays connected as long as anybody does.
        self.listening.abort();
    }
}

/// What a failed connection means. The client's own words may repeat what the
/// other end sent, so they are not used.
fn explained(error: &ConnectError) -> StoreError {
    use StoreErrorKind::{Unavailable, Unfit};
    let (kind, words) = match error.kind() {
        ConnectErrorKind::AuthorizationViolation => (
            Unfit,
            "the NATS server refuses these credentials".to_owned(),
        ),
        ConnectErrorKind::Authentication => (
            Unfit,
            "the nkey seed or .creds cannot be used to sign".to_owned(),
        ),
        ConnectErrorKind::TimedOut => (
            Unavailable,
            "something accepts connections but does not greet as a NATS server".to_owned(),
        ),
        ConnectErrorKind::Dns => (
            Unavailable,
            "the server's name cannot be resolved".to_owned(),
        ),
        ConnectErrorKind::Tls => (Unfit, "encryption cannot be set up".to_owned()),
        ConnectErrorKind::ServerParse | ConnectErrorKind::MaxReconnects | ConnectErrorKind::Io => {
            explained_cause(error)
        }
    };
    StoreError::new(kind, words)
}

fn explained_cause(error: &ConnectError) -> (StoreErrorKind, String) {
    use StoreErrorKind::{Unavailable, Unfit};
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    let mut io_kind = None;
    while let Some(found) = cause {
        if let Some(refused) = found.downcast_ref::<ServerError>() {
            let words = shortened(&refused.to_string());
            return (Unfit, format!("the server refuses the connection: {words}"));
        }
        if let Some(tls) = found.downcast_ref::<rustls::Error>() {
            return (Unfit, explained_tls(tls));
        }
        let io = found.downcast_ref::<io::Error>();
        io_kind = io_kind.or_else(|| io.map(io::Error::kind));
        // An I/O error's source is the source of what it holds, not that itself.
        cause = match io.and_then(io::Error::get_ref) {
            Some(held) => Some(held),
            None => found.source(),
        };
    }
    match io_kind {
        // The client's parser says so.
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            (Unfit, "the other end is no NATS server".to_owned())
        }
        Some(kind) => (Unavailable, format!("no NATS server is reached: {kind}")),
        None => (
            Unavailable,
            "the other end closed the connection".to_owned(),
        ),
    }
}

fn explained_tls(error: &rustls::Error) -> String {
    use rustls::Error;
    match error {
        Error::InvalidCertificate(why) => {
            format!("the server's certificate is not trusted: {why}")
        }
        Error::AlertReceived(alert) => {
            format!("the server refuses our certificate or encryption: {alert:?}")
        }
        Error::InvalidMessage(_) => "the server does not encrypt, but TLS is required".to_owned(),
        _ => "encryption cannot be agreed upon".to_owned(),
    }
}
