//! Leases that nobody renews.

use std::time::Duration;

use divvy_core::store::{Acquired, Claim, Tenure};
use tokio::time::Instant;

use super::super::lease_client::Lifetime;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, lease};

/// Long enough to be renewed in between, short enough to wait for.
const SHORT: Duration = Duration::from_millis(250);

/// A lease that is not renewed is free after its time, for those who look and
/// for those who want it, and not before.
pub async fn a_lease_expires_in_time(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_lease_expires_in_time", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let (seen, wanted) = (lease(&run, "g", 0), lease(&run, "g", 1));
    let asked = Instant::now();
    let claims = [claim(&seen, &mut random), claim(&wanted, &mut random)];
    let granted = one.acquire(&claims, SHORT).await?;
    let both = granted
        .iter()
        .all(|one| matches!(one, Acquired::Granted(_)));
    run.check(both, || format!("free leases became {granted:?}"))?;
    let lifetime = Lifetime::new(&run, asked, SHORT);
    let (mut is_seen, mut is_taken) = (true, false);
    while is_seen || !is_taken {
        if is_seen {
            let looked = Instant::now();
            let holder = two.holder(&seen).await?;
            lifetime.check(&run, looked, holder.is_none(), "a lease")?;
            is_seen = holder.is_some();
        }
        if !is_taken {
            let looked = Instant::now();
            let wish = claim(&wanted, &mut random);
            let answer = two.acquire(std::slice::from_ref(&wish), LONG).await?;
            is_taken = matches!(answer[0], Acquired::Granted(_));
            lifetime.check(&run, looked, is_taken, "a lease that another wants")?;
        }
        lifetime.pause().await;
    }
    Ok(())
}

/// A lease that is renewed in time outlives its first time, and expires after
/// the last.
pub async fn a_renewed_lease_lives_on(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_renewed_lease_lives_on", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    // A process that was held up is not the store's fault: then again, with
    // more time.
    for ttl in [SHORT, SHORT * 3, SHORT * 9, SHORT * 27] {
        let wish = claim(&lease(&run, "g", random.u32(..)), &mut random);
        let asked = Instant::now();
        let token = one.take(&wish, ttl).await?;
        let Some(lifetime) = renew_for(&one, &two, &wish, (asked, ttl)).await? else {
            continue;
        };
        loop {
            let looked = Instant::now();
            let holder = two.holder(&wish.key).await?;
            lifetime.check(&run, looked, holder.is_none(), "a renewed lease")?;
            if holder.is_none() {
                break;
            }
            lifetime.pause().await;
        }
        let next = two.take(&claim(&wish.key, &mut random), LONG).await?;
        return run.check(next > token, || format!("{next} is not above {token}"));
    }
    Err(run.fail("this machine is too slow to renew a lease in time"))
}

/// Renews a lease for three of its lives, in which it must stay held. Gives
/// when it has to be gone, or nothing if a renewal came late.
async fn renew_for(
    one: &LeaseClient,
    two: &LeaseClient,
    wish: &Claim,
    (began, ttl): (Instant, Duration),
) -> Result<Option<Lifetime>, Failure> {
    let run = &one.run;
    let mut asked = began;
    let mut lifetime = Lifetime::new(run, asked, ttl);
    while began.elapsed() < ttl * 3 {
        let holder = two.holder(&wish.key).await?;
        let looked = Instant::now();
        let renewed = one.renew_one(wish, ttl).await?;
        if asked.elapsed() > ttl / 2 {
            return Ok(None);
        }
        run.check(holder.is_some() && renewed == Tenure::Current, || {
            format!("a lease that is renewed in time was over: {holder:?} {renewed:?}")
        })?;
        (asked, lifetime) = (looked, Lifetime::new(run, looked, ttl));
        lifetime.pause().await;
    }
    Ok(Some(lifetime))
}

/// A renewal lets a lease run from then on, also for less than it had left.
pub async fn a_renewal_counts_from_when_it_came(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_renewal_counts_from_when_it_came", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let wish = claim(&lease(&run, "g", 0), &mut random);
    one.take(&wish, LONG).await?;
    let asked = Instant::now();
    let tenure = one.renew_one(&wish, SHORT).await?;
    run.check(tenure == Tenure::Current, || {
        "the holder could not renew".to_owned()
    })?;
    let lifetime = Lifetime::new(&run, asked, SHORT);
    loop {
        let looked = Instant::now();
        let holder = one.holder(&wish.key).await?;
        lifetime.check(&run, looked, holder.is_none(), "a lease renewed for less")?;
        if holder.is_none() {
            return Ok(());
        }
        lifetime.pause().await;
    }
}

/// Whoever comes back after its lease expired can neither renew nor release
/// it, before and after another has it.
pub async fn an_expired_tenure_is_over(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("an_expired_tenure_is_over", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let wish = claim(&lease(&run, "g", 0), &mut random);
    one.take(&wish, Duration::from_millis(40)).await?;
    two.finds_free(&wish.key).await?;
    is_over(&one, &wish, "while nobody had it").await?;
    two.finds_free(&wish.key).await?;
    let next = claim(&wish.key, &mut random);
    let token = two.take(&next, LONG).await?;
    is_over(&one, &wish, "while another had it").await?;
    one.finds(&next, &two.id(), token).await?;
    two.release_one(&next).await.map(drop)?;
    // The same worker, anew: its old tenure stays over.
    let again = claim(&wish.key, &mut random);
    let token = one.take(&again, LONG).await?;
    is_over(&one, &wish, "while the worker had it anew").await?;
    two.finds(&again, &one.id(), token).await.map(drop)
}

async fn is_over(client: &LeaseClient, claim: &Claim, when: &str) -> Result<(), Failure> {
    let renewed = client.renew_one(claim, LONG).await?;
    let released = client.release_one(claim).await?;
    let over = (renewed, released) == (Tenure::Over, Tenure::Over);
    client.run.check(over, || {
        format!("an expired tenure was {renewed:?} and {released:?} {when}")
    })
}
