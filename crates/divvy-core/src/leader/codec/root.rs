//! The record `root`.

use std::sync::Arc;
use std::time::Duration;

use super::base::Base;
use super::committed::{AssembleError, Committed};
use super::frame::{Kind, Reader, Writer};
use super::list;
use super::member::{put_version, read_epoch, read_version};
use super::place::Place;
use crate::error::Invalid;
use crate::leader::record::{Lifecycle, Root, Version};
use crate::partition::Partitions;
use crate::store::{CHUNK_BYTES_MAX, Incarnation, Key};

/// Largest root, in bytes, beside its chunks; half of what the store takes
/// where that is less.
pub const ROOT_BYTES_MAX: usize = 64 * 1024;
/// What mark, version, incarnation and places of chunks take at most.
const FIXED_BYTES_MAX: usize = 512;
/// From here on, entries are never tried inside the root.
const INSIDE_PARTITIONS_MAX: usize = 50_000;

/// A root as it is to be written: first every chunk, each only where nothing
/// is, then the head under the key `root` by compare-and-set.
#[derive(Debug, Clone)]
pub struct EncodedRoot {
    /// The value of the key `root`.
    pub head: Vec<u8>,
    /// Chunks that are new with this root.
    pub chunks: Vec<(Key, Vec<u8>)>,
    /// What it will be once it is committed.
    pub committed: Committed,
}

/// Encodes `root`, which is about `partitions`, for a store that takes values
/// of `value_bytes_max`. Chunks of `previous` are used again where they still
/// hold; new ones get `nonce` into their names.
pub fn encode_root(
    root: Root,
    partitions: &Partitions,
    previous: Option<&Committed>,
    nonce: u128,
    value_bytes_max: usize,
) -> Result<EncodedRoot, Invalid> {
    assert_eq!(
        root.holdings.len(),
        partitions.len(),
        "one entry a partition"
    );
    let head_max = ROOT_BYTES_MAX.min(value_bytes_max);
    if head_max < 4 * FIXED_BYTES_MAX {
        let rule = format!("must be at least {}", 4 * FIXED_BYTES_MAX);
        return Err(Invalid::new("store's largest value", value_bytes_max, rule));
    }
    let chunk_max = CHUNK_BYTES_MAX.min(value_bytes_max);
    let part_max = (head_max - FIXED_BYTES_MAX) / 2;
    let name = (root.version, nonce);
    let mut chunks = Vec::new();
    let same_list = previous.filter(|previous| previous.partitions == *partitions);
    let list = match same_list {
        Some(previous) => previous.list.clone(),
        None => {
            // A nonce of its own, so that list and base are told apart.
            let name = (root.version, !nonce);
            Place::of(
                list::encode(partitions),
                part_max,
                chunk_max,
                name,
                &mut chunks,
            )?
        }
    };
    let (base_place, base, changes) = match changes_since(same_list, &root, part_max) {
        Some((previous, changes)) => (
            previous.base_place.clone(),
            Arc::clone(&previous.base),
            changes,
        ),
        None => {
            let base = Base {
                sessions: root.sessions.clone(),
                holdings: root.holdings.clone(),
            };
            let bytes = Base::encode(&base.sessions, &base.holdings);
            let place = Place::of(bytes, part_max, chunk_max, name, &mut chunks)?;
            let nothing = base.difference(&base.sessions, &base.holdings);
            (place, Arc::new(base), nothing)
        }
    };
    let committed = Committed {
        root,
        partitions: partitions.clone(),
        list,
        base_place,
        base,
    };
    Ok(EncodedRoot {
        head: head_of(&committed, &changes),
        chunks,
        committed,
    })
}

/// The changes since the previous base, if that lies in chunks and they are
/// few. A base inside the root is written anew instead: it costs no chunk.
fn changes_since<'a>(
    previous: Option<&'a Committed>,
    root: &Root,
    bytes_max: usize,
) -> Option<(&'a Committed, Vec<u8>)> {
    let previous = previous?;
    let beside = matches!(previous.base_place, Place::Beside(_));
    if !beside && root.holdings.len() < INSIDE_PARTITIONS_MAX {
        return None;
    }
    let changes = previous.base.difference(&root.sessions, &root.holdings);
    (changes.len() <= bytes_max).then_some((previous, changes))
}

