//! What is around the bars: title, legend, axis, names, and lines across.

use super::axis::Axis;
use super::label::Labels;
use super::svg::{escape, line};
use super::{GRID, INK, MUTED};

const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/// Height of the tallest bar's room.
const PLOT_HEIGHT: f64 = 320.0;
/// From the top edge to the plot: title, subtitle, legend.
const TOP: f64 = 104.0;
/// To the right of the plot at least, for the labels of lines across.
const RIGHT_MIN: f64 = 112.0;
/// Pixels of a character of the mean's label.
const MEAN_CHARACTER_WIDTH: f64 = 8.0;
/// The most that the bars of a worker fill of their room.
const BAR_WIDTH_MAX: f64 = 72.0;
/// The plot is this wide at least, so that the title has room,
const WIDTH_MIN: f64 = 640.0;
/// this wide where bars still are a few pixels, and this wide for thousands.
const WIDTH_MANY: f64 = 1600.0;
const WIDTH_MAX: f64 = 2400.0;
/// Workers closer than this touch: a gap would be finer than a pixel.
const GAP_PITCH_MIN: f64 = 5.0;

/// What a picture says and how much room it needs.
pub(super) struct Content {
    pub(super) title: &'static str,
    pub(super) subtitle: String,
    /// What a load counts: partitions, unless they have weights.
    pub(super) unit: &'static str,
    /// By worker, from left to right.
    pub(super) names: Vec<String>,
    /// Distance of workers where there is room.
    pub(super) pitch: f64,
    /// The highest value to be drawn.
    pub(super) highest: f64,
    /// The mean of all workers as text.
    pub(super) mean: String,
}

/// How a line is drawn.
pub(super) struct Stroke {
    pub(super) class: &'static str,
    pub(super) colour: &'static str,
    pub(super) width: f64,
    /// Lengths of dashes and gaps; `none` for a solid line.
    pub(super) dashes: &'static str,
}

/// The mean of all workers.
const MEAN: Stroke = Stroke {
    class: "mean",
    colour: INK,
    width: 1.5,
    dashes: "6 4",
};
/// What a worker's share is, where shares differ.
pub(super) const SHARE: Stroke = Stroke {
    class: "share",
    colour: INK,
    width: 2.0,
    dashes: "none",
};

/// An entry of the legend.
pub(super) enum Key {
    /// Bars of this colour.
    Bar(&'static str, &'static str),
    /// Lines of this kind.
    Line(&'static Stroke, &'static str),
}

/// A plot in which bars are placed.
pub(super) struct Frame {
    content: Content,
    axis: Axis,
    labels: Labels,
    left: f64,
    width: f64,
    right: f64,
    pitch: f64,
}

impl Frame {
    pub(super) fn new(content: Content) -> Self {
        let axis = Axis::new(content.highest);
        let count = content.names.len() as f64;
        let widest = WIDTH_MANY.max((2.0 * count).min(WIDTH_MAX));
        let width = (count * content.pitch).clamp(WIDTH_MIN, widest);
        let pitch = width / count.max(1.0);
        let labels = Labels::new(content.names.iter().map(String::as_str), pitch);
        let left = (40.0 + axis.label_width()).max(labels.overhang() - pitch / 2.0);
        let mean = 24.0 + (5 + content.mean.len()) as f64 * MEAN_CHARACTER_WIDTH;
        Self {
            content,
            axis,
            labels,
            left,
            width,
            right: mean.max(RIGHT_MIN),
            pitch,
        }
    }

    /// The picture, with what `body` draws inside.
    pub(super) fn draw(&self, keys: &[Key], body: impl FnOnce(&mut String)) -> String {
        let width = self.left + self.width + self.right;
        let height = TOP + PLOT_HEIGHT + self.labels.height();
        let mut svg = String::with_capacity(4096 + self.content.names.len() * 400);
        let out = &mut svg;
        let (title, subtitle) = (self.content.title, escape(&self.content.subtitle));
        line(
            out,
            format_args!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" font-family="{FONT}" font-size="12" role="img">"#
            ),
        );
        line(out, format_args!("<title>{title}: {subtitle}</title>"));
        line(
            out,
            format_args!(
                r##"<rect class="background" width="{width:.0}" height="{height:.0}" fill="#ffffff"/>"##
            ),
        );
        line(
            out,
            format_args!(
                r#"<text x="24" y="36" font-size="18" font-weight="600" fill="{INK}">{title}</text>"#
            ),
        );
        line(
            out,
            format_args!(r#"<text x="24" y="58" font-size="13" fill="{MUTED}">{subtitle}</text>"#),
        );
        draw_legend(out, keys);
        self.draw_axis(out);
        body(out);
        self.draw_base(out);
        self.draw_labels(out);
        line(out, format_args!("</svg>"));
        svg
    }

