//! The port: had before anything else is begun, so that one that is taken is
//! told while nothing has happened.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::Attended;
use super::guard::Guard;
use super::routes::routes;
use super::server::serve;
use super::token::Token;
use crate::args::ListenArgs;
use crate::failure::Failure;

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
        let guard = match &args.listen_token_file {
            Some(path) => {
                let token = Token::read("listen-token-file", path)?;
                Guard::Token(Arc::new(token))
            }
            None if address.ip().is_loopback() => Guard::Loopback,
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
        eprintln!("divvy: HTTP at http://{address}");
        Ok(Some(Self {
            listener,
            address,
            guard,
        }))
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers for this member for as long as the runtime runs that this is
    /// called on.
    pub(crate) fn serve(self, member: Arc<dyn Attended>) {
        tokio::spawn(serve(self.listener, routes(member, self.guard)));
    }
}
