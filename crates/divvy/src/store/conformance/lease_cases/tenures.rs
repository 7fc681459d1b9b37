//! Who holds a lease, and may renew and release it.

use std::time::Duration;

use divvy_core::store::{Claim, Tenure};

use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, lease};

/// What somebody holds, nobody else gets: no other worker, no other cluster,
/// and not the same worker a second time.
pub async fn a_lease_has_one_holder(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_lease_has_one_holder", options);
    let mut random = run.random();
    let [one, two, far] = three_clients(&run, subject).await?;
    let key = lease(&run, "g", 0);
    one.finds_free(&key).await?;
    let held = claim(&key, &mut random);
    let token = one.take(&held, LONG).await?;
    for other in [&two, &far, &one, &far.as_worker("one")] {
        other.is_held(&claim(&key, &mut random)).await?;
        other.is_held(&held).await?;
    }
    one.finds(&held, &one.id(), token).await?;
    two.finds(&held, &one.id(), token).await?;
    // Its neighbours are other leases.
    for number in [1, 10, u32::MAX] {
        let key = lease(&run, "g", number);
        two.take(&claim(&key, &mut random), LONG).await?;
    }
    far.finds(&held, &one.id(), token).await?;
    Ok(())
}

/// Only the worker that holds a lease, with the nonce that it was granted for,
/// can renew it; for everyone else nothing changes.
pub async fn a_renewal_needs_the_nonce(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_renewal_needs_the_nonce", options);
    let mut random = run.random();
    let [one, two, far] = three_clients(&run, subject).await?;
    let key = lease(&run, "g", 7);
    let held = claim(&key, &mut random);
    let over = one.renew_one(&held, LONG).await?;
    run.check(over == Tenure::Over, || {
        "a lease that nobody holds was renewed".to_owned()
    })?;
    one.finds_free(&key).await?;
    let ttl = LONG / 10;
    let token = one.take(&held, ttl).await?;
    let wrong = claim(&key, &mut random);
    let strangers = [
        (&two, &held, "another worker"),
        (&far.as_worker("one"), &held, "another cluster"),
        (&one, &wrong, "another nonce"),
    ];
    for (client, claim, whose) in strangers {
        let tenure = client.renew_one(claim, LONG).await?;
        run.check(tenure == Tenure::Over, || {
            format!("a lease was renewed by {whose}")
        })?;
    }
    let holder = two.finds(&held, &one.id(), token).await?;
    run.check(holder.left <= ttl, || {
        format!(
            "a renewal that was refused left {:?} of {ttl:?}",
            holder.left
        )
    })?;
    let tenure = one.renew_one(&held, LONG).await?;
    run.check(tenure == Tenure::Current, || {
        "the holder could not renew".to_owned()
    })?;
    let wait = run.wait("a renewal is seen");
    while two.finds(&held, &one.id(), token).await?.left <= ttl {
        wait.again().await?;
    }
    // Again, as after an answer that was lost.
    let tenure = one.renew_one(&held, LONG).await?;
    run.check(tenure == Tenure::Current, || {
        "the holder could not renew twice".to_owned()
    })
}

/// Only the worker that holds a lease, with the nonce that it was granted for,
/// can release it, once; a late release does not end the next tenure.
pub async fn a_release_needs_the_nonce(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_release_needs_the_nonce", options);
    let mut random = run.random();
    let [one, two, far] = three_clients(&run, subject).await?;
    let key = lease(&run, "g", 7);
    let held = claim(&key, &mut random);
    not_released(&one, &held, "though nobody held it").await?;
    let token = one.take(&held, LONG).await?;
    not_released(&two, &held, "by another worker").await?;
    not_released(&far.as_worker("one"), &held, "by another cluster").await?;
    let wrong = claim(&key, &mut random);
    not_released(&one, &wrong, "by another nonce").await?;
    two.finds(&held, &one.id(), token).await?;

    let tenure = one.release_one(&held).await?;
    run.check(tenure == Tenure::Current, || {
        "the holder could not release".to_owned()
    })?;
    two.finds_free(&key).await?;
    not_released(&one, &held, "twice").await?;
    let tenure = one.renew_one(&held, LONG).await?;
    run.check(tenure == Tenure::Over, || {
        "a lease was renewed after its release".to_owned()
    })?;
    two.finds_free(&key).await?;
    // The next tenures, of another worker and of the same.
    for client in [&two, &one, &far] {
        let next = claim(&key, &mut random);
        let token = client.take(&next, LONG).await?;
        not_released(&one, &held, "in its next tenure").await?;
        let tenure = one.renew_one(&held, LONG).await?;
        run.check(tenure == Tenure::Over, || {
            "a lease was renewed in its next tenure".to_owned()
        })?;
        one.finds(&next, &client.id(), token).await?;
        let tenure = client.release_one(&next).await?;
        run.check(tenure == Tenure::Current, || {
            "the next holder could not release".to_owned()
        })?;
    }
    Ok(())
}

/// The holder is shown with worker, token, nonce, and no more time than it was
/// granted.
pub async fn a_holder_is_shown_as_it_is(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_holder_is_shown_as_it_is", options);
    let mut random = run.random();
    let [one, two, far] = three_clients(&run, subject).await?;
    let claims: Vec<Claim> = (0..3)
        .map(|number| claim(&lease(&run, "g", number), &mut random))
        .collect();
    let ttls = [LONG, LONG / 5, LONG / 3];
    for ((client, claim), ttl) in [&one, &two, &far].into_iter().zip(&claims).zip(ttls) {
        let token = client.take(claim, ttl).await?;
        for reader in [&one, &two, &far] {
            let holder = reader.finds(claim, &client.id(), token).await?;
            let enough = ttl.saturating_sub(Duration::from_secs(60))..=ttl;
            run.check(enough.contains(&holder.left), || {
                format!("a lease for {ttl:?} still runs for {:?}", holder.left)
            })?;
        }
    }
    let keys = [
        lease(&run, "g", 1),
        lease(&run, "g", 9),
        lease(&run, "h", 1),
    ];
    let found = one.holders(&keys).await?;
    run.check(found[1].is_none() && found[2].is_none(), || {
        format!("leases that nobody took are held: {found:?}")
    })
}

async fn not_released(client: &LeaseClient, claim: &Claim, how: &str) -> Result<(), Failure> {
    let tenure = client.release_one(claim).await?;
    client.run.check(tenure == Tenure::Over, || {
        format!("a lease was released {how}")
    })
}

/// Two workers of one cluster, and one of another.
async fn three_clients(run: &Run, subject: &dyn LeaseSubject) -> Result<[LeaseClient; 3], Failure> {
    Ok([
        LeaseClient::open(run, subject, "c", "one").await?,
        LeaseClient::open(run, subject, "c", "two").await?,
        LeaseClient::open(run, subject, "far", "far").await?,
    ])
}
