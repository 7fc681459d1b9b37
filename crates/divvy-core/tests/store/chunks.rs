//! Large values in chunks, and manifests that lie.

use divvy_core::store::{CHUNK_BYTES_MAX, CHUNKS_MAX, ChunkManifest};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_value_comes_back(value in vec(any::<u8>(), 0..3000), size in 1_usize..700) {
        let (manifest, chunks) = ChunkManifest::split(&value, size).unwrap();
        prop_assert_eq!(manifest.bytes(), value.len() as u64);
        prop_assert_eq!(manifest.count() as usize, chunks.len());
        prop_assert!(chunks.iter().all(|chunk| (1..=size).contains(&chunk.len())));
        let read = ChunkManifest::new(manifest.count(), manifest.bytes(), manifest.checksum());
        prop_assert_eq!(read.unwrap().join(&chunks).unwrap(), value);
    }

    #[test]
    fn chunks_of_another_value_are_refused(
        value in vec(any::<u8>(), 2..2000),
        size in 1_usize..500,
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
    ) {
        let (manifest, chunks) = ChunkManifest::split(&value, size).unwrap();
        let mut wrong: Vec<Vec<u8>> = chunks.iter().map(|chunk| chunk.to_vec()).collect();
        let which = at.index(wrong.len());
        // One lost, one twice, one swapped, one bit, one byte more.
        let mut lost = wrong.clone();
        lost.remove(which);
        prop_assert!(manifest.join(&lost).is_err());
        let mut twice = wrong.clone();
        twice.insert(which, wrong[which].clone());
        prop_assert!(manifest.join(&twice).is_err());
        let mut swapped = wrong.clone();
        swapped.rotate_left(1);
        prop_assert_eq!(manifest.join(&swapped).is_ok(), swapped.concat() == value);
        wrong[which][0] ^= flip;
        prop_assert!(manifest.join(&wrong).is_err());
        wrong[which][0] ^= flip;
        prop_assert!(manifest.join(&wrong).is_ok());
        wrong[which].push(0);
        prop_assert!(manifest.join(&wrong).is_err());
    }

    #[test]
    fn a_manifest_that_was_read_is_possible_or_refused(count: u32, bytes: u64, checksum: u64) {
        let possible = count <= CHUNKS_MAX
            && bytes >= u64::from(count)
            && bytes <= u64::from(count) * CHUNK_BYTES_MAX as u64;
        prop_assert_eq!(ChunkManifest::new(count, bytes, checksum).is_ok(), possible);
        // Also where the count is right at the edge.
        let count = count % (CHUNKS_MAX + 2);
        let most = u64::from(count) * CHUNK_BYTES_MAX as u64;
        let fits = count <= CHUNKS_MAX;
        prop_assert_eq!(ChunkManifest::new(count, most, checksum).is_ok(), fits);
        prop_assert!(ChunkManifest::new(count, most + 1, checksum).is_err());
    }
}

#[test]
fn hostile_manifests_cost_nothing() {
    let empty: [&[u8]; 0] = [];
    assert!(ChunkManifest::new(u32::MAX, u64::MAX, 0).is_err());
    assert!(ChunkManifest::new(0, 1, 0).is_err());
    assert!(ChunkManifest::new(1, 0, 0).is_err());
    let huge = u64::from(CHUNKS_MAX) * CHUNK_BYTES_MAX as u64;
    let huge = ChunkManifest::new(CHUNKS_MAX, huge, 0).unwrap();
    assert!(huge.join(&empty).is_err());
    let nothing = ChunkManifest::new(0, 0, 0).unwrap();
    assert!(
        nothing.join(&empty).is_err(),
        "the checksum of nothing is not 0"
    );
    let (nothing, chunks) = ChunkManifest::split(b"", 1).unwrap();
    assert_eq!(nothing.join(&chunks).unwrap(), b"");
}

#[test]
fn sizes_out_of_bounds_are_refused() {
    assert!(ChunkManifest::split(b"x", 0).is_err());
    assert!(ChunkManifest::split(b"x", CHUNK_BYTES_MAX).is_ok());
    assert!(ChunkManifest::split(b"x", CHUNK_BYTES_MAX + 1).is_err());
    let many = vec![0; CHUNKS_MAX as usize + 1];
    assert!(ChunkManifest::split(&many[1..], 1).is_ok());
    let error = ChunkManifest::split(&many, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "chunk count '4097': must be at most 4096"
    );
}
