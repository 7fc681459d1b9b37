//! Large values in pieces that every store takes.
//!
//! Servers bound the size of a value, so what is larger is written as chunks
//! under names that are never used again, and then named, whole, by one small
//! value: its manifest. A reader that misses a chunk, or finds another one,
//! knows it, and reads the small value again.

use crate::error::Invalid;
use crate::hash;

/// Largest chunk, in bytes; smaller where a store takes less.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// Most chunks of one value: 1 GiB of the largest.
pub const CHUNKS_MAX: u32 = 4096;

/// What a large value is made of: enough to ask for every chunk, and to know
/// that together they are what was written.
///
/// ```
/// use divvy_core::store::ChunkManifest;
///
/// let value = vec![7; 1000];
/// let (manifest, chunks) = ChunkManifest::split(&value, 300)?;
/// assert_eq!(manifest.count(), 4);
/// assert_eq!(manifest.join(&chunks)?, value);
/// assert!(manifest.join(&chunks[..3]).is_err());
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkManifest {
    count: u32,
    bytes: u64,
    checksum: u64,
}

impl ChunkManifest {
    /// Cuts `value` into chunks of at most `chunk_bytes_max`, which is at least
    /// 1 and at most [`CHUNK_BYTES_MAX`].
    pub fn split(value: &[u8], chunk_bytes_max: usize) -> Result<(Self, Vec<&[u8]>), Invalid> {
        if chunk_bytes_max == 0 || chunk_bytes_max > CHUNK_BYTES_MAX {
            let rule = format!("must be in 1..={CHUNK_BYTES_MAX}");
            return Err(Invalid::new("chunk bytes", chunk_bytes_max, rule));
        }
        let chunks: Vec<&[u8]> = value.chunks(chunk_bytes_max).collect();
        let count = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
        let manifest = Self::new(count, value.len() as u64, hash::bytes64(value, 0))?;
        Ok((manifest, chunks))
    }

    /// A manifest that was read. Hostile sizes are refused here, before
    /// anything is allocated for them.
    pub fn new(count: u32, bytes: u64, checksum: u64) -> Result<Self, Invalid> {
        if count > CHUNKS_MAX {
            let rule = format!("must be at most {CHUNKS_MAX}");
            return Err(Invalid::new("chunk count", count, rule));
        }
        let fits = u64::from(count)..=u64::from(count) * CHUNK_BYTES_MAX as u64;
        if !fits.contains(&bytes) {
            let rule = format!(
                "must be in {}..={} for {count} chunks",
                fits.start(),
                fits.end()
            );
            return Err(Invalid::new("chunked bytes", bytes, rule));
        }
        Ok(Self {
            count,
            bytes,
            checksum,
        })
    }

    /// How many chunks there are.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// How large the whole is.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The native hash of the whole.
    pub const fn checksum(&self) -> u64 {
        self.checksum
    }

    /// The whole again, if these are its chunks in order.
    pub fn join(&self, chunks: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, Invalid> {
        let found: u64 = chunks.iter().map(|chunk| chunk.as_ref().len() as u64).sum();
        if chunks.len() as u64 != u64::from(self.count) || found != self.bytes {
            let value = format!("{found} bytes in {}", chunks.len());
            let rule = format!("must be {} bytes in {}", self.bytes, self.count);
            return Err(Invalid::new("chunks", value, rule));
        }
        let mut whole = Vec::with_capacity(chunks.iter().map(|chunk| chunk.as_ref().len()).sum());
        for chunk in chunks {
            whole.extend_from_slice(chunk.as_ref());
        }
        let checksum = hash::bytes64(&whole, 0);
        if checksum != self.checksum {
            let rule = format!("must be {:016x}", self.checksum);
            return Err(Invalid::new(
                "chunks' checksum",
                format!("{checksum:016x}"),
                rule,
            ));
        }
        Ok(whole)
    }
}
