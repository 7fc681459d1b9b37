//! Lease mode on the file store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::store::{
    Acquired, Beaten, Claim, GroupDocument, Heartbeat, Holder, LeaseKey, LeaseName, Member, Nonce,
    Quarantine, SessionStart, StoreError, StoreErrorKind, Tenure, check_moves,
};
use rusqlite::Connection;

use super::log::Writing;
use super::{FileStore, notes, quarantine, tenures, time};
use crate::store::bounds::{
    check_batch, check_group, check_listed, check_ttl, check_wishes, checked_beat,
};
use crate::store::notices::LeaseNotices;
use crate::store::{Leases, clock};

/// Leases that one turn takes at most, so that a large batch of one process
/// does not hold up the renewals of another.
const PER_TURN_MAX: usize = 1000;

#[async_trait]
impl Leases for FileStore {
    fn cluster(&self) -> &str {
        &self.shared.cluster
    }

    async fn acquire(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, StoreError> {
        check_ttl("lease ttl", ttl)?;
        let id = self.id_of(worker);
        let is_covered = self.shared.quarantine;
        self.write_each(claims, move |writing, claims| {
            let time = (time::now(), clock::unix_ms());
            let is_over = !is_covered || quarantine::cover(writing, ttl)?;
            let each = claims.iter();
            each.map(|claim| tenures::acquire(writing, time, &id, claim, ttl, is_over))
                .collect()
        })
        .await
    }

    async fn renew(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, StoreError> {
        check_ttl("lease ttl", ttl)?;
        let id = self.id_of(worker);
        self.write_each(claims, move |writing, claims| {
            let now = time::now();
            let each = claims.iter();
            each.map(|claim| tenures::renew(writing, now, &id, claim, ttl))
                .collect()
        })
        .await
    }

    async fn release(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
    ) -> Result<Vec<Tenure>, StoreError> {
        let id = self.id_of(worker);
        self.write_each(claims, move |writing, claims| {
            tenures::release(writing, time::now(), &id, claims)
        })
        .await
    }

    async fn holders(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, StoreError> {
        self.read_each(keys, |connection, keys| {
            let now = time::now();
            let each = keys.iter();
            each.map(|key| tenures::holder(connection, now, key))
                .collect()
        })
        .await
    }

    async fn open_session(
        &self,
        worker: &LeaseName,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, StoreError> {
        check_ttl("session ttl", ttl)?;
        let (cluster, worker) = (self.cluster(), worker.to_string());
        self.write(move |writing| {
            tenures::open_session(writing, time::now(), (&cluster, &worker), session, ttl)
        })
        .await
    }

    async fn beat(&self, worker: &LeaseName, heartbeat: &Heartbeat) -> Result<Beaten, StoreError> {
        let info = checked_beat(heartbeat)?;
        let (cluster, worker) = (self.cluster(), worker.to_string());
        let (heartbeat, is_covered) = (heartbeat.clone(), self.shared.quarantine);
        self.write(move |writing| {
            let id = (&*cluster, &*worker);
            let tenure = tenures::beat(writing, time::now(), id, &heartbeat, &info)?;
            let quarantine = if is_covered {
                quarantine::report(writing, &heartbeat.report)?
            } else {
                Quarantine::default()
            };
            Ok(Beaten { tenure, quarantine })
        })
        .await
    }

    async fn leave(&self, worker: &LeaseName, session: Nonce) -> Result<Tenure, StoreError> {
        let (cluster, worker) = (self.cluster(), worker.to_string());
        self.write(move |writing| {
            tenures::leave(writing, time::now(), (&cluster, &worker), session)
        })
        .await
    }

    async fn members(&self) -> Result<Vec<Member>, StoreError> {
        let cluster = self.cluster();
        self.read(move |connection| tenures::members(connection, time::now(), &cluster))
            .await
    }

    async fn mark_moved(&self, keys: &[LeaseKey], cooldown: Duration) -> Result<(), StoreError> {
        check_ttl("cooldown", cooldown)?;
        self.write_each(keys, move |writing, keys| {
            let now = time::now();
            tenures::forget_cooled(writing, now)?;
            let each = keys.iter();
            each.map(|key| tenures::mark_moved(writing, now, key, cooldown))
                .collect()
        })
        .await
        .map(|_marked: Vec<()>| ())
    }

    async fn cooling(&self, keys: &[LeaseKey]) -> Result<Vec<bool>, StoreError> {
        self.read_each(keys, |connection, keys| {
            let now = time::now();
            let each = keys.iter();
            each.map(|key| tenures::is_cooling(connection, now, key))
                .collect()
        })
        .await
    }

    async fn groups(&self) -> Result<Vec<GroupDocument>, StoreError> {
        let groups = self.read(tenures::groups).await?;
        check_listed(groups.len())?;
        Ok(groups)
    }

    async fn set_group(&self, name: &LeaseName, json: &str) -> Result<(), StoreError> {
        check_group(json)?;
        let (name, json) = (name.to_string(), json.to_owned());
        self.write(move |writing| tenures::set_group(writing, &name, &json))
            .await
    }

    async fn remove_group(&self, name: &LeaseName) -> Result<bool, StoreError> {
        let name = name.to_string();
        self.write(move |writing| tenures::remove_group(writing, &name))
            .await
    }

    async fn wishes(&self) -> Result<Option<String>, StoreError> {
        let cluster = self.cluster();
        self.read(move |connection| notes::wishes(connection, &cluster))
            .await
    }

    async fn set_wishes(&self, before: Option<&str>, wishes: &str) -> Result<bool, StoreError> {
        check_wishes(wishes)?;
        let (cluster, before) = (self.cluster(), before.map(str::to_owned));
        let wishes = wishes.to_owned();
        self.write(move |writing| notes::set_wishes(writing, &cluster, before.as_deref(), &wishes))
            .await
    }

    async fn log_moves(&self, moves: &[String]) -> Result<(), StoreError> {
        check_moves(moves)?;
        let (cluster, moves) = (self.cluster(), moves.to_vec());
        self.write(move |writing| notes::log_moves(writing, &cluster, &moves))
            .await
    }

    async fn moves(&self) -> Result<Vec<String>, StoreError> {
        let cluster = self.cluster();
        let log = self.read(move |connection| notes::move_log(connection, &cluster));
        Ok(log.await?.lines().map(str::to_owned).collect())
    }

    async fn notices(&self) -> Result<LeaseNotices, StoreError> {
        Ok(self.shared.notices.subscribe())
    }
}

impl FileStore {
    /// The holder's id as it is written into a lease.
    fn id_of(&self, worker: &LeaseName) -> String {
        format!("{}:{worker}", self.shared.cluster)
    }

    /// Writes a batch, some in each turn. All of it shares one deadline.
    async fn write_each<I, T>(
        &self,
        items: &[I],
        work: impl Fn(&Writing<'_>, &[I]) -> rusqlite::Result<Vec<T>> + Send + Sync + 'static,
    ) -> Result<Vec<T>, StoreError>
    where
        I: Clone + Send + 'static,
        T: Send + 'static,
    {
        check_batch(items.len())?;
        let (deadline, work) = (self.deadline(), Arc::new(work));
        let mut answers = Vec::with_capacity(items.len());
        for part in items.chunks(PER_TURN_MAX) {
            let (part, work) = (part.to_vec(), Arc::clone(&work));
            let written = self
                .shared
                .writes
                .write(deadline, move |writing| work(writing, &part));
            match written.await {
                Ok(some) => answers.extend(some),
                // Of what the caller asked for, some has happened.
                Err(error)
                    if !answers.is_empty() && error.kind() == StoreErrorKind::Unavailable =>
                {
                    return Err(StoreError::unknown(&error).caused_by(error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    async fn read_each<I, T>(
        &self,
        items: &[I],
        work: impl Fn(&Connection, &[I]) -> rusqlite::Result<Vec<T>> + Send + Sync + 'static,
    ) -> Result<Vec<T>, StoreError>
    where
        I: Clone + Send + 'static,
        T: Send + 'static,
    {
        check_batch(items.len())?;
        let (deadline, work) = (self.deadline(), Arc::new(work));
        let mut answers = Vec::with_capacity(items.len());
        for part in items.chunks(PER_TURN_MAX) {
            let (part, work) = (part.to_vec(), Arc::clone(&work));
            let read = self
                .shared
                .reads
                .read(deadline, move |connection| work(connection, &part));
            answers.extend(read.await?);
        }
        Ok(answers)
    }
}
