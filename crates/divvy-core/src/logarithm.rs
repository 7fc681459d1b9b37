//! A natural logarithm that gives the same bits on every platform.
//!
//! Weighted rendezvous compares `weight / -ln(u)`. The `ln` of a platform's C
//! library may differ from another's in the last bit, and then two members of
//! one cluster would disagree on an owner. This one uses only additions,
//! multiplications and divisions in a fixed order, which IEEE 754 defines
//! exactly, so it is part of the pinned placement function.

use std::f64::consts::LN_2;

/// `1 / (2k + 1)`, the coefficients of the series of atanh. With |s| under
/// 0.1716 the first term left out is below 2^-58 of the sum.
const ATANH: [f64; 12] = [
    1.0,
    1.0 / 3.0,
    1.0 / 5.0,
    1.0 / 7.0,
    1.0 / 9.0,
    1.0 / 11.0,
    1.0 / 13.0,
    1.0 / 15.0,
    1.0 / 17.0,
    1.0 / 19.0,
    1.0 / 21.0,
    1.0 / 23.0,
];

/// The natural logarithm of a positive, normal, finite number, with a relative
/// error below 2^-50.
///
/// The error bound is what makes weighted and unweighted rendezvous agree: two
/// different 32-bit hashes give logarithms that differ by at least 2^-37 in
/// relation to their size, so the order of hashes is the order of scores.
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0, "ln of {x}");
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    // Centre the mantissa on 1, so that for x near 1 nothing is added to the
    // series and no digits cancel.
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = ATANH
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| sum * square + coefficient);
    exponent as f64 * LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_platform_to_a_few_units_in_the_last_place() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let hash = crate::hash::mix64(state) as u32;
            let u = (f64::from(hash) + 0.5) / 4_294_967_296.0;
            let relative = (ln(u) - u.ln()).abs() / u.ln().abs();
            assert!(relative < 1e-15, "ln({u}) is off by {relative}");
        }
    }

    #[test]
    fn order_of_neighbouring_hashes_is_kept_at_both_ends() {
        let u = |hash: u32| (f64::from(hash) + 0.5) / 4_294_967_296.0;
        let starts = [0, 1 << 16, 3_037_000_499, 1 << 31, u32::MAX - 100_000];
        for start in starts {
            for hash in start..start + 100_000 {
                assert!(ln(u(hash)) < ln(u(hash + 1)), "at {hash}");
            }
        }
    }

    #[test]
    fn exact_points() {
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(2.0), LN_2);
        assert_eq!(ln(0.5), -LN_2);
    }
}
