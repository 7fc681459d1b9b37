//! Numbers as people and spreadsheets write them.

/// Largest whole number that is told apart from its neighbours where it is
/// written with a point or an exponent.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;
/// Digits between separators of thousands.
const DIGITS_PER_GROUP: usize = 3;

/// The weight of a partition, or the rule that it breaks: a whole number,
/// which may be written as `10.0` or `1e6`.
pub(super) fn whole(text: &str) -> Result<i64, String> {
    const RULE: &str = "must be a whole number in 0..=9223372036854775807";
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    if text.contains(',') && text.replace(',', ".").parse::<f64>().is_ok() {
        return Err(
            "has a comma: write a point, or for thousands nothing; weights of partitions are whole \
             numbers"
                .to_owned(),
        );
    }
    if let Some(grouped) = grouped(text) {
        return Err(ambiguous(text, &grouped));
    }
    match text.parse::<f64>() {
        Ok(number) if number.fract() != 0.0 && number.is_finite() => {
            Err("weights of partitions are whole numbers: multiply all of them".to_owned())
        }
        Ok(number) if (0.0..=EXACT_MAX).contains(&number) => Ok(number as i64),
        _ => Err(RULE.to_owned()),
    }
}

/// What to say of a number that may be meant in two ways.
pub(super) fn ambiguous(text: &str, grouped: &str) -> String {
    let plain = text.trim_end_matches('0').trim_end_matches('.');
    format!("could be {plain} or {grouped}: write it as one of them")
}

/// The number that `text` is where its points stand between thousands, as in
/// `1.000`.
pub(super) fn grouped(text: &str) -> Option<String> {
    let is_number = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = text.split('.');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let fits = (1..=DIGITS_PER_GROUP).contains(&first.len())
        && is_number(first)
        && !first.starts_with('0')
        && !rest.is_empty()
        && rest
            .iter()
            .all(|group| group.len() == DIGITS_PER_GROUP && is_number(group));
    fits.then(|| text.replace('.', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_have_a_point_or_an_exponent() {
        for (text, number) in [
            ("0", 0),
            ("10", 10),
            ("10.0", 10),
            ("1e6", 1_000_000),
            ("2.5e1", 25),
        ] {
            assert_eq!(whole(text), Ok(number), "{text}");
        }
        assert_eq!(whole("9223372036854775807"), Ok(i64::MAX));
    }

    #[test]
    fn what_is_no_whole_number_says_what_to_write() {
        for (text, rule) in [
            ("4.99", "whole numbers: multiply all of them"),
            ("4,99", "write a point"),
            ("1,000", "for thousands nothing"),
            ("1.000", "could be 1 or 1000"),
            ("12.500", "could be 12.5 or 12500"),
            ("1e300", "must be a whole number in"),
            ("heavy", "must be a whole number in"),
            ("inf", "must be a whole number in"),
            ("-0.5", "multiply"),
            ("", "must be a whole number in"),
        ] {
            let told = whole(text).expect_err(text);
            assert!(told.contains(rule), "{text}: {told}");
        }
    }

    #[test]
    fn only_groups_of_three_are_thousands() {
        for text in ["1.5", "0.250", "1000.000", "1.00", "a.000", "1", ".000"] {
            assert_eq!(grouped(text), None, "{text}");
        }
        assert_eq!(grouped("1.000.000").as_deref(), Some("1000000"));
    }
}
