//! `divvy bench`: figures of stores, measured on the user's own servers.

mod failover;
mod keeping;
mod key_value;
mod leases;
mod measure;
mod messages;
mod part;
mod peer;
mod processes;
pub(crate) mod stores;

use std::io::Write;

use crate::args::BenchCommand;
use crate::failure::Failure;

pub(crate) fn run(command: &BenchCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        BenchCommand::Failover(args) => failover::run(args, out),
        BenchCommand::Messages(args) => messages::run(args, out),
        BenchCommand::Stores(args) => stores::run(args, out),
    }
}
