//! A store that may have forgotten leases grants none until a worker has waited
//! for the longest of them.

use std::time::Duration;

use divvy_core::store::{
    Acquired, Claim, Heartbeat, LeaseKey, Nonce, Quarantine, QuarantineId, QuarantineReport,
    Tenure, WorkerInfo,
};

use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::{Opened, Run};
use super::super::subject::{Forgetting, LeaseSubject};
use super::{claim, lease};

/// The names of the cases, for a report.
pub(super) const NAMES: [&str; 5] = [
    "a_quarantine_lasts_for_the_longest_lease",
    "a_longer_lease_of_another_worker_is_waited_for",
    "a_restart_begins_a_quarantine_that_keeps_leases",
    "a_loss_of_all_data_begins_a_quarantine",
    "a_granted_lease_counts_in_the_next_quarantine",
];

const LEASE: Duration = Duration::from_secs(2);
/// Less than any store counts in.
const MOMENT: Duration = Duration::from_millis(1);

/// Nothing is granted before a worker has waited for the whole of the longest
/// lease, and everything afterwards.
pub async fn a_quarantine_lasts_for_the_longest_lease(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_quarantine_lasts_for_the_longest_lease", options);
    let Some(forgetting) = subject.forgetting() else {
        return Ok(());
    };
    forgetting.empty().await;
    let one = Waiting::open(&run, forgetting, "one").await?;
    let id = one.begins(LEASE).await?;
    for waited in [Duration::ZERO, LEASE / 2, LEASE - MOMENT] {
        one.goes_on(LEASE, &id, waited).await?;
    }
    one.ends(LEASE, &id, LEASE).await?;
    // It stays so, whatever is reported.
    one.ends(LEASE, &id, Duration::ZERO).await?;
    one.ends(LEASE * 10, &QuarantineId::new("another"), Duration::ZERO)
        .await
}

/// The longest lease is that of all workers, also of one that has waited for
/// less than the one that asks.
pub async fn a_longer_lease_of_another_worker_is_waited_for(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_longer_lease_of_another_worker_is_waited_for", options);
    let Some(forgetting) = subject.forgetting() else {
        return Ok(());
    };
    forgetting.empty().await;
    let one = Waiting::open(&run, forgetting, "one").await?;
    let other = Waiting::open(&run, forgetting, "other").await?;
    let id = one.begins(LEASE).await?;
    let found = other.report(LEASE * 10, None).await?;
    let is_one = found.id == id && found.longest_lease == LEASE * 10 && !found.is_over;
    run.check(is_one, || format!("{id} is waited for, not {found:?}"))?;
    one.goes_on(LEASE, &id, LEASE).await?;
    one.goes_on(LEASE, &id, LEASE * 10 - MOMENT).await?;
    one.ends(LEASE, &id, LEASE * 10).await
}

/// A restart begins another quarantine, with the longest lease of before. What
/// is held stays held, and can be renewed and released.
pub async fn a_restart_begins_a_quarantine_that_keeps_leases(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_restart_begins_a_quarantine_that_keeps_leases", options);
    let Some(forgetting) = subject.forgetting() else {
        return Ok(());
    };
    let (one, first) = Waiting::after_one(&run, forgetting, LEASE * 10).await?;
    let mut random = run.random();
    let held = claim(&lease(&run, "g", 1), &mut random);
    one.client.take(&held, LONG).await?;

    forgetting.restart().await;
    let second = one.begins(LEASE).await?;
    run.check(first != second, || {
        format!("a restart keeps the quarantine {first}")
    })?;
    // A wait of before the restart does not count.
    one.goes_on(LEASE, &first, LONG).await?;
    one.goes_on(LEASE, &second, LEASE * 10 - MOMENT).await?;
    let found = one.acquire(&held.key).await?;
    run.check(found == Acquired::Held, || {
        format!("a lease from before the restart is held, but was {found:?}")
    })?;
    for (what, tenure) in [
        ("renew", one.client.renew_one(&held, LONG).await?),
        ("release", one.client.release_one(&held).await?),
    ] {
        run.check(tenure == Tenure::Current, || {
            format!("a holder could not {what} in a quarantine")
        })?;
    }
    one.ends(LEASE, &second, LONG).await
}

/// A store that lost everything begins another quarantine, also without a
/// restart. What workers remember counts in it.
pub async fn a_loss_of_all_data_begins_a_quarantine(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_loss_of_all_data_begins_a_quarantine", options);
    let Some(forgetting) = subject.forgetting() else {
        return Ok(());
    };
    let (one, first) = Waiting::after_one(&run, forgetting, LEASE).await?;
    forgetting.empty().await;
    // Also before the first heartbeat.
    one.is_refused().await?;
    let second = one.begins(LEASE * 10).await?;
    run.check(first != second, || {
        format!("a loss of all data keeps the quarantine {first}")
    })?;
    one.goes_on(LEASE, &first, LONG).await?;
    for waited in [LEASE, LEASE * 10 - MOMENT] {
        one.goes_on(LEASE, &second, waited).await?;
    }
    one.ends(LEASE, &second, LEASE * 10).await
}

