//! Where HTTP is answered.

use std::net::SocketAddr;
use std::path::PathBuf;

use divvy::Invalid;

/// Where, and for whom.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct ListenArgs {
    /// Answer HTTP there, such as 127.0.0.1:9470; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// A file with the token that clients have to send, where others than this machine can reach it
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) listen_token_file: Option<PathBuf>,
}

pub(super) fn address(text: &str) -> Result<SocketAddr, Invalid> {
    let address = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse(),
    };
    address.map_err(|_error| {
        let rule = "must be an address and a port, such as 127.0.0.1:9470 or [::1]:9470";
        Invalid::new("listen", text, rule)
    })
}
