//! How a word that is being typed may go on.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, Id, ValueHint};
use divvy_playground::builtins;

use crate::args::NatsArgs;

/// How the address of a store begins.
const STORES: [(&str, &str); 7] = [
    ("memory", "in this process, so alone"),
    ("file:", "all processes of one machine"),
    ("nats://", "a NATS server with JetStream"),
    ("tls://", "NATS with encryption"),
    ("redis://", "Redis or Valkey"),
    ("rediss://", "Redis or Valkey with encryption"),
    ("redis+unix://", "Redis or Valkey by a socket"),
];

/// What the words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those that are listed.
    Words,
    /// Files: the shell knows how to list them.
    Files,
    /// Directories.
    Directories,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Files => "files",
            Self::Directories => "directories",
        }
    }
}

/// How the word may go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidates {
    pub(super) kind: Kind,
    /// What of the word stands before the path, where these are paths.
    pub(super) start: String,
    /// Whole words, each with what it is.
    pub(super) words: Vec<(String, String)>,
}

/// What is known from the words before the one that is being typed.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    command: &'a Command,
    /// The flag whose value comes next.
    waiting: Option<&'a Arg>,
    given: Vec<&'a Id>,
    positionals: usize,
    /// Whether `--` was there, so that nothing is a flag any more.
    is_open: bool,
    current: &'a str,
}

impl<'a> Asked<'a> {
    /// Reads words; the last is the one that is being typed.
    pub(super) fn of(root: &'a Command, words: &'a [String]) -> Self {
        let (current, before) = match words.split_last() {
            Some((current, before)) => (current.as_str(), before),
            None => ("", words),
        };
        let mut asked = Self {
            command: root,
            waiting: None,
            given: Vec::new(),
            positionals: 0,
            is_open: false,
            current,
        };
        for word in before {
            asked.read(word);
        }
        asked
    }

    fn read(&mut self, word: &'a str) {
        if self.waiting.take().is_some() {
            return;
        }
        if self.is_open || !word.starts_with('-') || word == "-" {
            match self.command.find_subcommand(word) {
                Some(command) if !self.is_open => {
                    self.command = command;
                    self.positionals = 0;
                }
                _ => self.positionals += 1,
            }
            return;
        }
        self.is_open = word == "--";
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        if let Some(arg) = self.flag(flag) {
            self.given.push(arg.get_id());
            self.waiting = (takes_value(arg) && value.is_none()).then_some(arg);
        }
    }

