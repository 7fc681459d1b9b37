//! Members: the live workers of a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::store::{GivingUp, Member, SessionStart, Tenure, WorkerInfo};
use tokio::time::Instant;

use super::super::lease_client::Lifetime;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::nonce;

/// Members are the workers of this cluster that have beaten and not left, in
/// order of their names.
pub async fn members_are_those_of_the_cluster(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("members_are_those_of_the_cluster", options);
    let mut random = run.random();
    // Names of clusters that begin with each other's.
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let far = LeaseClient::open(&run, subject, "c2", "one").await?;
    let wild = LeaseClient::open(&run, subject, "c*", "one").await?;
    has_members(&one, &[]).await?;
    let names = [
        "zeta", "alpha", "*", "a b", "c2", "é", "Zeta", "z.1", "[a]", "z-1",
    ];
    let mut sessions = Vec::new();
    for name in names {
        let (worker, session) = (one.as_worker(name), nonce(&mut random));
        let start = worker.open_session(session, LONG).await?;
        run.check(start == SessionStart::Opened, || {
            format!("a name that is free was {start:?}")
        })?;
        sessions.push((worker, session));
    }
    // A session alone is no member.
    has_members(&two, &[]).await?;
    for (worker, session) in &sessions {
        beats(worker, *session, &WorkerInfo::default(), LONG).await?;
    }
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    for client in [&one, &two] {
        has_members(client, &sorted).await?;
    }
    has_members(&far, &[]).await?;
    has_members(&wild, &[]).await?;
    let session = nonce(&mut random);
    far.open_session(session, LONG).await.map(drop)?;
    beats(&far, session, &WorkerInfo::default(), LONG).await?;
    has_members(&far, &["one"]).await?;
    has_members(&wild, &[]).await?;

    for (number, (worker, session)) in sessions.iter().enumerate() {
        let tenure = worker.leave(*session).await?;
        run.check(tenure == Tenure::Current, || {
            "a member could not leave".to_owned()
        })?;
        let mut rest = names[number + 1..].to_vec();
        rest.sort_unstable();
        has_members(&two, &rest).await?;
    }
    has_members(&far, &["one"]).await
}

/// What a worker says of itself comes back as it was said, and the last that
/// it said counts.
pub async fn what_a_worker_says_comes_back(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("what_a_worker_says_comes_back", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let session = nonce(&mut random);
    one.open_session(session, LONG).await.map(drop)?;
    let many = (0..1000).map(|number| format!("group-{number}"));
    let hostile = [
        "\"",
        "\\",
        "*",
        "%s",
        "a b",
        "é",
        "\u{1F980}",
        "null",
        "'; --",
        "$1",
        "[]",
        "-1",
        "\u{202e}",
    ];
    let served: [Option<Vec<String>>; 4] = [
        None,
        Some(Vec::new()),
        Some(hostile.iter().map(|name| (*name).to_owned()).collect()),
        Some(many.collect()),
    ];
    let weights = [1.0, 0.0, 0.1 + 0.2, 1e6, 1e-3];
    for (number, weight) in weights.into_iter().enumerate() {
        let info = WorkerInfo {
            weight,
            healthy: number % 2 == 0,
            drained: number % 3 == 0,
            quarantined: number % 4 == 0,
            lease_ttl_ms: (number == 2).then_some(u64::MAX),
            groups: served[number % served.len()].clone(),
            partitions: match number {
                2 => hostile.iter().map(|name| ((*name).to_owned(), 9)).collect(),
                _ => BTreeMap::new(),
            },
            max_partitions: (number == 3).then_some(7),
            max_per_group: (number == 4).then_some(u32::MAX),
            gives_up: (number == 1).then_some(GivingUp {
                never: true,
                min_runtime_ms: u64::MAX,
                at_once: u32::MAX,
                ..GivingUp::default()
            }),
            unconfirmed: match number {
                3 => hostile.iter().map(|name| format!("{name}:9")).collect(),
                _ => Vec::new(),
            },
        };
        beats(&one, session, &info, LONG).await?;
        let wait = run.wait("what a worker says is read");
        loop {
            let members = two.members().await?;
            let said = members.first().and_then(said);
            if members.len() == 1 && said.as_ref() == Some(&info) {
                break;
            }
            wait.again_because(&format!("{said:?}")).await?;
        }
    }
    Ok(())
}

/// A member that is silent is gone after its time, and not before, while its
/// session goes on; with the next heartbeat it is back.
pub async fn a_silent_member_is_gone_in_time(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_silent_member_is_gone_in_time", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let short = Duration::from_millis(250);
    let (session, info) = (nonce(&mut random), WorkerInfo::default());
    one.open_session(session, LONG).await.map(drop)?;
    for _ in 0..2 {
        let asked = Instant::now();
        beats(&one, session, &info, short).await?;
        let lifetime = Lifetime::new(&run, asked, short);
        loop {
            let looked = Instant::now();
            let gone = two.members().await?.is_empty();
            lifetime.check(&run, looked, gone, "a member")?;
            if gone {
                break;
            }
            lifetime.pause().await;
        }
        let start = two
            .as_worker("one")
            .open_session(nonce(&mut random), LONG)
            .await?;
        run.check(matches!(start, SessionStart::Taken(_)), || {
            "a session ended with its last heartbeat's time".to_owned()
        })?;
    }
    Ok(())
}

async fn beats(
    worker: &LeaseClient,
    session: divvy_core::store::Nonce,
    info: &WorkerInfo,
    heartbeat_ttl: Duration,
) -> Result<(), Failure> {
    let tenure = worker.beat(session, info, heartbeat_ttl, LONG).await?;
    worker.run.check(tenure == Tenure::Current, || {
        "an open session could not beat".to_owned()
    })
}

/// Reads the members until they are exactly these; reads may be stale.
async fn has_members(client: &LeaseClient, names: &[&str]) -> Result<(), Failure> {
    let wait = client.run.wait(format!("the members are {names:?}"));
    loop {
        let members = client.members().await?;
        let found: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        if found == names {
            return Ok(());
        }
        wait.again_because(&format!("{found:?}")).await?;
    }
}

/// What a member says of itself, if it can be read.
pub(super) fn said(member: &Member) -> Option<WorkerInfo> {
    WorkerInfo::from_json(member.info.as_ref()?).ok()
}
