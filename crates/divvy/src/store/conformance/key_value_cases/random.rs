//! Random writes, compared with the reference.

use std::collections::BTreeMap;
use std::sync::Arc;

use divvy_core::store::{Entry, Expected, Key, KeyValueTable, Outcome, Prefix, Revision};
use fastrand::Rng;
use tokio::task::JoinSet;

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;
use super::races::joined;

/// Whatever several clients do one after the other, with right, past, foreign
/// and impossible expectations, comes out as in the reference.
pub async fn random_writes_are_as_in_the_model(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("random_writes_are_as_in_the_model", options);
    let clients = KeyValueClient::open_many(&run, subject, 4).await?;
    let mut random = run.random();
    let mut model = Model::new(run.clone());
    for _ in 0..options.operations {
        let client = &clients[random.usize(..clients.len())];
        let key = model.keys[random.usize(..model.keys.len())].clone();
        match random.u8(..20) {
            0..10 => {
                let expected = model.expectation(&key, &mut random);
                let value: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
                let outcome = client.compare_and_set(&key, expected, &value).await?;
                model.wrote(&key, expected, &value, outcome)?;
            }
            10..15 => {
                if let Expected::At(revision) = model.expectation(&key, &mut random) {
                    let outcome = client.delete(&key, revision).await?;
                    model.deleted(&key, revision, outcome)?;
                }
            }
            15..19 => model.agrees_on(&key, client).await?,
            _ => {
                let prefixes = [Prefix::ALL, Prefix::below(model.keys[0].clone())];
                for prefix in prefixes {
                    client.lists(&prefix, &model.list(&prefix)).await?;
                }
            }
        }
    }
    for client in &clients {
        client
            .lists(&Prefix::ALL, &model.list(&Prefix::ALL))
            .await?;
    }
    Ok(())
}

/// The reference, and how the store under test numbers the same writes.
struct Model {
    run: Run,
    keys: Vec<Key>,
    table: KeyValueTable,
    /// Every state that a key has had in the store, the last one now.
    states: BTreeMap<Key, Vec<Option<Entry>>>,
    /// Every revision that the store has given for a key, deletions included.
    given: BTreeMap<Key, Vec<Revision>>,
}

impl Model {
    fn new(run: Run) -> Self {
        let names: [&[&str]; 8] = [
            &["w"],
            &["w", "1"],
            &["w", "2"],
            &["w", "1", "*"],
            &["work"],
            &["r.oot"],
            &["r", "oot"],
            &["é >"],
        ];
        let key = |parts: &&[&str]| Key::new(parts.iter().copied());
        let keys = names.iter().map(key);
        Self {
            run,
            keys: keys
                .map(|key| key.expect("the suite's own keys are valid"))
                .collect(),
            table: KeyValueTable::default(),
            states: BTreeMap::new(),
            given: BTreeMap::new(),
        }
    }

    /// The entry that the store has now.
    fn now(&self, key: &Key) -> Option<&Entry> {
        self.states.get(key)?.last()?.as_ref()
    }

    fn list(&self, prefix: &Prefix) -> Vec<Entry> {
        let held = self.table.list(prefix);
        held.iter()
            .filter_map(|entry| self.now(&entry.key).cloned())
            .collect()
    }

    /// What a random writer expects: mostly what is true.
    fn expectation(&self, key: &Key, random: &mut Rng) -> Expected {
        let now = Expected::from(self.now(key).map(|entry| entry.revision));
        let other = &self.keys[random.usize(..self.keys.len())];
        let past = |key: &Key, random: &mut Rng| {
            let given = self.given.get(key)?;
            Some(Expected::At(given[random.usize(..given.len())]))
        };
        match random.u8(..10) {
            0..6 => now,
            6 => Expected::Absent,
            7 => past(key, random).unwrap_or(now),
            8 => past(other, random).unwrap_or(now),
            _ => Revision::new(random.u64(..)).map_or(now, Expected::At),
        }
    }

    /// The same expectation in the revisions of the reference.
    fn in_model(&self, key: &Key, expected: Expected) -> Expected {
        let Expected::At(revision) = expected else {
            return Expected::Absent;
        };
        let is_now = self
            .now(key)
            .is_some_and(|entry| entry.revision == revision);
        let current = self.table.get(key).filter(|_| is_now);
        let never = Revision::new(u64::MAX).expect("it is not 0");
        Expected::At(current.map_or(never, |entry| entry.revision))
    }

    fn wrote(
        &mut self,
        key: &Key,
        expected: Expected,
        value: &[u8],
        outcome: Outcome<Revision>,
    ) -> Result<(), Failure> {
        let in_model = self.in_model(key, expected);
        let right = self.table.compare_and_set(key, in_model, value);
        self.same(key, right, outcome)?;
        if let Outcome::Done(revision) = outcome {
            let entry = Entry {
                key: key.clone(),
                value: value.into(),
                revision,
            };
            self.gave(key, revision, Some(entry))?;
        }
        Ok(())
    }

