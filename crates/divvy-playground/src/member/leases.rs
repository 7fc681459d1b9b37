//! The lease store of a member, as its weather lets it be.

use std::time::Duration;

use async_trait::async_trait;
use divvy::store::{
    Acquired, Beaten, Claim, GroupDocument, Heartbeat, Holder, LeaseKey, LeaseName, LeaseNotice,
    LeaseNotices, Leases, Member, Nonce, NoticeBoard, SessionStart, StoreError, Tenure,
};

use super::weather::Nature;
use super::weathered::Weathered;

#[async_trait]
impl Leases for Weathered<dyn Leases> {
    fn cluster(&self) -> &str {
        self.store.cluster()
    }

    async fn acquire(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, StoreError> {
        let acquired = self.store.acquire(worker, claims, ttl);
        self.sky.carry(Nature::Write, acquired).await
    }

    async fn renew(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, StoreError> {
        let renewed = self.store.renew(worker, claims, ttl);
        self.sky.carry(Nature::Write, renewed).await
    }

    async fn release(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
    ) -> Result<Vec<Tenure>, StoreError> {
        let released = self.store.release(worker, claims);
        self.sky.carry(Nature::Write, released).await
    }

    async fn holders(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, StoreError> {
        self.sky.carry(Nature::Read, self.store.holders(keys)).await
    }

    async fn open_session(
        &self,
        worker: &LeaseName,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, StoreError> {
        let opened = self.store.open_session(worker, session, ttl);
        self.sky.carry(Nature::Write, opened).await
    }

    async fn beat(&self, worker: &LeaseName, heartbeat: &Heartbeat) -> Result<Beaten, StoreError> {
        let beaten = self.store.beat(worker, heartbeat);
        self.sky.carry(Nature::Write, beaten).await
    }

    async fn leave(&self, worker: &LeaseName, session: Nonce) -> Result<Tenure, StoreError> {
        let left = self.store.leave(worker, session);
        self.sky.carry(Nature::Write, left).await
    }

    async fn members(&self) -> Result<Vec<Member>, StoreError> {
        self.sky.carry(Nature::Read, self.store.members()).await
    }

    async fn mark_moved(&self, keys: &[LeaseKey], cooldown: Duration) -> Result<(), StoreError> {
        let marked = self.store.mark_moved(keys, cooldown);
        self.sky.carry(Nature::Write, marked).await
    }

    async fn cooling(&self, keys: &[LeaseKey]) -> Result<Vec<bool>, StoreError> {
        self.sky.carry(Nature::Read, self.store.cooling(keys)).await
    }

    async fn groups(&self) -> Result<Vec<GroupDocument>, StoreError> {
        self.sky.carry(Nature::Read, self.store.groups()).await
    }

    async fn set_group(&self, name: &LeaseName, json: &str) -> Result<(), StoreError> {
        let set = self.store.set_group(name, json);
        self.sky.carry(Nature::Write, set).await
    }

    async fn remove_group(&self, name: &LeaseName) -> Result<bool, StoreError> {
        let removed = self.store.remove_group(name);
        self.sky.carry(Nature::Write, removed).await
    }

    async fn wishes(&self) -> Result<Option<String>, StoreError> {
        self.sky.carry(Nature::Read, self.store.wishes()).await
    }

    async fn set_wishes(&self, before: Option<&str>, wishes: &str) -> Result<bool, StoreError> {
        let set = self.store.set_wishes(before, wishes);
        self.sky.carry(Nature::Write, set).await
    }

    async fn log_moves(&self, moves: &[String]) -> Result<(), StoreError> {
        let logged = self.store.log_moves(moves);
        self.sky.carry(Nature::Write, logged).await
    }

    async fn moves(&self) -> Result<Vec<String>, StoreError> {
        self.sky.carry(Nature::Read, self.store.moves()).await
    }

    async fn notices(&self) -> Result<LeaseNotices, StoreError> {
        let asked = self.sky.carry(Nature::Read, self.store.notices());
        let mut notices = asked.await?;
        let (board, sky) = (NoticeBoard::default(), self.sky.clone());
        let heard = board.subscribe();
        // It ends with the process.
        tokio::spawn(async move {
            loop {
                let notice = notices.next().await;
                if sky.is_heard() {
                    board.post(notice);
                    continue;
                }
                // What comes meanwhile is lost, and this one was.
                sky.until_heard().await;
                board.post(LeaseNotice::Resync);
            }
        });
        Ok(heard)
    }
}
