//! The reference of a key-value store, against a plain description of it.

use std::collections::BTreeMap;

use divvy_core::store::{Expected, Key, KeyValueTable, Outcome, Prefix, Revision};
use proptest::collection::vec;
use proptest::prelude::*;

const KEYS: [&[&str]; 6] = [
    &["w"],
    &["w", "1"],
    &["w", "2"],
    &["work", "1"],
    &["w.", "1"],
    &["*"],
];

fn key(at: usize) -> Key {
    Key::new(KEYS[at].iter().copied()).unwrap()
}

/// A write: of which key, what it expects (the current state, absence, an
/// earlier revision, or nonsense), and the value, or a deletion.
#[derive(Debug, Clone)]
struct Write {
    key: usize,
    expects: u8,
    back: prop::sample::Index,
    value: Option<Vec<u8>>,
}

fn write() -> impl Strategy<Value = Write> {
    let value = prop::option::weighted(0.7, vec(any::<u8>(), 0..4));
    (0..KEYS.len(), 0_u8..8, any::<prop::sample::Index>(), value).prop_map(
        |(key, expects, back, value)| Write {
            key,
            expects,
            back,
            value,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_write_happens_exactly_if_the_key_is_as_expected(writes in vec(write(), 1..80)) {
        let mut table = KeyValueTable::default();
        let mut now: BTreeMap<Key, (Vec<u8>, Revision)> = BTreeMap::new();
        let mut given: Vec<Revision> = Vec::new();
        for write in writes {
            let key = key(write.key);
            let current = now.get(&key).map(|(_, revision)| *revision);
            let expected = match write.expects {
                0..5 => Expected::from(current),
                5 => Expected::Absent,
                6 if !given.is_empty() => Expected::At(given[write.back.index(given.len())]),
                _ => Expected::At(Revision::new(u64::MAX).unwrap()),
            };
            let outcome = match (&write.value, expected) {
                (Some(value), _) => table.compare_and_set(&key, expected, value),
                (None, Expected::At(revision)) => table.delete(&key, revision),
                (None, Expected::Absent) => continue,
            };
            prop_assert_eq!(outcome.is_conflict(), expected != Expected::from(current));
            if let Outcome::Done(revision) = outcome {
                // One counter numbers all writes, so each is above all before.
                prop_assert!(given.iter().all(|before| revision > *before));
                given.push(revision);
                match write.value {
                    Some(value) => drop(now.insert(key, (value, revision))),
                    None => drop(now.remove(&key)),
                }
            }
            for prefix in [Prefix::ALL, Prefix::below(Key::new(["w"]).unwrap())] {
                let listed = table.list(&prefix);
                let held = now.iter().filter(|(key, _)| prefix.holds(key));
                prop_assert!(listed.is_sorted_by(|a, b| a.key.as_str() < b.key.as_str()));
                prop_assert!(listed.iter().map(|entry| &entry.key).eq(held.map(|(key, _)| key)));
                for entry in listed {
                    prop_assert_eq!(table.get(&entry.key), Some(entry.clone()));
                    prop_assert_eq!((entry.value.to_vec(), entry.revision), now[&entry.key].clone());
                }
            }
        }
    }
}
