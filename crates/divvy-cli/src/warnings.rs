//! Prints what the library has to say on stderr: `warning: <message>`.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::terminal;
use crate::voice::Aloud;

/// Where it is said that a store is not reached at once.
const OPENING: &str = "divvy::store::opening";

/// Prints warnings from now on; with `verbose` also how things are done. A `member`
/// waits for its store for long, and says so at once.
pub(crate) fn install(verbose: bool, member: bool) {
    let level = if verbose { Level::DEBUG } else { Level::INFO };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Aloud)
        // What cannot be told is not worth a panic: the result matters more.
        .log_internal_errors(false)
        // The subscriber's own colours need a feature; this one brings its own.
        .with_ansi(false)
        .event_format(OneLine {
            colour: terminal::colours_stderr(),
            verbose,
            waited: AtomicBool::new(!member),
        })
        .init();
}

/// Says what is worth knowing and nothing to worry about.
pub(crate) fn note(text: &str) {
    let text = terminal::message(text);
    let line = match terminal::colours_stderr() {
        true => format!("\u{1b}[36mnote:\u{1b}[0m {text}\n"),
        false => format!("note: {text}\n"),
    };
    // Where stderr is gone there is nobody left to tell.
    let _gone = Aloud.write_all(line.as_bytes());
}

/// `<level>: <message>`, and the fields whose values the message does not
/// repeat.
struct OneLine {
    colour: bool,
    verbose: bool,
    /// Whether it was said that a store is waited for: what comes after is told
    /// by those who try again.
    waited: AtomicBool,
}

impl OneLine {
    fn is_wanted(&self, level: Level, target: &str) -> bool {
        let is_news = || target == OPENING && !self.waited.swap(true, Ordering::Relaxed);
        target.starts_with("divvy") && (self.verbose || level <= Level::WARN || is_news())
    }
}

impl<S, N> FormatEvent<S, N> for OneLine
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // What a server's client library says, divvy says in its own words.
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        if !self.is_wanted(level, target) {
            return Ok(());
        }
        let mut said = Said::default();
        event.record(&mut said);
        let (name, colour) = match level {
            Level::ERROR => ("error", "\u{1b}[31m"),
            Level::WARN => ("warning", "\u{1b}[33m"),
            Level::INFO => ("note", "\u{1b}[36m"),
            _ => ("debug", "\u{1b}[2m"),
        };
        if self.colour {
            write!(writer, "{colour}{name}:\u{1b}[0m ")?;
        } else {
            write!(writer, "{name}: ")?;
        }
        writeln!(writer, "{}", terminal::message(&said.line()))
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Said {
    fn line(&self) -> String {
        let mut line = self.message.clone();
        for (name, value) in &self.fields {
            if !self.message.contains(value.as_str()) {
                let name = if *name == "why" { "because" } else { name };
                line += &format!(", {name} {value}");
            }
        }
        line
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        match field.name() {
            "message" => self.message = value,
            name => self.fields.push((name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_waited_for_is_told_once_and_warnings_always() {
        let line = OneLine {
            colour: false,
            verbose: false,
            waited: AtomicBool::new(false),
        };
        assert!(line.is_wanted(Level::INFO, OPENING));
        assert!(!line.is_wanted(Level::INFO, OPENING));
        assert!(!line.is_wanted(Level::INFO, "divvy::manager"));
        assert!(line.is_wanted(Level::WARN, "divvy::manager"));
        assert!(!line.is_wanted(Level::ERROR, "async_nats"));
    }

    #[test]
    fn fields_are_shown_unless_the_message_has_them() {
        let said = Said {
            message: "store nats://h lost".to_owned(),
            fields: vec![
                ("store", "nats://h".to_owned()),
                ("why", "refused".to_owned()),
            ],
        };
        assert_eq!(said.line(), "store nats://h lost, because refused");
    }
}
