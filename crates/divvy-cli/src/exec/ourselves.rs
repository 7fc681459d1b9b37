//! This program, to be started again for a part of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the kernel started, also when another file has its name by now.
const RUNNING: &str = "/proc/self/exe";

/// A command that is this program.
pub(crate) fn ourselves() -> std::io::Result<Command> {
    use std::os::unix::process::CommandExt as _;
    let path = match Path::new(RUNNING).exists() {
        true => PathBuf::from(RUNNING),
        false => std::env::current_exe()?,
    };
    let mut command = Command::new(path);
    command.arg0("divvy");
    Ok(command)
}
