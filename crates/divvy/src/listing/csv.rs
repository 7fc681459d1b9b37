//! CSV as people and spreadsheets write it: a header, `,`, `;` or tabs, blank
//! lines.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::Fault;
use super::excerpt;
use super::near::nearest;
use super::row::{Field, Place, Row, names, position, position_by_alias, unknown};

/// Most cells of a line: what the widest sheet of a spreadsheet has.
const CELLS_MAX: usize = 16_384;
/// Columns that are left out and named.
const IGNORED_SHOWN_MAX: usize = 5;

/// Reads the rows below the header and hands each to `keep`. Columns that are
/// not known are refused, or else told to `notes` and left out.
pub(super) fn read(
    text: &str,
    fields: &[Field],
    notes: Option<&mut Vec<String>>,
    keep: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Fault> {
    let separator = separator(text);
    check_width(text, separator)?;
    let read = read_rows(text, separator, fields, notes, keep);
    let Some((line, reason)) = stray_quote(text, separator) else {
        return read;
    };
    // It is the cause of whatever else is wrong from there on.
    let place = read.as_ref().err().and_then(|fault| fault.place.as_deref());
    let before = place.and_then(|place| place.strip_prefix("line ")?.parse().ok());
    match before.is_some_and(|before: usize| before < line) {
        true => read,
        false => Err(Fault {
            place: Some(format!("line {line}")),
            reason: reason.to_owned(),
        }),
    }
}

fn read_rows(
    text: &str,
    separator: u8,
    fields: &[Field],
    notes: Option<&mut Vec<String>>,
    mut keep: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Fault> {
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    let mut columns: Option<Columns> = None;
    let mut notes = Some(notes);
    while reader
        .read_record(&mut record)
        .map_err(|error| syntax(&error))?
    {
        let place = Place::Line(line_of(&record, text));
        let at_line = |reason| Fault {
            place: Some(place.to_string()),
            reason,
        };
        if record.iter().all(str::is_empty) {
            continue;
        }
        match &columns {
            None => {
                let notes = notes.take().flatten();
                columns = Some(Columns::of(&record, fields, notes).map_err(at_line)?);
            }
            Some(columns) => {
                let mut row = Row::new(fields, place);
                row.has_semicolons = separator == b';';
                columns.fill(&mut row, &record).map_err(at_line)?;
                keep(&row).map_err(at_line)?;
            }
        }
    }
    if columns.is_none() {
        let reason = format!("is empty, a header with {} is needed", names(fields, ", "));
        return Err(Fault {
            place: None,
            reason,
        });
    }
    Ok(())
}

/// `;` where the header has it and no comma, as spreadsheets write it where
/// the comma is the decimal sign; a tab where it has only that.
fn separator(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.trim().is_empty());
    match header {
        Some(header) if header.contains(',') => b',',
        Some(header) if header.contains(';') => b';',
        Some(header) if header.trim().contains('\t') => b'\t',
        _ => b',',
    }
}

/// Refuses a line of more cells than any sheet has, each of which would take
/// more memory than it has characters.
fn check_width(text: &str, separator: u8) -> Result<(), Fault> {
    let wide = |line: &[u8]| line.iter().filter(|&&byte| byte == separator).count() >= CELLS_MAX;
    let mut lines = text.as_bytes().split(|&byte| byte == b'\n');
    match lines.position(wide) {
        Some(index) => Err(Fault {
            place: Some(format!("line {}", index + 1)),
            reason: format!("has more than {CELLS_MAX} cells"),
        }),
        None => Ok(()),
    }
}

/// The line of a quote that is never closed, or closed in the middle of a cell,
/// and which of both: what it takes in would become a part of the cell.
fn stray_quote(text: &str, separator: u8) -> Option<(usize, &'static str)> {
    let ends_cell = |byte: Option<&u8>| {
        byte.is_none_or(|&byte| byte == separator || matches!(byte, b'\r' | b'\n' | b' ' | b'\t'))
    };
    let mut bytes = text.as_bytes().iter().peekable();
    let (mut line, mut is_first, mut opened) = (1, true, None);
    while let Some(&byte) = bytes.next() {
        line += usize::from(byte == b'\n');
        match (byte, opened) {
            (b'"', None) if is_first => opened = Some(line),
            (b'"', Some(_)) if bytes.peek() == Some(&&b'"') => {
                bytes.next();
            }
            (b'"', Some(_)) if ends_cell(bytes.peek().copied()) => opened = None,
            (b'"', Some(line)) => return Some((line, "a quote is closed in the middle of a cell")),
            _ => {}
        }
        is_first = byte == separator || byte == b'\n';
    }
    opened.map(|line| (line, "a quote is never closed"))
}

/// The line that a record starts in. The reader takes the blank lines before
/// a record for a part of it.
fn line_of(record: &StringRecord, text: &str) -> u64 {
    let Some(position) = record.position() else {
        return 0;
    };
    let bytes = text.as_bytes().iter().skip(position.byte() as usize);
    let blank = bytes.take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + blank.filter(|&&byte| byte == b'\n').count() as u64
}

fn syntax(error: &csv::Error) -> Fault {
    Fault {
        place: error
            .position()
            .map(|position| format!("line {}", position.line())),
        reason: error.to_string(),
    }
}

/// What stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    /// The field of this number.
    Field(usize),
    /// Something that has no name, and so should not be there.
    Nameless,
    /// Something of others.
    Ignored,
}