/// A lease that was granted for longer than anybody reported is waited for
/// after a restart.
pub async fn a_granted_lease_counts_in_the_next_quarantine(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_granted_lease_counts_in_the_next_quarantine", options);
    let Some(forgetting) = subject.forgetting() else {
        return Ok(());
    };
    let (one, _) = Waiting::after_one(&run, forgetting, LEASE).await?;
    let long = claim(&lease(&run, "g", 1), &mut run.random());
    one.client.take(&long, LEASE * 20).await?;
    forgetting.restart().await;
    let second = one.begins(LEASE).await?;
    one.goes_on(LEASE, &second, LEASE * 20 - MOMENT).await?;
    one.ends(LEASE, &second, LEASE * 20).await
}

/// A worker that waits.
struct Waiting {
    client: LeaseClient,
}

impl Waiting {
    async fn open(run: &Run, forgetting: &dyn Forgetting, worker: &str) -> Result<Self, Failure> {
        let cluster = run.name("c");
        let opening = async { Ok(Opened(forgetting.open(&cluster).await?)) };
        let opened = run.done(worker, format!("open {cluster}"), opening).await?;
        let client = LeaseClient::of(run, opened.0, cluster, worker)?;
        Ok(Self { client })
    }

    /// One on an empty store, after its first quarantine, for this lease.
    async fn after_one(
        run: &Run,
        forgetting: &dyn Forgetting,
        lease: Duration,
    ) -> Result<(Self, QuarantineId), Failure> {
        forgetting.empty().await;
        let one = Self::open(run, forgetting, "one").await?;
        let first = one.begins(lease).await?;
        one.ends(lease, &first, lease).await?;
        Ok((one, first))
    }

    /// Reports, as soon as the store is reached.
    async fn report(
        &self,
        longest_lease: Duration,
        waited: Option<(QuarantineId, Duration)>,
    ) -> Result<Quarantine, Failure> {
        let report = QuarantineReport {
            longest_lease,
            waited,
        };
        let what = format!("report {report:?}");
        // Of no session: what it reports counts all the same.
        let heartbeat = Heartbeat {
            report,
            ..Heartbeat::new(Nonce::new(0), WorkerInfo::default(), LONG, LONG)
        };
        let (run, worker) = (&self.client.run, &self.client.worker);
        let wait = run.wait("the store is reached");
        loop {
            let asking = self.client.store.beat(worker, &heartbeat);
            match run.attempt(worker.as_str(), &what, asking).await? {
                Ok(beaten) => return Ok(beaten.quarantine),
                Err(error) => wait.again_because(&error.to_string()).await?,
            }
        }
    }

    /// A quarantine begins, which this worker has not waited in.
    async fn begins(&self, longest: Duration) -> Result<QuarantineId, Failure> {
        let found = self.report(longest, None).await?;
        let is_begun = !found.is_over && found.longest_lease >= longest;
        self.client.run.check(is_begun, || {
            format!("a quarantine for {longest:?} begins, but found {found:?}")
        })?;
        self.is_refused().await?;
        Ok(found.id)
    }

    /// Having waited for so long in `id` is not enough.
    async fn goes_on(
        &self,
        longest: Duration,
        id: &QuarantineId,
        waited: Duration,
    ) -> Result<(), Failure> {
        let found = self.report(longest, Some((id.clone(), waited))).await?;
        self.client.run.check(!found.is_over, || {
            format!("over after a wait of {waited:?} in {id}: {found:?}")
        })?;
        self.is_refused().await
    }

    /// Having waited for so long in `id` is enough.
    async fn ends(
        &self,
        longest: Duration,
        id: &QuarantineId,
        waited: Duration,
    ) -> Result<(), Failure> {
        let found = self.report(longest, Some((id.clone(), waited))).await?;
        self.client.run.check(found.is_over, || {
            format!("not over after a wait of {waited:?} in {id}: {found:?}")
        })?;
        let found = self.acquire(&self.free()).await?;
        self.client
            .run
            .check(matches!(found, Acquired::Granted(_)), || {
                format!("after a quarantine a lease is granted, but was {found:?}")
            })
    }

    async fn is_refused(&self) -> Result<(), Failure> {
        let found = self.acquire(&self.free()).await?;
        self.client.run.check(found == Acquired::Quarantined, || {
            format!("in a quarantine nobody gets a lease, but it was {found:?}")
        })
    }

    /// Asks for a lease, as soon as the store is reached.
    async fn acquire(&self, key: &LeaseKey) -> Result<Acquired, Failure> {
        let (run, client) = (&self.client.run, &self.client);
        let wait = run.wait("the store is reached");
        loop {
            let wish = [Claim {
                key: key.clone(),
                nonce: Nonce::new(fastrand::u128(..)),
            }];
            let asking = client.store.acquire(&client.worker, &wish, MOMENT * 20);
            let what = format!("acquire {key}");
            let asking = run.attempt(client.worker.as_str(), &what, asking).await?;
            match asking.map(|mut answers| answers.pop()) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => return Err(run.fail("a wish was not answered")),
                Err(error) => wait.again_because(&error.to_string()).await?,
            }
        }
    }

    /// A lease that nobody holds.
    fn free(&self) -> LeaseKey {
        lease(&self.client.run, "free", fastrand::u32(..))
    }
}
