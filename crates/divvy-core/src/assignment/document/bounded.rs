//! Lists and maps of a document, read no further than their limits.
//!
//! A document comes from outside. Whatever it holds too much of is refused
//! when the limit is reached, not when everything is in memory; and a key that
//! stands twice is refused, which serde would settle by losing the first.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::WorkerLoad;
use crate::partition::PARTITIONS_MAX;
use crate::worker::WORKERS_MAX;

/// `{worker: [partition, ...], ...}`.
pub(super) fn assignments<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    deserializer.deserialize_map(Assignments)
}

/// `{partition: weight, ...}`.
pub(super) fn weights<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, i64>, D::Error> {
    deserializer.deserialize_map(Weights)
}

/// `[worker, ...]`.
pub(super) fn workers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<WorkerLoad>, D::Error> {
    let mut room = WORKERS_MAX;
    List::new("workers", WORKERS_MAX, &mut room).deserialize(deserializer)
}

struct Assignments;

impl<'de> Visitor<'de> for Assignments {
    type Value = BTreeMap<String, Vec<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of workers to lists of partitions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        let mut room = PARTITIONS_MAX;
        while let Some(worker) = access.next_key::<String>()? {
            check(&map, &worker, "workers", WORKERS_MAX)?;
            let list = List::new("partitions", PARTITIONS_MAX, &mut room);
            map.insert(worker, access.next_value_seed(list)?);
        }
        Ok(map)
    }
}

struct Weights;

impl<'de> Visitor<'de> for Weights {
    type Value = BTreeMap<String, i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of partitions to weights")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(partition) = access.next_key::<String>()? {
            check(&map, &partition, "weights", PARTITIONS_MAX)?;
            map.insert(partition, access.next_value()?);
        }
        Ok(map)
    }
}

/// Whether `map` may have one more entry of this key.
fn check<V, E: Error>(
    map: &BTreeMap<String, V>,
    key: &str,
    what: &str,
    max: usize,
) -> Result<(), E> {
    if map.contains_key(key) {
        return Err(E::custom(format_args!("'{key}' stands twice")));
    }
    if map.len() == max {
        return Err(too_many(what, max));
    }
    Ok(())
}

fn too_many<E: Error>(what: &str, max: usize) -> E {
    E::custom(format_args!("too many {what}, at most {max} are allowed"))
}

/// A list that takes from the room that several lists share.
struct List<'a, T> {
    what: &'static str,
    max: usize,
    room: &'a mut usize,
    items: PhantomData<T>,
}

impl<'a, T> List<'a, T> {
    fn new(what: &'static str, max: usize, room: &'a mut usize) -> Self {
        Self {
            what,
            max,
            room,
            items: PhantomData,
        }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for List<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            *self.room = self
                .room
                .checked_sub(1)
                .ok_or_else(|| too_many(self.what, self.max))?;
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_share_room_are_refused_where_it_ends() {
        let read = |json: &str, room: &mut usize| {
            let mut json = serde_json::Deserializer::from_str(json);
            List::<String>::new("names", 3, room).deserialize(&mut json)
        };
        let mut room = 3;
        assert_eq!(read(r#"["a", "b"]"#, &mut room).unwrap(), ["a", "b"]);
        let error = read(r#"["c", "d", "e"]"#, &mut room)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("too many names, at most 3 are allowed"),
            "{error}"
        );
    }

    #[test]
    fn a_map_ends_at_its_limit() {
        let full: BTreeMap<String, ()> = ["a", "b"].map(|key| (key.to_owned(), ())).into();
        let refused = |key, max| check::<_, serde_json::Error>(&full, key, "keys", max).is_err();
        assert!(refused("c", 2));
        assert!(!refused("c", 3));
        assert!(refused("a", 3));
    }
}
