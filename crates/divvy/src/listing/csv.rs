//! CSV as people and spreadsheets write it: a header, `,` or `;`, blank lines.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::Fault;
use super::excerpt;
use super::row::{Field, Row, field_named, names};

/// Most cells of a line: what the widest sheet of a spreadsheet has.
const CELLS_MAX: usize = 16_384;

/// Reads the rows below the header and hands each to `keep`.
pub(super) fn read(
    text: &str,
    fields: &[Field],
    mut keep: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Fault> {
    let separator = separator(text);
    check_width(text, separator)?;
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    let mut columns: Option<Columns> = None;
    while reader
        .read_record(&mut record)
        .map_err(|error| syntax(&error))?
    {
        let line = line_of(&record, text);
        let at_line = |reason| Fault {
            place: Some(format!("line {line}")),
            reason,
        };
        if record.iter().all(str::is_empty) {
            continue;
        }
        match &columns {
            None => columns = Some(Columns::of(&record, fields).map_err(at_line)?),
            Some(columns) => {
                let row = columns.row(&record, fields).map_err(at_line)?;
                keep(&row).map_err(at_line)?;
            }
        }
    }
    if columns.is_none() {
        let reason = format!("is empty, a header with {} is needed", names(fields));
        return Err(Fault {
            place: None,
            reason,
        });
    }
    Ok(())
}

/// `;` where the header has it and no comma, as spreadsheets write it where
/// the comma is the decimal sign.
fn separator(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.trim().is_empty());
    match header {
        Some(header) if header.contains(';') && !header.contains(',') => b';',
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

/// By position in a row, the field that stands there; `None` for a column
/// without a name.
struct Columns(Vec<Option<usize>>);

impl Columns {
    fn of(header: &StringRecord, fields: &[Field]) -> Result<Self, String> {
        let mut columns = Vec::with_capacity(header.len());
        for name in header {
            let field = match name {
                "" => None,
                name => Some(field_named("column", name, fields)?),
            };
            if field.is_some() && columns.contains(&field) {
                let name = excerpt(name);
                return Err(format!("column '{name}' stands twice in the header"));
            }
            columns.push(field);
        }
        if !columns.contains(&Some(0)) {
            return Err(format!("the header has no column '{}'", fields[0].name));
        }
        Ok(Self(columns))
    }

    fn row<'a>(&self, record: &StringRecord, fields: &'a [Field]) -> Result<Row<'a>, String> {
        let mut row = Row::new(fields);
        for (position, cell) in record.iter().enumerate() {
            match self.0.get(position) {
                Some(Some(field)) => row.set(*field, cell),
                _ if cell.is_empty() => {}
                _ => {
                    let (number, cell) = (position + 1, excerpt(cell));
                    return Err(format!(
                        "cell {number} '{cell}': the header has no column for it"
                    ));
                }
            }
        }
        Ok(row)
    }
}
