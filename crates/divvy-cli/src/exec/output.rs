//! Where commands write to: our own output, each line with its partition, or
//! a file each.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::mpsc;

use super::Lines;
use crate::failure::Failure;
use crate::terminal::printable;
use crate::voice::say;

/// Longest line; what is longer is told in several.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Lines that wait for whoever reads them; beyond, commands wait themselves.
const LINES_MAX: usize = 1024;

#[derive(Debug, Clone)]
pub(crate) enum Output {
    /// A file for each partition in this directory.
    Files(PathBuf),
    /// Lines for stdout and stderr.
    Lines(mpsc::Sender<Line>),
}

#[derive(Debug)]
pub(crate) struct Line {
    is_error: bool,
    bytes: Vec<u8>,
}

impl Output {
    /// Where commands write to, and what has to be printed of that.
    pub(crate) fn new(directory: Option<&Path>) -> Result<(Self, Lines), Failure> {
        if let Some(directory) = directory {
            let is_new = !directory.exists();
            let made = std::fs::create_dir_all(directory);
            let named = || format!("--output-dir {}", directory.display());
            made.with_context(named).map_err(Failure::Failed)?;
            if is_new {
                say!("{} was not there, and is made", named());
            }
            return Ok((Self::Files(directory.to_owned()), None));
        }
        let (sender, lines) = mpsc::channel(LINES_MAX);
        Ok((Self::Lines(sender), Some(lines)))
    }

    /// Where a command for this partition writes to.
    pub(super) fn stdio(&self, partition: &str) -> std::io::Result<(Stdio, Stdio)> {
        match self {
            Self::Lines(_) => Ok((Stdio::piped(), Stdio::piped())),
            Self::Files(directory) => {
                let file = open(directory, partition)?;
                Ok((file.try_clone()?.into(), file.into()))
            }
        }
    }

    /// Passes on what a command writes, if that is asked for.
    pub(super) fn follow(&self, partition: &str, child: &mut Child) -> std::io::Result<()> {
        let Self::Lines(lines) = self else {
            return Ok(());
        };
        if let Some(stdout) = child.stdout.take() {
            let stdout = ChildStdout::from_std(stdout)?;
            tokio::spawn(pass_on(stdout, partition.to_owned(), false, lines.clone()));
        }
        if let Some(stderr) = child.stderr.take() {
            let stderr = ChildStderr::from_std(stderr)?;
            tokio::spawn(pass_on(stderr, partition.to_owned(), true, lines.clone()));
        }
        Ok(())
    }
}

/// Prints lines until nobody writes any more.
pub(crate) fn print(lines: Lines, out: &mut dyn Write) {
    let Some(mut lines) = lines else { return };
    let is_seen = [
        std::io::stdout().is_terminal(),
        std::io::stderr().is_terminal(),
    ];
    while let Some(line) = lines.blocking_recv() {
        // Who reads no more has what it wanted; the commands go on.
        let bytes = match is_seen[usize::from(line.is_error)] {
            true => harmless_line(&line.bytes),
            false => line.bytes,
        };
        let _unread = match line.is_error {
            true => std::io::stderr().write_all(&bytes),
            false => out.write_all(&bytes),
        };
        if lines.is_empty() {
            let _unread = out.flush();
        }
    }
}

/// A line without anything that a terminal would act on.
fn harmless_line(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let parts = text.split('\t').map(printable);
    let line = parts.collect::<Vec<_>>().join("\t") + "\n";
    line.into_bytes()
}

fn open(directory: &Path, partition: &str) -> std::io::Result<File> {
    let path = directory.join(format!("{}.log", file_name(partition)));
    OpenOptions::new().create(true).append(true).open(path)
}

/// A name that stays inside its directory, whatever the group is called, and
/// is no other partition's.
fn file_name(partition: &str) -> String {
    match partition.rsplit_once(':') {
        Some((group, number)) => format!("{}={}", harmless(group), harmless(number)),
        None => harmless(partition),
    }
}

/// What cannot stand in the name of a file is told by its number.
fn harmless(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() || matches!(c, '-' | '_') => name.push(c),
            '.' if !name.is_empty() => name.push(c),
            c => name.push_str(&format!("%{:x}%", u32::from(c))),
        }
    }
    name
}

async fn pass_on(
    stream: impl AsyncRead + Unpin,
    partition: String,
    is_error: bool,
    lines: mpsc::Sender<Line>,
) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut bytes = format!("{partition} | ").into_bytes();
        let prefix = bytes.len();
        let mut limited = (&mut reader).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut bytes).await;
        if !matches!(read, Ok(1..)) || bytes.len() == prefix {
            return;
        }
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        if lines.send(Line { is_error, bytes }).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_shown_and_not_done() {
        let line = harmless_line(b"a:0 | \x1b]0;owned\x07\tb\r\n");
        let shown = String::from_utf8(line).unwrap();
        assert_eq!(shown, "a:0 | \\u{1b}]0;owned\\u{7}\tb\\r\n");
    }

    #[test]
    fn names_of_files_are_different_where_partitions_are_and_stay_inside() {
        let names = [
            "a b:0", "a_b:0", "a%20%b:0", "a:b:0", "a/b:0", "../b:0", ".a:0", "a.b:0", "a=b:0",
            "a", "a:", "a:0", "a=0", "ä:0", "a:b/c", "a:..",
        ];
        let files: std::collections::BTreeSet<_> = names.map(file_name).into();
        assert_eq!(files.len(), names.len(), "{files:?}");
        for file in &files {
            assert!(
                !file.contains(['/', '\0']) && !file.starts_with('.'),
                "{file}"
            );
        }
    }
}
