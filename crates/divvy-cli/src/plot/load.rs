//! The load of each worker of an assignment.

use divvy::Assignment;

use super::axis::distinct;
use super::frame::{Content, Frame, Key, SHARE};
use super::{ABOVE, BELOW};
use crate::holding::Holding;
use crate::natural;
use crate::table::counted;

/// Distance of workers where there is room.
const PITCH: f64 = 26.0;

/// The picture of an assignment that the strategy of this name made.
pub(crate) fn svg(strategy: &str, assignment: &Assignment) -> String {
    let mut bars = Holding::all(assignment);
    bars.sort_by(|a, b| natural::compare(a.worker.id(), b.worker.id()));
    let mean = mean(&bars);
    let weighted = is_weighted(&bars, mean);
    let highest = bars.iter().map(|bar| bar.fair.max(bar.load as f64));
    let loaded = assignment.partitions().iter().any(|p| p.weight() != 0);
    let frame = Frame::new(Content {
        title: "Load per worker",
        subtitle: format!(
            "{strategy} · {} on {} · max/mean {:.3}",
            counted(assignment.partitions().len(), "partition"),
            counted(bars.len(), "worker"),
            assignment.balance().max_over_mean
        ),
        unit: if loaded { "load" } else { "partitions" },
        names: bars.iter().map(|bar| bar.worker.id().to_owned()).collect(),
        pitch: PITCH,
        highest: highest.fold(mean, f64::max),
        mean: distinct(mean, bars.iter().map(|bar| bar.load as f64)),
    });
    frame.draw(keys(weighted), |out| {
        let width = frame.bar_width();
        for (index, bar) in bars.iter().enumerate() {
            let at = (frame.centre(index) - width / 2.0, width);
            let colour = if bar.load as f64 > bar.fair {
                ABOVE
            } else {
                BELOW
            };
            frame.bar(out, at, bar.load, ("bar", colour), bar.worker.id());
            if weighted && bar.worker.is_eligible() {
                frame.mark(out, at, bar.fair, &SHARE);
            }
        }
        frame.mean(out, mean);
    })
}

/// The load of the average worker among those that may have one.
pub(super) fn mean(holdings: &[Holding<'_>]) -> f64 {
    let total: f64 = holdings.iter().map(|holding| holding.load as f64).sum();
    let eligible = holdings
        .iter()
        .filter(|holding| holding.worker.is_eligible());
    total / eligible.count().max(1) as f64
}

/// Whether shares differ, so that the mean is not what each is held to.
pub(super) fn is_weighted(holdings: &[Holding<'_>], mean: f64) -> bool {
    let mut eligible = holdings
        .iter()
        .filter(|holding| holding.worker.is_eligible());
    eligible.any(|holding| (holding.fair - mean).abs() > mean * 1e-9)
}

fn keys(weighted: bool) -> &'static [Key] {
    if weighted {
        &[
            Key::Bar(ABOVE, "above its share by weight"),
            Key::Bar(BELOW, "below its share by weight"),
            Key::Line(&SHARE, "share by weight"),
        ]
    } else {
        &[
            Key::Bar(ABOVE, "above the mean"),
            Key::Bar(BELOW, "at or below the mean"),
        ]
    }
}
