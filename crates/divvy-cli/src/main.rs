//! The divvy command line: divides partitions of work among workers, and says
//! why each is where it is.
//!
//! What was typed ([`args`]) becomes the library's sets ([`input`]), which a
//! command of [`commands`] hands to the library and prints. Data goes to
//! stdout, everything else to stderr; [`failure`] decides the exit code.

mod args;
mod bar;
mod commands;
mod condensed;
mod config;
mod effective;
mod exec;
mod failure;
mod holding;
mod http;
mod input;
mod natural;
mod plot;
mod preview;
mod refusal;
mod runtime;
mod shortfall;
mod signals;
mod spinner;
mod table;
mod terminal;
mod utc;
mod voice;
mod warnings;
mod webhook;
mod work;
mod wrap;

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return refusal::report(error),
    };
    let is_member = matches!(args.command, Command::Agent(_) | Command::Worker(_));
    warnings::install(args.verbose, is_member);
    match run(&args.command, args.verbose) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: &Command, verbose: bool) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match command {
        Command::Key(args) => commands::key::run(args, &mut out)?,
        Command::Assign(args) => commands::assign::run(args, &mut out)?,
        Command::Plan(args) => commands::plan::run(args, &mut out)?,
        Command::Explain(args) => commands::explain::run(args, verbose, &mut out)?,
        Command::Agent(_) => commands::agent::run(&mut out)?,
        Command::Workload(args) => commands::workload::run(args, &mut out)?,
        Command::Status(args) => commands::status::run(args, &mut out)?,
        Command::Top(args) => commands::top::run(args, &mut out)?,
        Command::Why(args) => commands::why::run(args, &mut out)?,
        Command::Cordon(args) => commands::wish::cordon(args, &mut out)?,
        Command::Drain(args) => commands::wish::drain(args, &mut out)?,
        Command::Uncordon(args) => commands::wish::uncordon(args, &mut out)?,
        Command::Pin(args) => commands::wish::pin(args, &mut out)?,
        Command::Unpin(args) => commands::wish::unpin(args, &mut out)?,
        Command::Refresh(args) => commands::wish::refresh(args, &mut out)?,
        Command::RunChild(args) => exec::become_command(args)?,
        Command::SweepChildren => exec::sweep()?,
        Command::Worker(_) => commands::worker::run(&mut out)?,
        Command::Simulate(args) => commands::simulate::run(args, &mut out)?,
        Command::Playground(args) => commands::playground::run(args, &mut out)?,
        Command::Doctor(args) => commands::doctor::run(args, &mut out)?,
        Command::PlayMember(args) => commands::playground::play(args)?,
        Command::Bench(args) => commands::bench::run(args, &mut out)?,
        Command::Completions(args) => commands::completions::run(args, &mut out)?,
        Command::CompleteWords(args) => commands::completions::complete(args, &mut out)?,
        Command::Man(args) => commands::man::run(args, &mut out)?,
    }
    out.flush().map_err(Failure::output)
}