/// By position in a row, what stands there.
struct Columns(Vec<Column>);

impl Columns {
    fn of(
        header: &StringRecord,
        fields: &[Field],
        notes: Option<&mut Vec<String>>,
    ) -> Result<Self, String> {
        let mut columns = Vec::with_capacity(header.len());
        for name in header {
            let column = match position(name, fields) {
                _ if name.is_empty() => Column::Nameless,
                Some(field) => Column::Field(field),
                None => Column::Ignored,
            };
            if matches!(column, Column::Field(_)) && columns.contains(&column) {
                let name = excerpt(name);
                return Err(format!("column '{name}' stands twice in the header"));
            }
            columns.push(column);
        }
        // A name of its own counts before what others call it.
        for (place, name) in header.iter().enumerate() {
            let field = position_by_alias(name, fields).map(Column::Field);
            let field = field.filter(|field| !columns.contains(field));
            if let (Column::Ignored, Some(field)) = (columns[place], field) {
                columns[place] = field;
            }
        }
        if !columns.contains(&Column::Field(0)) {
            return Err(format!(
                "the header has no column '{}': does the file have a header? the first line must \
                 be {}",
                fields[0].name,
                names(fields, ",")
            ));
        }
        let ignored = header.iter().zip(&columns);
        let ignored = ignored.filter(|(_, column)| **column == Column::Ignored);
        let ignored: Vec<&str> = ignored.map(|(name, _)| name).collect();
        match (ignored.first(), notes) {
            (None, _) => {}
            (Some(name), None) => return Err(unknown("column", name, fields)),
            (Some(_), Some(notes)) => notes.push(told_of(&ignored, &columns, fields)),
        }
        Ok(Self(columns))
    }

    fn fill(&self, row: &mut Row<'_>, record: &StringRecord) -> Result<(), String> {
        for (position, cell) in record.iter().enumerate() {
            match self.0.get(position) {
                Some(Column::Field(field)) => row.set(*field, cell),
                Some(Column::Ignored) => {}
                _ if cell.is_empty() => {}
                _ => {
                    let (number, cell) = (position + 1, excerpt(cell));
                    return Err(format!(
                        "cell {number} '{cell}': the header has no column for it"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What to say of columns that are left out, with what they may have been
/// meant to be.
fn told_of(ignored: &[&str], columns: &[Column], fields: &[Field]) -> String {
    let missing = || {
        let fields = fields.iter().enumerate();
        let missing = fields.filter(|(field, _)| !columns.contains(&Column::Field(*field)));
        missing.map(|(_, field)| field.name)
    };
    let told = ignored.iter().take(IGNORED_SHOWN_MAX).map(|name| {
        let meant = nearest(name, missing());
        let meant = meant.map(|meant| format!(" (did you mean {meant}?)"));
        format!("'{}'{}", excerpt(name), meant.unwrap_or_default())
    });
    let told = told.collect::<Vec<_>>().join(", ");
    let more = match ignored.len().saturating_sub(IGNORED_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = if ignored.len() == 1 { "" } else { "s" };
    format!("unknown column{plural} left out: {told}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_that_take_in_more_than_their_cell_are_found() {
        for right in [
            "key,weight\na,1\n",
            "\"key\",weight\r\n\"a,b\",\"1\"\r\n",
            "key\n\"a \"\"b\"\"\"\n\"\"\n\"over\ntwo lines\" \n",
            "key\na \"b\"\n5\"\n",
        ] {
            assert_eq!(stray_quote(right, b','), None, "{right}");
        }
        for (wrong, line, reason) in [
            ("key,weight\n\"a:1,5\n", 2, "a quote is never closed"),
            ("key\na\n\"b\nc\n", 3, "a quote is never closed"),
            (
                "key\n\"a\"x,6\n",
                2,
                "a quote is closed in the middle of a cell",
            ),
        ] {
            assert_eq!(stray_quote(wrong, b','), Some((line, reason)), "{wrong}");
        }
    }
}
