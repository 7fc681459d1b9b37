//! One entry of a file, whatever the file's form.

use std::str::FromStr;

use divvy_core::Invalid;

/// A field that an entry may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// What it is called.
    pub name: &'static str,
    /// Whether its value is a name, which has to be text: a number could be
    /// written in several ways.
    pub is_name: bool,
}

impl Field {
    /// A field whose value is a name.
    pub const fn of_name(name: &'static str) -> Self {
        let is_name = true;
        Self { name, is_name }
    }

    /// A field whose value is a number or a truth value.
    pub const fn of_value(name: &'static str) -> Self {
        let is_name = false;
        Self { name, is_name }
    }
}

/// The cells of an entry, one per known field.
#[derive(Debug)]
pub struct Row<'a> {
    fields: &'a [Field],
    cells: Vec<Option<String>>,
}

impl<'a> Row<'a> {
    /// An entry with no cells yet.
    pub(super) fn new(fields: &'a [Field]) -> Self {
        Self {
            fields,
            cells: vec![None; fields.len()],
        }
    }

    /// The fields that it may have.
    pub(super) fn fields(&self) -> &'a [Field] {
        self.fields
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

    /// What to say of a field whose value breaks a rule.
    pub fn breaks(&self, field: usize, rule: &str) -> String {
        let value = self.text(field).unwrap_or_default();
        Invalid::new(self.fields[field].name, value, rule).to_string()
    }
}

/// The number of the field with this name, or what to say of one that is not
/// known. Case does not matter: spreadsheets like capitals.
pub(super) fn field_named(
    kind: &'static str,
    name: &str,
    fields: &[Field],
) -> Result<usize, String> {
    let found = fields
        .iter()
        .position(|known| known.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let rule = format!("is unknown, known are {}", names(fields));
        Invalid::new(kind, name, rule).to_string()
    })
}

/// The names of all fields, as a message lists them.
pub(super) fn names(fields: &[Field]) -> String {
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    names.join(", ")
}
