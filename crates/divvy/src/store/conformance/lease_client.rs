//! A client of the lease store under test: it notes what it does, fails the
//! case where the store fails, and never waits for ever.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::store::{
    Acquired, Claim, GroupDocument, Heartbeat, Holder, LeaseKey, LeaseName, Member, Nonce,
    SessionStart, Tenure, Token, WorkerInfo,
};
use tokio::time::Instant;

use super::super::{LeaseNotice, LeaseNotices, Leases};
use super::history::brief;
use super::report::Failure;
use super::run::{Opened, Run};
use super::subject::LeaseSubject;

/// A time to live that no case outlasts.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// A worker of a cluster, with a connection of its own.
#[derive(Debug, Clone)]
pub(super) struct LeaseClient {
    pub(super) run: Run,
    pub(super) store: Arc<dyn Leases>,
    pub(super) cluster: String,
    pub(super) worker: LeaseName,
}

impl LeaseClient {
    /// A further client for `worker` of a cluster that is this run's own.
    pub(super) async fn open(
        run: &Run,
        subject: &dyn LeaseSubject,
        cluster: &str,
        worker: &str,
    ) -> Result<Self, Failure> {
        let cluster = run.name(cluster);
        let opening = async { Ok(Opened(subject.open(&cluster).await?)) };
        let opened = run.done(worker, format!("open {cluster}"), opening).await?;
        Self::of(run, opened.0, cluster, worker)
    }

    /// A client that was opened already.
    pub(super) fn of(
        run: &Run,
        store: Arc<dyn Leases>,
        cluster: String,
        worker: &str,
    ) -> Result<Self, Failure> {
        Ok(Self {
            run: run.clone(),
            store,
            cluster,
            worker: LeaseName::new("worker", worker)
                .map_err(|error| run.fail(error.to_string()))?,
        })
    }

    /// The same client for another worker.
    pub(super) fn as_worker(&self, worker: &str) -> Self {
        Self {
            worker: LeaseName::new("worker", worker).expect("the suite's own names are valid"),
            ..self.clone()
        }
    }

    fn who(&self) -> &str {
        self.worker.as_str()
    }

    /// The worker's id, as others see it.
    pub(super) fn id(&self) -> String {
        format!("{}:{}", self.cluster, self.worker)
    }

    /// How long a batch took is not noted, but that it was answered whole is
    /// checked.
    fn whole<T>(&self, answers: Vec<T>, asked: usize) -> Result<Vec<T>, Failure> {
        let count = answers.len();
        self.run.check(count == asked, || {
            format!("a batch of {asked} had {count} answers")
        })?;
        Ok(answers)
    }

