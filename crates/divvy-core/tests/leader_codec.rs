//! The records of leader mode as bytes: what is written is read again, small
//! changes are small writes, and nothing hostile gets through.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::{
    AssembleError, Committed, EPOCH_MAX, EncodedRoot, Holding, LeaderRecord, Life, Lifecycle,
    ROOT_BYTES_MAX, Root, RootHead, STOPPING_MAX, SessionEntry, SessionId, TIMING_MAX,
    VERSION_NUMBER_MAX, Version, WorkerRecord, chunk_version, encode_root,
};
use divvy_core::store::{CHUNK_BYTES_MAX, Incarnation, Key, Revision, Token};
use divvy_core::{Health, Partitions};
use proptest::prelude::*;

const STORE_VALUE: usize = CHUNK_BYTES_MAX;

fn version(epoch: u64, number: u32) -> Version {
    Version { epoch, number }
}

/// A root in which worker `i % workers` holds partition `i`.
fn spread(partitions: &Partitions, workers: u32, at: Version) -> Root {
    let sessions = (0..workers).map(|worker| SessionEntry {
        session: SessionId(u128::from(worker) + 1),
        worker: format!("worker-{worker}").into(),
        seen: Revision::new(u64::from(worker) + 7).unwrap(),
    });
    let token = at.token().unwrap();
    let holdings = (0..partitions.len() as u32).map(|index| Holding::Held {
        session: index.wrapping_mul(2_654_435_761) % workers,
        token,
    });
    Root {
        incarnation: Incarnation::new("run-1"),
        version: at,
        lifecycle: Lifecycle::Stable,
        quarantine: false,
        answered: 0,
        lease: Duration::from_millis(700),
        sessions: sessions.collect(),
        holdings: holdings.collect(),
    }
}

/// A store of chunks, as a leader would have written them.
#[derive(Default)]
struct Chunks(BTreeMap<Key, Arc<[u8]>>);

impl Chunks {
    fn write(&mut self, encoded: &EncodedRoot) {
        for (key, bytes) in &encoded.chunks {
            assert!(bytes.len() <= STORE_VALUE);
            let before = self.0.insert(key.clone(), bytes.as_slice().into());
            assert!(before.is_none(), "{key} was written twice");
        }
    }

    fn read(&self, head: &[u8], known: Option<&Committed>) -> Committed {
        let head = RootHead::decode(head).unwrap();
        let wanted = head.chunk_keys(known);
        let chunk = |key: &Key| {
            assert!(wanted.contains(key), "{key} was not announced");
            self.0.get(key).cloned()
        };
        head.assemble(known, chunk).unwrap()
    }
}

#[test]
fn a_million_partitions_are_written_and_read_again() {
    let partitions = Partitions::shards([("orders", 1_000_000)]).unwrap();
    let root = spread(&partitions, 1000, version(1_760_000_000_000, 1));
    let encoded = encode_root(root.clone(), &partitions, None, 42, STORE_VALUE).unwrap();
    let base_bytes: usize = encoded.chunks.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(
        encoded.head.len() < 1024 && base_bytes < 12_000_000,
        "{base_bytes}"
    );
    let mut chunks = Chunks::default();
    chunks.write(&encoded);
    let read = chunks.read(&encoded.head, None);
    assert_eq!((read.root, read.partitions), (root, partitions));
}

#[test]
fn entries_of_a_hundred_thousand_partitions_are_about_two_bytes_each() {
    let partitions = Partitions::shards([("orders", 100_000)]).unwrap();
    let root = spread(&partitions, 1000, version(1_760_000_000_000, 1));
    let first = encode_root(root.clone(), &partitions, None, 1, STORE_VALUE).unwrap();
    // The list is written once; only the base is written anew when it folds.
    let all = first.committed.chunk_keys().len();
    let mut moved = root;
    moved.version.number = 2;
    for holding in moved.holdings.iter_mut() {
        let token = moved.version.token().unwrap();
        *holding = Holding::Held { session: 3, token };
    }
    moved.holdings[7] = Holding::None;
    let second = encode_root(moved, &partitions, Some(&first.committed), 2, STORE_VALUE).unwrap();
    let bytes: usize = second.chunks.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 250_000 && second.chunks.len() < all, "{bytes}");
}

