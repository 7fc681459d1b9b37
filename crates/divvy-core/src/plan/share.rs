//! Exact shares of a whole: how many partitions each of several takers gets, by weight and under caps.
//!
//! A share is a pair of neighbouring integers, the exact share rounded down and up; an assignment is balanced
//! when every count is one of its two. Who gets the larger one is open ([`seats`]): that freedom is what the
//! fewest moves are found in. Weights become integers first, so that equal weights have equal shares and 0.1,
//! 0.2, 0.3 have shares 1:2:3, which floats would miss.

use std::cmp::Reverse;

use super::problem::Slot;

/// The two counts a taker may have. They differ by at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) lo: u64,
    pub(super) hi: u64,
    /// What the exact share has over `lo`; comparable between the shares of one whole.
    remainder: u128,
}

/// Weights as integers of up to fourteen decimal digits, so that also the smallest weight beside the largest is more than
/// one, and a hundred thousand of them can be added; 0 for a slot that takes nothing.
pub(super) fn units(slots: &[Slot]) -> Vec<u64> {
    let largest = slots
        .iter()
        .filter(|slot| slot.is_eligible())
        .fold(0.0, |largest: f64, slot| largest.max(slot.weight));
    let mut scale = 1.0;
    while largest * scale < 1e13 {
        scale *= 10.0;
    }
    let unit = |slot: &Slot| match slot.is_eligible() {
        true => (slot.weight * scale).round().max(1.0) as u64,
        false => 0,
    };
    slots.iter().map(unit).collect()
}

/// Divides `total` in proportion to `units`, nobody above its cap; what a capped taker leaves is spread over
/// the others.
///
/// The caps together must reach `total`.
pub(super) fn shares(total: u64, units: &[u64], caps: &[u64]) -> Vec<Share> {
    let mut shares = vec![
        Share {
            lo: 0,
            hi: 0,
            remainder: 0
        };
        units.len()
    ];
    let mut left = u128::from(total);
    let mut left_units: u128 = units.iter().map(|&unit| u128::from(unit)).sum();
    let mut open: Vec<usize> = (0..units.len()).filter(|&i| units[i] > 0).collect();
    let is_capped = |i: usize, left: u128, left_units: u128| {
        u128::from(caps[i]) * left_units < left * u128::from(units[i])
    };
    if open.iter().any(|&i| is_capped(i, left, left_units)) {
        // Lowest cap per unit first: the level of the others only rises, so one pass finds all that are capped.
        open.sort_by(|&a, &b| {
            let (a_level, b_level) = (
                u128::from(caps[a]) * u128::from(units[b]),
                u128::from(caps[b]) * u128::from(units[a]),
            );
            a_level.cmp(&b_level).then(a.cmp(&b))
        });
        let mut capped = 0;
        while capped < open.len() && is_capped(open[capped], left, left_units) {
            let taker = open[capped];
            shares[taker].lo = caps[taker];
            shares[taker].hi = caps[taker];
            left -= u128::from(caps[taker]);
            left_units -= u128::from(units[taker]);
            capped += 1;
        }
        open.drain(..capped);
    }
    for taker in open {
        let exact = left * u128::from(units[taker]);
        let lo = (exact / left_units) as u64;
        let remainder = exact % left_units;
        shares[taker] = Share {
            lo,
            hi: lo + u64::from(remainder > 0),
            remainder,
        };
    }
    shares
}

/// Rounds shares so that they add up to `total`: the larger number first to whom it gains most, then to the
/// largest remainder, then to the smaller index.
pub(super) fn seats(total: u64, shares: &[Share], gain: impl Fn(usize) -> i64) -> Vec<u64> {
    let mut seats: Vec<u64> = shares.iter().map(|share| share.lo).collect();
    let mut open: Vec<usize> = (0..shares.len())
        .filter(|&i| shares[i].hi > shares[i].lo)
        .collect();
    open.sort_by_key(|&i| (Reverse(gain(i)), Reverse(shares[i].remainder), i));
    let rest = total - seats.iter().sum::<u64>();
    assert!(
        rest as usize <= open.len(),
        "remainders below one add up to fewer seats than takers"
    );
    for &taker in &open[..rest as usize] {
        seats[taker] += 1;
    }
    seats
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lo_hi(total: u64, units: &[u64], caps: &[u64]) -> Vec<(u64, u64)> {
        let shares = shares(total, units, caps);
        shares.iter().map(|share| (share.lo, share.hi)).collect()
    }

    #[test]
    fn decimal_weights_have_exact_shares() {
        let slots = [0.1, 0.2, 0.3].map(Slot::new);
        let units = units(&slots);
        assert_eq!(lo_hi(6, &units, &[9, 9, 9]), [(1, 1), (2, 2), (3, 3)]);
        assert_eq!(lo_hi(7, &units, &[9, 9, 9]), [(1, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn weights_of_any_size_become_units_in_proportion() {
        for factor in [1e-9, 1e-3, 1.0, 1e8] {
            let slots = [2.0, 6.0, 0.0].map(|weight| Slot::new(weight * factor));
            let units = units(&slots);
            assert_eq!(units[0] * 3, units[1], "{factor}");
            assert_eq!(units[2], 0);
        }
    }

    #[test]
    fn what_a_capped_taker_leaves_goes_to_the_others() {
        assert_eq!(lo_hi(10, &[1, 1, 1], &[1, 9, 9]), [(1, 1), (4, 5), (4, 5)]);
        assert_eq!(lo_hi(10, &[1, 1, 1], &[1, 4, 9]), [(1, 1), (4, 4), (5, 5)]);
        assert_eq!(lo_hi(4, &[5, 1, 1], &[1, 2, 2]), [(1, 1), (1, 2), (1, 2)]);
    }

    #[test]
    fn seats_add_up_and_follow_gain_then_remainder_then_index() {
        let shares = shares(7, &[1, 2, 2], &[9, 9, 9]);
        assert_eq!(seats(7, &shares, |_| 0), [1, 3, 3]);
        assert_eq!(seats(7, &shares, |taker| i64::from(taker == 0)), [2, 3, 2]);
    }
}
