//! Which service is told of partitions.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Webhook")]
pub(crate) struct WebhookArgs {
    /// Where to POST starts and stops of partitions, in place of --exec
    #[arg(long, value_name = "URL", conflicts_with = "exec")]
    pub(crate) webhook: Option<String>,
    /// A file with the secret that what is sent is signed with
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub(crate) webhook_secret_file: Option<PathBuf>,
}
