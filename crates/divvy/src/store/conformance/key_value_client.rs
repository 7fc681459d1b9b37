//! A client of the key-value store under test: it notes what it does, fails
//! the case where the store fails, and never waits for ever.

use std::collections::BTreeMap;
use std::sync::Arc;

use divvy_core::store::{
    Change, Entry, Expected, Key, Outcome, Prefix, Revision, StoreError, StoreErrorKind,
};

use super::super::{KeyValue, Notice, Watch};
use super::history::brief;
use super::report::Failure;
use super::run::{Opened, Run};
use super::subject::KeyValueSubject;

#[derive(Debug, Clone)]
pub(super) struct KeyValueClient {
    pub(super) run: Run,
    pub(super) store: Arc<dyn KeyValue>,
    name: String,
}

impl KeyValueClient {
    /// A further client, called `name` in the history, of a cluster that is
    /// this run's own.
    pub(super) async fn open(
        run: &Run,
        subject: &dyn KeyValueSubject,
        cluster: &str,
        name: &str,
    ) -> Result<Self, Failure> {
        let cluster = run.name(cluster);
        let opening = async { Ok(Opened(subject.open(&cluster).await?)) };
        let opened = run.done(name, format!("open {cluster}"), opening).await?;
        Ok(Self::of(run, opened.0, name))
    }

    /// `count` clients of one cluster.
    pub(super) async fn open_many(
        run: &Run,
        subject: &dyn KeyValueSubject,
        count: usize,
    ) -> Result<Vec<Self>, Failure> {
        let mut clients = Vec::with_capacity(count);
        for number in 0..count {
            clients.push(Self::open(run, subject, "c", &format!("client{number}")).await?);
        }
        Ok(clients)
    }

    pub(super) fn of(run: &Run, store: Arc<dyn KeyValue>, name: &str) -> Self {
        Self {
            run: run.clone(),
            store,
            name: name.to_owned(),
        }
    }

    pub(super) async fn get(&self, key: &Key) -> Result<Option<Entry>, Failure> {
        let what = format!("get {key}");
        let found = self.run.done(&self.name, what, self.store.get(key)).await?;
        let right = found.as_ref().is_none_or(|entry| entry.key == *key);
        self.run
            .check(right, || format!("get {key} gave another key's entry"))?;
        Ok(found)
    }

    pub(super) async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, Failure> {
        let what = brief(format_args!("set {key} {expected:?} {value:?}"));
        let writing = self.store.compare_and_set(key, expected, value);
        self.run.done(&self.name, what, writing).await
    }

    pub(super) async fn delete(
        &self,
        key: &Key,
        revision: Revision,
    ) -> Result<Outcome<Revision>, Failure> {
        let what = format!("delete {key} at {revision}");
        let deleting = self.store.delete(key, revision);
        self.run.done(&self.name, what, deleting).await
    }

    pub(super) async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, Failure> {
        let what = format!("list {:?}", prefix.text());
        let listing = self.store.list(prefix);
        let entries = self.run.done(&self.name, what, listing).await?;
        let ordered = entries.is_sorted_by(|a, b| a.key.as_str() < b.key.as_str());
        self.run.check(ordered, || {
            let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
            brief(format_args!("a listing is not in order: {keys:?}"))
        })?;
        let stray = entries.iter().find(|entry| !prefix.holds(&entry.key));
        self.run.check(stray.is_none(), || {
            let (stray, prefix) = (stray.map(|entry| &entry.key), prefix.text());
            format!("a listing of {prefix:?} holds {stray:?}")
        })?;
        Ok(entries)
    }

