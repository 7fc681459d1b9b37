//! An axis with round numbers.

/// About how many intervals an axis has.
const INTERVALS: f64 = 5.0;
/// Pixels of a digit at the size of the ticks' text.
const DIGIT_WIDTH: f64 = 7.0;

/// An axis from 0 to a round number that nothing exceeds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    step: f64,
    steps: u32,
}

impl Axis {
    /// The axis for values up to `highest`. Loads are whole, so steps are too.
    pub(super) fn new(highest: f64) -> Self {
        let raw = (highest / INTERVALS).max(1.0);
        let magnitude = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * magnitude)
            .find(|&step| step >= raw * 0.999_999)
            .unwrap_or(magnitude * 10.0);
        Self {
            step,
            steps: (highest / step).ceil().max(1.0) as u32,
        }
    }

    /// The value at the top.
    pub(super) fn top(self) -> f64 {
        self.step * f64::from(self.steps)
    }

    /// The values that have a line, from 0 to the top.
    pub(super) fn ticks(self) -> impl Iterator<Item = f64> {
        (0..=self.steps).map(move |number| f64::from(number) * self.step)
    }

    /// A tick as text.
    pub(super) fn text(self, tick: f64) -> String {
        compact(tick)
    }

    /// Pixels that the widest tick's text takes.
    pub(super) fn label_width(self) -> f64 {
        let longest = self
            .ticks()
            .map(|tick| self.text(tick).chars().count())
            .max();
        longest.unwrap_or(1) as f64 * DIGIT_WIDTH
    }
}

/// Most decimals of a number that is to be told from others.
const DECIMALS_MAX: usize = 12;

/// A number in few characters: `12.8`, `683`, `20,000`, `1.5M`.
pub(super) fn compact(value: f64) -> String {
    rounded(value, decimals(value))
}

/// The same with as many decimals as tell it from those of `others` that are
/// not equal to it.
pub(super) fn distinct(value: f64, others: impl Iterator<Item = f64> + Clone) -> String {
    // What is farther away is told apart where the nearest are.
    let below = others.clone().filter(|&other| other < value);
    let above = others.filter(|&other| other > value);
    let nearest = [below.reduce(f64::max), above.reduce(f64::min)];
    let told = |decimals: &usize| {
        let text = rounded(value, *decimals);
        let mut nearest = nearest.iter().flatten();
        nearest.all(|&other| rounded(other, *decimals) != text)
    };
    let enough = (decimals(value)..DECIMALS_MAX).find(told);
    rounded(value, enough.unwrap_or(DECIMALS_MAX))
}

/// The decimals that a number of this size has.
fn decimals(value: f64) -> usize {
    match value {
        1e6.. => 2,
        1e3..1e6 => 0,
        _ => 1,
    }
}

/// A number with at most so many decimals of its unit.
fn rounded(value: f64, decimals: usize) -> String {
    const SUFFIXES: [(f64, &str); 5] = [
        (1e18, "E"),
        (1e15, "P"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
    ];
    for (unit, suffix) in SUFFIXES {
        if value >= unit {
            return trimmed(value / unit, decimals) + suffix;
        }
    }
    let text = trimmed(value, decimals);
    let whole = text.find('.').unwrap_or(text.len());
    match whole.checked_sub(3) {
        Some(thousands) if thousands > 0 => {
            format!("{},{}", &text[..thousands], &text[thousands..])
        }
        _ => text,
    }
}

/// At most so many decimals, without zeros at the end.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_exceeds_an_axis_of_few_round_steps() {
        for highest in [
            0.0, 0.3, 1.0, 2.0, 5.0, 6.0, 17.0, 64.0, 99.0, 100.0, 101.0, 683.0, 12345.0, 1e6,
            9.3e18,
        ] {
            let axis = Axis::new(highest);
            assert!(axis.top() >= highest, "{highest}: {axis:?}");
            let intervals = axis.ticks().count() - 1;
            assert!((1..=6).contains(&intervals), "{highest}: {axis:?}");
            let digits = format!("{:e}", axis.step);
            assert!(
                ["1e", "2e", "5e"].iter().any(|d| digits.starts_with(d)),
                "{digits}"
            );
        }
    }

    #[test]
    fn numbers_are_short() {
        let shown = [
            0.0, 12.8, 12.84, 683.0, 1000.0, 20_000.0, 999_999.4, 1.5e6, 2e9, 9.22e18,
        ];
        assert_eq!(
            shown.map(compact),
            [
                "0", "12.8", "12.8", "683", "1,000", "20,000", "999,999", "1.5M", "2G", "9.22E"
            ]
        );
    }
    #[test]
    fn a_mean_has_the_digits_that_tell_it_from_the_loads() {
        let cases: [(f64, &[f64], &str); 8] = [
            (6.98, &[6.0, 7.0, 7.0, 8.0], "6.98"),
            (7.0, &[6.0, 7.0, 8.0], "7"),
            (12.84, &[12.0, 13.0], "12.8"),
            (6.999_99, &[7.0], "6.99999"),
            (20_000.4, &[20_000.0, 20_001.0], "20,000.4"),
            (20_000.4, &[19_000.0, 21_000.0], "20,000"),
            (6_999_999.5, &[7_000_000.0], "6.9999995M"),
            (0.0, &[], "0"),
        ];
        for (mean, loads, expected) in cases {
            let shown = distinct(mean, loads.iter().copied());
            assert_eq!(shown, expected, "{loads:?}");
        }
    }
}
