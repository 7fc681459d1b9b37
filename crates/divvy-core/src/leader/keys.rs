//! The keys of leader mode.

use crate::store::{Key, Prefix};
use crate::worker::WORKER_NAME_BYTES_MAX;

/// Keys by their meaning.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Who leads.
    pub leader: Key,
    /// Who holds what.
    pub root: Key,
    /// What operators wish: a [`Control`](crate::Control).
    pub control: Key,
    /// The last moves: see [`MoveEntry`](crate::MoveEntry).
    pub moves: Key,
    /// The records of workers are below this.
    pub workers: Prefix,
    /// Chunks of what is too large for the root are below this.
    pub chunks: Prefix,
}

impl Default for Keys {
    fn default() -> Self {
        let key = |name| Key::new([name]).expect("a short constant is a key");
        Self {
            leader: key("leader"),
            root: key("root"),
            control: key("ctl"),
            moves: key("moves"),
            workers: Prefix::below(key("w")),
            chunks: Prefix::below(key("c")),
        }
    }
}

impl Keys {
    /// The key of a worker's record. Ids are bounded, so there is one.
    pub(super) fn worker(id: &str) -> Key {
        Key::new(["w", id]).expect("the id of a worker fits into a key")
    }

    /// The id of the worker whose record this is; nothing if no worker can
    /// have it: a root that named it could not be read.
    pub fn id_of(key: &Key) -> Option<Box<str>> {
        let text = key.as_str().strip_prefix("w.")?;
        let id = crate::store::decode_part(text)?;
        crate::name::check("worker id", &id, WORKER_NAME_BYTES_MAX).ok()?;
        Some(id.into())
    }
}
