//! Bars of block characters in relation to a mean.

/// Characters of the longest bar where there is room.
const WIDTH: usize = 24;
/// Characters of the longest bar below which bars say nothing.
const WIDTH_MIN: usize = 8;
/// What the heading has behind the mean.
const MEAN: &str = "│ mean";
/// One to seven eighths of a character, from the left.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A scale that the bars of one table share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// What fills the width, in means; at least 1.
    full: f64,
    /// Characters of the longest bar.
    width: usize,
}

impl Scale {
    /// The scale on which the largest of `ratios` to the mean fills the width.
    pub(crate) fn of(ratios: impl IntoIterator<Item = f64>) -> Self {
        Self {
            full: ratios.into_iter().fold(1.0, f64::max),
            width: WIDTH,
        }
    }

    /// The same scale with bars of at most so many characters, heading and
    /// all; `None` where that is too few to see anything.
    pub(crate) fn within(self, columns: usize) -> Option<Self> {
        let width = columns.checked_sub(MEAN.chars().count())?.min(WIDTH);
        (width >= WIDTH_MIN).then_some(Self { width, ..self })
    }

    /// The bar for a ratio to the mean. The mean shows as a line behind it
    /// where the bar does not cover it.
    pub(crate) fn bar(self, ratio: f64) -> String {
        let eighths = (ratio / self.full * (self.width * 8) as f64).round() as usize;
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
        format!("{}{MEAN}", " ".repeat(self.mean()))
    }

    /// Characters before the mean.
    fn mean(self) -> usize {
        (self.width as f64 / self.full).round() as usize
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

    #[test]
    fn bars_are_narrower_where_there_is_less_room_and_gone_where_there_is_none() {
        let scale = Scale::of([0.5, 1.0, 2.0]);
        let narrow = scale.within(20).expect("room for bars");
        assert_eq!(narrow.bar(2.0), "█".repeat(14));
        assert!(narrow.heading().chars().count() <= 20);
        assert_eq!(scale.within(200).map(|wide| wide.width), Some(WIDTH));
        assert!(scale.within(13).is_none());
        assert!(scale.within(0).is_none());
    }
}
