//! The port: had before anything else is begun, so that one that is taken is
//! told while nothing has happened.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use divvy_http::{Guard, Who, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::Attended;
use super::routes::{BODY_BYTES_MAX, PROBES, routes};
use super::token::read_token;
use crate::args::ListenArgs;
use crate::failure::Failure;
use crate::voice::say;

/// How long a connection may last before it is asked to end.
const CONNECTION: Duration = Duration::from_secs(60);

/// A port that is ours.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
}

impl Listening {
    /// Takes the port that was asked for, if one was, and says so.
    pub(crate) fn open(args: &ListenArgs, runtime: &Runtime) -> Result<Option<Self>, Failure> {
        let Some(address) = args.listen else {
            return Ok(None);
        };
        let who = match &args.listen_token_file {
            Some(path) => Who::Token(Arc::new(read_token("listen-token-file", path)?)),
            None if address.ip().is_loopback() => Who::Loopback,
            None => {
                let rule = "can be reached from other machines: give --listen-token-file beside \
                            it, or take 127.0.0.1";
                return Err(Failure::usage("listen", address, rule));
            }
        };
        let bound = runtime.block_on(async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            std::io::Result::Ok((listener, address))
        });
        let bound = bound.with_context(|| format!("--listen {address}"));
        let (listener, address) = bound.map_err(Failure::Failed)?;
        say!("HTTP at http://{address}");
        Ok(Some(Self {
            listener,
            address,
            guard: Guard {
                who,
                open: &PROBES,
                body_bytes_max: BODY_BYTES_MAX,
            },
        }))
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers for this member for as long as the runtime runs that this is
    /// called on.
    pub(crate) fn serve(self, member: Arc<dyn Attended>) {
        let router = routes(member, self.guard);
        tokio::spawn(serve(self.listener, router, CONNECTION));
    }
}
