//! Prints what the library has to say on stderr: `warning: <message>`.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::terminal;
use crate::voice::Aloud;

/// Prints warnings from now on; with `verbose` also how things are done.
pub(crate) fn install(verbose: bool) {
    let level = if verbose { Level::DEBUG } else { Level::WARN };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Aloud)
        // What cannot be told is not worth a panic: the result matters more.
        .log_internal_errors(false)
        // The subscriber's own colours need a feature; this one brings its own.
        .with_ansi(false)
        .event_format(OneLine {
            colour: terminal::colours_stderr(),
        })
        .init();
}

/// `<level>: <message>`, and the fields whose values the message does not
/// repeat.
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
        let mut said = Said::default();
        event.record(&mut said);
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
    fn fields_are_shown_unless_the_message_has_them() {
        let said = Said {
            message: "store nats://h lost".to_owned(),
            fields: vec![
                ("store", "nats://h".to_owned()),
                ("why", "refused".to_owned()),
            ],
        };
        assert_eq!(said.line(), "store nats://h lost, why refused");
    }
}
