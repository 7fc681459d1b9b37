//! Fencing tokens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use divvy_core::store::{Tenure, Token};

use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, lease};

/// Every grant of a lease has a higher token than all before: after a release,
/// after an expiry, to other workers and other clusters.
pub async fn tokens_of_a_lease_increase(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("tokens_of_a_lease_increase", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let far = LeaseClient::open(&run, subject, "far", "one").await?;
    let key = lease(&run, "g", 3);
    let mut last: Option<Token> = None;
    for round in 0..18 {
        let client = [&one, &one, &two, &far][random.usize(..4)];
        let wish = claim(&key, &mut random);
        let expires = round % 6 == 5;
        let ttl = if expires {
            Duration::from_millis(40)
        } else {
            LONG
        };
        let token = client.take(&wish, ttl).await?;
        run.check(last.is_none_or(|last| token > last), || {
            format!("token {token} was granted after {last:?}")
        })?;
        last = Some(token);
        if expires {
            one.finds_free(&key).await?;
            continue;
        }
        // Neither a renewal nor a lost race uses one up for the holder.
        let tenure = client.renew_one(&wish, LONG).await?;
        run.check(tenure == Tenure::Current, || {
            "the holder could not renew".to_owned()
        })?;
        two.is_held(&claim(&key, &mut random)).await?;
        one.finds(&wish, &client.id(), token).await?;
        let tenure = client.release_one(&wish).await?;
        run.check(tenure == Tenure::Current, || {
            "the holder could not release".to_owned()
        })?;
    }
    Ok(())
}

/// A token is not below what the time asks for, so that a store that has lost
/// its data does not begin at 1 again.
pub async fn tokens_have_a_floor_in_time(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    const CLOCKS_APART: Duration = Duration::from_hours(1);
    let run = Run::new("tokens_have_a_floor_in_time", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let token = one
        .take(&claim(&lease(&run, "g", 0), &mut random), LONG)
        .await?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let earliest = now.saturating_sub(CLOCKS_APART).as_millis();
    let floor = Token::after(None, u64::try_from(earliest).unwrap_or(u64::MAX));
    run.check(token >= floor, || {
        format!("the first token of a lease is {token}, must be at least {floor}")
    })
}
