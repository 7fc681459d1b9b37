//! Where a large part of the root lies: inside it, or in chunks beside it.

use std::sync::Arc;

use super::committed::AssembleError;
use super::frame::{Reader, Writer};
use super::member::{put_version, read_version};
use crate::error::Invalid;
use crate::leader::record::Version;
use crate::store::{ChunkManifest, Key};

/// First part of every chunk's key.
const CHUNKS: &str = "c";

/// Where bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In the root itself.
    Inside(Arc<[u8]>),
    /// In chunks that were written for it.
    Beside(ChunkSet),
}

/// Chunks that make up one part of a root. Their keys carry the root that
/// brought them and a nonce, and never what they hold: two leaders can then
/// not mistake each other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkSet {
    pub(super) version: Version,
    pub(super) nonce: u128,
    pub(super) manifest: ChunkManifest,
}

impl ChunkSet {
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        let stem = [
            self.version.epoch.to_string(),
            self.version.number.to_string(),
            format!("{:032x}", self.nonce),
        ];
        (0..self.manifest.count()).map(move |index| {
            let index = index.to_string();
            let [epoch, number, nonce] = &stem;
            Key::new([CHUNKS, epoch, number, nonce, &index]).expect("digits make a short key")
        })
    }
}

/// The root that brought the chunk with this key: chunks at or below the
/// committed one that it does not name are garbage for ever.
pub fn chunk_version(key: &Key) -> Option<Version> {
    match key.parts().as_slice() {
        [first, epoch, number, _nonce, _index] if first == CHUNKS => Some(Version {
            epoch: epoch.parse().ok()?,
            number: number.parse().ok()?,
        }),
        _ => None,
    }
}

impl Place {
    /// Keeps `bytes` inside if they are at most `inside_max`, and cuts them
    /// into chunks otherwise.
    pub(super) fn of(
        bytes: Vec<u8>,
        inside_max: usize,
        chunk_bytes_max: usize,
        (version, nonce): (Version, u128),
        chunks: &mut Vec<(Key, Vec<u8>)>,
    ) -> Result<Self, Invalid> {
        if bytes.len() <= inside_max {
            return Ok(Self::Inside(bytes.into()));
        }
        let (manifest, pieces) = ChunkManifest::split(&bytes, chunk_bytes_max)?;
        let set = ChunkSet {
            version,
            nonce,
            manifest,
        };
        chunks.extend(set.keys().zip(pieces.iter().map(|piece| piece.to_vec())));
        Ok(Self::Beside(set))
    }

    pub(super) fn chunk_keys(&self) -> Vec<Key> {
        match self {
            Self::Inside(_) => Vec::new(),
            Self::Beside(set) => set.keys().collect(),
        }
    }

    /// The bytes, with chunks taken from wherever the caller has them.
    pub(super) fn bytes(
        &self,
        chunk: &impl Fn(&Key) -> Option<Arc<[u8]>>,
    ) -> Result<Arc<[u8]>, AssembleError> {
        match self {
            Self::Inside(bytes) => Ok(Arc::clone(bytes)),
            Self::Beside(set) => {
                let mut chunks = Vec::new();
                for key in set.keys() {
                    chunks.push(chunk(&key).ok_or(AssembleError::Missing(key))?);
                }
                Ok(set.manifest.join(&chunks)?.into())
            }
        }
    }

    pub(super) fn put(&self, writer: &mut Writer) {
        match self {
            Self::Inside(bytes) => {
                writer.byte(0);
                writer.bytes(bytes);
            }
            Self::Beside(set) => {
                writer.byte(1);
                put_version(writer, set.version);
                writer.wide(set.nonce);
                writer.number(u64::from(set.manifest.count()));
                writer.number(set.manifest.bytes());
                writer.fixed(set.manifest.checksum());
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>, inside_max: usize) -> Result<Self, Invalid> {
        match reader.byte()? {
            0 => Ok(Self::Inside(reader.bytes(inside_max)?.into())),
            1 => {
                let (version, nonce) = (read_version(reader)?, reader.wide()?);
                let (count, bytes) = (reader.number_u32()?, reader.number()?);
                Ok(Self::Beside(ChunkSet {
                    version,
                    nonce,
                    manifest: ChunkManifest::new(count, bytes, reader.fixed()?)?,
                }))
            }
            other => Err(reader.wrong(other, "is no place for bytes")),
        }
    }
}
