//! The load of each worker as an SVG picture, with the mean.
//!
//! Drawn on white, so that it reads the same in a light and a dark page.

mod axis;
mod label;

use std::fmt::Write as _;

use divvy::{Assignment, Worker};

use crate::natural;
use crate::table::counted;
use axis::Axis;
use label::Labels;

const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
/// Colours that stay apart for the colour-blind and in print.
const ABOVE: &str = "#d97f2e";
const BELOW: &str = "#4a7fb0";
const INK: &str = "#1f2328";
const MUTED: &str = "#59636e";
const GRID: &str = "#e3e6ea";

/// Height of the tallest bar's room.
const PLOT_HEIGHT: f64 = 320.0;
/// From the top edge to the plot: title, subtitle, legend.
const TOP: f64 = 104.0;
/// To the right of the plot, for the label of the mean.
const RIGHT: f64 = 112.0;
/// Distance of bars where there is room, and the most that a bar fills of it.
const PITCH: f64 = 26.0;
const BAR_WIDTH_MAX: f64 = 72.0;
/// The plot is this wide at least, so that the title has room,
const WIDTH_MIN: f64 = 640.0;
/// this wide where bars still are a few pixels, and this wide for thousands.
const WIDTH_MANY: f64 = 1600.0;
const WIDTH_MAX: f64 = 2400.0;
/// Bars closer than this touch: a gap would be finer than a pixel.
const GAP_PITCH_MIN: f64 = 5.0;

/// The picture of an assignment that the strategy of this name made.
pub(crate) fn svg(strategy: &str, assignment: &Assignment) -> String {
    Plot::new(strategy, assignment).draw()
}

struct Bar<'a> {
    worker: &'a Worker,
    load: u64,
    /// What would be even, by the worker's weight.
    fair: f64,
}

struct Plot<'a> {
    subtitle: String,
    /// What a load counts: partitions, unless they have weights.
    unit: &'static str,
    bars: Vec<Bar<'a>>,
    mean: f64,
    weighted: bool,
    axis: Axis,
    labels: Labels,
    left: f64,
    width: f64,
    pitch: f64,
}

impl<'a> Plot<'a> {
    fn new(strategy: &str, assignment: &'a Assignment) -> Self {
        let bars = bars(assignment);
        let eligible = || bars.iter().filter(|bar| bar.worker.is_eligible());
        let total: f64 = bars.iter().map(|bar| bar.load as f64).sum();
        let mean = total / eligible().count().max(1) as f64;
        let weighted = eligible().any(|bar| (bar.fair - mean).abs() > mean * 1e-9);
        let highest = bars.iter().map(|bar| bar.fair.max(bar.load as f64));
        let axis = Axis::new(highest.fold(mean, f64::max));
        let count = bars.len() as f64;
        let widest = WIDTH_MANY.max((2.0 * count).min(WIDTH_MAX));
        let width = (count * PITCH).clamp(WIDTH_MIN, widest);
        let pitch = width / count.max(1.0);
        let loaded = assignment.partitions().iter().any(|p| p.weight() != 0);
        let labels = Labels::new(bars.iter().map(|bar| bar.worker.id()), pitch);
        let left = (40.0 + axis.label_width()).max(labels.overhang() - pitch / 2.0);
        Self {
            subtitle: format!(
                "{strategy} · {} on {} · max/mean {:.3}",
                counted(assignment.partitions().len(), "partition"),
                counted(bars.len(), "worker"),
                assignment.balance().max_over_mean
            ),
            unit: if loaded { "load" } else { "partitions" },
            left,
            labels,
            bars,
            mean,
            weighted,
            axis,
            width,
            pitch,
        }
    }

    fn draw(&self) -> String {
        let width = self.left + self.width + RIGHT;
        let height = TOP + PLOT_HEIGHT + self.labels.height();
        let mut svg = String::with_capacity(4096 + self.bars.len() * 200);
        let out = &mut svg;
        line(
            out,
            format_args!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" font-family="{FONT}" font-size="12" role="img">"#
            ),
        );
        let subtitle = escape(&self.subtitle);
        line(
            out,
            format_args!("<title>Load per worker: {subtitle}</title>"),
        );
        line(
            out,
            format_args!(
                r##"<rect class="background" width="{width:.0}" height="{height:.0}" fill="#ffffff"/>"##
            ),
        );
        line(
            out,
            format_args!(
                r#"<text x="24" y="36" font-size="18" font-weight="600" fill="{INK}">Load per worker</text>"#
            ),
        );
        line(
            out,
            format_args!(r#"<text x="24" y="58" font-size="13" fill="{MUTED}">{subtitle}</text>"#),
        );
        self.draw_legend(out);
        self.draw_axis(out);
        self.draw_bars(out);
        self.draw_mean(out);
        self.draw_labels(out);
        line(out, format_args!("</svg>"));
        svg
    }

    fn draw_legend(&self, out: &mut String) {
        let (above, below) = if self.weighted {
            ("above its share by weight", "below its share by weight")
        } else {
            ("above the mean", "at or below the mean")
        };
        let mut x = 24.0;
        for (colour, text) in [(ABOVE, above), (BELOW, below)] {
            line(
                out,
                format_args!(
                    r#"<rect class="key" x="{x:.0}" y="72" width="11" height="11" rx="2" fill="{colour}"/><text x="{:.0}" y="82" fill="{MUTED}">{text}</text>"#,
                    x + 17.0
                ),
            );
            x += 17.0 + 6.4 * text.len() as f64 + 20.0;
        }
        if self.weighted {
            line(
                out,
                format_args!(
                    r#"<line x1="{x:.0}" y1="77.5" x2="{:.0}" y2="77.5" stroke="{INK}" stroke-width="2"/><text x="{:.0}" y="82" fill="{MUTED}">share by weight</text>"#,
                    x + 14.0,
                    x + 20.0
                ),
            );
        }
    }

