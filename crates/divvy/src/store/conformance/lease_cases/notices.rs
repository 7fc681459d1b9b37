//! Notices, which save others from polling.

use divvy_core::store::{LeaseName, Tenure, WorkerInfo};

use super::super::super::LeaseNotice;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, group_name, lease, nonce};

/// Whoever listens is told of a group that was set, replaced or removed, by
/// its name.
pub async fn changes_of_groups_are_told(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("changes_of_groups_are_told", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let far = LeaseClient::open(&run, subject, "far", "far").await?;
    let names: [LeaseName; 3] = ["g", "h é", "*"].map(|name| group_name(&run, name));
    for name in &names {
        let told = LeaseNotice::Group(name.to_string());
        for json in ["{}", "{\"units\": 1}"] {
            let mut listeners = [
                two.notices().await?,
                far.notices().await?,
                one.notices().await?,
            ];
            one.set_group(name, json).await?;
            for listener in &mut listeners {
                listener.tells(&told).await?;
            }
        }
        let mut listener = two.notices().await?;
        one.remove_group(name).await.map(drop)?;
        listener.tells(&told).await?;
    }
    Ok(())
}

/// Whoever listens is told when a worker of the cluster joins, says something
/// new of itself, comes back, or leaves.
pub async fn changes_of_members_are_told(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("changes_of_members_are_told", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let mut info = WorkerInfo::default();
    for _ in 0..2 {
        let session = nonce(&mut random);
        one.open_session(session, LONG).await.map(drop)?;
        let mut listener = two.notices().await?;
        beats(&one, session, &info).await?;
        listener.tells(&LeaseNotice::Members).await?;

        let mut listener = two.notices().await?;
        info.healthy = !info.healthy;
        beats(&one, session, &info).await?;
        listener.tells(&LeaseNotice::Members).await?;

        let mut listener = two.notices().await?;
        let tenure = one.leave(session).await?;
        run.check(tenure == Tenure::Current, || {
            "a member could not leave".to_owned()
        })?;
        listener.tells(&LeaseNotice::Members).await?;
    }
    Ok(())
}

/// Whoever listens is told of each lease that was released.
pub async fn releases_are_told(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("releases_are_told", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let far = LeaseClient::open(&run, subject, "far", "far").await?;
    let wishes: Vec<_> = (0..20)
        .map(|number| claim(&lease(&run, "g é", number), &mut random))
        .collect();
    one.acquire(&wishes, LONG).await.map(drop)?;
    let mut listener = far.notices().await?;
    one.release(&wishes[..1]).await.map(drop)?;
    listener
        .tells(&LeaseNotice::Released(wishes[0].key.clone()))
        .await?;
    one.release(&wishes).await.map(drop)?;
    // In whatever order: each has a listener that waits for it alone.
    for wish in &wishes[1..] {
        let mut listener = far.notices().await?;
        one.acquire(std::slice::from_ref(wish), LONG)
            .await
            .map(drop)?;
        one.release_one(wish).await.map(drop)?;
        listener
            .tells(&LeaseNotice::Released(wish.key.clone()))
            .await?;
    }
    Ok(())
}

async fn beats(
    worker: &LeaseClient,
    session: divvy_core::store::Nonce,
    info: &WorkerInfo,
) -> Result<(), Failure> {
    let tenure = worker.beat(session, info, LONG, LONG).await?;
    worker.run.check(tenure == Tenure::Current, || {
        "an open session could not beat".to_owned()
    })
}