fn head_of(committed: &Committed, changes: &[u8]) -> Vec<u8> {
    let root = &committed.root;
    let mut writer = Writer::frame(Kind::Root);
    writer.text(root.incarnation.as_str());
    put_version(&mut writer, root.version);
    writer.byte(match root.lifecycle {
        Lifecycle::ColdStart => 0,
        Lifecycle::PostColdStart => 1,
        Lifecycle::Stable => 2,
    });
    writer.byte(u8::from(root.quarantine));
    writer.span(root.lease);
    committed.list.put(&mut writer);
    committed.base_place.put(&mut writer);
    debug_assert!(writer.len() <= ROOT_BYTES_MAX, "parts have bounds");
    writer.bytes(changes);
    // Left out where there was no quarantine, as before it was kept.
    if root.answered > 0 {
        writer.number(root.answered);
    }
    writer.sealed()
}

/// The value of the key `root`, read but not yet put together with its chunks.
#[derive(Debug, Clone)]
pub struct RootHead {
    incarnation: Incarnation,
    version: Version,
    lifecycle: Lifecycle,
    quarantine: bool,
    answered: u64,
    lease: Duration,
    list: Place,
    base: Place,
    changes: Arc<[u8]>,
}

impl RootHead {
    /// Reads the value of the key `root`, and refuses what [`encode_root`]
    /// cannot have written.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() > ROOT_BYTES_MAX {
            let rule = format!("must be at most {ROOT_BYTES_MAX}");
            return Err(Invalid::new("root bytes", bytes.len(), rule));
        }
        let mut reader = Reader::frame(Kind::Root, bytes)?;
        let mut head = Self {
            incarnation: Incarnation::new(reader.text(Incarnation::BYTES_MAX)?),
            version: read_version(&mut reader)?,
            lifecycle: match reader.byte()? {
                0 => Lifecycle::ColdStart,
                1 => Lifecycle::PostColdStart,
                2 => Lifecycle::Stable,
                other => return Err(reader.wrong(other, "is no lifecycle")),
            },
            quarantine: match reader.byte()? {
                0 => false,
                1 => true,
                other => return Err(reader.wrong(other, "is neither yes nor no")),
            },
            answered: 0,
            lease: reader.span()?,
            list: Place::read(&mut reader, ROOT_BYTES_MAX)?,
            base: Place::read(&mut reader, ROOT_BYTES_MAX)?,
            changes: reader.bytes(ROOT_BYTES_MAX)?.into(),
        };
        if !reader.is_at_end() {
            head.answered = read_epoch(&mut reader)?;
        }
        reader.finish()?;
        Ok(head)
    }

    /// The life of the store that it was written in.
    pub const fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }

    /// Which root it is.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Whether nothing is granted until everyone is known to have stopped.
    pub const fn quarantine(&self) -> bool {
        self.quarantine
    }

    /// The longest lease of the sessions that it names.
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// The chunks that it names and that `known` does not have put together
    /// already.
    pub fn chunk_keys(&self, known: Option<&Committed>) -> Vec<Key> {
        let mut keys = Vec::new();
        if known.is_none_or(|known| known.list != self.list) {
            keys.extend(self.list.chunk_keys());
        }
        if known.is_none_or(|known| known.base_place != self.base) {
            keys.extend(self.base.chunk_keys());
        }
        keys
    }

    /// Puts the root together, from chunks that the caller has read and parts
    /// of `known` that are still the same.
    pub fn assemble(
        &self,
        known: Option<&Committed>,
        chunk: impl Fn(&Key) -> Option<Arc<[u8]>>,
    ) -> Result<Committed, AssembleError> {
        let partitions = match known.filter(|known| known.list == self.list) {
            Some(known) => known.partitions.clone(),
            None => list::decode(&self.list.bytes(&chunk)?)?,
        };
        let base = match known.filter(|known| known.base_place == self.base) {
            Some(known) => Arc::clone(&known.base),
            None => Arc::new(Base::decode(&self.base.bytes(&chunk)?)?),
        };
        let now = base.changed_by(&self.changes)?;
        if now.holdings.len() != partitions.len() {
            let rule = format!("must be {}, one a partition", partitions.len());
            return Err(Invalid::new("root's entries", now.holdings.len(), rule).into());
        }
        Ok(Committed {
            root: Root {
                incarnation: self.incarnation.clone(),
                version: self.version,
                lifecycle: self.lifecycle,
                quarantine: self.quarantine,
                answered: self.answered,
                lease: self.lease,
                sessions: now.sessions,
                holdings: now.holdings,
            },
            partitions,
            list: self.list.clone(),
            base_place: self.base.clone(),
            base,
        })
    }
}
