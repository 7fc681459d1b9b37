//! The order in which people count: `worker-2` before `worker-10`.

use std::cmp::Ordering;

/// Compares by runs of digits, as numbers, and of everything else, as text.
/// Total: where only leading zeros differ, the plain order decides.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let (run, rest) = split_run(left);
        let (other_run, other_rest) = split_run(right);
        let order = match (as_number(run), as_number(other_run)) {
            (Some(number), Some(other)) => number
                .len()
                .cmp(&other.len())
                .then_with(|| number.cmp(other)),
            _ => run.cmp(other_run),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest, other_rest);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// The first run of digits or of everything else, and what follows.
fn split_run(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits);
    text.split_at(end.unwrap_or(text.len()))
}

/// The digits of a number without leading zeros, of which any count may come.
fn as_number(run: &str) -> Option<&str> {
    let is_number = run.starts_with(|c: char| c.is_ascii_digit());
    is_number.then(|| run.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers() {
        let mut names = [
            "worker-10",
            "worker-2",
            "b",
            "worker-1",
            "worker-2a",
            "10",
            "9",
            "worker-",
            "a:2:10",
            "a:2:9",
            "a:10:1",
        ];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(
            names,
            [
                "9",
                "10",
                "a:2:9",
                "a:2:10",
                "a:10:1",
                "b",
                "worker-",
                "worker-1",
                "worker-2",
                "worker-2a",
                "worker-10"
            ]
        );
    }

    #[test]
    fn numbers_of_any_length_compare_without_overflow() {
        let short = format!("w{}", "9".repeat(40));
        let long = format!("w1{}", "0".repeat(40));
        assert_eq!(compare(&short, &long), Ordering::Less);
    }

    #[test]
    fn only_one_text_is_equal_to_a_text() {
        let names = [
            "a1", "a01", "a001", "a1b", "a01b", "", "1", "01", "é2", "é10",
        ];
        for a in names {
            for b in names {
                assert_eq!(compare(a, b), compare(b, a).reverse(), "{a} {b}");
                assert_eq!(compare(a, b) == Ordering::Equal, a == b, "{a} {b}");
            }
        }
    }
}
