//! The file store: the suite that every store passes, and what only several
//! processes of one machine can show.

mod conformance;
mod disk;
mod lives;
mod part;
mod processes;
mod refusals;
mod scratch;
mod turns;