#[test]
fn a_change_among_a_hundred_thousand_partitions_is_a_small_write_without_chunks() {
    let partitions = Partitions::shards([("orders", 100_000)]).unwrap();
    let mut root = spread(&partitions, 1000, version(1_760_000_000_000, 1));
    let first = encode_root(root.clone(), &partitions, None, 1, STORE_VALUE).unwrap();
    let mut chunks = Chunks::default();
    chunks.write(&first);
    let known = chunks.read(&first.head, None);

    root.version.number = 2;
    let since = root.version;
    for holding in root.holdings.iter_mut().step_by(1000) {
        *holding = Holding::Revoking { session: 5, since };
    }
    let second = encode_root(root.clone(), &partitions, Some(&known), 2, STORE_VALUE).unwrap();
    assert!(second.chunks.is_empty() && second.head.len() < 2000);
    // Who knows the last root reads no chunk again; who does not, reads all.
    let head = RootHead::decode(&second.head).unwrap();
    assert!(head.chunk_keys(Some(&known)).is_empty());
    assert_eq!(chunks.read(&second.head, Some(&known)).root, root);
    assert_eq!(chunks.read(&second.head, None).root, root);
}

#[test]
fn changes_are_folded_into_a_new_base_before_the_root_outgrows_its_bound() {
    let partitions = Partitions::shards([("orders", 60_000)]).unwrap();
    let mut root = spread(&partitions, 50, version(1_760_000_000_000, 1));
    let mut chunks = Chunks::default();
    let mut known: Option<Committed> = None;
    let mut folds = 0;
    for round in 1..60_u32 {
        root.version.number = round;
        let token = root.version.token().unwrap();
        for step in 0..900 {
            let index = (round * 7919 + step * 61) as usize % root.holdings.len();
            root.holdings[index] = Holding::Held {
                session: step % 50,
                token,
            };
        }
        let encoded = encode_root(
            root.clone(),
            &partitions,
            known.as_ref(),
            u128::from(round),
            STORE_VALUE,
        )
        .unwrap();
        assert!(encoded.head.len() <= ROOT_BYTES_MAX);
        folds += u32::from(!encoded.chunks.is_empty());
        chunks.write(&encoded);
        assert_eq!(chunks.read(&encoded.head, known.as_ref()).root, root);
        let named = encoded.committed.chunk_keys();
        assert!(
            named
                .iter()
                .all(|key| chunk_version(key).unwrap() <= root.version)
        );
        known = Some(encoded.committed);
    }
    assert!((2..30).contains(&folds), "{folds}");
}

#[test]
fn a_store_of_small_values_gets_small_chunks() {
    let partitions = Partitions::shards([("orders", 20_000)]).unwrap();
    let root = spread(&partitions, 10, version(9, 1));
    let encoded = encode_root(root.clone(), &partitions, None, 3, 32 * 1024).unwrap();
    assert!(
        encoded
            .chunks
            .iter()
            .all(|(_, bytes)| bytes.len() <= 32 * 1024)
    );
    assert!(encoded.head.len() <= 32 * 1024);
    let mut chunks = Chunks::default();
    chunks.write(&encoded);
    assert_eq!(chunks.read(&encoded.head, None).root, root);
    assert!(encode_root(root, &partitions, None, 3, 1000).is_err());
}

#[test]
fn a_missing_chunk_is_named_and_an_exchanged_one_is_refused() {
    let partitions = Partitions::shards([("orders", 100_000)]).unwrap();
    let root = spread(&partitions, 10, version(9, 1));
    let encoded = encode_root(root, &partitions, None, 3, STORE_VALUE).unwrap();
    let mut chunks = Chunks::default();
    chunks.write(&encoded);
    let head = RootHead::decode(&encoded.head).unwrap();
    let last = chunks.0.last_key_value().unwrap().0.clone();
    let without = head.assemble(None, |key| {
        chunks.0.get(key).filter(|_| *key != last).cloned()
    });
    assert_eq!(without.unwrap_err(), AssembleError::Missing(last.clone()));
    let mut bytes = chunks.0[&last].to_vec();
    bytes[3] ^= 1;
    chunks.0.insert(last, bytes.into());
    let exchanged = head.assemble(None, |key| chunks.0.get(key).cloned());
    assert!(matches!(exchanged, Err(AssembleError::Invalid(_))));
}

#[test]
fn a_record_of_a_later_format_is_refused_by_name() {
    let mut bytes = leader().encode();
    bytes[2] = 9;
    let error = LeaderRecord::decode(&bytes).unwrap_err().to_string();
    assert!(
        error.contains("format 9") && error.contains("reads 1..=1"),
        "{error}"
    );
}

