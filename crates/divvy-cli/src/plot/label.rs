//! The names below the bars: as many as fit, rotated where they must.

use crate::terminal::printable;

/// Pixels between two names that are rotated.
const ROTATED_PITCH_MIN: f64 = 17.0;
/// Pixels of the longest name. Longer ones are shortened in the middle: both
/// ends tell workers apart.
const WIDTH_MAX: f64 = 185.0;
/// Stands for what is left out.
const ELLIPSIS: char = '…';

/// The names below the bars.
#[derive(Debug)]
pub(super) struct Labels {
    /// Every `every`-th name, with the number of its bar.
    shown: Vec<(usize, String)>,
    rotated: bool,
}

impl Labels {
    /// Labels for bars that are `pitch` pixels apart.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, pitch: f64) -> Self {
        let names: Vec<String> = names.map(shortened).collect();
        let rotated = widest(names.iter()) + 10.0 > pitch;
        let every = if rotated { every(pitch) } else { 1 };
        Self {
            shown: names.into_iter().enumerate().step_by(every).collect(),
            rotated,
        }
    }

    /// The names to draw, with the numbers of their bars.
    pub(super) fn shown(&self) -> impl Iterator<Item = (usize, &str)> {
        self.shown
            .iter()
            .map(|(index, name)| (*index, name.as_str()))
    }

    /// Whether they are drawn at an angle.
    pub(super) fn rotated(&self) -> bool {
        self.rotated
    }

    /// Pixels that they take below the axis.
    pub(super) fn height(&self) -> f64 {
        if self.rotated {
            36.0 + self.side()
        } else {
            40.0
        }
    }

    /// Pixels that the first may reach to the left of its bar's centre.
    pub(super) fn overhang(&self) -> f64 {
        if self.rotated {
            12.0 + self.side()
        } else {
            0.0
        }
    }

    /// Pixels that a rotated name takes, downwards and to the left alike.
    fn side(&self) -> f64 {
        widest(self.shown.iter().map(|(_, name)| name)) * std::f64::consts::FRAC_1_SQRT_2
    }
}

/// The smallest of 1, 2, 5, 10, 20, 50, ... that leaves enough room.
fn every(pitch: f64) -> usize {
    let mut magnitude = 1;
    loop {
        for factor in [1, 2, 5] {
            let every = factor * magnitude;
            if every as f64 * pitch >= ROTATED_PITCH_MIN {
                return every;
            }
        }
        magnitude *= 10;
    }
}

fn widest<'a>(names: impl Iterator<Item = &'a String>) -> f64 {
    names.map(|name| width(name)).fold(0.0, f64::max)
}

/// Pixels of a text at the size of the names, in a font that is rather wide.
fn width(text: &str) -> f64 {
    text.chars().map(character_width).sum()
}

fn character_width(c: char) -> f64 {
    match c {
        'm' | 'w' | 'M' | 'W' | '@' | '%' | ELLIPSIS => 11.0,
        'A'..='Z' | '&' | '<' | '>' | '+' | '=' | '~' | '#' => 8.5,
        '\0'..='\u{7f}' => 6.6,
        // Greek, Cyrillic and the like; beyond are scripts of full width.
        '\u{80}'..='\u{7ff}' => 8.5,
        _ => 14.0,
    }
}

/// A name that is no wider than it may be, and has nothing invisible in it.
fn shortened(name: &str) -> String {
    let name = printable(name);
    if width(&name) <= WIDTH_MAX {
        return name.into_owned();
    }
    let room = (WIDTH_MAX - character_width(ELLIPSIS)) / 2.0;
    let mut head: String = fitting(name.chars(), room).collect();
    let tail: Vec<char> = fitting(name.chars().rev(), room).collect();
    head.push(ELLIPSIS);
    head.extend(tail.into_iter().rev());
    head
}

/// The first characters, as many as there is room for.
fn fitting(characters: impl Iterator<Item = char>, mut room: f64) -> impl Iterator<Item = char> {
    characters.take_while(move |&c| {
        room -= character_width(c);
        room >= 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_overlap() {
        for count in [1, 3, 30, 92, 300, 2000, 100_000] {
            let names: Vec<String> = (0..count).map(|n| format!("worker-{n}")).collect();
            let pitch = 1600.0 / f64::from(count);
            let labels = Labels::new(names.iter().map(String::as_str), pitch);
            let shown: Vec<usize> = labels.shown().map(|(index, _)| index).collect();
            let needed = if labels.rotated() {
                ROTATED_PITCH_MIN
            } else {
                60.0
            };
            let distance = shown
                .windows(2)
                .map(|pair| (pair[1] - pair[0]) as f64 * pitch);
            assert!(distance.fold(f64::INFINITY, f64::min) >= needed, "{count}");
            assert_eq!(shown[0], 0);
        }
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        let name = format!("{}-7", "a-very-long-prefix".repeat(10));
        let short = shortened(&name);
        assert!((24..=28).contains(&short.chars().count()), "{short}");
        assert!(
            short.starts_with("a-very-long") && short.ends_with("-7"),
            "{short}"
        );
    }

    #[test]
    fn no_name_is_wider_than_the_room_that_is_left_for_it() {
        for name in [
            "W".repeat(28),
            "名".repeat(40),
            "worker-1 (gone)".to_owned(),
        ] {
            let labels = Labels::new([name.as_str()].into_iter(), 20.0);
            let (_, shown) = labels.shown().next().expect("a name");
            // What characters have at most in the fonts that are asked for.
            let widest = if name.is_ascii() { 11.0 } else { 13.2 };
            let wide = shown.chars().filter(|c| !"orke-1 (gn)…".contains(*c));
            let down = wide.count() as f64 * widest * std::f64::consts::FRAC_1_SQRT_2;
            assert!(
                labels.height() >= 14.0 + down,
                "{shown}: {}",
                labels.height()
            );
            assert!(labels.overhang() >= down, "{shown}");
        }
    }

    #[test]
    fn a_name_shows_what_is_invisible() {
        assert_eq!(shortened("a\u{202e}b"), "a\\u{202e}b");
    }
}
