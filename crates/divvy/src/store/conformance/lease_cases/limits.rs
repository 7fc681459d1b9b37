//! Input out of bounds.

use std::time::Duration;

use divvy_core::store::{Heartbeat, SessionStart, Tenure, WorkerInfo};

use super::super::super::{TTL_MAX, TTL_MIN};
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, lease, nonce};

/// The shortest and the longest time to live are taken; shorter and longer
/// ones are refused, and nothing is done.
pub async fn times_to_live_are_bounded(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("times_to_live_are_bounded", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let free = lease(&run, "g", 0);
    let held = claim(&lease(&run, "g", 1), &mut random);
    let token = one.take(&held, LONG).await?;
    let (session, info) = (nonce(&mut random), WorkerInfo::default());
    one.open_session(session, LONG).await.map(drop)?;
    let (store, worker, other) = (&one.store, &one.worker, one.as_worker("other"));
    let nanosecond = Duration::from_nanos(1);
    for ttl in [
        Duration::ZERO,
        TTL_MIN - nanosecond,
        TTL_MAX + nanosecond,
        Duration::MAX,
    ] {
        let what = |what: &str| format!("{what} for {ttl:?}");
        let wish = [claim(&free, &mut random)];
        run.refused("one", &what("acquire"), store.acquire(worker, &wish, ttl))
            .await?;
        let renewing = store.renew(worker, std::slice::from_ref(&held), ttl);
        run.refused("one", &what("renew"), renewing).await?;
        let opening = store.open_session(&other.worker, session, ttl);
        run.refused("one", &what("open a session"), opening).await?;
        let short = Heartbeat::new(session, info.clone(), ttl, LONG);
        let beating = store.beat(worker, &short);
        run.refused("one", &what("beat"), beating).await?;
        let short = Heartbeat::new(session, info.clone(), LONG, ttl);
        let beating = store.beat(worker, &short);
        run.refused("one", &what("beat with a session"), beating)
            .await?;
        let marking = store.mark_moved(std::slice::from_ref(&free), ttl);
        run.refused("one", &what("mark"), marking).await?;
    }
    one.finds_free(&free).await?;
    one.finds(&held, &one.id(), token).await?;
    let members = one.members().await?;
    run.check(members.is_empty(), || {
        "a beat that was refused made a member".to_owned()
    })?;
    let cooling = one.cooling(std::slice::from_ref(&free)).await?;
    run.check(!cooling[0], || {
        "a mark that was refused is there".to_owned()
    })?;
    let start = other.open_session(session, LONG).await?;
    run.check(start == SessionStart::Opened, || {
        "a session that was refused is there".to_owned()
    })?;

    let wish = claim(&lease(&run, "g", 2), &mut random);
    let token = one.take(&wish, TTL_MAX).await?;
    let holder = one.finds(&wish, &one.id(), token).await?;
    run.check(holder.left > TTL_MAX / 2, || {
        format!("a lease for {TTL_MAX:?} runs for {:?}", holder.left)
    })?;
    one.take(&claim(&free, &mut random), TTL_MIN).await?;
    one.finds_free(&free).await
}

/// A worker's description that breaks its rules is refused, and the one before
/// stays.
pub async fn invalid_descriptions_are_refused(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("invalid_descriptions_are_refused", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let session = nonce(&mut random);
    one.open_session(session, LONG).await.map(drop)?;
    let good = WorkerInfo {
        weight: 2.0,
        ..WorkerInfo::default()
    };
    let tenure = one.beat(session, &good, LONG, LONG).await?;
    run.check(tenure == Tenure::Current, || {
        "an open session could not beat".to_owned()
    })?;
    let serving = |groups: Vec<String>| WorkerInfo {
        groups: Some(groups),
        ..WorkerInfo::default()
    };
    let weighing = |weight: f64| WorkerInfo {
        weight,
        ..WorkerInfo::default()
    };
    let bad = [
        weighing(f64::NAN),
        weighing(f64::INFINITY),
        weighing(-1.0),
        serving(vec!["a:b".to_owned()]),
        serving(vec![String::new()]),
        serving(vec!["g".to_owned(); 1001]),
    ];
    for info in bad {
        let heartbeat = Heartbeat::new(session, info, LONG, LONG);
        let beating = one.store.beat(&one.worker, &heartbeat);
        run.refused("one", "beat with a bad description", beating)
            .await?;
    }
    let wait = run.wait("the description of before is there");
    loop {
        let members = one.members().await?;
        if members.first().and_then(super::members::said).as_ref() == Some(&good) {
            return Ok(());
        }
        wait.again_because(&format!("{members:?}")).await?;
    }
}