    fn flag(&self, name: &str) -> Option<&'a Arg> {
        let is_it = |arg: &&Arg| match name.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg
                .get_short()
                .is_some_and(|short| name[1..] == short.to_string()),
        };
        self.command.get_arguments().find(is_it)
    }

    pub(super) fn candidates(&self) -> Candidates {
        if let Some(arg) = self.waiting {
            return self.values(arg, "", self.current);
        }
        if self.is_open || !self.current.starts_with('-') {
            return self.commands_or_values();
        }
        match self.current.split_once('=') {
            Some((flag, value)) => match self.flag(flag) {
                Some(arg) if takes_value(arg) => self.values(arg, &format!("{flag}="), value),
                _ => words(Vec::new()),
            },
            None => self.flags(),
        }
    }

    fn commands_or_values(&self) -> Candidates {
        let commands = self.command.get_subcommands();
        let commands = commands.filter(|command| !command.is_hide_set());
        let commands = commands.map(|command| (command.get_name(), told(command.get_about())));
        let commands: Vec<_> = commands.collect();
        if !commands.is_empty() {
            return starting(commands, "", self.current);
        }
        let mut positionals = self.command.get_positionals();
        let last = self.command.get_positionals().last();
        let repeated = last.filter(|arg| matches!(arg.get_action(), ArgAction::Append));
        match positionals.nth(self.positionals).or(repeated) {
            Some(arg) => self.values(arg, "", self.current),
            None => words(Vec::new()),
        }
    }

    fn flags(&self) -> Candidates {
        let flags = self.command.get_arguments().filter(|arg| {
            let is_over = self.given.contains(&arg.get_id())
                && !matches!(arg.get_action(), ArgAction::Append | ArgAction::Count);
            !arg.is_hide_set() && !is_over
        });
        let flags = flags.filter_map(|arg| {
            let long = arg.get_long()?;
            Some((format!("--{long}"), told(arg.get_help())))
        });
        let flags: Vec<_> = flags.collect();
        let flags = flags
            .iter()
            .map(|(flag, about)| (flag.as_str(), about.clone()));
        starting(flags, "", self.current)
    }

    /// The values of an argument that go on from what was typed.
    fn values(&self, arg: &Arg, before: &str, typed: &str) -> Candidates {
        let names = arg.get_possible_values();
        if !names.is_empty() {
            let names = names.iter().filter(|name| !name.is_hide_set());
            let names = names.map(|name| (name.get_name(), told(name.get_help())));
            return starting(names, before, typed);
        }
        match arg.get_id().as_str() {
            "store" if typed.starts_with("file:") => {
                return paths(Kind::Files, format!("{before}file:"));
            }
            "store" => {
                let stores = STORES.into_iter().filter(|(start, _)| self.can_use(start));
                let stores = stores.map(|(start, about)| (start, about.to_owned()));
                return starting(stores, before, typed);
            }
            "scenario" => {
                let scenarios = builtins();
                let scenarios = scenarios.iter().map(|s| (s.name(), s.title().to_owned()));
                let found = starting(scenarios, before, typed);
                // None of them: the name of a file.
                return if found.words.is_empty() {
                    paths(Kind::Files, before.to_owned())
                } else {
                    found
                };
            }
            _ => {}
        }
        let forms = arg.get_value_names().unwrap_or_default();
        let reads_files = forms.iter().any(|form| form.contains("@FILE"));
        match arg.get_value_hint() {
            ValueHint::AnyPath | ValueHint::FilePath => paths(Kind::Files, before.to_owned()),
            ValueHint::DirPath => paths(Kind::Directories, before.to_owned()),
            _ if reads_files && typed.starts_with('@') => paths(Kind::Files, format!("{before}@")),
            _ if reads_files => starting([("@", "a file".to_owned())], before, typed),
            _ => words(Vec::new()),
        }
    }

    /// Whether a store with such an address will do for the command: lease mode
    /// has none of the flags of NATS, and no use for it.
    fn can_use(&self, start: &str) -> bool {
        let mut flags = self.command.get_arguments().filter_map(Arg::get_long);
        !matches!(start, "nats://" | "tls://") || flags.any(NatsArgs::has)
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn paths(kind: Kind, start: String) -> Candidates {
    Candidates {
        kind,
        start,
        words: Vec::new(),
    }
}

fn words(words: Vec<(String, String)>) -> Candidates {
    Candidates {
        kind: Kind::Words,
        start: String::new(),
        words,
    }
}

/// Those that start as what was typed, with what stands before it.
fn starting<'a>(
    all: impl IntoIterator<Item = (&'a str, String)>,
    before: &str,
    typed: &str,
) -> Candidates {
    let found = all.into_iter().filter(|(word, _)| word.starts_with(typed));
    words(
        found
            .map(|(word, about)| (format!("{before}{word}"), about))
            .collect(),
    )
}

/// The first line of a text.
fn told(text: Option<&StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn found(line: &str) -> Candidates {
        let mut command = Args::command();
        command.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Asked::of(&command, &words).candidates()
    }

    fn named(line: &str) -> String {
        let found = found(line);
        assert_eq!(found.kind, Kind::Words, "{line}");
        let words: Vec<String> = found.words.into_iter().map(|(word, _)| word).collect();
        words.join(" ")
    }

    #[test]
    fn commands_go_on_as_those_that_are_shown() {
        assert_eq!(named("pl"), "plan playground");
        assert_eq!(named("-v pl"), "plan playground");
        assert_eq!(named("workload s"), "set");
        assert_eq!(named("bench "), "failover messages stores help");
        for hidden in ["run-", "sweep", "play-", "complete-"] {
            assert_eq!(named(hidden), "");
        }
    }

    #[test]
    fn flags_go_on_unless_they_are_given_or_hidden() {
        assert_eq!(named("key --sch"), "--scheme");
        assert_eq!(named("key --scheme xxh3 --sch"), "");
        assert_eq!(named("key --scheme=xxh3 --sch"), "");
        assert_eq!(named("bench stores --store memory --sto"), "--store");
        assert_eq!(named("worker --writ"), "");
        assert_eq!(named("key -- --sch"), "");
    }

    #[test]
    fn values_go_on_as_names_stores_and_files() {
        assert_eq!(named("key --scheme djb2-3"), "djb2-32");
        assert_eq!(named("worker --preset=c"), "--preset=calm");
        assert_eq!(named("plan --strategy z"), "zoned");
        assert_eq!(named("status --mode le"), "leader lease");
        assert_eq!(
            named("status --store redis"),
            "redis:// rediss:// redis+unix://"
        );
        assert_eq!(named("doctor --store n"), "nats://");
        for alone in ["agent --store n", "workload list --store=t"] {
            assert_eq!(named(alone), "", "agents cannot use NATS");
        }
        assert_eq!(named("playground --scenario half"), "half-the-fleet-dies");
        assert_eq!(named("completions f"), "fish");
        assert_eq!(named("assign --workers "), "@");
        assert_eq!(named("cordon one --store=nats"), "--store=nats://");
    }

    #[test]
    fn paths_go_on_behind_what_stands_before_them() {
        for (line, kind, start) in [
            ("assign --workers @w", Kind::Files, "@"),
            ("assign --workers=@a@b/w", Kind::Files, "--workers=@"),
            ("assign --plot ", Kind::Files, ""),
            ("status --store file:./d", Kind::Files, "file:"),
            ("status --store=file:a:b", Kind::Files, "--store=file:"),
            ("worker --config=wo", Kind::Files, "--config="),
            ("worker --config a=b", Kind::Files, ""),
            ("playground --scenario ./mine", Kind::Files, ""),
            ("agent --output-dir ", Kind::Directories, ""),
            ("man --dir=x", Kind::Directories, "--dir="),
        ] {
            let found = found(line);
            assert_eq!((found.kind, found.start.as_str()), (kind, start), "{line}");
        }
    }
}
