//! `divvy man`: manual pages, made from what the help says.

mod page;
mod roff;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::anyhow;
use clap::{Command, CommandFactory as _};

use self::page::Page;
use crate::args::{Args, ManArgs};
use crate::failure::{Failure, plain};

/// Prints the page of the program, or writes one for each command.
pub(crate) fn run(args: &ManArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut command = Args::command();
    command.build();
    let Some(directory) = &args.dir else {
        let page = Page::new(&command, &[]);
        return out
            .write_all(page.text().as_bytes())
            .map_err(Failure::output);
    };
    written(directory, fs::create_dir_all(directory))?;
    for page in pages(&command, &[]) {
        let path = directory.join(format!("{}.1", page.name()));
        written(&path, fs::write(&path, page.text()))?;
        writeln!(out, "{}", path.display()).map_err(Failure::output)?;
    }
    Ok(())
}

fn written(path: &Path, result: std::io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AlreadyExists => "is not a directory".to_owned(),
            _ => plain(&error),
        };
        Failure::Failed(anyhow!("dir '{}': {why}", path.display()))
    })
}

/// The page of a command and those of its subcommands that the help shows.
fn pages<'a>(command: &'a Command, above: &[&'a Command]) -> Vec<Page<'a>> {
    let mut pages = vec![Page::new(command, above)];
    let mut path = above.to_vec();
    path.push(command);
    for below in page::shown(command) {
        pages.extend(self::pages(below, &path));
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_every_command_that_the_help_shows() {
        let mut command = Args::command();
        command.build();
        let pages = pages(&command, &[]);
        let names: Vec<String> = pages.iter().map(Page::name).collect();
        for name in [
            "divvy",
            "divvy-plan",
            "divvy-bench-stores",
            "divvy-workload-set",
        ] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
        for hidden in ["divvy-run-child", "divvy-complete-words", "divvy-help"] {
            assert!(!names.contains(&hidden.to_owned()), "{names:?}");
        }
        for page in &pages {
            let text = page.text();
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES"] {
                let heading = format!("\n.SH {section}\n");
                assert!(text.contains(&heading), "{}: no {section}", page.name());
            }
        }
    }
}
