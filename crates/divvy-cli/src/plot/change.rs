//! The load of each worker before and after a change, side by side.

use super::axis::distinct;
use super::frame::{Content, Frame, Key, SHARE, Stroke};
use super::load::{is_weighted, mean};
use super::{BEFORE, BELOW, JOINS, LEAVES, MUTED};
use crate::holding::Holding;
use crate::preview::{Edges, Pair, Preview};

/// Distance of workers where there is room for two bars each.
const PITCH: f64 = 36.0;
/// Edges of the band closer to the mean than this have no text.
const NOTE_DISTANCE_MIN: f64 = 13.0;
/// An edge of the band.
const BAND: Stroke = Stroke {
    class: "band",
    colour: MUTED,
    width: 1.0,
    dashes: "2 3",
};

/// The picture of a plan.
pub(crate) fn svg(preview: &Preview<'_>) -> String {
    let picture = Picture::new(preview);
    let frame = &picture.frame;
    frame.draw(&picture.keys(), |out| {
        for (index, pair) in picture.pairs.iter().enumerate() {
            picture.draw_pair(out, index, pair);
        }
        picture.draw_band(out);
        frame.mean(out, picture.mean);
    })
}

struct Picture<'a> {
    pairs: Vec<Pair<'a>>,
    /// Of the loads after.
    mean: f64,
    weighted: bool,
    edges: Option<Edges>,
    frame: Frame,
}

impl<'a> Picture<'a> {
    fn new(preview: &Preview<'a>) -> Self {
        let pairs = preview.workers();
        let after: Vec<Holding<'_>> = pairs.iter().filter_map(|pair| pair.after).collect();
        let mean = mean(&after);
        let weighted = is_weighted(&after, mean);
        // A wide band would leave the loads at the bottom.
        let edges = preview.edges();
        let edge = edges.map_or(1.0, |edges| edges.high).min(2.0);
        let before = pairs.iter().filter_map(|pair| pair.before);
        let highest = before
            .map(|holding| holding.load as f64)
            .chain(after.iter().map(|holding| holding.load as f64))
            .chain(after.iter().map(|holding| holding.fair * edge))
            .fold(mean, f64::max);
        let frame = Frame::new(Content {
            title: "Load per worker, before and after",
            subtitle: subtitle(preview),
            unit: if preview.is_loaded() {
                "load"
            } else {
                "partitions"
            },
            names: pairs.iter().map(name).collect(),
            pitch: PITCH,
            highest,
            mean: distinct(mean, after.iter().map(|holding| holding.load as f64)),
        });
        Self {
            pairs,
            mean,
            weighted,
            edges,
            frame,
        }
    }

    /// Only what there is to see.
    fn keys(&self) -> Vec<Key> {
        let any = |is: fn(&Pair<'_>) -> bool| self.pairs.iter().any(is);
        let mut keys = vec![Key::Bar(BEFORE, "before")];
        if any(|pair| pair.after.is_none()) {
            keys.push(Key::Bar(LEAVES, "before, leaves"));
        }
        keys.push(Key::Bar(BELOW, "after"));
        if any(|pair| pair.before.is_none()) {
            keys.push(Key::Bar(JOINS, "after, new"));
        }
        if self.weighted {
            keys.push(Key::Line(&SHARE, "share by weight"));
            keys.extend(self.edges.map(|_| Key::Line(&BAND, "band")));
        }
        keys
    }

    fn draw_pair(&self, out: &mut String, index: usize, pair: &Pair<'_>) {
        let frame = &self.frame;
        let width = frame.bar_width() / 2.0;
        // Who has one bar has it in the middle.
        let side = match (&pair.before, &pair.after) {
            (Some(_), Some(_)) => width,
            _ => width / 2.0,
        };
        let left = frame.centre(index) - side;
        let right = frame.centre(index) + side - width;
        if let Some(before) = pair.before {
            let colour = if pair.after.is_some() { BEFORE } else { LEAVES };
            let title = format!("{} before", pair.id);
            let at = (left, width);
            frame.bar(out, at, before.load, ("before", colour), &title);
        }
        if let Some(after) = pair.after {
            let colour = if pair.before.is_some() { BELOW } else { JOINS };
            let title = format!("{} after", pair.id);
            let at = (right, width);
            frame.bar(out, at, after.load, ("after", colour), &title);
        }
        if self.weighted {
            self.draw_share(out, index, pair);
        }
    }

    /// Draws what a worker should have by its weight, and the band around it.
    fn draw_share(&self, out: &mut String, index: usize, pair: &Pair<'_>) {
        let Some(after) = pair.after.filter(|after| after.worker.is_eligible()) else {
            return;
        };
        let width = self.frame.bar_width();
        let at = (self.frame.centre(index) - width / 2.0, width);
        self.frame.mark(out, at, after.fair, &SHARE);
        for edge in self.edges.into_iter().flat_map(Edges::both) {
            if self.frame.holds(edge * after.fair) {
                self.frame.mark(out, at, edge * after.fair, &BAND);
            }
        }
    }

    /// Draws the edges of the band across, where all workers have the same.
    fn draw_band(&self, out: &mut String) {
        if self.weighted {
            return;
        }
        for edge in self.edges.into_iter().flat_map(Edges::both) {
            let value = edge * self.mean;
            if !self.frame.holds(value) {
                continue;
            }
            self.frame.level(out, value, &BAND);
            if self.frame.distance(value, self.mean) >= NOTE_DISTANCE_MIN {
                self.frame.note(out, value, &format!("band {edge:.2}"));
            }
        }
    }
}

fn subtitle(preview: &Preview<'_>) -> String {
    let (before, after) = (preview.before.balance(), preview.after().balance());
    let heading = preview.heading().replacen(": ", " · ", 1);
    format!(
        "{} · {} moves · max/mean {:.3} → {:.3}",
        heading.replace("->", "→"),
        preview.certificate().moves,
        before.max_over_mean,
        after.max_over_mean
    )
}

fn name(pair: &Pair<'_>) -> String {
    let mark = match (&pair.before, &pair.after) {
        (None, _) => " (new)",
        (_, None) => " (gone)",
        _ => "",
    };
    format!("{}{mark}", pair.id)
}
