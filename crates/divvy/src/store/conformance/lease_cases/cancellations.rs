//! Operations that nobody waits for any more.

use divvy_core::store::{Acquired, Claim, Tenure};

use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::{Run, cancelled};
use super::super::subject::LeaseSubject;
use super::{claim, lease};

/// An acquisition whose future is dropped half-way leaves each lease free, or
/// held by the nonce that it was wanted with, so that its worker can give it
/// back.
pub async fn a_cancelled_acquisition_happens_whole_or_never(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_cancelled_acquisition_happens_whole_or_never", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    for round in 0..(options.operations / 20).clamp(2, 200) {
        let wishes: Vec<Claim> = (0..4)
            .map(|number| claim(&lease(&run, &format!("g{round}"), number), &mut random))
            .collect();
        let asking = one.store.acquire(&one.worker, &wishes, LONG);
        let ended = cancelled(asking, &mut random).await;
        run.note(format_args!("one cancelled its acquisition: {ended:?}"));
        for wish in &wishes {
            settle(&one, &two, wish, &mut random).await?;
        }
    }
    // The client works on.
    one.take(&claim(&lease(&run, "after", 0), &mut random), LONG)
        .await
        .map(drop)
}

/// Gives the lease to another worker, whatever became of the cancelled wish.
async fn settle(
    one: &LeaseClient,
    two: &LeaseClient,
    cancelled: &Claim,
    random: &mut fastrand::Rng,
) -> Result<(), Failure> {
    let wait = two
        .run
        .wait("a lease is free after a cancelled acquisition");
    loop {
        let wish = claim(&cancelled.key, random);
        let answer = two.acquire(std::slice::from_ref(&wish), LONG).await?;
        if let Acquired::Granted(token) = answer[0] {
            // Whatever comes late now, comes too late.
            return one.finds(&wish, &two.id(), token).await.map(drop);
        }
        let holder = two.holder(&cancelled.key).await?;
        let right = holder.as_ref().is_none_or(|holder| {
            let nonce = holder.fence.map(|(_, nonce)| nonce);
            holder.worker == one.id() && nonce == Some(cancelled.nonce)
        });
        two.run.check(right, || {
            format!("after a cancelled acquisition the holder is {holder:?}")
        })?;
        if one.release_one(cancelled).await? == Tenure::Over {
            wait.again().await?;
        }
    }
}
