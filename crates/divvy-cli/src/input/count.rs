//! Counts as they are typed.

use crate::failure::Failure;

/// Reads a text that is meant as a count, or `None` where it is meant as
/// something else.
///
/// `-5`, `3.5` and `1e3` are meant as counts too: taken for names they would
/// hide a mistake.
pub(super) fn read(field: &'static str, text: &str, max: usize) -> Option<Result<usize, Failure>> {
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if !numeric || text.parse::<f64>().is_err() {
        return None;
    }
    let count = text.parse().ok().filter(|&count| count <= max);
    Some(
        count.ok_or_else(|| {
            Failure::usage(field, text, format!("must be a whole number in 0..={max}"))
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counts_and_everything_else_is_not() {
        for name in [
            "a", "worker-1", "10.0.0.1", "nan", "inf", "5=2", "1:2", "", "-a", "-",
        ] {
            assert!(read("count", name, 10).is_none(), "{name}");
        }
        for wrong in ["11", "-1", "3.5", "1e1", "99999999999999999999", ".5"] {
            assert!(matches!(read("count", wrong, 10), Some(Err(_))), "{wrong}");
        }
        assert!(matches!(read("count", "10", 10), Some(Ok(10))));
    }
}