/// The record of a worker as it was stored when records could not name what
/// does not start.
const OLDER: &str = "d7020105706f642d37efcdab89674523010000000000000000ac0280f882ad160080d095ffbc3103010700000000\
    00000080d095ffbc310463000000000000000440016101001b39894fbb05be71";

fn older() -> WorkerRecord {
    WorkerRecord {
        instance: "pod-7".into(),
        session: SessionId(0x0123_4567_89ab_cdef),
        beat: 300,
        lease: Duration::from_secs(6),
        life: Life::Live,
        acked: version(1_700_000_000_000, 3),
        stopping: vec![7],
        adopted: version(1_700_000_000_000, 4),
        token_max: Token::new(99),
        health: Health::Healthy,
        weight: 2.5,
        zone: Some("a".into()),
        refresh: 1,
        alarm: 0,
        unable: Vec::new(),
        longest: Duration::from_secs(6),
    }
}

#[test]
fn a_worker_record_that_names_nothing_unstartable_is_what_it_always_was() {
    let bytes = older().encode();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, OLDER);
    assert_eq!(WorkerRecord::decode(&bytes).unwrap(), older());
}

#[test]
fn what_a_worker_cannot_start_is_in_order_bounded_and_never_an_empty_list() {
    let with = |unable: Vec<u64>| {
        let record = WorkerRecord { unable, ..older() };
        WorkerRecord::decode(&record.encode()).map(|record| record.unable)
    };
    assert_eq!(with(vec![1, 2]).unwrap(), [1, 2]);
    for wrong in [vec![2, 1], vec![3, 3]] {
        assert!(with(wrong).unwrap_err().to_string().contains("in order"));
    }
    let mut empty = older().encode();
    empty.truncate(empty.len() - 8);
    empty.push(0);
    empty.extend(divvy_core::hash::bytes64(&empty, 0).to_le_bytes());
    assert!(WorkerRecord::decode(&empty).is_err());
}

fn leader() -> LeaderRecord {
    LeaderRecord {
        epoch: 1_760_000_000_000,
        session: SessionId(77),
        beat: 12,
        lease: Duration::from_millis(400),
    }
}

fn worker_records() -> impl Strategy<Value = WorkerRecord> {
    let spans = (0..=TIMING_MAX.as_nanos() as u64).prop_map(Duration::from_nanos);
    let epochs = 0..=EPOCH_MAX;
    let life = prop_oneof![
        Just(Life::Live),
        Just(Life::Fenced),
        spans.clone().prop_map(|keep_for| Life::Left { keep_for }),
    ];
    let versions =
        (epochs.clone(), 0..=VERSION_NUMBER_MAX).prop_map(|(epoch, number)| version(epoch, number));
    let seen = (
        versions.clone(),
        prop::collection::vec(any::<u64>(), 0..20),
        versions,
        0..i64::MAX,
    );
    let said = (
        any::<bool>(),
        prop_oneof![Just(0.0), 1e-6..1e6_f64],
        prop::option::of("[a-z]{1,9}"),
        any::<u64>(),
        epochs,
        prop::collection::btree_set(any::<u64>(), 0..20),
        spans.clone(),
    );
    let own = ("[ -~]{0,40}", any::<u128>(), any::<u64>(), spans, life);
    (own, seen, said).prop_map(|(own, seen, said)| WorkerRecord {
        instance: own.0.into(),
        session: SessionId(own.1),
        beat: own.2,
        lease: own.3,
        life: own.4,
        acked: seen.0,
        stopping: seen.1,
        adopted: seen.2,
        token_max: Token::new(seen.3),
        health: if said.0 {
            Health::Healthy
        } else {
            Health::Unhealthy
        },
        weight: said.1,
        zone: said.2.map(Into::into),
        refresh: said.3,
        alarm: said.4,
        unable: said.5.into_iter().collect(),
        longest: said.6.max(own.3),
    })
}

