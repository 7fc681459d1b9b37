//! A key-value store with compare-and-set in a Redis server.

use std::sync::{Arc, OnceLock};

use ::redis::{Pipeline, Value};
use async_trait::async_trait;
use divvy_core::store::{
    Change, Entry, Expected, Incarnation, Key, LeaseName, Outcome, Prefix, Revision, StoreError,
};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::failure::{self, Nature};
use super::incarnation::Needs;
use super::layout::KeyValueLayout;
use super::link::{Call, Eviction, Link};
use super::script::{self, Inputs};
use super::subscription::{Heard, Subscription};
use super::{incarnation, reply};
use crate::store::bounds::{VALUE_BYTES_MAX, check_listed, check_value};
use crate::store::connection::Connection;
use crate::store::settings::StoreSettings;
use crate::store::url::StoreUrl;
use crate::store::watch::{Hint, Hints, Watch};
use crate::store::{KeyValue, Store};

/// Hints that wait for a slow watch; beyond, it lists everything.
const HINTS_WAITING_MAX: usize = 1024;
/// Longest value that is announced along with its change. Those who watch
/// fetch a longer one, if it is theirs to watch.
const TOLD_BYTES_MAX: usize = 4096;
/// A page of a listing ends at either.
const PAGE_KEYS: usize = 1000;
const PAGE_BYTES: usize = 4 << 20;
/// Digits of a revision at most: those that Lua counts exactly.
const REVISION_DIGITS_MAX: usize = 16;
/// What the scripts run.
const COMMANDS: [&str; 10] = [
    "DEL",
    "EXISTS",
    "GET",
    "GETRANGE",
    "PUBLISH",
    "SET",
    "TIME",
    "ZADD",
    "ZRANGEBYLEX",
    "ZREM",
];

/// A key-value store in a Redis or Valkey server. Clones share its connection.
///
/// While the server is not reached, every call fails at once.
#[derive(Debug, Clone)]
pub struct RedisKeyValue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    link: Link,
    layout: KeyValueLayout,
    channel: String,
    hints: broadcast::Sender<Hint>,
    subscription: OnceLock<Subscription>,
}

