//! One entry of a file, whatever the file's form.

use std::fmt;
use std::str::FromStr;

use divvy_core::Invalid;

use super::number;

/// A field that an entry may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// What it is called.
    pub name: &'static str,
    /// Whether its value is a name, which has to be text: a number could be
    /// written in several ways.
    pub is_name: bool,
    /// What others call it, which the header of a CSV file may do too.
    pub aliases: &'static [&'static str],
}

impl Field {
    /// A field whose value is a name.
    pub const fn of_name(name: &'static str) -> Self {
        Self {
            name,
            is_name: true,
            aliases: &[],
        }
    }

    /// A field whose value is a number or a truth value.
    pub const fn of_value(name: &'static str) -> Self {
        Self {
            name,
            is_name: false,
            aliases: &[],
        }
    }

    /// The same field, which others call by these names.
    pub const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this line of a CSV file, from 1.
    Line(u64),
    /// As this entry of a list, from 1.
    Entry(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Entry(number) => write!(f, "entry {number}"),
        }
    }
}

/// The cells of an entry, one per known field.
#[derive(Debug)]
pub struct Row<'a> {
    fields: &'a [Field],
    cells: Vec<Option<String>>,
    place: Place,
    /// Whether cells are separated by `;`, as spreadsheets do where the comma
    /// is the decimal sign and the point may stand between thousands.
    pub(super) has_semicolons: bool,
}

impl<'a> Row<'a> {
    /// An entry with no cells yet.
    pub(super) fn new(fields: &'a [Field], place: Place) -> Self {
        Self {
            fields,
            cells: vec![None; fields.len()],
            place,
            has_semicolons: false,
        }
    }

    /// The fields that it may have.
    pub(super) fn fields(&self) -> &'a [Field] {
        self.fields
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Sets a cell. White space around it does not count, and nothing but
    /// white space is no value.
    pub(super) fn set(&mut self, field: usize, text: &str) {
        let text = text.trim();
        self.cells[field] = (!text.is_empty()).then(|| text.to_owned());
    }

    /// The value of a field, where it has one.
    pub fn text(&self, field: usize) -> Option<&str> {
        self.cells[field].as_deref()
    }

    /// The value of a field that needs one.
    pub fn required(&self, field: usize) -> Result<&str, String> {
        self.text(field)
            .ok_or_else(|| self.breaks(field, "must not be empty"))
    }

    /// The value of a field as another type, where it has one.
    pub fn parsed<T: FromStr>(
        &self,
        field: usize,
        rule: &'static str,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(field) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(self.breaks(field, rule)),
        }
    }

    /// The value of a field as a whole number, where it has one.
    pub fn whole(&self, field: usize) -> Result<Option<i64>, String> {
        let Some(text) = self.text(field) else {
            return Ok(None);
        };
        let number = number::whole(text).map_err(|rule| self.breaks(field, &rule))?;
        Ok(Some(number))
    }

    /// The value of a field as a number, where it has one.
    pub fn decimal(&self, field: usize) -> Result<Option<f64>, String> {
        let text = self.text(field).filter(|_| self.has_semicolons);
        if let Some((text, grouped)) = text.and_then(|text| Some((text, number::grouped(text)?))) {
            return Err(self.breaks(field, &number::ambiguous(text, &grouped)));
        }
        self.parsed(field, "must be a number such as 1.5")
    }

    /// What to say of a field whose value breaks a rule.
    pub fn breaks(&self, field: usize, rule: &str) -> String {
        let value = self.text(field).unwrap_or_default();
        Invalid::new(self.fields[field].name, value, rule).to_string()
    }
}

/// The number of the field with this name. Case does not matter: spreadsheets
/// like capitals.
pub(super) fn position(name: &str, fields: &[Field]) -> Option<usize> {
    fields
        .iter()
        .position(|known| known.name.eq_ignore_ascii_case(name))
}

/// The number of the field that others call by this name.
pub(super) fn position_by_alias(name: &str, fields: &[Field]) -> Option<usize> {
    let is_alias = |field: &Field| {
        let mut aliases = field.aliases.iter();
        aliases.any(|alias| alias.eq_ignore_ascii_case(name))
    };
    fields.iter().position(is_alias)
}

/// The number of the field with this name, or what to say of one that is not
/// known.
pub(super) fn field_named(
    kind: &'static str,
    name: &str,
    fields: &[Field],
) -> Result<usize, String> {
    position(name, fields).ok_or_else(|| unknown(kind, name, fields))
}

/// What to say of a field that is not known.
pub(super) fn unknown(kind: &'static str, name: &str, fields: &[Field]) -> String {
    let rule = format!("is unknown, known are {}", names(fields, ", "));
    Invalid::new(kind, name, rule).to_string()
}

/// The names of all fields, as a message lists them.
pub(super) fn names(fields: &[Field], separator: &str) -> String {
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    names.join(separator)
}
