//! Names that were meant: near to what was written.

/// Most changes of one character that a slip takes.
const SLIPS_MAX: usize = 2;
/// Longest name that is compared: a slip in a longer one is not worth the time.
const CHARS_MAX: usize = 64;

/// The name of `known` that `name` was probably meant to be, the first of
/// equals.
///
/// ```
/// use divvy::listing::nearest;
///
/// assert_eq!(nearest("wieght", ["id", "weight"]), Some("weight"));
/// assert_eq!(nearest("region", ["id", "weight"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let written = lower(name);
    if written.is_empty() || written.len() > CHARS_MAX {
        return None;
    }
    // Short names are near to everything.
    let slips_max = SLIPS_MAX.min(written.len().div_ceil(3));
    let near = known.into_iter().filter_map(|candidate| {
        let chars = lower(candidate);
        let far = chars.len().abs_diff(written.len()) > slips_max;
        let slips = (!far).then(|| slips(&written, &chars))?;
        (slips <= slips_max).then_some((slips, candidate))
    });
    near.min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// How many characters have to be changed, added or left out.
fn slips(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let changed = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_name() {
        let ids = ["node01", "node02", "edge-1"];
        assert_eq!(nearest("nod01", ids), Some("node01"));
        assert_eq!(nearest("Node02", ids), Some("node02"));
        assert_eq!(nearest("edge_1", ids), Some("edge-1"));
        assert_eq!(nearest("gateway", ids), None);
        assert_eq!(nearest("", ids), None);
        assert_eq!(nearest("a", ["b"]), Some("b"));
        assert_eq!(nearest(&"x".repeat(1000), ids), None);
    }
}
