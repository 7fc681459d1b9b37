//! The curves as a picture: two panels, both axes logarithmic.

use std::fmt::Write;

use super::{Axis, Curve};
use crate::table;

const WIDTH: f64 = 1360.0;
const HEIGHT: f64 = 600.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = HEIGHT - 60.0;
/// A panel's plot without its labels.
const PANEL_WIDTH: f64 = 370.0;
const PANEL_LEFTS: [f64; 2] = [80.0, 760.0];
/// Least distance between two labels.
const LABEL_STEP: f64 = 18.0;

/// Told apart with any kind of colour vision, in the order of the strategies.
const COLOURS: [&str; 9] = [
    "#0072b2", "#56b4e9", "#000000", "#d55e00", "#b8860b", "#009e73", "#cc79a7", "#888888",
    "#7b3fa0",
];

/// A range of powers of ten that is mapped to pixels.
struct Scale {
    powers: (i32, i32),
    pixels: (f64, f64),
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let low = low.max(1.0).log10().floor() as i32;
        let high = (high.max(1.0).log10().ceil() as i32).max(low + 1);
        Self {
            powers: (low, high),
            pixels,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.powers.0), f64::from(self.powers.1));
        let share = (value.log10() - low) / (high - low);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.powers.0..=self.powers.1).map(|power| 10f64.powi(power))
    }
}

/// An SVG document; `fixed` are the workers while partitions grow and the partitions while workers do.
pub(super) fn draw(curves: &[Curve], fixed: (usize, usize)) -> String {
    let costs = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|&(_, cost)| cost));
    let costs = Scale::new(costs, (BOTTOM, TOP));
    let mut svg = String::new();
    let titles = [
        (
            Axis::Partitions,
            format!("Cost of one assignment to {} workers", fixed.0),
        ),
        (
            Axis::Workers,
            format!("Cost of one assignment of {} partitions", fixed.1),
        ),
    ];
    for ((axis, title), left) in titles.iter().zip(PANEL_LEFTS) {
        let panel: Vec<&Curve> = curves.iter().filter(|curve| curve.axis == *axis).collect();
        let sizes = panel
            .iter()
            .flat_map(|curve| curve.points.iter().map(|&(size, _)| size as f64));
        let sizes = Scale::new(sizes, (left, left + PANEL_WIDTH));
        frame(&mut svg, (&sizes, &costs), *axis, title);
        lines(&mut svg, (&sizes, &costs), &panel);
        labels(&mut svg, (left + PANEL_WIDTH, &costs), &panel);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>Cost of divvy's strategies against partitions and workers</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n{svg}</svg>\n"
    )
}

fn push(svg: &mut String, line: std::fmt::Arguments<'_>) {
    svg.write_fmt(line).expect("a string takes everything");
    svg.push('\n');
}

/// Grid, ticks and titles.
fn frame(svg: &mut String, (sizes, costs): (&Scale, &Scale), axis: Axis, title: &str) {
    let (left, right) = sizes.pixels;
    push(
        svg,
        format_args!(
            "<text x=\"{left}\" y=\"34\" font-size=\"16\" font-weight=\"bold\">{title}</text>"
        ),
    );
    for value in costs.ticks() {
        let y = costs.at(value);
        push(
            svg,
            format_args!(
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>"
            ),
        );
        let (x, y, label) = (left - 8.0, y + 4.0, table::time(value));
        let label = label.replace(".00", "").replace(".0", "");
        push(
            svg,
            format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>"),
        );
    }
    for value in sizes.ticks() {
        let x = sizes.at(value);
        push(
            svg,
            format_args!(
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\" stroke=\"#ddd\"/>"
            ),
        );
        let (y, power) = (BOTTOM + 20.0, value.log10().round());
        push(
            svg,
            format_args!(
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">10<tspan dy=\"-6\" font-size=\"10\">{power}</tspan></text>"
            ),
        );
    }
    let (x, y) = ((left + right) / 2.0, BOTTOM + 44.0);
    let name = match axis {
        Axis::Partitions => "partitions",
        Axis::Workers => "workers",
    };
    push(
        svg,
        format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>"),
    );
    let (x, y) = (right + 14.0, TOP - 18.0);
    push(
        svg,
        format_args!("<text x=\"{x}\" y=\"{y}\" fill=\"#555\">strategy, fitted exponent</text>"),
    );
}

fn lines(svg: &mut String, (sizes, costs): (&Scale, &Scale), panel: &[&Curve]) {
    for (curve, colour) in panel.iter().zip(COLOURS.iter().cycle()) {
        let place = |&(size, cost): &(usize, f64)| (sizes.at(size as f64), costs.at(cost));
        let places: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
        let path: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let path = path.join(" ");
        push(
            svg,
            format_args!(
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            ),
        );
        for (x, y) in places {
            push(
                svg,
                format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"),
            );
        }
    }
}

/// A name at the end of each curve, pushed apart where they would overlap.
fn labels(svg: &mut String, (right, costs): (f64, &Scale), panel: &[&Curve]) {
    let mut labels: Vec<(f64, String, &str)> = panel
        .iter()
        .zip(COLOURS.iter().cycle())
        .filter_map(|(curve, colour)| {
            let (_, cost) = *curve.points.last()?;
            let exponent = curve
                .exponent
                .map(|e| format!(" {e:.2}"))
                .unwrap_or_default();
            Some((
                costs.at(cost),
                format!("{}{exponent}", curve.strategy),
                *colour,
            ))
        })
        .collect();
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = apart(labels.iter().map(|label| label.0).collect());
    for ((end, text, colour), place) in labels.iter().zip(places) {
        let (x, y) = (right + 30.0, place + 4.0);
        let near = right + 26.0;
        push(
            svg,
            format_args!(
                "<path d=\"M{right} {end:.1} L{near} {place:.1}\" stroke=\"{colour}\" fill=\"none\" stroke-dasharray=\"2 2\"/>"
            ),
        );
        push(
            svg,
            format_args!("<text x=\"{x}\" y=\"{y:.1}\" fill=\"{colour}\">{text}</text>"),
        );
    }
}

/// Sorted places moved down, and then up, until each has room.
fn apart(mut places: Vec<f64>) -> Vec<f64> {
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + LABEL_STEP);
    }
    let over = places.last().map_or(0.0, |last| (last - BOTTOM).max(0.0));
    if let Some(last) = places.last_mut() {
        *last -= over;
    }
    for at in (1..places.len()).rev() {
        places[at - 1] = places[at - 1].min(places[at] - LABEL_STEP);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_overlap() {
        let places = apart(vec![BOTTOM - 5.0, BOTTOM - 4.0, BOTTOM - 1.0]);
        assert!(
            places
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= LABEL_STEP - 1e-9)
        );
        assert!(places[2] <= BOTTOM);
    }
}
