//! Tables without borders: headings, columns, and rows that may stand out.

mod folded;

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment};

use crate::terminal::{Terminal, printable, shortened};

/// Blanks between columns.
pub(crate) const GAP: usize = 2;
/// How headings stand out: bold.
const HEADING: &str = "\u{1b}[1m";
/// Columns that are left however narrow a terminal is.
const COLUMNS_MIN: usize = 1;

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
    /// More of the headings, which did not fit on one line.
    Heading,
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

    /// The table as a terminal has room for it: without the first of the columns
    /// `spare`, in their order, and with the last column shortened, where it may
    /// be, to no fewer than `least` characters. Whoever is not at a terminal gets
    /// everything.
    pub(crate) fn fitted(
        mut self,
        terminal: &Terminal,
        spare: &[&str],
        least: Option<usize>,
    ) -> Self {
        if !terminal.interactive {
            return self;
        }
        let last = self.headings.last().map(|(name, _)| name.clone());
        for name in spare {
            if self.width_within(least.filter(|_| self.ends_in(&last))) <= terminal.width {
                break;
            }
            self.drop_column(name);
        }
        if least.is_some() && self.ends_in(&last) {
            let others = self.width_within(Some(0));
            self.shorten_last(terminal.width.saturating_sub(others));
        }
        self
    }

    fn ends_in(&self, name: &Option<String>) -> bool {
        self.headings.last().map(|(name, _)| name) == name.as_ref()
    }

    /// Columns that it takes, if the last one is shortened to `most`.
    fn width_within(&self, most: Option<usize>) -> usize {
        let chars = |text: &str| printable(text).chars().count();
        let widths = self.headings.iter().enumerate().map(|(index, (name, _))| {
            let cells = self.rows.iter().map(|(_, cells)| chars(&cells[index]));
            let widest = cells.max().unwrap_or(0);
            let is_last = index + 1 == self.headings.len();
            let widest = most
                .filter(|_| is_last)
                .map_or(widest, |most| widest.min(most));
            let heading = if is_last && most == Some(0) {
                0
            } else {
                chars(name)
            };
            widest.max(heading) + GAP
        });
        widths.sum::<usize>().saturating_sub(GAP)
    }

    fn drop_column(&mut self, name: &str) {
        let Some(index) = self.headings.iter().position(|(found, _)| found == name) else {
            return;
        };
        self.headings.remove(index);
        for (_, cells) in &mut self.rows {
            cells.remove(index);
        }
    }

    fn shorten_last(&mut self, most: usize) {
        for (_, cells) in &mut self.rows {
            if let Some(cell) = cells.last_mut() {
                *cell = shortened(cell, most.max(1)).into_owned();
            }
        }
    }

    /// Writes the table, one line per row.
    pub(crate) fn write(&self, out: &mut dyn Write, colour: bool) -> io::Result<()> {
        let mut lines = self.layout().lines().collect::<Vec<_>>().into_iter();
        if let Some(heading) = lines.next() {
            write_line(out, colour.then_some(HEADING), heading.trim_end(), "")?;
        }
        for (line, (tone, cells)) in lines.zip(&self.rows) {
            let line = line.trim_end();
            let last = printable(cells.last().map_or("", |cell| cell.trim_end()));
            let (sequence, from) = match tone {
                Tone::Plain => (None, 0),
                Tone::Strong => (Some("\u{1b}[1;32m"), 0),
                Tone::Faint => (Some("\u{1b}[2m"), 0),
                Tone::Heading => (Some(HEADING), 0),
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

    /// The same on a terminal that may be too narrow: columns at the end are
    /// left out until the rest fits. What is piped is whole.
    pub(crate) fn write_within(&self, out: &mut dyn Write, terminal: &Terminal) -> io::Result<()> {
        let mut kept = self.headings.len();
        let mut narrow = self.first_columns(kept);
        while terminal.interactive && kept > COLUMNS_MIN && narrow.width() > terminal.width {
            kept -= 1;
            narrow = self.first_columns(kept);
        }
        narrow.write(out, terminal.colour)
    }

    fn first_columns(&self, count: usize) -> Self {
        let rows = self.rows.iter();
        let rows = rows.map(|(tone, cells)| (*tone, cells[..count].to_vec()));
        Self {
            headings: self.headings[..count].to_vec(),
            rows: rows.collect(),
        }
    }

    /// Columns that the longest line takes.
    pub(crate) fn width(&self) -> usize {
        let layout = self.layout();
        let widths = layout.lines().map(|line| line.trim_end().chars().count());
        widths.max().unwrap_or(0)
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
            column.set_padding((0, GAP as u16));
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

    fn status(terminal: &Terminal) -> String {
        let names = ["worker", "state", "weight", "owns", "partitions"];
        let mut table = Table::new(names.map(|name| (name.to_owned(), Align::Left)));
        let cells = [
            "worker-0",
            "live, leads",
            "1",
            "12",
            "orders:0-3,7,9,11,13,15,17",
        ];
        table.push(Tone::Plain, cells.map(str::to_owned).to_vec());
        let table = table.fitted(terminal, &["weight", "state", "partitions"], Some(12));
        let mut out = Vec::new();
        table
            .write(&mut out, false)
            .expect("a vector takes anything");
        String::from_utf8(out).expect("tables are text")
    }

    #[test]
    fn a_narrow_terminal_gets_the_columns_that_matter_most() {
        let on = |width| {
            status(&Terminal {
                interactive: true,
                colour: false,
                width,
            })
        };
        let whole = on(200);
        assert!(
            whole.contains("15,17") && whole.contains("weight"),
            "{whole}"
        );
        for (width, dropped) in [(60, 0), (49, 0), (48, 1), (35, 2), (20, 3)] {
            let text = on(width);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}: {text}");
            let columns = text.lines().next().unwrap_or_default();
            assert_eq!(columns.split_whitespace().count(), 5 - dropped, "{text}");
        }
        let piped = status(&Terminal {
            interactive: false,
            colour: false,
            width: 40,
        });
        assert_eq!(piped, whole);
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

    #[test]
    fn the_last_column_is_left_out_where_a_terminal_is_too_narrow_for_it() {
        let mut table = Table::new([
            ("id".to_owned(), Align::Left),
            ("meaning".to_owned(), Align::Left),
        ]);
        table.push(Tone::Plain, vec!["a".to_owned(), "x".repeat(30)]);
        let lines = |interactive, width| {
            let terminal = Terminal {
                interactive,
                colour: false,
                width,
            };
            let mut out = Vec::new();
            let written = table.write_within(&mut out, &terminal);
            written.expect("a vector takes anything");
            String::from_utf8(out).expect("tables are text")
        };
        assert_eq!(lines(true, 20), "id\na\n");
        assert!(lines(true, 40).contains("xxx"));
        assert!(lines(false, 20).contains("xxx"), "what is piped is whole");
    }
}
