//! A port that stays ours while the server on it is down.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};

/// Below the ports that the kernel hands to outgoing connections: one of those could take the port
/// of a server that is being restarted, and a client that tries to reconnect even get through to
/// itself.
const CANDIDATES: std::ops::Range<u16> = 10_000..32_000;
const ATTEMPTS_MAX: usize = 1_000;

/// A loopback port that no other test's server is given as long as this lives.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// A name that one process at a time can have, and that the kernel frees with the process.
    _claim: UnixListener,
}

impl Port {
    pub(crate) fn claim() -> Self {
        for _ in 0..ATTEMPTS_MAX {
            let number = fastrand::u16(CANDIDATES);
            let name = UnixAddress::from_abstract_name(format!("divvy-testbed-port-{number}"))
                .expect("the name is short");
            let Ok(claim) = UnixListener::bind_addr(&name) else {
                continue;
            };
            // Others than tests have ports, too.
            if TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Self {
                    number,
                    _claim: claim,
                };
            }
        }
        panic!("no free port among {CANDIDATES:?} in {ATTEMPTS_MAX} attempts");
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}