    /// Pixels that the bars of one worker fill.
    pub(super) fn bar_width(&self) -> f64 {
        let gap = if self.pitch < GAP_PITCH_MIN {
            0.0
        } else {
            0.22 * self.pitch
        };
        (self.pitch - gap).min(BAR_WIDTH_MAX)
    }

    /// The middle of a worker's room.
    pub(super) fn centre(&self, index: usize) -> f64 {
        self.left + (index as f64 + 0.5) * self.pitch
    }

    /// Draws a bar of a load, from `x` to the right, and says whose it is.
    pub(super) fn bar(
        &self,
        out: &mut String,
        (x, width): (f64, f64),
        load: u64,
        (class, colour): (&str, &str),
        title: &str,
    ) {
        let y = self.y(load as f64);
        line(
            out,
            format_args!(
                r#"<rect class="{class}" x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{:.2}" fill="{colour}"><title>{}: {load} {}</title></rect>"#,
                self.y(0.0) - y,
                escape(title),
                self.content.unit
            ),
        );
    }

    /// Draws a short line over a bar.
    pub(super) fn mark(
        &self,
        out: &mut String,
        (x, width): (f64, f64),
        value: f64,
        stroke: &Stroke,
    ) {
        draw_line(out, (x, x + width), self.y(value), stroke);
    }

    /// Draws a line across.
    pub(super) fn level(&self, out: &mut String, value: f64, stroke: &Stroke) {
        let across = (self.left, self.left + self.width);
        draw_line(out, across, self.y(value), stroke);
    }

    /// Draws the mean of all workers, and what it is.
    pub(super) fn mean(&self, out: &mut String, mean: f64) {
        self.level(out, mean, &MEAN);
        let text = format!("mean {}", self.content.mean);
        let (x, y) = (self.left + self.width + 8.0, self.y(mean) + 4.0);
        line(
            out,
            format_args!(
                r#"<text class="mean" x="{x:.1}" y="{y:.1}" font-weight="600" fill="{INK}">{text}</text>"#
            ),
        );
    }

    /// Whether a value is inside of the plot.
    pub(super) fn holds(&self, value: f64) -> bool {
        (0.0..=self.axis.top()).contains(&value)
    }

    /// Pixels between two values.
    pub(super) fn distance(&self, a: f64, b: f64) -> f64 {
        (self.y(a) - self.y(b)).abs()
    }

    /// Writes to the right of the plot, at the height of a value.
    pub(super) fn note(&self, out: &mut String, value: f64, text: &str) {
        let (x, y) = (self.left + self.width + 8.0, self.y(value) + 4.0);
        line(
            out,
            format_args!(
                r#"<text class="note" x="{x:.1}" y="{y:.1}" font-size="11" fill="{MUTED}">{text}</text>"#
            ),
        );
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
                self.content.unit
            ),
        );
    }

    fn draw_base(&self, out: &mut String) {
        let (left, right, base) = (self.left, self.left + self.width, self.y(0.0));
        line(
            out,
            format_args!(
                r#"<line x1="{left:.1}" y1="{base:.1}" x2="{right:.1}" y2="{base:.1}" stroke="{MUTED}"/>"#
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

    fn y(&self, value: f64) -> f64 {
        TOP + PLOT_HEIGHT * (1.0 - value / self.axis.top())
    }
}

fn draw_legend(out: &mut String, keys: &[Key]) {
    let mut x = 24.0;
    for key in keys {
        let text = match key {
            Key::Bar(colour, text) => {
                line(
                    out,
                    format_args!(
                        r#"<rect class="key" x="{x:.0}" y="72" width="11" height="11" rx="2" fill="{colour}"/>"#
                    ),
                );
                text
            }
            Key::Line(stroke, text) => {
                draw_line(
                    out,
                    (x, x + 12.0),
                    77.5,
                    &Stroke {
                        class: "key",
                        ..**stroke
                    },
                );
                text
            }
        };
        x += 17.0;
        line(
            out,
            format_args!(r#"<text x="{x:.0}" y="82" fill="{MUTED}">{text}</text>"#),
        );
        x += 6.4 * text.len() as f64 + 20.0;
    }
}

fn draw_line(out: &mut String, (from, to): (f64, f64), y: f64, stroke: &Stroke) {
    let Stroke {
        class,
        colour,
        width,
        dashes,
    } = stroke;
    line(
        out,
        format_args!(
            r#"<line class="{class}" x1="{from:.2}" y1="{y:.2}" x2="{to:.2}" y2="{y:.2}" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"/>"#
        ),
    );
}
