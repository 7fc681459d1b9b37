//! The load of each worker as an SVG picture, with the mean: of an assignment,
//! and of a plan before and after.
//!
//! Drawn on white, so that it reads the same in a light and a dark page.

mod axis;
mod change;
mod frame;
mod label;
mod load;
mod svg;

pub(crate) use change::svg as change_svg;
pub(crate) use load::svg as load_svg;

/// Colours that stay apart for the colour-blind and in print.
const ABOVE: &str = "#d97f2e";
const BELOW: &str = "#4a7fb0";
const JOINS: &str = "#2f9c78";
const BEFORE: &str = "#c6cdd4";
const LEAVES: &str = "#e0a9a2";
const INK: &str = "#1f2328";
const MUTED: &str = "#59636e";
const GRID: &str = "#e3e6ea";
