//! One connection through a proxy: two directions, each with a queue.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::proxy::{Direction, Proxy, Traffic, reset};

const CHUNK_BYTES: usize = 64 * 1024;

/// What the network is told to do at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) requests: Flow,
    pub(crate) replies: Flow,
    pub(crate) cut: bool,
    /// How often all connections were reset.
    pub(crate) resets: u64,
    /// How often what was held was forgotten.
    pub(crate) forgotten: u64,
}

/// What happens to the bytes of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Flow {
    #[default]
    Pass,
    Delay(Duration),
    Hold,
}

/// The connection has been reset, by the network or for want of what was forgotten.
struct Reset;

/// Carries bytes both ways until both ends have closed or the network resets it. `born` is what
/// the network was when the client connected.
pub(crate) async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    network: watch::Receiver<Network>,
    born: Network,
    traffic: &Traffic,
) {
    // Fails only if it has ended already.
    let _ = client.set_nodelay(true);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let flow = |network: &Network| network.requests;
    let requests = Pump::new(&network, &born, &traffic.requests, flow);
    let flow = |network: &Network| network.replies;
    let replies = Pump::new(&network, &born, &traffic.replies, flow);
    let mut network = network.clone();
    let outcome = tokio::select! {
        _ = network.wait_for(|now| now.resets != born.resets) => Err(Reset),
        // Each goes on without the other: a request is late only after its client has given up.
        outcome = async { tokio::try_join!(
            requests.run(from_client, to_server),
            replies.run(from_server, to_client),
        ) } => outcome,
    };
    if outcome.is_err() {
        reset(client);
        reset(server);
    }
}

/// One direction of a connection.
struct Pump<'a, F> {
    network: watch::Receiver<Network>,
    forgotten: u64,
    flow: F,
    held: Held<'a>,
    passed: &'a AtomicU64,
}

impl<'a, F: Fn(&Network) -> Flow> Pump<'a, F> {
    fn new(
        network: &watch::Receiver<Network>,
        born: &Network,
        counted: &'a Direction,
        flow: F,
    ) -> Self {
        Self {
            network: network.clone(),
            forgotten: born.forgotten,
            flow,
            held: Held::new(&counted.held),
            passed: &counted.passed,
        }
    }

    /// Goes on until the sender's end has been forwarded, or the receiver is gone.
    async fn run(mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Reset> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut open = true;
        loop {
            let due = self.due()?;
            tokio::select! {
                changed = self.network.changed() => if changed.is_err() {
                    return Err(Reset);
                },
                read = from.read(&mut chunk), if open && self.held.has_room() => {
                    // A reset, too, is only the end: what came before it can still be late.
                    let count = read.unwrap_or(0);
                    open = count > 0;
                    self.held.push(&chunk[..count]);
                }
                () = wait(due), if due.is_some() => match self.forward(&mut to).await {
                    Ok(0) | Err(_) => return Ok(()),
                    Ok(_) => {}
                },
            }
        }
    }

    /// When what came first is to be forwarded.
    fn due(&mut self) -> Result<Option<Instant>, Reset> {
        let now = self.network.borrow_and_update();
        if self.forgotten != now.forgotten {
            self.forgotten = now.forgotten;
            if !self.held.is_empty() {
                return Err(Reset);
            }
        }
        let arrived = self.held.chunks.front().map(|(arrived, _)| *arrived);
        Ok(match (self.flow)(&now) {
            Flow::Pass => arrived,
            Flow::Delay(by) => arrived.map(|arrived| arrived + by),
            Flow::Hold => None,
        })
    }

    /// Forwards what came first, and returns how many bytes it has: none if it is the end.
    async fn forward(&mut self, to: &mut WriteHalf<'_>) -> io::Result<usize> {
        let bytes = self.held.pop().unwrap_or_default();
        if bytes.is_empty() {
            to.shutdown().await?;
        } else {
            to.write_all(&bytes).await?;
            let count = bytes.len() as u64;
            self.passed.fetch_add(count, Ordering::AcqRel);
        }
        Ok(bytes.len())
    }
}

async fn wait(due: Option<Instant>) {
    if let Some(due) = due {
        sleep_until(due).await;
    }
}

/// What is yet to be forwarded, with the time of its arrival. No bytes stand for the sender's end,
/// which is held and delayed as all else is.
struct Held<'a> {
    chunks: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    counted: &'a AtomicU64,
}

impl<'a> Held<'a> {
    fn new(counted: &'a AtomicU64) -> Self {
        Self {
            chunks: VecDeque::new(),
            bytes: 0,
            counted,
        }
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn has_room(&self) -> bool {
        self.bytes + CHUNK_BYTES <= Proxy::HELD_BYTES_MAX
    }

    fn push(&mut self, bytes: &[u8]) {
        self.chunks.push_back((Instant::now(), bytes.to_vec()));
        self.bytes += bytes.len();
        self.counted.fetch_add(bytes.len() as u64, Ordering::AcqRel);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let (_, bytes) = self.chunks.pop_front()?;
        self.bytes -= bytes.len();
        self.counted.fetch_sub(bytes.len() as u64, Ordering::AcqRel);
        Some(bytes)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.counted.fetch_sub(self.bytes as u64, Ordering::AcqRel);
    }
}
