//! The ids that numbered workers go on with.

use std::collections::BTreeMap;

use divvy::Workers;

/// The prefix of added workers where no other is in use.
const PREFIX_DEFAULT: &str = "worker-";
/// Numbers beyond are taken for a part of the name: there may be none after
/// them.
const NUMBER_MAX: u64 = u64::MAX / 2;

/// A prefix, and the numbers that come next.
pub(super) struct Series<'a> {
    prefix: &'a str,
    first: u64,
    /// Digits of a number that is written with leading zeros.
    digits: usize,
}

impl<'a> Series<'a> {
    /// Of the prefix that most workers have, the smaller of equals.
    pub(super) fn of(workers: &'a Workers) -> Self {
        // By prefix: how many, the highest number and how it is written.
        let mut series: BTreeMap<&str, (usize, u64, &str)> = BTreeMap::new();
        for worker in workers {
            let Some((prefix, text, number)) = numbered(worker.id()) else {
                continue;
            };
            let entry = series.entry(prefix).or_insert((0, number, text));
            entry.0 += 1;
            if number >= entry.1 {
                (entry.1, entry.2) = (number, text);
            }
        }
        let most = series.values().map(|(count, ..)| *count).max();
        let found = series
            .into_iter()
            .find(|(_, (count, ..))| Some(*count) == most);
        match found {
            Some((prefix, (_, highest, text))) => Self {
                prefix,
                first: highest + 1,
                digits: if text.starts_with('0') { text.len() } else { 0 },
            },
            None => Self {
                prefix: PREFIX_DEFAULT,
                first: 0,
                digits: 0,
            },
        }
    }

    pub(super) fn id(&self, index: usize) -> String {
        let (number, digits) = (self.first + index as u64, self.digits);
        format!("{}{number:0digits$}", self.prefix)
    }
}

/// `<prefix><number>` taken apart, the number also as it is written. A port or
/// the end of an address is no number of a worker: the prefix ends in a letter,
/// `-` or `_`.
fn numbered(id: &str) -> Option<(&str, &str, u64)> {
    let prefix = id.trim_end_matches(|c: char| c.is_ascii_digit());
    let text = &id[prefix.len()..];
    let number = text.parse().ok().filter(|&number| number <= NUMBER_MAX)?;
    let names = prefix.contains(char::is_alphabetic)
        && prefix.ends_with(|c: char| c.is_alphabetic() || matches!(c, '-' | '_'));
    names.then_some((prefix, text, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(base: &[&str], count: usize) -> Vec<String> {
        let base = Workers::of(base.iter().copied()).expect("workers");
        let series = Series::of(&base);
        (0..count).map(|index| series.id(index)).collect()
    }

    #[test]
    fn numbers_go_on_after_the_highest() {
        assert_eq!(
            added(&["worker-0", "worker-2"], 2),
            ["worker-3", "worker-4"]
        );
        assert_eq!(added(&["worker-9", "worker-10"], 1), ["worker-11"]);
        assert_eq!(added(&[], 2), ["worker-0", "worker-1"]);
        assert_eq!(added(&["a", "b", "c-x", "d-+5"], 1), ["worker-0"]);
        assert_eq!(added(&["eu-west-7", "eu-west-3"], 1), ["eu-west-8"]);
    }

    #[test]
    fn a_prefix_needs_no_dash_but_a_name() {
        assert_eq!(added(&["n1", "n2", "n6"], 1), ["n7"]);
        assert_eq!(added(&["db_1"], 1), ["db_2"]);
        for other in ["10.0.0.1", "17", "host:9000", "-5"] {
            assert_eq!(added(&[other], 1), ["worker-0"], "{other}");
        }
    }

    #[test]
    fn the_prefix_that_most_have_goes_on_and_of_equals_the_smaller() {
        assert_eq!(added(&["a-9", "b-1", "b-2"], 1), ["b-3"]);
        assert_eq!(added(&["b-1", "a-9"], 1), ["a-10"]);
    }

    #[test]
    fn leading_zeros_are_kept() {
        assert_eq!(added(&["w-008", "w-009"], 2), ["w-010", "w-011"]);
        assert_eq!(added(&["w-099", "w-100"], 1), ["w-101"]);
        assert_eq!(added(&["node00", "node11"], 1), ["node12"]);
    }

    #[test]
    fn a_number_that_has_none_after_it_is_a_name() {
        let huge = format!("w-{}", u64::MAX);
        assert_eq!(
            added(&[&huge, "w-99999999999999999999999"], 1),
            ["worker-0"]
        );
        assert_eq!(added(&[&huge, "w-4"], 1), ["w-5"]);
    }
}