impl RedisKeyValue {
    /// Connects to a server, and finds out whether it will do.
    pub async fn open(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, StoreError> {
        settings.check()?;
        let layout = KeyValueLayout::new(LeaseName::new("cluster", &settings.cluster)?);
        let deadline = Instant::now() + settings.connect_timeout;
        let endpoint = Endpoint::new(url, settings)?;
        let link = Link::open(endpoint, settings.into(), Eviction::GiveUp).await?;
        // Who only looks has not chosen the server.
        if settings.create {
            link.server().warn_of_forgetting();
        }
        let channel = layout.channel(link.endpoint().database());
        let needs = Needs {
            channel: &channel,
            commands: &COMMANDS,
            keys: &[],
        };
        incarnation::greet(&link, needs, deadline).await?;
        let shared = Shared {
            link,
            layout,
            channel,
            hints: broadcast::Sender::new(HINTS_WAITING_MAX),
            subscription: OnceLock::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    fn subscription(&self) -> &Subscription {
        let shared = &self.shared;
        shared.subscription.get_or_init(|| {
            let hints = shared.hints.clone();
            let channels = vec![shared.channel.clone()];
            Subscription::start(&shared.link, channels, move |heard| {
                let hint = match heard {
                    Heard::Gap => Some(Hint::Missed),
                    Heard::Message { payload, .. } => hint(payload),
                };
                if let Some(hint) = hint {
                    // Nobody watching is as good as everyone told.
                    let _watchers = hints.send(hint);
                }
            })
        })
    }

    pub(super) fn link(&self) -> &Link {
        &self.shared.link
    }

    pub(super) fn layout(&self) -> &KeyValueLayout {
        &self.shared.layout
    }

    /// The entry of a key. What somebody else has written over it is given a
    /// revision, and what it means is for its reader to say: it harms nobody
    /// but whose record it was.
    async fn readable(
        &self,
        call: &Call,
        key: Key,
        found: Option<Entry>,
    ) -> Result<Option<Entry>, StoreError> {
        if found.is_some() {
            return Ok(found);
        }
        tracing::warn!(
            key = self.shared.layout.value(&key),
            "somebody else has written over this key: it counts as a record that cannot be read"
        );
        let inputs = self
            .written(&key)
            .argument(key.as_str())
            .argument(&self.shared.channel);
        match script::ADOPT.run(call, inputs).await? {
            Value::Nil => Ok(None),
            adopted => match entry(&key, &adopted) {
                Some(entry) => Ok(Some(entry)),
                None => Err(reply::unexpected("a script")),
            },
        }
    }

    /// The keys that every write touches.
    fn written(&self, key: &Key) -> Inputs {
        let layout = &self.shared.layout;
        Inputs::new()
            .key(layout.value(key))
            .key(layout.revision())
            .key(layout.index())
    }
}

#[async_trait]
impl Store for RedisKeyValue {
    fn describe(&self) -> String {
        let link = &self.shared.link;
        format!("{} at {}", link.server().title, link.endpoint())
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        incarnation::incarnation(&self.shared.link).await
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.link.connection()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }
}

#[async_trait]
impl KeyValue for RedisKeyValue {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        let layout = &self.shared.layout;
        let mut get = Pipeline::with_capacity(2);
        get.cmd("GET").arg(layout.value(key));
        // After the value, so that it cannot be below that of the value.
        get.cmd("GET").arg(layout.revision());
        let call = self.shared.link.call(Nature::Read)?;
        let replies: [Value; 2] = call
            .send(&get)
            .await?
            .try_into()
            .map_err(|_replies| reply::unexpected("GET"))?;
        match replies {
            [Value::Nil, _] => Ok(None),
            [Value::ServerError(error), _] if failure::code(&error) != "WRONGTYPE" => {
                Err(failure::refused(&error))
            }
            [stored, last] => {
                let last = reply::text(&last).and_then(|last| Revision::new(last.parse().ok()?));
                let found = entry(key, &stored)
                    .filter(|found| last.is_none_or(|last| found.revision <= last));
                self.readable(&call, key.clone(), found).await
            }
        }
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        check_value(value, VALUE_BYTES_MAX)?;
        let expected = match expected {
            Expected::Absent => String::new(),
            Expected::At(revision) => revision.to_string(),
        };
        let inputs = self
            .written(key)
            .argument(expected)
            .argument(value)
            .argument(key.as_str())
            .argument(&self.shared.channel)
            .argument(TOLD_BYTES_MAX);
        let call = self.shared.link.call(Nature::Write)?;
        outcome(&script::COMPARE_AND_SET.run(&call, inputs).await?)
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let inputs = self
            .written(key)
            .argument(revision.to_string())
            .argument(key.as_str())
            .argument(&self.shared.channel);
        let call = self.shared.link.call(Nature::Write)?;
        outcome(&script::DELETE.run(&call, inputs).await?)
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        if let Some(key) = prefix.single() {
            return Ok(self.get(key).await?.into_iter().collect());
        }
        let layout = &self.shared.layout;
        let call = self.shared.link.call(Nature::Read)?;
        let (mut from, to) = match prefix.parent() {
            // What comes after a dot is next to a dot's neighbour.
            Some(parent) => (format!("[{parent}."), format!("({parent}/")),
            None => ("-".to_owned(), "+".to_owned()),
        };
        let mut entries = Vec::new();
        loop {
            let inputs = Inputs::new()
                .key(layout.index())
                .key(layout.revision())
                .argument(layout.values())
                .argument(&from)
                .argument(&to)
                .argument(PAGE_KEYS)
                .argument(PAGE_BYTES);
            let page = reply::array(script::LIST.run(&call, inputs).await?);
            let mut page = page
                .ok_or_else(|| reply::unexpected("a script"))?
                .into_iter();
            let last = page.next().as_ref().and_then(reply::text);
            while let (Some(name), Some(stored)) = (page.next(), page.next()) {
                let name = reply::text(&name).unwrap_or_default();
                let Ok(key) = Key::parse(&name) else {
                    tracing::debug!(index = layout.index(), name, "passed over: no key of ours");
                    continue;
                };
                let found = entry(&key, &stored);
                entries.extend(self.readable(&call, key, found).await?);
            }
            check_listed(entries.len())?;
            match last {
                Some(last) => from = format!("({last}"),
                None => return Ok(entries),
            }
        }
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        let hints = Box::new(RedisHints(self.shared.hints.subscribe()));
        self.subscription().listening().await?;
        Ok(Watch::start(Arc::new(self.clone()), prefix.clone(), hints))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }
}

struct RedisHints(broadcast::Receiver<Hint>);

#[async_trait]
impl Hints for RedisHints {
    async fn next(&mut self) -> Hint {
        match self.0.recv().await {
            Ok(hint) => hint,
            Err(broadcast::error::RecvError::Lagged(_)) => Hint::Missed,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// A stored value is `<revision> <value>`; nothing else is one of ours. The
/// scripts know a revision by the same rule.
fn entry(key: &Key, stored: &Value) -> Option<Entry> {
    let bytes = reply::bytes(stored)?;
    let space = bytes
        .iter()
        .take(REVISION_DIGITS_MAX + 1)
        .position(|byte| *byte == b' ')?;
    let (digits, value) = (&bytes[..space], &bytes[space + 1..]);
    if !digits.iter().all(u8::is_ascii_digit) || digits.starts_with(b"0") {
        return None;
    }
    let revision = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(Entry {
        key: key.clone(),
        value: value.into(),
        revision: Revision::new(revision)?,
    })
}

fn outcome(reply: &Value) -> Result<Outcome<Revision>, StoreError> {
    if *reply == Value::Nil {
        return Ok(Outcome::Conflict);
    }
    let revision = reply::text(reply).and_then(|text| Revision::new(text.parse().ok()?));
    let revision = revision.ok_or_else(|| reply::unexpected("a script"))?;
    Ok(Outcome::Done(revision))
}

/// What an announcement says; nothing if it is none of ours.
fn hint(payload: &[u8]) -> Option<Hint> {
    let mut words = payload.splitn(4, |byte| *byte == b' ');
    let mut text = || words.next().and_then(|word| std::str::from_utf8(word).ok());
    let revision = |text: &str| Revision::new(text.parse().ok()?);
    match text()? {
        "put" => {
            let (revision, key) = (revision(text()?)?, Key::parse(text()?).ok()?);
            let entry = Entry {
                key,
                value: words.next()?.into(),
                revision,
            };
            Some(Hint::Change(Change::Put(entry)))
        }
        "deleted" => {
            let revision = revision(text()?)?;
            Some(Hint::Change(Change::Deleted(
                Key::parse(text()?).ok()?,
                revision,
            )))
        }
        "touched" => Some(Hint::Touched(Key::parse(text()?).ok()?)),
        _ => None,
    }
}
