//! The command line as its users meet it: the built binary, its output, its
//! exit code.

// A scratch directory and the binary, a terminal and a shell, for all of the
// others.
mod pty;
mod scratch;
mod shell;

// The commands, in the order of the help.
mod assign;
mod bench;
mod bench_failover;
mod explain;
mod key;
mod plan;
mod playground;
mod simulate;

// What they share: files, the previous assignment, the options of strategies,
// the picture; and of a plan, the workers that there will be.
mod change;
mod files;
mod made;
mod options;
mod picture;
mod planner;
mod plot;
mod previous;
mod sheets;
mod worker;
mod yaml;

// What nobody may ever meet: a secret where others can read it.
mod secrets;

// What everybody meets sooner or later.
mod completions;
mod help;
mod manual;
mod mistakes;
mod pipes;
mod terminals;
mod voice;
