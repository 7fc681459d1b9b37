//! An address behind which servers can be exchanged.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A port on the loopback address that leads to one server after another.
#[derive(Debug)]
pub struct Switch {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    task: JoinHandle<()>,
}

impl Switch {
    /// One that leads to this server first.
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port on the loopback address");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let target = Arc::new(Mutex::new(target));
        let chosen = Arc::clone(&target);
        let task = tokio::spawn(async move {
            loop {
                let accepted = listener.accept().await;
                let (mut client, _) = accepted.expect("a client can be accepted");
                let target = *locked(&chosen);
                tokio::spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(target).await {
                        // However it ends, the client sees that it does.
                        let _ended = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Self {
            address,
            target,
            task,
        }
    }

    /// What clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where new connections lead from now on.
    pub fn lead_to(&self, target: SocketAddr) {
        *locked(&self.target) = target;
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(target: &Mutex<SocketAddr>) -> MutexGuard<'_, SocketAddr> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}