    fn deleted(
        &mut self,
        key: &Key,
        revision: Revision,
        outcome: Outcome<Revision>,
    ) -> Result<(), Failure> {
        let right = match self.in_model(key, Expected::At(revision)) {
            Expected::At(in_model) => self.table.delete(key, in_model),
            Expected::Absent => Outcome::Conflict,
        };
        self.same(key, right, outcome)?;
        match outcome {
            Outcome::Done(deletion) => self.gave(key, deletion, None),
            Outcome::Conflict => Ok(()),
        }
    }

    fn same(
        &self,
        key: &Key,
        right: Outcome<Revision>,
        outcome: Outcome<Revision>,
    ) -> Result<(), Failure> {
        let same = right.is_conflict() == outcome.is_conflict();
        self.run.check(same, || {
            let right = if right.is_conflict() { "lose" } else { "win" };
            format!("the last write of {key} had to {right}, and became {outcome:?}")
        })
    }

    fn gave(&mut self, key: &Key, next: Revision, state: Option<Entry>) -> Result<(), Failure> {
        let given = self.given.entry(key.clone()).or_default();
        let before = given.last().copied();
        given.push(next);
        self.states.entry(key.clone()).or_default().push(state);
        self.run
            .check(before.is_none_or(|before| next > before), || {
                format!("{key} went from revision {before:?} to {next}")
            })
    }

    /// Reads `key` until it is as it is now; until then it is as it once was.
    async fn agrees_on(&self, key: &Key, client: &KeyValueClient) -> Result<(), Failure> {
        let wait = self
            .run
            .wait(format!("{key} is read as it was written last"));
        let states = self.states.get(key);
        loop {
            let found = client.get(key).await?;
            if found.as_ref() == self.now(key) {
                return Ok(());
            }
            let once = states.is_some_and(|states| states.contains(&found)) || found.is_none();
            self.run.check(once, || {
                format!("{key} was read as {found:?}, which nobody ever wrote")
            })?;
            wait.again().await?;
        }
    }
}

/// Writes of many clients at once: those that happened form, for each key, one
/// chain in which everyone saw the one before.
pub async fn concurrent_writes_form_one_chain(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("concurrent_writes_form_one_chain", options);
    let clients = KeyValueClient::open_many(&run, subject, 6).await?;
    let keys: Arc<[Key]> = ["a", "b", "c"]
        .map(|name| Key::new(["chain", name]).expect("the suite's own keys are valid"))
        .into();
    let each = options.operations / clients.len();
    let mut random = run.random();
    let mut writing = JoinSet::new();
    for (number, client) in clients.iter().cloned().enumerate() {
        let (keys, random) = (Arc::clone(&keys), random.fork());
        writing.spawn(write_at_random(client, keys, random, (number, each)));
    }
    let mut links: Vec<Link> = joined(&run, writing).await?.into_iter().flatten().collect();
    links.sort_by_key(|link| (link.key.clone(), link.revision));
    for key in &*keys {
        let mut state = Expected::Absent;
        let mut value = None;
        for link in links.iter().filter(|link| link.key == *key) {
            run.check(link.expected == state, || {
                format!("{link:?} happened while the key was {state:?}")
            })?;
            value = link.value.clone();
            state = Expected::from(value.is_some().then_some(link.revision));
        }
        match (state, value) {
            (Expected::At(at), Some(value)) => clients[0].finds(key, &value, at).await?,
            _ => clients[0].misses(key).await?,
        }
    }
    Ok(())
}

/// A write that happened.
#[derive(Debug)]
struct Link {
    key: Key,
    expected: Expected,
    revision: Revision,
    value: Option<Vec<u8>>,
}

async fn write_at_random(
    client: KeyValueClient,
    keys: Arc<[Key]>,
    mut random: Rng,
    (number, operations): (usize, usize),
) -> Result<Vec<Link>, Failure> {
    let mut links = Vec::new();
    for operation in 0..operations {
        let key = &keys[random.usize(..keys.len())];
        let found = client.get(key).await?;
        let expected = Expected::from(found.map(|entry| entry.revision));
        let (outcome, value) = match expected {
            Expected::At(revision) if random.u8(..4) == 0 => {
                (client.delete(key, revision).await?, None)
            }
            _ => {
                let value = format!("{number}.{operation}").into_bytes();
                let outcome = client.compare_and_set(key, expected, &value).await?;
                (outcome, Some(value))
            }
        };
        links.extend(outcome.done().map(|revision| Link {
            key: key.clone(),
            expected,
            revision,
            value,
        }));
    }
    Ok(links)
}
