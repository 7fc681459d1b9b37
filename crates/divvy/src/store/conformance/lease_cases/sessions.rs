//! Sessions: one process per worker's name.

use std::time::Duration;

use divvy_core::store::{Nonce, SessionStart, Tenure, WorkerInfo};
use tokio::time::Instant;

use super::super::lease_client::Lifetime;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::nonce;

const SHORT: Duration = Duration::from_millis(250);

/// A name is one session's, however often that asks: a second one is told how
/// long that can last, and gets it when the first has left. The same name in another cluster is
/// another one.
pub async fn a_name_has_one_session(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_name_has_one_session", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "same").await?;
    let two = LeaseClient::open(&run, subject, "c", "same").await?;
    let far = LeaseClient::open(&run, subject, "far", "same").await?;
    let [first, second, third] = [(); 3].map(|()| nonce(&mut random));
    opens(&one, first, LONG).await?;
    is_taken(&two, second, LONG).await?;
    is_taken(&one, second, LONG).await?;
    // Whoever did not hear the answer asks again.
    opens(&two, first, LONG).await?;
    opens(&far, third, LONG).await?;
    opens(&two.as_worker("other"), second, LONG).await?;

    // A session that never was one can neither beat nor leave.
    let info = WorkerInfo::default();
    let beaten = two.beat(second, &info, LONG, LONG).await?;
    let left = two.leave(second).await?;
    run.check((beaten, left) == (Tenure::Over, Tenure::Over), || {
        format!("a session that was refused was {beaten:?} and {left:?}")
    })?;
    is_taken(&two, second, LONG).await?;
    let members = one.members().await?;
    run.check(members.is_empty(), || {
        format!("a heartbeat that was refused made a member: {members:?}")
    })?;

    let beaten = one.beat(first, &info, LONG, LONG).await?;
    let left = one.leave(first).await?;
    run.check((beaten, left) == (Tenure::Current, Tenure::Current), || {
        format!("the session was {beaten:?} and {left:?}")
    })?;
    let beaten = one.beat(first, &info, LONG, LONG).await?;
    let left = one.leave(first).await?;
    run.check((beaten, left) == (Tenure::Over, Tenure::Over), || {
        format!("a session that had left was {beaten:?} and {left:?}")
    })?;
    opens(&two, second, LONG).await?;
    is_taken(&one, first, LONG).await?;
    is_taken(&far, first, LONG).await
}

/// A session without heartbeats is over after its time, and not before.
pub async fn a_session_expires_in_time(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_session_expires_in_time", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "same").await?;
    let two = LeaseClient::open(&run, subject, "c", "same").await?;
    let first = nonce(&mut random);
    let asked = Instant::now();
    opens(&one, first, SHORT).await?;
    let lifetime = Lifetime::new(&run, asked, SHORT);
    ends(&two, lifetime, &mut random).await?;
    let beaten = one.beat(first, &WorkerInfo::default(), LONG, LONG).await?;
    let left = one.leave(first).await?;
    run.check((beaten, left) == (Tenure::Over, Tenure::Over), || {
        format!("a session that expired was {beaten:?} and {left:?}")
    })?;
    is_taken(&one, first, LONG).await
}

/// A heartbeat lets a session run from then on; one of another session
/// changes nothing.
pub async fn a_heartbeat_keeps_a_session(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_heartbeat_keeps_a_session", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "same").await?;
    let two = LeaseClient::open(&run, subject, "c", "same").await?;
    let info = WorkerInfo::default();
    // For longer than it had: the name stays taken beyond its first time.
    let first = nonce(&mut random);
    let wait = run.wait("a heartbeat comes in time");
    opens(&one, first, SHORT).await?;
    while one.beat(first, &info, LONG, LONG).await? == Tenure::Over {
        // A process that was held up is not the store's fault.
        wait.again_because("delays of this machine").await?;
        opens(&one, first, SHORT).await?;
    }
    let beaten = Instant::now();
    while beaten.elapsed() < SHORT * 2 {
        is_taken(&two, nonce(&mut random), LONG).await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // For less than it had.
    let asked = Instant::now();
    let tenure = one.beat(first, &info, LONG, SHORT).await?;
    run.check(tenure == Tenure::Current, || {
        "a session in time could not beat".to_owned()
    })?;
    let lifetime = Lifetime::new(&run, asked, SHORT);
    let strange = two.beat(nonce(&mut random), &info, LONG, LONG).await?;
    run.check(strange == Tenure::Over, || {
        "a strange session could beat".to_owned()
    })?;
    ends(&two, lifetime, &mut random).await
}

/// Asks for the name until it is given, which must be in time.
async fn ends(
    client: &LeaseClient,
    lifetime: Lifetime,
    random: &mut fastrand::Rng,
) -> Result<(), Failure> {
    loop {
        let looked = Instant::now();
        let start = client.open_session(nonce(random), LONG).await?;
        let gone = start == SessionStart::Opened;
        lifetime.check(&client.run, looked, gone, "a session")?;
        if gone {
            return Ok(());
        }
        lifetime.pause().await;
    }
}

async fn opens(client: &LeaseClient, session: Nonce, ttl: Duration) -> Result<(), Failure> {
    let start = client.open_session(session, ttl).await?;
    client.run.check(start == SessionStart::Opened, || {
        format!("a name that is free or this session's was {start:?}")
    })
}

async fn is_taken(client: &LeaseClient, session: Nonce, at_most: Duration) -> Result<(), Failure> {
    let start = client.open_session(session, LONG).await?;
    let right = match start {
        SessionStart::Taken(left) => left <= at_most && !left.is_zero(),
        SessionStart::Opened => false,
    };
    client.run.check(right, || {
        format!("a name that is taken for at most {at_most:?} was {start:?}")
    })
}