fn roots() -> impl Strategy<Value = (Root, Partitions)> {
    let entry = (any::<u128>(), "[a-z0-9-]{1,20}", 1..u64::MAX);
    let sessions = prop::collection::vec(entry, 1..6);
    let holdings = prop::collection::vec(
        (0..3_u8, any::<u32>(), 1..1_u64 << 40, 0..1_u32 << 20),
        0..60,
    );
    (sessions, holdings, any::<bool>(), 0..3_u8).prop_map(
        |(sessions, holdings, quarantine, life)| {
            let count = sessions.len() as u32;
            let holding = |(kind, session, epoch, number): (u8, u32, u64, u32)| {
                let (session, at) = (session % count, version(epoch, number));
                match kind {
                    0 => Holding::None,
                    1 => Holding::Held {
                        session,
                        token: at.token().unwrap(),
                    },
                    _ => Holding::Revoking { session, since: at },
                }
            };
            let holdings: Vec<_> = holdings.into_iter().map(holding).collect();
            let partitions = Partitions::shards([("p", holdings.len() as u32)]).unwrap();
            let root = Root {
                incarnation: Incarnation::new("life"),
                version: version(5, 6),
                lifecycle: [
                    Lifecycle::ColdStart,
                    Lifecycle::PostColdStart,
                    Lifecycle::Stable,
                ][life as usize],
                quarantine,
                answered: if quarantine { 5 } else { 0 },
                lease: Duration::from_secs(6),
                sessions: sessions
                    .into_iter()
                    .map(|(session, worker, seen)| SessionEntry {
                        session: SessionId(session),
                        worker: worker.into(),
                        seen: Revision::new(seen).unwrap(),
                    })
                    .collect(),
                holdings,
            };
            (root, partitions)
        },
    )
}

proptest! {
    #[test]
    fn every_worker_record_is_read_as_it_was_written(record in worker_records()) {
        prop_assert!(record.stopping.len() <= STOPPING_MAX);
        prop_assert_eq!(WorkerRecord::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn every_root_is_read_as_it_was_written((root, partitions) in roots(), (next, _) in roots()) {
        let first = encode_root(root.clone(), &partitions, None, 1, STORE_VALUE).unwrap();
        let mut chunks = Chunks::default();
        chunks.write(&first);
        let known = chunks.read(&first.head, None);
        prop_assert_eq!(&known.root, &root);
        prop_assert_eq!(&known.partitions, &partitions);
        // A successor over the same partitions, whatever its sessions are.
        let mut next = next;
        next.holdings.resize(partitions.len(), Holding::None);
        let second = encode_root(next.clone(), &partitions, Some(&known), 2, STORE_VALUE).unwrap();
        chunks.write(&second);
        prop_assert_eq!(chunks.read(&second.head, Some(&known)).root, next);
    }

    #[test]
    fn a_flipped_byte_or_a_cut_is_refused(record in worker_records(), (root, partitions) in roots(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let values = [
            leader().encode(),
            record.encode(),
            encode_root(root, &partitions, None, 1, STORE_VALUE).unwrap().head,
        ];
        for (kind, bytes) in values.iter().enumerate() {
            let mut flipped = bytes.clone();
            flipped[at.index(bytes.len())] ^= 1 << bit;
            let cut = &bytes[..at.index(bytes.len())];
            for hostile in [&flipped[..], cut] {
                let refused = match kind {
                    0 => LeaderRecord::decode(hostile).is_err(),
                    1 => WorkerRecord::decode(hostile).is_err(),
                    _ => RootHead::decode(hostile).is_err(),
                };
                prop_assert!(refused);
            }
        }
    }

    /// A checksum keeps accidents out, not malice: bodies that match theirs
    /// must be refused or read without a panic and without much memory.
    #[test]
    fn hostile_bodies_with_a_right_checksum_neither_panic_nor_allocate(kind in 1..=3_u8, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![0xD7, kind, 1];
        bytes.extend(body);
        let checksum = divvy_core::hash::bytes64(&bytes, 0);
        bytes.extend(checksum.to_le_bytes());
        let _leader = LeaderRecord::decode(&bytes);
        let _worker = WorkerRecord::decode(&bytes);
        if let Ok(head) = RootHead::decode(&bytes) {
            let _root = head.assemble(None, |_| None);
        }
    }

    #[test]
    fn a_mutated_root_with_a_right_checksum_never_panics((root, partitions) in roots(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = encode_root(root, &partitions, None, 1, STORE_VALUE).unwrap().head;
        bytes.truncate(bytes.len() - 8);
        for (at, byte) in edits {
            let place = at.index(bytes.len());
            bytes[place] = byte;
        }
        let checksum = divvy_core::hash::bytes64(&bytes, 0);
        bytes.extend(checksum.to_le_bytes());
        if let Ok(head) = RootHead::decode(&bytes)
            && let Ok(read) = head.assemble(None, |_| None)
        {
            prop_assert_eq!(read.root.holdings.len(), read.partitions.len());
        }
    }
}
