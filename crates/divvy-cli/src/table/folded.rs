//! Tables on a terminal that is too narrow for them: long texts go on below
//! themselves.

use super::{GAP, Table, Tone};
use crate::terminal::{Terminal, printable};
use crate::wrap::fold;

impl Table {
    /// The table as a terminal has room for it. The texts of the columns `long`
    /// go on in further lines: first those of the first one, down to so many
    /// characters. Where that is not enough, the first of the columns `spare`
    /// are left out. Whoever is not at a terminal gets everything.
    pub(crate) fn folded(
        mut self,
        terminal: &Terminal,
        long: &[(&str, usize)],
        spare: &[&str],
    ) -> Self {
        if !terminal.interactive {
            return self;
        }
        for name in spare {
            if self.narrowed(long, terminal.width).1 {
                break;
            }
            self.drop_column(name);
        }
        let (widths, _) = self.narrowed(long, terminal.width);
        self.fold(&widths);
        self
    }

    /// How wide its columns are in this width, and whether that is enough.
    fn narrowed(&self, long: &[(&str, usize)], width: usize) -> (Vec<usize>, bool) {
        let columns = 0..self.headings.len();
        let mut widths: Vec<usize> = columns.map(|index| self.width_of(index)).collect();
        let all = widths.iter().map(|width| width + GAP).sum::<usize>();
        let mut excess = all.saturating_sub(GAP + width);
        for (name, least) in long {
            let mut headings = self.headings.iter();
            let Some(index) = headings.position(|(found, _)| found == name) else {
                continue;
            };
            // No word of a heading is broken.
            let words = name.split(' ').map(|word| word.chars().count());
            let least = words.max().unwrap_or(0).max(*least);
            let saved = excess.min(widths[index].saturating_sub(least));
            widths[index] -= saved;
            excess -= saved;
        }
        (widths, excess == 0)
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|(_, cells)| &cells[column]);
        let texts = cells.chain([&self.headings[column].0]);
        let widths = texts.map(|text| printable(text).chars().count());
        widths.max().unwrap_or(0)
    }

    /// Makes rows of several lines into as many rows.
    fn fold(&mut self, widths: &[usize]) {
        let headings = self.headings.iter().map(|(name, _)| name.clone());
        let heading = (Tone::Heading, headings.collect());
        let mut folded = Vec::new();
        for (tone, cells) in [heading].into_iter().chain(std::mem::take(&mut self.rows)) {
            let cells = cells.iter().zip(widths);
            let cells = cells.map(|(text, width)| fold(&printable(text), *width));
            let cells: Vec<Vec<String>> = cells.collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let cells = cells.iter().map(|lines| lines.get(line).cloned());
                folded.push((tone, cells.map(Option::unwrap_or_default).collect()));
            }
        }
        let (_, first) = folded.remove(0);
        for ((heading, _), text) in self.headings.iter_mut().zip::<Vec<String>>(first) {
            *heading = text;
        }
        self.rows = folded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Align;

    const FOUND: &str = "the server answers, 99 of 100 times, within 3 ms";

    fn on(interactive: bool, width: usize) -> String {
        let headings = ["check", "verdict", "of a core", "what was found"];
        let mut table = Table::new(headings.map(|name| (name.to_owned(), Align::Left)));
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        table.push(
            Tone::Plain,
            row(["latency (lease mode)", "good", "3 %", FOUND]),
        );
        table.push(Tone::LastHigh, row(["place", "bad", "0 %", "none\there"]));
        let terminal = Terminal {
            interactive,
            colour: false,
            width,
        };
        let table = table.folded(
            &terminal,
            &[("what was found", 16), ("check", 9)],
            &["of a core"],
        );
        let mut out = Vec::new();
        let written = table.write(&mut out, false);
        written.expect("a vector takes anything");
        String::from_utf8(out).expect("tables are text")
    }

    #[test]
    fn long_texts_go_on_below_themselves_one_column_before_the_next() {
        assert_eq!(
            on(true, 40),
            "check         verdict  what was found\n\
             latency       good     the server\n\
             (lease mode)           answers, 99 of\n                       100 times,\n                       within 3 ms\n\
             place         bad      none\\there\n"
        );
        assert!(on(true, 60).contains("latency (lease mode)  good"));
    }

    #[test]
    fn a_folded_table_is_no_wider_than_the_terminal_and_loses_no_word() {
        for width in 36..120 {
            let text = on(true, width);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}: {text}");
            for word in FOUND.split(' ') {
                assert!(text.contains(word), "{width}: {text}");
            }
        }
        let whole = on(true, 120);
        assert_eq!(whole.lines().count(), 3, "{whole}");
        assert_eq!(on(false, 40), whole, "what is piped is whole");
    }
}
