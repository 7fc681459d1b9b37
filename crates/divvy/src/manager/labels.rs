//! Labels that every line of a page of metrics has.

use divvy_core::Invalid;

use super::metrics::escaped;

/// Longest name of a label, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Longest value of a label, in bytes.
const VALUE_BYTES_MAX: usize = 1024;

/// Labels with the same value on every line, such as the cluster's name: those
/// who gather metrics of several tell them apart by it.
///
/// ```
/// use divvy::manager::MetricLabels;
///
/// let labels = MetricLabels::default().with("cluster", "orders")?;
/// assert!(labels.with("no-name", "x").is_err());
/// # Ok::<(), divvy::Invalid>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricLabels {
    text: String,
}

impl MetricLabels {
    /// These and one more.
    pub fn with(mut self, name: &str, value: &str) -> Result<Self, Invalid> {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_name = name.starts_with(is_letter)
            && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
            && name.len() <= NAME_BYTES_MAX;
        if !is_name {
            let rule =
                format!("must be 1..={NAME_BYTES_MAX} of a-z, A-Z, 0-9 and _, no digit first");
            return Err(Invalid::new("label", name, rule));
        }
        if value.len() > VALUE_BYTES_MAX {
            let rule = format!("must be at most {VALUE_BYTES_MAX}");
            return Err(Invalid::new("bytes of a label", value.len(), rule));
        }
        self.text += &format!(",{name}=\"{}\"", escaped(value));
        Ok(self)
    }

    /// The labels of a line about this worker, for metrics of an application's
    /// own on the same page.
    pub fn of(&self, worker: &str) -> String {
        format!("worker=\"{}\"{}", escaped(worker), self.text)
    }

    /// As they follow another label.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}
