//! Tables without borders: headings, columns, and rows that may stand out.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment};

use crate::terminal::printable;

/// How a row or its last cell stands out on a terminal that has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Not at all.
    Plain,
    /// The row that matters: bold.
    Strong,
    /// A row that does not count: dim.
    Faint,
    /// The last cell is above what it should be.
    LastHigh,
    /// The last cell is below what it should be.
    LastLow,
}

/// To which side a column's cells are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under headings.
pub(crate) struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<(Tone, Vec<String>)>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(headings: impl IntoIterator<Item = (String, Align)>) -> Self {
        Self {
            headings: headings.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, a cell for each column.
    pub(crate) fn push(&mut self, tone: Tone, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a cell for each column");
        self.rows.push((tone, cells));
    }

    /// Writes the table, one line per row.
    pub(crate) fn write(&self, out: &mut dyn Write, colour: bool) -> io::Result<()> {
        let mut lines = self.layout().lines().collect::<Vec<_>>().into_iter();
        if let Some(heading) = lines.next() {
            write_line(out, colour.then_some("\u{1b}[1m"), heading.trim_end(), "")?;
        }
        for (line, (tone, cells)) in lines.zip(&self.rows) {
            let line = line.trim_end();
            let last = printable(cells.last().map_or("", |cell| cell.trim_end()));
            let (sequence, from) = match tone {
                Tone::Plain => (None, 0),
                Tone::Strong => (Some("\u{1b}[1;32m"), 0),
                Tone::Faint => (Some("\u{1b}[2m"), 0),
                Tone::LastHigh => (Some("\u{1b}[33m"), line.len() - last.len()),
                Tone::LastLow => (Some("\u{1b}[36m"), line.len() - last.len()),
            };
            write_line(
                out,
                sequence.filter(|_| colour),
                &line[from..],
                &line[..from],
            )?;
        }
        Ok(())
    }

    fn layout(&self) -> comfy_table::Table {
        let cell = |text: &str, align| {
            Cell::new(printable(text)).set_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            })
        };
        let headings = || self.headings.iter();
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        table.set_header(headings().map(|(heading, align)| cell(heading, *align)));
        for (_, cells) in &self.rows {
            let aligned = cells.iter().zip(headings());
            table.add_row(aligned.map(|(text, (_, align))| cell(text, *align)));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table
    }
}

/// A count with its noun, which gets an `s` where there is not one.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Writes `before` as it is and `text` between an escape sequence and its end.
fn write_line(
    out: &mut dyn Write,
    sequence: Option<&str>,
    text: &str,
    before: &str,
) -> io::Result<()> {
    match sequence {
        Some(sequence) => writeln!(out, "{before}{sequence}{text}\u{1b}[0m"),
        None => writeln!(out, "{before}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(colour: bool) -> String {
        let mut table = Table::new([
            ("worker".to_owned(), Align::Left),
            ("load".to_owned(), Align::Right),
            ("bar".to_owned(), Align::Left),
        ]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        table.push(Tone::LastHigh, row(["a\tb", "7", "██"]));
        table.push(Tone::Plain, row(["long name", "1234567", ""]));
        let mut out = Vec::new();
        table
            .write(&mut out, colour)
            .expect("a vector takes anything");
        String::from_utf8(out).expect("tables are text")
    }

    #[test]
    fn columns_line_up_and_lines_end_without_blanks() {
        assert_eq!(
            written(false),
            "worker        load  bar\na\\tb             7  ██\nlong name  1234567\n"
        );
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let coloured = written(true);
        assert!(coloured.contains("\u{1b}[33m██\u{1b}[0m"), "{coloured:?}");
        let stripped: String = coloured
            .split('\u{1b}')
            .enumerate()
            .map(|(index, part)| match (index, part.split_once('m')) {
                (0, _) => part,
                (_, Some((_, rest))) => rest,
                (_, None) => panic!("an escape sequence without its end: {part:?}"),
            })
            .collect();
        assert_eq!(stripped, written(false));
    }
}
