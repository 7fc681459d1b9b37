//! Leases in a Redis server.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ::redis::Value;
use async_trait::async_trait;
use divvy_core::store::{
    Acquired, Beaten, Claim, GroupDocument, Heartbeat, Holder, Incarnation, LeaseKey, LeaseName,
    LeaseNotice, Member, Nonce, SessionStart, StoreError, Tenure, Token, WorkerId, check_moves,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::failure::Nature;
use super::incarnation::Needs;
use super::link::{Eviction, Link};
use super::members::Membership;
use super::notes::Notes;
use super::script::{self, Inputs, Script};
use super::subscription::{Heard, Subscription};
use super::{groups, incarnation, layout, reply};
use crate::store::bounds::{check_batch, check_group, check_ttl, check_wishes, checked_beat};
use crate::store::connection::Connection;
use crate::store::notices::{LeaseNotices, NoticeBoard};
use crate::store::settings::StoreSettings;
use crate::store::url::StoreUrl;
use crate::store::{Leases, Store};

/// Leases of one script call: enough to be quick, few enough that no other
/// client waits long.
const CALL_LEASES: usize = 250;
/// What the scripts run.
const COMMANDS: [&str; 16] = [
    "DEL",
    "EXISTS",
    "GETRANGE",
    "INFO",
    "LRANGE",
    "LTRIM",
    "PEXPIRE",
    "PTTL",
    "PUBLISH",
    "RPUSH",
    "SADD",
    "SET",
    "SISMEMBER",
    "SREM",
    "SSCAN",
    "TIME",
];

/// A lease store in a Redis or Valkey server. Clones share its connection.
///
/// While the server is not reached, every call fails at once. A lease that
/// some other client has spoilt is nobody's to take: one that holds no text
/// counts as held, and so does one whose fence cannot be read, because its
/// next token might not be above the last.
#[derive(Debug, Clone)]
pub struct RedisLeases {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    link: Link,
    cluster: LeaseName,
    restart_quarantine: bool,
    is_set_spoilt: AtomicBool,
    /// Fences that could not be read when their leases were last asked for.
    unreadable: Unreadable,
    notices: NoticeBoard,
    subscription: OnceLock<Subscription>,
}

impl RedisLeases {
    /// Connects to a server, and finds out whether it will do.
    pub async fn open(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, StoreError> {
        settings.check()?;
        let cluster = LeaseName::new("cluster", &settings.cluster)?;
        let deadline = Instant::now() + settings.connect_timeout;
        let endpoint = Endpoint::new(url, settings)?;
        let link = Link::open(endpoint, settings.into(), Eviction::GoOn).await?;
        // Who only looks has not chosen the server.
        if settings.create {
            link.server().warn_of_forgetting();
        }
        let channel = layout::member_channel(link.endpoint().database(), &cluster);
        let needs = Needs {
            channel: &channel,
            commands: &COMMANDS,
            keys: &[layout::QUARANTINE],
        };
        incarnation::greet(&link, needs, deadline).await?;
        let shared = Shared {
            link,
            cluster,
            restart_quarantine: settings.restart_quarantine,
            is_set_spoilt: AtomicBool::new(false),
            unreadable: Unreadable::default(),
            notices: NoticeBoard::default(),
            subscription: OnceLock::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    pub(super) fn link(&self) -> &Link {
        &self.shared.link
    }

    pub(super) fn cluster_name(&self) -> &LeaseName {
        &self.shared.cluster
    }

    fn id_of(&self, worker: &LeaseName) -> WorkerId {
        WorkerId {
            cluster: self.shared.cluster.clone(),
            name: worker.clone(),
        }
    }

    fn membership(&self) -> Membership<'_> {
        Membership {
            link: self.link(),
            cluster: &self.shared.cluster,
            is_set_spoilt: &self.shared.is_set_spoilt,
        }
    }

    fn notes(&self) -> Notes<'_> {
        Notes {
            link: self.link(),
            cluster: &self.shared.cluster,
        }
    }

    fn release_channel(&self) -> String {
        layout::release_channel(self.link().endpoint().database())
    }

    /// Runs a script over claims, and gives which tenures were over.
    async fn tenures(
        &self,
        script: &Script,
        claims: &[Claim],
        arguments: impl Fn() -> Inputs,
    ) -> Result<Vec<Tenure>, StoreError> {
        let call = self.link().call(Nature::Write)?;
        let chunks = claims.chunks(CALL_LEASES);
        let inputs: Vec<_> = chunks
            .clone()
            .map(|some| with_claims(arguments(), some))
            .collect();
        let replies = script.run_all(&call, &inputs).await?;
        let mut tenures = Vec::with_capacity(claims.len());
        for (reply, some) in replies.into_iter().zip(chunks) {
            let over = reply::flags(reply, some.len());
            let over = over.ok_or_else(|| reply::unexpected("a script"))?;
            tenures.extend(over.into_iter().map(|over| match over {
                true => Tenure::Over,
                false => Tenure::Current,
            }));
        }
        Ok(tenures)
    }

    fn subscription(&self) -> &Subscription {
        let shared = &self.shared;
        shared.subscription.get_or_init(|| {
            let members =
                layout::member_channel(shared.link.endpoint().database(), &shared.cluster);
            let releases = self.release_channel();
            let channels = vec![layout::GROUP_CHANNEL.to_owned(), members, releases.clone()];
            let board = shared.notices.clone();
            Subscription::start(&shared.link, channels, move |heard| match heard {
                Heard::Gap => board.post(LeaseNotice::Resync),
                Heard::Message { channel, payload } => {
                    let Ok(text) = std::str::from_utf8(payload) else {
                        return;
                    };
                    if channel == layout::GROUP_CHANNEL.as_bytes() {
                        post_group(&board, text);
                    } else if channel == releases.as_bytes() {
                        text.lines()
                            .filter_map(released)
                            .for_each(|it| board.post(it));
                    } else if !text.is_empty() {
                        board.post(LeaseNotice::Members);
                    }
                }
            })
        })
    }
}

#[async_trait]
impl Store for RedisLeases {
    fn describe(&self) -> String {
        format!(
            "{} at {}",
            self.link().server().title,
            self.link().endpoint()
        )
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        incarnation::incarnation(self.link()).await
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.link().connection()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }
}

#[async_trait]
impl Leases for RedisLeases {
    fn cluster(&self) -> &str {
        self.shared.cluster.as_str()
    }

    async fn acquire(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, StoreError> {
        check_batch(claims.len())?;
        check_ttl("lease ttl", ttl)?;
        let (unit, time) = layout::expiry(ttl);
        let covered = match self.shared.restart_quarantine {
            true => layout::milliseconds(ttl),
            false => 0,
        };
        let id = self.id_of(worker).to_string();
        let call = self.link().call(Nature::Write)?;
        // A lease that is evicted would be granted while its owner works on.
        self.link().server().check_eviction()?;
        let chunks = claims.chunks(CALL_LEASES);
        let inputs: Vec<_> = chunks
            .clone()
            .map(|some| {
                let inputs = Inputs::new().key(layout::QUARANTINE);
                let inputs = inputs.argument(&id).argument(unit).argument(time);
                with_claims(inputs.argument(covered), some)
            })
            .collect();
        let replies = script::ACQUIRE.run_all(&call, &inputs).await?;
        let mut acquired = Vec::with_capacity(claims.len());
        for (reply, some) in replies.into_iter().zip(chunks) {
            let results = acquired_of(reply, some, &self.shared.unreadable);
            acquired.extend(results.ok_or_else(|| reply::unexpected("a script"))?);
        }
        Ok(acquired)
    }

    async fn renew(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, StoreError> {
        check_batch(claims.len())?;
        check_ttl("lease ttl", ttl)?;
        let (id, time) = (self.id_of(worker).to_string(), layout::milliseconds(ttl));
        let arguments = || Inputs::new().argument(&id).argument(time);
        self.tenures(&script::RENEW, claims, arguments).await
    }

    async fn release(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
    ) -> Result<Vec<Tenure>, StoreError> {
        check_batch(claims.len())?;
        let (id, channel) = (self.id_of(worker).to_string(), self.release_channel());
        let arguments = || Inputs::new().argument(&id).argument(&channel);
        self.tenures(&script::RELEASE, claims, arguments).await
    }

    async fn holders(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, StoreError> {
        check_batch(keys.len())?;
        let call = self.link().call(Nature::Read)?;
        let chunks = keys.chunks(CALL_LEASES);
        let with_keys =
            |inputs: Inputs, key: &LeaseKey| inputs.key(layout::lease(key)).key(layout::fence(key));
        let inputs: Vec<_> = chunks
            .map(|some| some.iter().fold(Inputs::new(), with_keys))
            .collect();
        let mut holders = Vec::with_capacity(keys.len());
        for reply in script::HOLDERS.run_all(&call, &inputs).await? {
            let found = reply::array(reply).ok_or_else(|| reply::unexpected("a script"))?;
            holders.extend(found.into_iter().map(holder));
        }
        match holders.len() == keys.len() {
            true => Ok(holders),
            false => Err(reply::unexpected("a script")),
        }
    }

    async fn open_session(
        &self,
        worker: &LeaseName,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, StoreError> {
        check_ttl("session ttl", ttl)?;
        let membership = self.membership();
        membership
            .open_session(&self.id_of(worker), session, ttl)
            .await
    }

    async fn beat(&self, worker: &LeaseName, heartbeat: &Heartbeat) -> Result<Beaten, StoreError> {
        let info = checked_beat(heartbeat)?;
        let report = self.shared.restart_quarantine.then_some(&heartbeat.report);
        let membership = self.membership();
        membership
            .beat(&self.id_of(worker), heartbeat, &info, report)
            .await
    }

    async fn leave(&self, worker: &LeaseName, session: Nonce) -> Result<Tenure, StoreError> {
        self.membership().leave(&self.id_of(worker), session).await
    }

    async fn members(&self) -> Result<Vec<Member>, StoreError> {
        self.membership().members().await
    }

    async fn mark_moved(&self, keys: &[LeaseKey], cooldown: Duration) -> Result<(), StoreError> {
        check_batch(keys.len())?;
        check_ttl("cooldown", cooldown)?;
        let (unit, time) = layout::expiry(cooldown);
        let call = self.link().call(Nature::Write)?;
        let inputs = marks(keys, || Inputs::new().argument(unit).argument(time));
        script::MARK_MOVED.run_all(&call, &inputs).await?;
        Ok(())
    }

    async fn cooling(&self, keys: &[LeaseKey]) -> Result<Vec<bool>, StoreError> {
        check_batch(keys.len())?;
        let call = self.link().call(Nature::Read)?;
        let replies = script::COOLING
            .run_all(&call, &marks(keys, Inputs::new))
            .await?;
        let mut cooling = Vec::with_capacity(keys.len());
        for (reply, some) in replies.into_iter().zip(keys.chunks(CALL_LEASES)) {
            let flags = reply::flags(reply, some.len());
            cooling.extend(flags.ok_or_else(|| reply::unexpected("a script"))?);
        }
        Ok(cooling)
    }

    async fn groups(&self) -> Result<Vec<GroupDocument>, StoreError> {
        groups::read(&self.link().call(Nature::Read)?).await
    }

    async fn set_group(&self, name: &LeaseName, json: &str) -> Result<(), StoreError> {
        check_group(json)?;
        groups::set(&self.link().call(Nature::Write)?, name, json).await
    }

    async fn remove_group(&self, name: &LeaseName) -> Result<bool, StoreError> {
        groups::remove(&self.link().call(Nature::Write)?, name).await
    }

    async fn wishes(&self) -> Result<Option<String>, StoreError> {
        self.notes().wishes().await
    }

    async fn set_wishes(&self, before: Option<&str>, wishes: &str) -> Result<bool, StoreError> {
        check_wishes(wishes)?;
        self.notes().set_wishes(before, wishes).await
    }

    async fn log_moves(&self, moves: &[String]) -> Result<(), StoreError> {
        check_moves(moves)?;
        self.notes().log_moves(moves).await
    }

    async fn moves(&self) -> Result<Vec<String>, StoreError> {
        self.notes().moves().await
    }

    async fn notices(&self) -> Result<LeaseNotices, StoreError> {
        let notices = self.shared.notices.subscribe();
        self.subscription().listening().await?;
        Ok(notices)
    }
}

/// Adds of each claim lease, fence and nonce.
fn with_claims(inputs: Inputs, claims: &[Claim]) -> Inputs {
    claims.iter().fold(inputs, |inputs, claim| {
        let inputs = inputs.key(layout::lease(&claim.key));
        let inputs = inputs.key(layout::fence(&claim.key));
        inputs.argument(claim.nonce.to_string())
    })
}

fn marks(keys: &[LeaseKey], arguments: impl Fn() -> Inputs) -> Vec<Inputs> {
    let chunks = keys.chunks(CALL_LEASES);
    chunks
        .map(|some| {
            some.iter()
                .fold(arguments(), |inputs, key| inputs.key(layout::moved(key)))
        })
        .collect()
}

/// Leases whose fences cannot be read, each reported once until that changes.
#[derive(Debug, Default)]
struct Unreadable(Mutex<BTreeSet<LeaseKey>>);

impl Unreadable {
    /// Whether it was reported now.
    fn note(&self, key: &LeaseKey, is_unreadable: bool) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_unreadable {
            known.remove(key);
            return false;
        }
        let is_new = known.insert(key.clone());
        if is_new {
            tracing::warn!(
                key = layout::fence(key),
                "this lease's last token cannot be read, so nobody gets it: delete the key"
            );
        }
        is_new
    }
}

/// What the acquire script returned for these claims.
fn acquired_of(reply: Value, claims: &[Claim], unreadable: &Unreadable) -> Option<Vec<Acquired>> {
    let results = reply::array(reply)?;
    let mut acquired = Vec::with_capacity(claims.len());
    for (result, claim) in results.into_iter().zip(claims) {
        let result = reply::bytes(&result)?;
        unreadable.note(&claim.key, result == b"unreadable");
        acquired.push(match result {
            b"held" | b"unreadable" => Acquired::Held,
            b"quarantined" => Acquired::Quarantined,
            token => Acquired::Granted(std::str::from_utf8(token).ok()?.parse().ok()?),
        });
    }
    (acquired.len() == claims.len()).then_some(acquired)
}

/// What the holders script returned for one lease.
fn holder(found: Value) -> Option<Holder> {
    let found = reply::array(found)?;
    let [worker, left, fence] = found.as_slice() else {
        return None;
    };
    Some(Holder {
        worker: reply::text(worker)?,
        left: time_left(reply::integer(left)?),
        fence: reply::text(fence).and_then(|fence| fence_of(&fence)),
    })
}

fn fence_of(record: &str) -> Option<(Token, Nonce)> {
    let (token, nonce) = record.split_once(' ')?;
    Some((token.parse().ok()?, nonce.parse().ok()?))
}

/// What is left of a key's time, which may never end.
pub(super) fn time_left(milliseconds: i64) -> Duration {
    u64::try_from(milliseconds).map_or(Holder::ENDLESS, Duration::from_millis)
}

fn post_group(board: &NoticeBoard, name: &str) {
    // Anybody may announce anything; a name that none can have is no news.
    if !name.is_empty() && name.len() <= divvy_core::store::LEASE_NAME_BYTES_MAX {
        board.post(LeaseNotice::Group(name.to_owned()));
    }
}

fn released(line: &str) -> Option<LeaseNotice> {
    let (group, number) = line.rsplit_once(':')?;
    let key = LeaseKey::new(group, number.parse().ok()?).ok()?;
    Some(LeaseNotice::Released(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_that_cannot_be_read_is_reported_once_until_it_can_be() {
        let unreadable = Unreadable::default();
        let (one, two) = (
            LeaseKey::new("a", 1).unwrap(),
            LeaseKey::new("a", 2).unwrap(),
        );
        assert!(unreadable.note(&one, true) && !unreadable.note(&one, true));
        assert!(unreadable.note(&two, true) && !unreadable.note(&one, false));
        assert!(unreadable.note(&one, true) && !unreadable.note(&two, true));
    }
}
