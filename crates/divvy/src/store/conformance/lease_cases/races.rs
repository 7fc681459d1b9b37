//! Workers that meet.

use std::sync::Arc;

use divvy_core::store::{Acquired, Claim, LeaseKey, SessionStart, Tenure, Token};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::super::key_value_cases::races::joined;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, lease, nonce};

/// Clients that race each other.
const CLIENTS: usize = 8;

/// Of workers that want the same free leases at the same time, exactly one
/// gets each, and it is the one that is shown.
pub async fn one_of_many_acquirers_wins(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("one_of_many_acquirers_wins", options);
    let mut random = run.random();
    let clients = open_clients(&run, subject).await?;
    let keys: Vec<LeaseKey> = (0..16).map(|number| lease(&run, "g", number)).collect();
    let mut last: Vec<Option<Token>> = vec![None; keys.len()];
    for _ in 0..(options.operations / 40).clamp(1, 500) {
        let start = Arc::new(Barrier::new(clients.len()));
        let mut racing = JoinSet::new();
        for client in clients.iter().cloned() {
            let wishes: Vec<Claim> = keys.iter().map(|key| claim(key, &mut random)).collect();
            let start = Arc::clone(&start);
            racing.spawn(async move {
                start.wait().await;
                let answers = client.acquire(&wishes, LONG).await?;
                Ok((client, wishes, answers))
            });
        }
        let all = joined(&run, racing).await?;
        for at in 0..keys.len() {
            let granted = all
                .iter()
                .filter_map(|(client, wishes, answers)| match answers[at] {
                    Acquired::Granted(token) => Some((client, &wishes[at], token)),
                    _ => None,
                });
            let granted: Vec<_> = granted.collect();
            run.check(granted.len() == 1, || {
                format!("{} was granted {} times at once", keys[at], granted.len())
            })?;
            let (client, wish, token) = granted[0];
            run.check(last[at].is_none_or(|last| token > last), || {
                format!("token {token} was granted after {:?}", last[at])
            })?;
            last[at] = Some(token);
            clients[at % CLIENTS]
                .finds(wish, &client.id(), token)
                .await?;
            client.release_one(wish).await.map(drop)?;
        }
    }
    Ok(())
}

/// Of sessions that want one name at the same time, exactly one opens.
pub async fn one_of_many_sessions_opens(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("one_of_many_sessions_opens", options);
    let mut random = run.random();
    let clients = open_clients(&run, subject).await?;
    for _ in 0..(options.operations / 40).clamp(1, 500) {
        let start = Arc::new(Barrier::new(clients.len() / 2));
        let mut racing = JoinSet::new();
        // Those of one cluster, all by one name.
        for client in clients.iter().step_by(2) {
            let (client, session) = (client.as_worker("wanted"), nonce(&mut random));
            let start = Arc::clone(&start);
            racing.spawn(async move {
                start.wait().await;
                let opened = client.open_session(session, LONG).await?;
                Ok((opened == SessionStart::Opened).then_some((client, session)))
            });
        }
        let opened: Vec<_> = joined(&run, racing).await?.into_iter().flatten().collect();
        run.check(opened.len() == 1, || {
            format!("{} sessions opened with one name", opened.len())
        })?;
        let (client, session) = &opened[0];
        let tenure = client.leave(*session).await?;
        run.check(tenure == Tenure::Current, || {
            "the session that opened could not leave".to_owned()
        })?;
    }
    Ok(())
}

/// A release that is sent by several connections at once happens once.
pub async fn one_of_many_releases_counts(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("one_of_many_releases_counts", options);
    let mut random = run.random();
    let clients = open_clients(&run, subject).await?;
    let key = lease(&run, "g", 0);
    for _ in 0..(options.operations / 40).clamp(1, 500) {
        let wish = claim(&key, &mut random);
        clients[0].as_worker("same").take(&wish, LONG).await?;
        let mut racing = JoinSet::new();
        for client in clients.iter().step_by(2) {
            let (client, wish) = (client.as_worker("same"), wish.clone());
            racing.spawn(async move { client.release_one(&wish).await });
        }
        let tenures = joined(&run, racing).await?;
        let count = tenures.iter().filter(|tenure| **tenure == Tenure::Current);
        let count = count.count();
        run.check(count == 1, || format!("one release counted {count} times"))?;
    }
    Ok(())
}

/// Workers that take and release the same few leases all the time: tokens of
/// a lease are never granted twice, and a holder finds itself as the holder.
pub async fn contended_leases_have_one_holder_at_a_time(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("contended_leases_have_one_holder_at_a_time", options);
    let mut random = run.random();
    let clients = open_clients(&run, subject).await?;
    let rounds = (options.operations / 8).clamp(4, 500);
    let mut working = JoinSet::new();
    for client in clients {
        let mut random = random.fork();
        working.spawn(async move {
            let mut tenures = Vec::new();
            for _ in 0..rounds {
                let wish = claim(&lease(&client.run, "g", random.u32(..3)), &mut random);
                let answer = client.acquire(std::slice::from_ref(&wish), LONG).await?;
                let Acquired::Granted(token) = answer[0] else {
                    continue;
                };
                client.finds(&wish, &client.id(), token).await?;
                let renewed = client.renew_one(&wish, LONG).await?;
                let released = client.release_one(&wish).await?;
                let both = (renewed, released) == (Tenure::Current, Tenure::Current);
                client.run.check(both, || {
                    format!("a holder's renewal and release were {renewed:?} and {released:?}")
                })?;
                tenures.push((wish.key, token));
            }
            Ok(tenures)
        });
    }
    let mut tenures: Vec<_> = joined(&run, working).await?.into_iter().flatten().collect();
    run.check(tenures.len() >= 3, || {
        "hardly anybody got a lease".to_owned()
    })?;
    tenures.sort_unstable();
    let twice = tenures.windows(2).find(|pair| pair[0] == pair[1]);
    run.check(twice.is_none(), || {
        format!("a token was granted twice: {twice:?}")
    })
}

/// Workers of two clusters, in turn.
async fn open_clients(run: &Run, subject: &dyn LeaseSubject) -> Result<Vec<LeaseClient>, Failure> {
    let mut clients = Vec::with_capacity(CLIENTS);
    for number in 0..CLIENTS {
        let cluster = ["c", "far"][number % 2];
        let worker = format!("worker{number}");
        clients.push(LeaseClient::open(run, subject, cluster, &worker).await?);
    }
    Ok(clients)
}
