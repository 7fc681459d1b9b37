//! Counts as they are typed.

use std::net::Ipv4Addr;

use crate::failure::Failure;

/// What people write between groups of digits, other than the comma.
const SEPARATORS: [char; 5] = ['_', '.', '\'', '\u{2019}', ' '];
const DIGITS_PER_GROUP: usize = 3;

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

/// Whether a text looks like one number written in groups, such as `1,000`:
/// taken for names it would hide a mistake.
///
/// Commas separate names too, of which some should have a letter in them. With
/// the other separators only groups of three are meant as a number, and what
/// is an address is one.
pub(super) fn has_separators(text: &str) -> bool {
    let is_number = |group: &str| {
        let group = group.trim();
        !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit())
    };
    if text.contains(',') {
        return text.split(',').all(is_number);
    }
    if text.parse::<Ipv4Addr>().is_ok() {
        return false;
    }
    let Some(separator) = SEPARATORS.into_iter().find(|&c| text.contains(c)) else {
        return false;
    };
    let mut groups = text.split(separator);
    let first = groups.next().unwrap_or_default();
    is_number(first)
        && first.len() <= DIGITS_PER_GROUP
        && groups.all(|group| is_number(group) && group.len() == DIGITS_PER_GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_groups_is_told_from_names() {
        for number in [
            "1,000",
            "12, 000",
            "1,2,3",
            "1_000",
            "1.000",
            "1'000",
            "1 000",
            "10.000.000",
        ] {
            assert!(has_separators(number), "{number}");
        }
        for other in [
            "1000",
            "1",
            "",
            "a,b",
            "1,a",
            "1=2,2=3",
            "10.0.0.1",
            "192.168.100.200",
            "1.5",
            "1_a",
            "node_100",
            "1000_000",
            ",",
        ] {
            assert!(!has_separators(other), "{other}");
        }
    }

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
