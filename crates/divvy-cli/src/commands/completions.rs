//! `divvy completions`: scripts by which shells complete what is typed. They
//! ask the program itself, so they know the flags of the one that is installed.

mod candidates;

use std::io::Write;

use clap::CommandFactory as _;

use self::candidates::Asked;
use crate::args::{Args, CompletionsArgs, Shell, WordsArgs};
use crate::failure::Failure;

/// Prints the script for a shell.
pub(crate) fn run(args: &CompletionsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let script = match args.shell {
        Shell::Bash => include_str!("completions/divvy.bash"),
        Shell::Fish => include_str!("completions/divvy.fish"),
        Shell::Zsh => include_str!("completions/divvy.zsh"),
    };
    out.write_all(script.as_bytes()).map_err(Failure::output)
}

/// Prints how the last word may go on: a line that says what kind of words
/// these are (`words`, `files` or `directories`) and, behind a tab, what of the
/// word stands before a path; then one for each, with its description behind a
/// tab.
pub(crate) fn complete(args: &WordsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut command = Args::command();
    command.build();
    let words = args.words.iter().map(|word| word.to_string_lossy());
    let words: Vec<String> = words.map(|word| word.into_owned()).collect();
    let asked = Asked::of(&command, &words);
    let found = asked.candidates();
    let kind = found.kind.as_str();
    writeln!(out, "{kind}\t{}", found.start).map_err(Failure::output)?;
    for (word, about) in &found.words {
        writeln!(out, "{word}\t{about}").map_err(Failure::output)?;
    }
    Ok(())
}