    /// A write that has to succeed.
    pub(super) async fn put(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Revision, Failure> {
        match self.compare_and_set(key, expected, value).await? {
            Outcome::Done(revision) => Ok(revision),
            Outcome::Conflict => {
                let reason = format!("{key} is {expected:?}, but a write that expects it lost");
                Err(self.run.fail(reason))
            }
        }
    }

    pub(super) async fn create(&self, key: &Key, value: &[u8]) -> Result<Revision, Failure> {
        self.put(key, Expected::Absent, value).await
    }

    /// A deletion that has to succeed.
    pub(super) async fn remove(&self, key: &Key, revision: Revision) -> Result<Revision, Failure> {
        match self.delete(key, revision).await? {
            Outcome::Done(deletion) => Ok(deletion),
            Outcome::Conflict => {
                let reason = format!("{key} is at {revision}, but a deletion there lost");
                Err(self.run.fail(reason))
            }
        }
    }

    /// A write that must lose.
    pub(super) async fn loses(&self, key: &Key, expected: Expected) -> Result<(), Failure> {
        let outcome = self.compare_and_set(key, expected, b"must not be").await?;
        self.run.check(outcome.is_conflict(), || {
            format!("a write that expects {expected:?} of {key} must be a conflict")
        })
    }

    /// Reads `key` until it is at `revision` with `value`; reads may be stale.
    pub(super) async fn finds(
        &self,
        key: &Key,
        value: &[u8],
        revision: Revision,
    ) -> Result<(), Failure> {
        let what = brief(format_args!("{key} is at {revision} with {value:?}"));
        let wait = self.run.wait(what);
        loop {
            let found = self.get(key).await?;
            let is_it = |entry: &Entry| entry.revision == revision && *entry.value == *value;
            if found.as_ref().is_some_and(is_it) {
                return Ok(());
            }
            wait.again_because(&brief(format_args!("{found:?}")))
                .await?;
        }
    }

    /// Reads `key` until it is gone; reads may be stale.
    pub(super) async fn misses(&self, key: &Key) -> Result<(), Failure> {
        let wait = self.run.wait(format!("{key} has no value"));
        while let Some(found) = self.get(key).await? {
            wait.again_because(&brief(format_args!("{found:?}")))
                .await?;
        }
        Ok(())
    }

    /// Lists `prefix` until it holds exactly `expected`; reads may be stale.
    pub(super) async fn lists(&self, prefix: &Prefix, expected: &[Entry]) -> Result<(), Failure> {
        let wait = self.run.wait(format!(
            "a listing of {:?} holds exactly what was written",
            prefix.text()
        ));
        loop {
            let found = self.list(prefix).await?;
            if found == expected {
                return Ok(());
            }
            wait.again_because(&difference(&found, expected)).await?;
        }
    }

    /// What a write gives or fails with, while the store may be away.
    pub(super) async fn attempt(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Result<Outcome<Revision>, StoreErrorKind>, Failure> {
        let what = brief(format_args!("set {key} {expected:?} {value:?}"));
        let writing = self.store.compare_and_set(key, expected, value);
        let result = self.run.attempt(&self.name, &what, writing).await?;
        Ok(result.map_err(|error| error.kind()))
    }

    pub(super) async fn attempt_get(
        &self,
        key: &Key,
    ) -> Result<Result<Option<Entry>, StoreError>, Failure> {
        let what = format!("get {key}");
        self.run
            .attempt(&self.name, &what, self.store.get(key))
            .await
    }

    pub(super) async fn watch(&self, prefix: &Prefix) -> Result<KeyValueWatch, Failure> {
        let what = format!("watch {:?}", prefix.text());
        let watching = self.store.watch(prefix);
        let watch = self.run.done(&self.name, what, watching).await?;
        Ok(KeyValueWatch {
            run: self.run.clone(),
            watch,
            prefix: prefix.clone(),
            name: self.name.clone(),
            seen: BTreeMap::new(),
        })
    }
}

/// What of two listings is not the same, in few words.
fn difference(found: &[Entry], expected: &[Entry]) -> String {
    let missing = expected.iter().find(|entry| !found.contains(entry));
    let extra = found.iter().find(|entry| !expected.contains(entry));
    let (count, wanted) = (found.len(), expected.len());
    brief(format_args!(
        "{count} of {wanted} keys, without {missing:?}, with {extra:?}"
    ))
}

/// A watch under test, with what it has shown so far.
#[derive(Debug)]
pub(super) struct KeyValueWatch {
    run: Run,
    watch: Watch,
    prefix: Prefix,
    name: String,
    pub(super) seen: BTreeMap<Key, Entry>,
}

impl KeyValueWatch {
    /// The next notice; it must come.
    pub(super) async fn next(&mut self) -> Result<Notice, Failure> {
        let (prefix, longest) = (self.prefix.text(), self.run.options().wait);
        let next = self.next_if_any().await?;
        next.ok_or_else(|| {
            let reason = format!("a watch of {prefix:?} showed nothing within {longest:?}");
            self.run.fail(reason)
        })
    }

    /// The next change; it must come. A store that cannot say what has
    /// happened may have a watch look often, and find nothing new.
    pub(super) async fn next_change(&mut self) -> Result<Change, Failure> {
        loop {
            if let Notice::Changed(change) = self.next().await? {
                return Ok(change);
            }
        }
    }

    /// The next notice, if one comes in time. Errors are passed over: the
    /// watch goes on trying.
    async fn next_if_any(&mut self) -> Result<Option<Notice>, Failure> {
        let longest = self.run.options().wait;
        let prefix = self.prefix.text();
        loop {
            let Ok(next) = tokio::time::timeout(longest, self.watch.next()).await else {
                return Ok(None);
            };
            self.run
                .note(format_args!("{} watch {prefix:?} -> {next:?}", self.name));
            if let Ok(notice) = next {
                self.follow(&notice)?;
                return Ok(Some(notice));
            }
        }
    }

    fn follow(&mut self, notice: &Notice) -> Result<(), Failure> {
        let Notice::Changed(change) = notice else {
            return Ok(());
        };
        let (key, prefix) = (change.key(), self.prefix.text());
        self.run.check(self.prefix.holds(key), || {
            format!("a watch of {prefix:?} showed {key}, which is not below")
        })?;
        match change {
            Change::Put(entry) => self.seen.insert(key.clone(), entry.clone()),
            Change::Deleted(..) => self.seen.remove(key),
        };
        Ok(())
    }

    /// Follows until everything that was there has been seen.
    pub(super) async fn becomes_current(&mut self) -> Result<(), Failure> {
        while self.next().await? != Notice::Current {}
        Ok(())
    }

    /// Follows until what was shown is exactly `expected`.
    pub(super) async fn converges(&mut self, expected: &[Entry]) -> Result<(), Failure> {
        let is_it = |seen: &BTreeMap<Key, Entry>| {
            seen.len() == expected.len() && expected.iter().all(|e| seen.get(&e.key) == Some(e))
        };
        while !is_it(&self.seen) && self.next_if_any().await?.is_some() {}
        self.run.check(is_it(&self.seen), || {
            let seen: Vec<Entry> = self.seen.values().cloned().collect();
            let (prefix, lacks) = (self.prefix.text(), difference(&seen, expected));
            format!("a watch of {prefix:?} did not come to the last state: {lacks}")
        })
    }
}
