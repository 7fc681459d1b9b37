//! Numbers that are typed, each with its bounds.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use divvy::Invalid;

/// Reads a whole number inside of bounds, and names both where it is not.
pub(super) fn whole<T>(
    field: &'static str,
    bounds: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, Invalid> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        let rule = || {
            let (least, most) = (bounds.start(), bounds.end());
            format!("must be a whole number in {least}..={most}")
        };
        number.ok_or_else(|| Invalid::new(field, text, rule()))
    }
}

/// Reads a whole number that is not 0, however large.
pub(super) fn at_least_one<T>(
    field: &'static str,
) -> impl Fn(&str) -> Result<T, Invalid> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + From<u8> + 'static,
{
    move |text| {
        let number = text.parse::<T>().ok();
        let number = number.filter(|number| *number >= T::from(1));
        number.ok_or_else(|| Invalid::new(field, text, "must be a whole number of at least 1"))
    }
}

/// Reads a number; whether it is inside of bounds is the library's to say.
pub(super) fn number(
    field: &'static str,
) -> impl Fn(&str) -> Result<f64, Invalid> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok();
        number.ok_or_else(|| Invalid::new(field, text, "must be a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_bounds_is_refused_with_field_value_and_bounds() {
        let kills = whole("kills", 1..=10_u32);
        assert_eq!(kills("10"), Ok(10));
        for wrong in ["0", "11", "-1", "1.5", "x", "", "99999999999999999999"] {
            let told = kills(wrong).unwrap_err().to_string();
            let expected = format!("kills '{wrong}': must be a whole number in 1..=10");
            assert_eq!(told, expected);
        }
        assert!(number("weight")("heavy").is_err());
    }

    #[test]
    fn nothing_is_not_at_least_one() {
        let top = at_least_one::<u64>("top");
        assert_eq!(
            (top("1"), top(&u64::MAX.to_string())),
            (Ok(1), Ok(u64::MAX))
        );
        for wrong in ["0", "-1", "1.5", "x", "", "99999999999999999999"] {
            let told = top(wrong).unwrap_err().to_string();
            let expected = format!("top '{wrong}': must be a whole number of at least 1");
            assert_eq!(told, expected);
        }
    }
}
