//! Where workers bring what they do to the ledger: a socket of this machine.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use divvy::Moment;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::ledger::{Effect, Ledger};

/// A question: an id, partition, number, token, worker, and when the message
/// was published.
const QUESTION_BYTES: usize = 8 + 4 + 4 + 8 + 4 + 8;
/// An answer: the id, and whether it may be.
const ANSWER_BYTES: usize = 8 + 1;

pub(super) type SharedLedger = Arc<Mutex<Ledger>>;

pub(super) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers workers until it is dropped.
pub(super) struct Desk {
    listening: JoinHandle<()>,
}

impl Desk {
    pub(super) fn open(path: &Path, ledger: SharedLedger) -> anyhow::Result<Self> {
        let listener = UnixListener::bind(path).context("cannot listen to workers")?;
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let ledger = Arc::clone(&ledger);
                // It ends with the worker.
                tokio::spawn(async move {
                    let _gone = serve(stream, &ledger).await;
                });
            }
        });
        Ok(Self { listening })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn serve(mut stream: UnixStream, ledger: &Mutex<Ledger>) -> std::io::Result<()> {
    let mut question = [0; QUESTION_BYTES];
    loop {
        stream.read_exact(&mut question).await?;
        let (id, effect) = decoded(&question);
        let is_accepted = lock(ledger).enter(divvy::manager::now(), effect);
        let mut answer = [0; ANSWER_BYTES];
        answer[..8].copy_from_slice(&id.to_le_bytes());
        answer[8] = u8::from(is_accepted);
        stream.write_all(&answer).await?;
    }
}

fn encoded(id: u64, effect: &Effect) -> [u8; QUESTION_BYTES] {
    let micros = u64::try_from(effect.published.to_origin().as_micros()).unwrap_or(u64::MAX);
    let mut bytes = [0; QUESTION_BYTES];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..12].copy_from_slice(&effect.partition.to_le_bytes());
    bytes[12..16].copy_from_slice(&effect.number.to_le_bytes());
    bytes[16..24].copy_from_slice(&effect.token.to_le_bytes());
    bytes[24..28].copy_from_slice(&effect.worker.to_le_bytes());
    bytes[28..].copy_from_slice(&micros.to_le_bytes());
    bytes
}

fn decoded(bytes: &[u8; QUESTION_BYTES]) -> (u64, Effect) {
    let eight = |at: usize| <[u8; 8]>::try_from(&bytes[at..at + 8]).expect("it is eight long");
    let four = |at: usize| <[u8; 4]>::try_from(&bytes[at..at + 4]).expect("it is four long");
    let effect = Effect {
        partition: u32::from_le_bytes(four(8)),
        number: u32::from_le_bytes(four(12)),
        token: i64::from_le_bytes(eight(16)),
        worker: u32::from_le_bytes(four(24)),
        published: Moment::from_origin(Duration::from_micros(u64::from_le_bytes(eight(28)))),
    };
    (u64::from_le_bytes(eight(0)), effect)
}

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<bool>>>>;

/// A worker's way to the desk.
pub(super) struct Visitor {
    writing: tokio::sync::Mutex<OwnedWriteHalf>,
    waiting: Waiting,
    next: AtomicU64,
}

impl Visitor {
    pub(super) async fn come(path: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(path)
            .await
            .context("there is no ledger")?;
        let (mut reading, writing) = stream.into_split();
        let waiting = Waiting::default();
        let heard = Arc::clone(&waiting);
        tokio::spawn(async move {
            let mut answer = [0; ANSWER_BYTES];
            while reading.read_exact(&mut answer).await.is_ok() {
                let id = <[u8; 8]>::try_from(&answer[..8]).expect("it is eight long");
                let mut waiting = heard.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(sender) = waiting.remove(&u64::from_le_bytes(id)) {
                    let _left = sender.send(answer[8] == 1);
                }
            }
        });
        Ok(Self {
            writing: tokio::sync::Mutex::new(writing),
            waiting,
            next: AtomicU64::new(0),
        })
    }

    /// Whether the ledger has it now.
    pub(super) async fn enter(&self, effect: &Effect) -> anyhow::Result<bool> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let waiting = || self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting().insert(id, sender);
        // Whole, or not at all: half of a question would garble all after it.
        let mut writing = self.writing.lock().await;
        writing.write_all(&encoded(id, effect)).await?;
        drop(writing);
        receiver.await.context("the ledger is gone")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_as_they_were_written() {
        let effect = Effect {
            partition: 3,
            number: 70_000,
            token: i64::MAX - 1,
            worker: 9,
            published: Moment::from_origin(Duration::from_micros(123_456_789)),
        };
        assert_eq!(decoded(&encoded(17, &effect)), (17, effect));
    }
}
