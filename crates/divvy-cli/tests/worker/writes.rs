//! What a process wrote down of its attempts to write to the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use divvy::store::{Entry, Expected, Key, Revision};
use divvy_sim::{Answer, Attempt, History};
use serde_json::Value;

use crate::fleet::moment;

/// Adds all attempts of a process, those too that it did not live to see the
/// answer of.
pub(crate) fn read(path: &Path, by: usize, history: &mut History) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut tried: BTreeMap<u64, Attempt> = BTreeMap::new();
    // What comes after the last end of a line was cut off by a kill.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for line in whole.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(found) = line["found"].as_u64() {
            history.found(&Entry {
                key: key(&line),
                value: bytes(line["value"].as_str().unwrap()),
                revision: Revision::new(found).unwrap(),
            });
            continue;
        }
        let number = line["number"].as_u64().unwrap();
        match line.get("made") {
            Some(made) => {
                let made = made.as_u64().map(|made| Revision::new(made).unwrap());
                let attempt = tried.get_mut(&number).expect("it was begun");
                attempt.answer = made.map_or(Answer::Refused, Answer::Made);
            }
            None => {
                tried.insert(number, begun(&line, by));
            }
        }
    }
    assert!(!tried.is_empty(), "nothing was written");
    tried
        .into_values()
        .for_each(|attempt| history.tried(attempt));
}

fn begun(line: &Value, by: usize) -> Attempt {
    let expected = line["expected"].as_u64();
    let value = line["value"].as_str().map(bytes);
    Attempt {
        by,
        sent: moment(&line["at_us"]).unwrap(),
        key: key(line),
        expected: Expected::from(expected.map(|expected| Revision::new(expected).unwrap())),
        value,
        answer: Answer::Unknown,
    }
}

fn key(line: &Value) -> Key {
    Key::parse(line["key"].as_str().unwrap()).unwrap()
}

fn bytes(text: &str) -> Arc<[u8]> {
    let digits = text.as_bytes().chunks(2);
    let byte = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}
