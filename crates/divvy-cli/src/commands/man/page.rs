//! The manual page of one command.

use clap::builder::StyledStr;
use clap::{Arg, Command};

use super::roff::Roff;

/// Under which clap lists options that have no heading.
const OPTIONS: &str = "Options";

/// A page to be written.
#[derive(Debug)]
pub(super) struct Page<'a> {
    command: &'a Command,
    /// From the program to the command above this one.
    above: Vec<&'a Command>,
}

impl<'a> Page<'a> {
    pub(super) fn new(command: &'a Command, above: &[&'a Command]) -> Self {
        Self {
            command,
            above: above.to_vec(),
        }
    }

    /// The name of the page, such as `divvy-bench-stores`.
    pub(super) fn name(&self) -> String {
        let path = self.above.iter().chain([&self.command]);
        let names: Vec<&str> = path.map(|command| command.get_name()).collect();
        names.join("-")
    }

    pub(super) fn text(&self) -> String {
        let version = match self.above.first().unwrap_or(&self.command).get_version() {
            Some(version) => format!("divvy {version}"),
            None => "divvy".to_owned(),
        };
        let mut roff = Roff::titled(&self.name(), &version);
        roff.section("NAME");
        let about = told(self.command.get_about());
        roff.paragraph(&format!("{} - {about}", self.name()));
        roff.section("SYNOPSIS");
        let usage = self.command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:");
        let usage: Vec<&str> = usage.lines().map(str::trim).collect();
        roff.verbatim(&usage);
        roff.section("DESCRIPTION");
        let long = self.command.get_long_about();
        write_text(&mut roff, &told(long.or_else(|| self.command.get_about())));
        self.write_commands(&mut roff);
        self.write_options(&mut roff);
        write_sections(&mut roff, &told(self.command.get_after_long_help()));
        self.write_relatives(&mut roff);
        roff.text()
    }

    fn write_commands(&self, roff: &mut Roff) {
        let mut commands = shown(self.command).peekable();
        if commands.peek().is_none() {
            return;
        }
        roff.section("COMMANDS");
        for command in commands {
            let page = format!("{}-{}(1)", self.name(), command.get_name());
            roff.item(&page, &told(command.get_about()));
        }
    }

    fn write_options(&self, roff: &mut Roff) {
        let positionals = self.command.get_positionals();
        let mut positionals = positionals.filter(|arg| !arg.is_hide_set()).peekable();
        if positionals.peek().is_some() {
            roff.section("ARGUMENTS");
        }
        for arg in positionals {
            roff.item(&arg.to_string(), &meaning(arg));
        }
        roff.section("OPTIONS");
        let flags: Vec<&Arg> = self.command.get_arguments().collect();
        let flags: Vec<&Arg> = flags
            .into_iter()
            .filter(|arg| !arg.is_positional() && !arg.is_hide_set())
            .collect();
        let mut headings = vec![OPTIONS];
        for arg in &flags {
            let heading = arg.get_help_heading().unwrap_or(OPTIONS);
            if !headings.contains(&heading) {
                headings.push(heading);
            }
        }
        for heading in headings {
            if heading != OPTIONS {
                roff.subsection(heading);
            }
            let under = |arg: &&&Arg| arg.get_help_heading().unwrap_or(OPTIONS) == heading;
            for arg in flags.iter().filter(under) {
                let short = arg.get_short().map(|short| format!("-{short}, "));
                let term = format!("{}{arg}", short.unwrap_or_default());
                roff.item(&term, &meaning(arg));
            }
        }
    }

    fn write_relatives(&self, roff: &mut Roff) {
        let Some(above) = self.above.last() else {
            return;
        };
        let names: Vec<&str> = self.above.iter().map(|c| c.get_name()).collect();
        let mut pages = vec![format!("{}(1)", names.join("-"))];
        for command in shown(above) {
            if command.get_name() != self.command.get_name() {
                pages.push(format!("{}-{}(1)", names.join("-"), command.get_name()));
            }
        }
        roff.section("SEE ALSO");
        roff.paragraph(&pages.join(", "));
    }
}

/// The subcommands that the help shows, but not the one for help itself.
pub(super) fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let commands = command.get_subcommands();
    commands.filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// What an argument is for, its values and its default.
fn meaning(arg: &Arg) -> String {
    let mut text = told(arg.get_long_help().or_else(|| arg.get_help()));
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        text += &format!(" [default: {}]", defaults.join(" "));
    }
    let values = arg.get_possible_values();
    let are_told = values.iter().any(|value| value.get_help().is_some());
    let values = values.iter().map(|value| match value.get_help() {
        Some(help) => format!("{} ({help})", value.get_name()),
        None => value.get_name().to_owned(),
    });
    let values: Vec<String> = values.collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        let between = if are_told { "; " } else { ", " };
        text += &format!(" [possible values: {}]", values.join(between));
    }
    text
}

/// Paragraphs, in which indented lines stay as they are.
fn write_text(roff: &mut Roff, text: &str) {
    for paragraph in text.split("\n\n") {
        let lines: Vec<&str> = paragraph.lines().collect();
        let is_indented = |line: &&str| line.starts_with("  ");
        let plain = lines.iter().position(is_indented);
        let (words, shown) = lines.split_at(plain.unwrap_or(lines.len()));
        if !words.is_empty() {
            roff.paragraph(&words.join(" "));
        }
        if !shown.is_empty() {
            roff.verbatim(shown);
        }
    }
}

/// Parts of a text that begin with a heading and a colon, as sections.
fn write_sections(roff: &mut Roff, text: &str) {
    let has_examples = text.contains("Examples:\n");
    for part in text.split("\n\n") {
        let Some((heading, lines)) = part.split_once(":\n") else {
            continue;
        };
        match heading {
            "On servers" if has_examples => roff.subsection(heading),
            "On servers" => roff.section("EXAMPLES"),
            "Exit codes" => roff.section("EXIT STATUS"),
            heading => roff.section(&heading.to_uppercase()),
        }
        let lines: Vec<&str> = lines.lines().collect();
        roff.verbatim(&lines);
    }
}

fn told(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}
