//! A network between a client and a server that a test can break.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connection::{Flow, Network, carry};

/// A TCP proxy on a loopback port, which passes everything until it is told otherwise.
///
/// What it is told takes effect on bytes that reach it afterwards. It keeps at most
/// [`HELD_BYTES_MAX`](Self::HELD_BYTES_MAX) of each direction of a connection, and then reads no
/// more, as a network would. It needs the runtime that it was started in, and ends with this value.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    traffic: Arc<Traffic>,
    accepting: JoinHandle<()>,
}

/// What has been seen so far, of all connections.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) connections: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) requests: Direction,
    pub(crate) replies: Direction,
}

/// The bytes that went one way.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    pub(crate) passed: AtomicU64,
    pub(crate) held: AtomicU64,
}

impl Proxy {
    /// The most bytes of one direction of one connection that are kept.
    pub const HELD_BYTES_MAX: usize = 8 << 20;

    /// Starts one in front of the server at `target`, which need not run yet.
    ///
    /// # Panics
    ///
    /// When no port can be had.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a loopback port can be had");
        let address = listener.local_addr().expect("it is bound");
        let (network, _) = watch::channel(Network::default());
        let traffic = Arc::new(Traffic::default());
        let accepting = tokio::spawn(accept(
            listener,
            target,
            network.subscribe(),
            Arc::clone(&traffic),
        ));
        Self {
            address,
            network,
            traffic,
            accepting,
        }
    }

    /// Where clients connect to instead of to the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Ends every fault: what was held or delayed goes first, then all passes at once.
    pub fn pass(&self) {
        self.change(Flow::Pass, Flow::Pass);
    }

    /// Has every byte, each way, arrive that much later: a round trip takes twice as long.
    pub fn delay(&self, by: Duration) {
        self.change(Flow::Delay(by), Flow::Delay(by));
    }

    /// Keeps everything, both ways, while connections stay open and new ones are accepted: a
    /// network that swallows.
    pub fn hold(&self) {
        self.change(Flow::Hold, Flow::Hold);
    }

    /// Passes requests and keeps the replies: what is asked is done, but the client is not told.
    pub fn hold_replies(&self) {
        self.change(Flow::Pass, Flow::Hold);
    }

    /// Keeps requests and passes what the server sends.
    pub fn hold_requests(&self) {
        self.change(Flow::Hold, Flow::Pass);
    }

    /// Forwards what was held, late as it is, even if its sender has given up meanwhile, and passes
    /// all that follows.
    pub fn release(&self) {
        self.pass();
    }

    /// Forgets what is held and passes all that follows. A connection of which something is
    /// forgotten is reset, for a stream with a hole would be no network's fault.
    pub fn drop_held(&self) {
        self.network.send_modify(|network| {
            network.forgotten += 1;
            network.cut = false;
            network.requests = Flow::Pass;
            network.replies = Flow::Pass;
        });
    }

    /// Resets all connections, and every new one as soon as it is made, until told otherwise.
    pub fn cut(&self) {
        self.network.send_modify(|network| {
            network.resets += 1;
            network.cut = true;
        });
    }

    /// Resets all connections, once: new ones are carried as before.
    pub fn reset(&self) {
        self.network.send_modify(|network| network.resets += 1);
    }

    /// How many connections clients have made so far.
    pub fn connections(&self) -> u64 {
        self.traffic.connections.load(Ordering::Acquire)
    }

    /// How many connections are being carried.
    pub fn open(&self) -> u64 {
        self.traffic.open.load(Ordering::Acquire)
    }

    /// How many bytes have been forwarded to the server.
    pub fn requests_passed(&self) -> u64 {
        self.traffic.requests.passed.load(Ordering::Acquire)
    }

    /// How many bytes have been forwarded to clients.
    pub fn replies_passed(&self) -> u64 {
        self.traffic.replies.passed.load(Ordering::Acquire)
    }

    /// How many bytes from clients are here and not forwarded.
    pub fn requests_held(&self) -> u64 {
        self.traffic.requests.held.load(Ordering::Acquire)
    }

    /// How many bytes from the server are here and not forwarded.
    pub fn replies_held(&self) -> u64 {
        self.traffic.replies.held.load(Ordering::Acquire)
    }

    fn change(&self, requests: Flow, replies: Flow) {
        self.network.send_modify(|network| {
            network.cut = false;
            network.requests = requests;
            network.replies = replies;
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The connections end when they can hear nothing from us any more.
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    network: watch::Receiver<Network>,
    traffic: Arc<Traffic>,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        traffic.connections.fetch_add(1, Ordering::AcqRel);
        if network.borrow().cut {
            reset(client);
            continue;
        }
        traffic.open.fetch_add(1, Ordering::AcqRel);
        let (network, traffic) = (network.clone(), Arc::clone(&traffic));
        let born = network.borrow().clone();
        tokio::spawn(async move {
            match connect(target).await {
                Ok(server) => carry(client, server, network, born, &traffic).await,
                Err(_) => reset(client),
            }
            traffic.open.fetch_sub(1, Ordering::AcqRel);
        });
    }
}

async fn connect(target: SocketAddr) -> io::Result<TcpStream> {
    let server = TcpStream::connect(target).await?;
    server.set_nodelay(true)?;
    Ok(server)
}

/// Ends a connection in the way that the other end can't mistake for an orderly one.
pub(crate) fn reset(stream: TcpStream) {
    // Fails only if it has ended already.
    let _ = stream.set_zero_linger();
}
