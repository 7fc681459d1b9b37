//! How the records of leader mode are written: compact, versioned, checksummed.
//!
//! Every value is a frame: a mark, the kind of record, the format's version,
//! the body, and the native hash of all that. Whatever was not written by this
//! module is refused before anything is allocated for it.
//!
//! The root is one small value under one key, because one compare-and-set must
//! decide. What is large in it lies beside it in chunks, each under a name that
//! is never used twice: the list of partitions, and the *base*, which says who
//! held what when it was written. The root itself carries what has changed
//! since, so that a change among many partitions is a small write.

mod base;
mod committed;
mod frame;
mod list;
mod member;
mod place;
mod root;

pub use committed::{AssembleError, Committed};
pub use member::{INSTANCE_BYTES_MAX, STOPPING_MAX, STRUCK_OUT, UNABLE_MAX};
pub use place::chunk_version;
pub use root::{EncodedRoot, ROOT_BYTES_MAX, RootHead, encode_root};
