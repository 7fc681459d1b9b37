//! Which service is told of partitions.

use std::path::PathBuf;

use crate::webhook;

/// The variable that names a service where no flag does: an address may hold
/// a secret, and everyone on the machine can read arguments.
pub(crate) const WEBHOOK_VARIABLE: &str = "DIVVY_WEBHOOK";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Webhook")]
pub(crate) struct WebhookArgs {
    /// Where to POST starts and stops of partitions, in place of --exec [default: that of DIVVY_WEBHOOK]
    #[arg(long, value_name = "URL", conflicts_with = "exec", value_parser = webhook::typed)]
    pub(crate) webhook: Option<String>,
    /// A file with the secret that what is sent is signed with
    #[arg(long, value_name = "FILE", conflicts_with = "exec")]
    pub(crate) webhook_secret_file: Option<PathBuf>,
}
