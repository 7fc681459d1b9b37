//! Many names in few characters: `orders:0-3,7 mail:1`.

use std::collections::BTreeMap;

/// These partitions, those of one group together and numbers in a row as a
/// range.
pub(crate) fn condensed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut numbers: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut others = Vec::new();
    for name in names {
        match name.rsplit_once(':') {
            Some((group, number)) if is_number(number) => {
                let number = number.parse().unwrap_or_default();
                numbers.entry(group).or_default().push(number);
            }
            _ => others.push(name.to_owned()),
        }
    }
    let groups = numbers.into_iter().map(|(group, mut numbers)| {
        numbers.sort_unstable();
        format!("{group}:{}", ranges(&numbers))
    });
    let mut words: Vec<String> = groups.collect();
    words.extend(others);
    words.join(" ")
}

/// Whether it reads back as it is written.
fn is_number(text: &str) -> bool {
    text.parse()
        .is_ok_and(|number: u64| number.to_string() == text)
}

fn ranges(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if number == last.saturating_add(1) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let words = ranges.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range_and_other_names_stay() {
        let names = ["b:3", "a:1", "a:0", "a:2", "a:9", "tool:x", "a:03", "b:4"];
        assert_eq!(condensed(names), "a:0-2,9 b:3,4 tool:x a:03");
        assert_eq!(condensed([]), "");
        let most = format!("a:{}", u64::MAX);
        assert_eq!(condensed([most.as_str()]), most);
    }
}
