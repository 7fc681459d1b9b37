//! The planner, on dense indices.

/// What every plan must hold, as functions over any plan.
mod check;
/// A cluster that workers join and leave.
mod scene;

/// Planning by count.
mod balanced;
/// Planning by weight.
mod banded;
/// Against every assignment there is, on small problems.
mod bound;
/// Planners that are broken on purpose.
mod defects;
/// The figures to reach in the reference scenario.
mod reference;
/// Zones first.
mod zoned;
