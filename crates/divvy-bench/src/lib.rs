//! divvy measured beside the crates that a Rust user would pick otherwise, and beside itself.
//!
//! The program has a command for each question; `cargo run --release -p divvy-bench -- --help` lists
//! them:
//!
//! | command | answers |
//! | --- | --- |
//! | `peers` | how many times faster, smaller, more even than other crates |
//! | `scale` | how cost grows with partitions and workers, to a plot |
//! | `plan` | how long plans take that know the previous assignment |
//! | `parallel` | from which size on two cores are better than one |
//! | `once` | one job, exactly once, to count instructions |
//!
//! Clocks of shared machines wander, so whatever is compared takes turns in one run, and ratios are what
//! to look at. Where even those are too loose, instructions can be counted; they hardly change from run
//! to run:
//!
//! ```sh
//! cargo build --release -p divvy-bench
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*measured_once*' \
//!     target/release/divvy-bench once 'rendezvous 2048x1000'
//! ```
//!
//! prints `Collected : <instructions>` for the assignment alone, without the set-up.

mod clock;
pub mod heap;
pub mod once;
pub mod parallel;
mod peer;
pub mod peers;
pub mod plan;
pub mod scale;
mod scene;
mod table;
