//! Bars of block characters in relation to a mean.

/// Characters of the longest bar.
const WIDTH: usize = 24;
/// One to seven eighths of a character, from the left.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A scale that the bars of one table share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// What fills the width, in means; at least 1.
    full: f64,
}

impl Scale {
    /// The scale on which the largest of `ratios` to the mean fills the width.
    pub(crate) fn of(ratios: impl IntoIterator<Item = f64>) -> Self {
        Self {
            full: ratios.into_iter().fold(1.0, f64::max),
        }
    }

    /// The bar for a ratio to the mean. The mean shows as a line behind it
    /// where the bar does not cover it.
    pub(crate) fn bar(self, ratio: f64) -> String {
        let eighths = (ratio / self.full * (WIDTH * 8) as f64).round() as usize;
        // Something is never drawn as nothing.
        let eighths = eighths.max(usize::from(ratio > 0.0));
        let mut bar = "█".repeat(eighths / 8);
        bar.extend((eighths % 8).checked_sub(1).map(|part| EIGHTHS[part]));
        let length = bar.chars().count();
        if length <= self.mean() {
            bar.extend(std::iter::repeat_n(' ', self.mean() - length));
            bar.push('│');
        }
        bar
    }

    /// A heading that says what the line is.
    pub(crate) fn heading(self) -> String {
        format!("{}│ mean", " ".repeat(self.mean()))
    }

    /// Characters before the mean.
    fn mean(self) -> usize {
        (WIDTH as f64 / self.full).round() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_ratio_and_show_the_mean() {
        let scale = Scale::of([0.5, 1.0, 2.0]);
        assert_eq!(scale.bar(0.0), "            │");
        assert_eq!(scale.bar(0.5), "██████      │");
        assert_eq!(scale.bar(1.0), "████████████│");
        assert_eq!(scale.bar(2.0), "█".repeat(24));
        assert_eq!(scale.bar(1e-9), "▏           │");
        assert_eq!(scale.heading(), "            │ mean");
    }

    #[test]
    fn no_loads_and_extreme_loads_have_bars_too() {
        assert_eq!(Scale::of([]).bar(0.0).chars().count(), 25);
        assert_eq!(Scale::of([1e18]).bar(1e18).chars().count(), 24);
    }
}
