//! The names below the bars: as many as fit, rotated where they must.

/// Pixels of a character at the size of the names' text, on average.
const CHARACTER_WIDTH: f64 = 6.6;
/// Pixels between two names that are rotated.
const ROTATED_PITCH_MIN: f64 = 17.0;
/// Longer names are shortened in the middle: both ends tell workers apart.
const CHARACTERS_MAX: usize = 28;

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
        let longest = longest(names.iter());
        let rotated = longest as f64 * CHARACTER_WIDTH + 10.0 > pitch;
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
        let length = longest(self.shown.iter().map(|(_, name)| name)) as f64;
        length * CHARACTER_WIDTH * std::f64::consts::FRAC_1_SQRT_2
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

fn longest<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0)
}

fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= CHARACTERS_MAX {
        return name.to_owned();
    }
    let kept = (CHARACTERS_MAX - 1) / 2;
    let head = name.chars().take(kept);
    let tail = name.chars().skip(count - kept);
    head.chain(['…']).chain(tail).collect()
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
        assert_eq!(short.chars().count(), 27);
        assert!(
            short.starts_with("a-very-long") && short.ends_with("-7"),
            "{short}"
        );
    }
}
