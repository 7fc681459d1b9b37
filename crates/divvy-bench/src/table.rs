//! Tables on the terminal, and numbers for people.

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment};

/// Rows under headings, as text: the first columns to the left, the others to the right.
pub(crate) fn layout(
    headings: &[&str],
    left: usize,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(NOTHING);
    let align = |(column, text): (usize, String)| {
        let side = match column < left {
            true => CellAlignment::Left,
            false => CellAlignment::Right,
        };
        Cell::new(text).set_alignment(side)
    };
    let headings = headings.iter().map(|&heading| heading.to_owned());
    table.set_header(headings.enumerate().map(align));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(align));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// A time with its unit, to three digits.
pub(crate) fn time(nanoseconds: f64) -> String {
    scaled(nanoseconds, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A size with its unit, to three digits.
pub(crate) fn size(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB"])
}

/// A number to three digits or its whole part.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude >= 100.0 => format!("{value:.0}"),
        magnitude if magnitude >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 0.9995 * step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", number(value), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_number() {
        assert_eq!(time(12.0), "12.0 ns");
        assert_eq!(time(999_900.0), "1.00 ms");
        assert_eq!(time(3.5e10), "35.0 s");
        assert_eq!(size(1_234_567.0), "1.23 MB");
    }
}
