//! Places partitions on workers, knowing where they were before, and certifies the result.
//!
//! One planner, four ways in. All of them keep what may stay, free what must move, and place the freed
//! partitions by hash preference under caps:
//!
//! | function | balances | moves |
//! | --- | --- | --- |
//! | [`balanced`](fn@balanced) | counts, to exact quotas | exactly the minimum |
//! | [`banded`](fn@banded) | weights, into a band on both sides | few; a proven lower bound is in the certificate |
//! | [`zoned`](fn@zoned) | counts, zones first | exactly the minimum for that condition |
//! | [`zoned_banded`] | weights, a band for zones and one for workers | few; as `banded` |
//!
//! What a reader would get wrong: a plan is a function of the *previous assignment* too. Two histories
//! that lead to the same workers and partitions may end in two different assignments, both inside the
//! balance condition. That is the price of not moving; who needs a stateless answer passes [`NONE`] for
//! every previous owner.
//!
//! Everything is dense indices. Names, hashes and logs belong to the caller. Workers are indexed in id
//! order, so a tie goes to the smaller index.
//!
//! Guaranteed, and tested as properties: every partition has an owner of positive weight; no worker has more
//! than its `max_partitions`; the same input gives the same output on every platform (integers, and of floats
//! only what IEEE 754 defines exactly: `+ - * /`, rounding to integers, comparisons); planning again from a
//! result moves nothing; the certificate's lower bound never exceeds the moves. Not guaranteed: that `banded`
//! finds the fewest moves, or an assignment inside the band whenever one exists (that is bin packing). The
//! certificate says what was reached.

mod balanced;
mod band;
mod banded;
mod bound;
mod certificate;
mod decision;
mod given;
mod ledger;
mod lightest;
mod outcome;
mod place;
mod problem;
mod refill;
mod release;
mod repair;
mod share;
mod shelf;
mod step;
mod target;
mod zone;
mod zoned;

pub use balanced::balanced;
pub use band::Band;
pub(crate) use banded::banded_decision;
pub use banded::{banded, zoned_banded};
pub use certificate::Certificate;
pub(crate) use decision::{By, Decision, Stay, What};
pub(crate) use given::given;
pub use outcome::{Cause, Move, Plan, Reason, Rejection};
pub use problem::{GONE, NONE, PlanError, Problem, Slot, Weights};
pub use zoned::zoned;
