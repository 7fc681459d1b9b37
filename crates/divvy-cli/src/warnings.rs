//! Prints what the library has to say on stderr: `warning: <message>`.

use std::fmt;
use std::io;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::terminal;

/// Prints warnings from now on; with `verbose` also how things are done.
pub(crate) fn install(verbose: bool) {
    let level = if verbose { Level::DEBUG } else { Level::WARN };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        // What cannot be told is not worth a panic: the result matters more.
        .log_internal_errors(false)
        // The subscriber's own colours need a feature; this one brings its own.
        .with_ansi(false)
        .event_format(OneLine {
            colour: terminal::colours_stderr(),
        })
        .init();
}

/// `<level>: <message>`, without the fields that the message repeats.
struct OneLine {
    colour: bool,
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
        if !event.metadata().target().starts_with("divvy") {
            return Ok(());
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        let (name, colour) = match *event.metadata().level() {
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
        writeln!(writer, "{}", terminal::message(&message.0))
    }
}

/// The message among the fields of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