    fn draw_axis(&self, out: &mut String) {
        let (left, right) = (self.left, self.left + self.width);
        for tick in self.axis.ticks() {
            let y = self.y(tick);
            let text = self.axis.text(tick);
            line(
                out,
                format_args!(
                    r#"<line class="tick" x1="{left:.1}" y1="{y:.1}" x2="{right:.1}" y2="{y:.1}" stroke="{GRID}"/><text x="{:.1}" y="{:.1}" text-anchor="end" fill="{MUTED}">{text}</text>"#,
                    left - 8.0,
                    y + 4.0
                ),
            );
        }
        let middle = TOP + PLOT_HEIGHT / 2.0;
        line(
            out,
            format_args!(
                r#"<text transform="translate({:.0} {middle:.0}) rotate(-90)" text-anchor="middle" fill="{MUTED}">{}</text>"#,
                left - 20.0 - self.axis.label_width(),
                self.unit
            ),
        );
    }

    fn draw_bars(&self, out: &mut String) {
        let gap = if self.pitch < GAP_PITCH_MIN {
            0.0
        } else {
            0.22 * self.pitch
        };
        let width = (self.pitch - gap).min(BAR_WIDTH_MAX);
        for (index, bar) in self.bars.iter().enumerate() {
            let x = self.centre(index) - width / 2.0;
            let y = self.y(bar.load as f64);
            let colour = if bar.load as f64 > bar.fair {
                ABOVE
            } else {
                BELOW
            };
            line(
                out,
                format_args!(
                    r#"<rect class="bar" x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{:.2}" fill="{colour}"><title>{}: {} {}</title></rect>"#,
                    self.y(0.0) - y,
                    escape(bar.worker.id()),
                    bar.load,
                    self.unit
                ),
            );
            if self.weighted && bar.worker.is_eligible() {
                let fair = self.y(bar.fair);
                line(
                    out,
                    format_args!(
                        r#"<line class="share" x1="{x:.2}" y1="{fair:.2}" x2="{:.2}" y2="{fair:.2}" stroke="{INK}" stroke-width="2"/>"#,
                        x + width
                    ),
                );
            }
        }
        let (left, right, base) = (self.left, self.left + self.width, self.y(0.0));
        line(
            out,
            format_args!(
                r#"<line x1="{left:.1}" y1="{base:.1}" x2="{right:.1}" y2="{base:.1}" stroke="{MUTED}"/>"#
            ),
        );
    }

    fn draw_mean(&self, out: &mut String) {
        let (left, right, y) = (self.left, self.left + self.width, self.y(self.mean));
        let text = axis::compact(self.mean);
        line(
            out,
            format_args!(
                r#"<line class="mean" x1="{left:.1}" y1="{y:.1}" x2="{right:.1}" y2="{y:.1}" stroke="{INK}" stroke-width="1.5" stroke-dasharray="6 4"/><text class="mean" x="{:.1}" y="{:.1}" font-weight="600" fill="{INK}">mean {text}</text>"#,
                right + 8.0,
                y + 4.0
            ),
        );
    }

    fn draw_labels(&self, out: &mut String) {
        let base = self.y(0.0);
        for (index, text) in self.labels.shown() {
            let x = self.centre(index);
            let text = escape(text);
            if self.labels.rotated() {
                line(
                    out,
                    format_args!(
                        r#"<text class="worker" transform="translate({:.1} {:.1}) rotate(-45)" text-anchor="end" font-size="11" fill="{INK}">{text}</text>"#,
                        x + 4.0,
                        base + 14.0
                    ),
                );
            } else {
                line(
                    out,
                    format_args!(
                        r#"<text class="worker" x="{x:.1}" y="{:.1}" text-anchor="middle" fill="{INK}">{text}</text>"#,
                        base + 20.0
                    ),
                );
            }
        }
    }

    fn centre(&self, index: usize) -> f64 {
        self.left + (index as f64 + 0.5) * self.pitch
    }

    fn y(&self, value: f64) -> f64 {
        TOP + PLOT_HEIGHT * (1.0 - value / self.axis.top())
    }
}

/// All workers with their loads, in natural order.
fn bars(assignment: &Assignment) -> Vec<Bar<'_>> {
    let loads = assignment.loads();
    let workers = || assignment.workers().iter();
    let share = |worker: &Worker| {
        let eligible = worker.is_eligible();
        if eligible { worker.weight() } else { 0.0 }
    };
    let total: f64 = loads.iter().map(|&load| load as f64).sum();
    let per_weight = total / workers().map(share).sum::<f64>();
    let mut bars: Vec<Bar<'_>> = workers()
        .zip(loads)
        .map(|(worker, load)| Bar {
            worker,
            load,
            fair: per_weight * share(worker),
        })
        .collect();
    bars.sort_by(|a, b| natural::compare(a.worker.id(), b.worker.id()));
    bars
}

fn line(out: &mut String, content: std::fmt::Arguments<'_>) {
    out.write_fmt(content).expect("a string takes anything");
    out.push('\n');
}

/// `text` as XML content. Names have no control characters, but may have the
/// two others that XML has no way to write.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}