    pub(super) async fn acquire(
        &self,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, Failure> {
        let what = brief(format_args!("acquire for {ttl:?} {}", Claims(claims)));
        let asking = self.store.acquire(&self.worker, claims, ttl);
        let answers = self.run.done(self.who(), what, asking).await?;
        self.run
            .check(!answers.contains(&Acquired::Quarantined), || {
                "the subject must be out of quarantine, but refuses a lease for it".to_owned()
            })?;
        self.whole(answers, claims.len())
    }

    pub(super) async fn renew(
        &self,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, Failure> {
        let what = brief(format_args!("renew for {ttl:?} {}", Claims(claims)));
        let asking = self.store.renew(&self.worker, claims, ttl);
        let answers = self.run.done(self.who(), what, asking).await?;
        self.whole(answers, claims.len())
    }

    pub(super) async fn release(&self, claims: &[Claim]) -> Result<Vec<Tenure>, Failure> {
        let what = brief(format_args!("release {}", Claims(claims)));
        let asking = self.store.release(&self.worker, claims);
        let answers = self.run.done(self.who(), what, asking).await?;
        self.whole(answers, claims.len())
    }

    pub(super) async fn holders(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, Failure> {
        let what = brief(format_args!("holders of {}", Keys(keys)));
        let asking = self.store.holders(keys);
        let answers = self.run.done(self.who(), what, asking).await?;
        self.whole(answers, keys.len())
    }

    pub(super) async fn cooling(&self, keys: &[LeaseKey]) -> Result<Vec<bool>, Failure> {
        let what = brief(format_args!("cooling {}", Keys(keys)));
        let asking = self.store.cooling(keys);
        let answers = self.run.done(self.who(), what, asking).await?;
        self.whole(answers, keys.len())
    }

    pub(super) async fn mark_moved(
        &self,
        keys: &[LeaseKey],
        cooldown: Duration,
    ) -> Result<(), Failure> {
        let what = brief(format_args!("mark for {cooldown:?} {}", Keys(keys)));
        let asking = self.store.mark_moved(keys, cooldown);
        self.run.done(self.who(), what, asking).await
    }

    pub(super) async fn open_session(
        &self,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, Failure> {
        let what = format!("open session {session} for {ttl:?}");
        let asking = self.store.open_session(&self.worker, session, ttl);
        self.run.done(self.who(), what, asking).await
    }

    pub(super) async fn beat(
        &self,
        session: Nonce,
        info: &WorkerInfo,
        heartbeat_ttl: Duration,
        session_ttl: Duration,
    ) -> Result<Tenure, Failure> {
        let what = brief(format_args!(
            "beat {session} for {heartbeat_ttl:?} and {session_ttl:?} {info:?}"
        ));
        let heartbeat = Heartbeat::new(session, info.clone(), heartbeat_ttl, session_ttl);
        let asking = self.store.beat(&self.worker, &heartbeat);
        let beaten = self.run.done(self.who(), what, asking).await?;
        Ok(beaten.tenure)
    }

    pub(super) async fn leave(&self, session: Nonce) -> Result<Tenure, Failure> {
        let what = format!("leave {session}");
        let asking = self.store.leave(&self.worker, session);
        self.run.done(self.who(), what, asking).await
    }

    pub(super) async fn members(&self) -> Result<Vec<Member>, Failure> {
        let asking = self.store.members();
        let members = self.run.done(self.who(), "members".to_owned(), asking);
        let members = members.await?;
        let ordered = members.is_sorted_by(|a, b| a.name < b.name);
        self.run.check(ordered, || {
            brief(format_args!("members are not in order: {members:?}"))
        })?;
        Ok(members)
    }

    /// The groups of this run; a shared store may have others.
    pub(super) async fn groups(&self) -> Result<Vec<GroupDocument>, Failure> {
        let asking = self.store.groups();
        let groups = self.run.done(self.who(), "groups".to_owned(), asking);
        let mut groups = groups.await?;
        let ordered = groups.is_sorted_by(|a, b| a.name < b.name);
        self.run.check(ordered, || {
            brief(format_args!("groups are not in order: {groups:?}"))
        })?;
        groups.retain(|group| self.run.is_own(&group.name));
        Ok(groups)
    }

    pub(super) async fn set_group(&self, name: &LeaseName, json: &str) -> Result<(), Failure> {
        let what = brief(format_args!("set group {name} {json}"));
        let asking = self.store.set_group(name, json);
        self.run.done(self.who(), what, asking).await
    }

    pub(super) async fn remove_group(&self, name: &LeaseName) -> Result<bool, Failure> {
        let what = format!("remove group {name}");
        let asking = self.store.remove_group(name);
        self.run.done(self.who(), what, asking).await
    }

    pub(super) async fn wishes(&self) -> Result<Option<String>, Failure> {
        let asking = self.store.wishes();
        self.run.done(self.who(), "wishes".to_owned(), asking).await
    }

    pub(super) async fn set_wishes(
        &self,
        before: Option<&str>,
        wishes: &str,
    ) -> Result<bool, Failure> {
        let what = brief(format_args!("set wishes {wishes:?} over {before:?}"));
        let asking = self.store.set_wishes(before, wishes);
        self.run.done(self.who(), what, asking).await
    }

    pub(super) async fn log_moves(&self, moves: &[String]) -> Result<(), Failure> {
        let what = format!("log {} moves", moves.len());
        let asking = self.store.log_moves(moves);
        self.run.done(self.who(), what, asking).await
    }

    pub(super) async fn moves(&self) -> Result<Vec<String>, Failure> {
        let asking = self.store.moves();
        self.run.done(self.who(), "moves".to_owned(), asking).await
    }

    pub(super) async fn notices(&self) -> Result<Notices, Failure> {
        let asking = self.store.notices();
        let notices = self.run.done(self.who(), "notices".to_owned(), asking);
        Ok(Notices {
            run: self.run.clone(),
            notices: notices.await?,
        })
    }

    /// A lease that has to be granted.
    pub(super) async fn take(&self, claim: &Claim, ttl: Duration) -> Result<Token, Failure> {
        match self.acquire(std::slice::from_ref(claim), ttl).await?[0] {
            Acquired::Granted(token) => Ok(token),
            ref other => {
                let reason = format!("{} is free, but was {other:?}", claim.key);
                Err(self.run.fail(reason))
            }
        }
    }

    /// A lease that must be held by somebody.
    pub(super) async fn is_held(&self, claim: &Claim) -> Result<(), Failure> {
        let found = &self.acquire(std::slice::from_ref(claim), LONG).await?[0];
        self.run.check(*found == Acquired::Held, || {
            format!("{} is held, but was {found:?}", claim.key)
        })
    }

    /// Renews one lease.
    pub(super) async fn renew_one(&self, claim: &Claim, ttl: Duration) -> Result<Tenure, Failure> {
        Ok(self.renew(std::slice::from_ref(claim), ttl).await?[0])
    }

    /// Releases one lease.
    pub(super) async fn release_one(&self, claim: &Claim) -> Result<Tenure, Failure> {
        Ok(self.release(std::slice::from_ref(claim)).await?[0])
    }

    /// Who holds one lease.
    pub(super) async fn holder(&self, key: &LeaseKey) -> Result<Option<Holder>, Failure> {
        let mut holders = self.holders(std::slice::from_ref(key)).await?;
        Ok(holders.pop().flatten())
    }

    /// Looks until `claim` is held by `worker` with `token`; reads may be
    /// stale.
    pub(super) async fn finds(
        &self,
        claim: &Claim,
        worker: &str,
        token: Token,
    ) -> Result<Holder, Failure> {
        let fence = Some((token, claim.nonce));
        let what = format!("{} is held by {worker} with {fence:?}", claim.key);
        let wait = self.run.wait(what);
        loop {
            let found = self.holder(&claim.key).await?;
            match found {
                Some(holder) if holder.worker == worker && holder.fence == fence => {
                    return Ok(holder);
                }
                other => wait.again_because(&format!("{other:?}")).await?,
            }
        }
    }

    /// Looks until nobody holds `key`; reads may be stale.
    pub(super) async fn finds_free(&self, key: &LeaseKey) -> Result<(), Failure> {
        let wait = self.run.wait(format!("nobody holds {key}"));
        while let Some(found) = self.holder(key).await? {
            wait.again_because(&format!("{found:?}")).await?;
        }
        Ok(())
    }
}

/// Notices under test.
#[derive(Debug)]
pub(super) struct Notices {
    run: Run,
    notices: LeaseNotices,
}

impl Notices {
    /// Waits until `wanted` is told, or that everything is to be read anew.
    /// Others may come before.
    pub(super) async fn tells(&mut self, wanted: &LeaseNotice) -> Result<(), Failure> {
        let until = Instant::now() + self.run.options().wait;
        loop {
            let Ok(next) = tokio::time::timeout_at(until, self.notices.next()).await else {
                return Err(self.run.fail(format!("{wanted:?} was not told in time")));
            };
            self.run.note(format_args!("told {next:?}"));
            if next == *wanted || next == LeaseNotice::Resync {
                return Ok(());
            }
        }
    }

    /// Whether `wanted` is told within a short time.
    pub(super) async fn has_told(&mut self, wanted: &LeaseNotice) -> bool {
        let soon = Instant::now() + Duration::from_millis(100);
        while let Ok(next) = tokio::time::timeout_at(soon, self.notices.next()).await {
            self.run.note(format_args!("told {next:?}"));
            if next == *wanted {
                return true;
            }
        }
        false
    }
}

/// When something that was asked for with a time to live has to be gone: not
/// before, and not long after.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lifetime {
    not_before: Instant,
    not_after: Instant,
}

impl Lifetime {
    /// Of what was asked for at `asked` and answered now.
    pub(super) fn new(run: &Run, asked: Instant, ttl: Duration) -> Self {
        Self {
            not_before: asked + ttl.saturating_sub(run.options().early),
            not_after: Instant::now() + ttl + run.options().late,
        }
    }

    /// A look that began at `looked` and was answered now found it gone, or
    /// not. Fails if that is impossible; a slow answer alone is no fault.
    pub(super) fn check(
        &self,
        run: &Run,
        looked: Instant,
        gone: bool,
        what: &str,
    ) -> Result<(), Failure> {
        let now = Instant::now();
        match gone {
            true if now < self.not_before => {
                let early = self.not_before - now;
                Err(run.fail(format!("{what} is gone at least {early:?} too early")))
            }
            false if looked > self.not_after => {
                let late = looked - self.not_after;
                Err(run.fail(format!("{what} is still there, {late:?} too late")))
            }
            _ => Ok(()),
        }
    }

    /// Lets a little time pass between two looks.
    pub(super) async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Claims in few words.
struct Claims<'a>(&'a [Claim]);

impl std::fmt::Display for Claims<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for claim in self.0.iter().take(4) {
            write!(f, "{}/{} ", claim.key, claim.nonce)?;
        }
        write!(f, "({})", self.0.len())
    }
}

/// Keys in few words.
struct Keys<'a>(&'a [LeaseKey]);

impl std::fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for key in self.0.iter().take(4) {
            write!(f, "{key} ")?;
        }
        write!(f, "({})", self.0.len())
    }
}
