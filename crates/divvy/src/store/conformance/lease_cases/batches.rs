//! Many leases in one call.

use divvy_core::store::{Acquired, Claim, Holder, LeaseKey, Tenure};

use super::super::super::BATCH_MAX;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, lease};

/// Batches of no, one, some and many leases are answered whole and in their
/// order.
pub async fn batches_are_answered_in_order(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("batches_are_answered_in_order", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    for count in [0, 1, 1000, 10_000] {
        in_order(&run, &one, &two, count).await?;
    }
    Ok(())
}

async fn in_order(
    run: &Run,
    one: &LeaseClient,
    two: &LeaseClient,
    count: u32,
) -> Result<(), Failure> {
    let mut random = run.random();
    let group = format!("g{count}");
    let keys: Vec<LeaseKey> = (0..count)
        .map(|number| lease(run, &group, number))
        .collect();
    let theirs: Vec<bool> = keys.iter().map(|_| random.u8(..5) == 0).collect();
    let mut claims = claims_of(&keys, &mut random);
    two.acquire(&chosen(&claims, &theirs), LONG).await?;

    let mine = claims_of(&keys, &mut random);
    let granted = one.acquire(&mine, LONG).await?;
    let is_granted = |answer: &Acquired| matches!(answer, Acquired::Granted(_));
    let got: Vec<bool> = granted.iter().map(is_granted).collect();
    same(run, "acquire", &got, &inverse(&theirs))?;
    for ((claim, mine), their) in claims.iter_mut().zip(mine).zip(&theirs) {
        if !their {
            *claim = mine;
        }
    }
    let is_right = |(at, holder): (usize, &Option<Holder>)| {
        let Some(Holder { worker, fence, .. }) = holder else {
            return false;
        };
        let (token, nonce) = fence.unzip();
        let is_theirs = theirs[at] && *worker == two.id();
        let granted = token.map(Acquired::Granted).as_ref() == Some(&granted[at]);
        let is_mine = !theirs[at] && *worker == one.id() && granted;
        nonce == Some(claims[at].nonce) && (is_theirs || is_mine)
    };
    let wait = run.wait("the holders are read in the order of their leases");
    while !one.holders(&keys).await?.iter().enumerate().all(is_right) {
        wait.again().await?;
    }
    // With a nonce that is wrong, here and there.
    let wrong: Vec<bool> = keys.iter().map(|_| random.u8(..4) == 0).collect();
    for (asked, wrong) in claims.iter_mut().zip(&wrong) {
        if *wrong {
            *asked = claim(&asked.key, &mut random);
        }
    }
    let both = theirs.iter().zip(&wrong);
    let expected: Vec<bool> = both.map(|(their, wrong)| !their && !wrong).collect();
    let renewed = one.renew(&claims, LONG).await?;
    same(run, "renew", &current(&renewed), &expected)?;
    let released = one.release(&claims).await?;
    same(run, "release", &current(&released), &expected)?;
    let wait = run.wait("exactly those that were not released are held");
    let held =
        |holders: &[Option<Holder>]| -> Vec<bool> { holders.iter().map(Option::is_some).collect() };
    while held(&one.holders(&keys).await?) != inverse(&expected) {
        wait.again().await?;
    }

    let marked = chosen(&claims, &wrong).into_iter().map(|claim| claim.key);
    one.mark_moved(&marked.collect::<Vec<_>>(), LONG).await?;
    let wait = run.wait("the marks are read in the order of their leases");
    while two.cooling(&keys).await? != wrong {
        wait.again().await?;
    }
    Ok(())
}

fn claims_of(keys: &[LeaseKey], random: &mut fastrand::Rng) -> Vec<Claim> {
    keys.iter().map(|key| claim(key, random)).collect()
}

fn chosen(claims: &[Claim], chosen: &[bool]) -> Vec<Claim> {
    let both = claims.iter().zip(chosen).filter(|(_, chosen)| **chosen);
    both.map(|(claim, _)| claim.clone()).collect()
}

fn inverse(all: &[bool]) -> Vec<bool> {
    all.iter().map(|one| !one).collect()
}

fn current(tenures: &[Tenure]) -> Vec<bool> {
    let each = tenures.iter();
    each.map(|tenure| *tenure == Tenure::Current).collect()
}

/// A lease that is named twice in one batch is done twice, in order.
pub async fn a_batch_is_done_one_after_the_other(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_batch_is_done_one_after_the_other", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let keys = [lease(&run, "g", 0), lease(&run, "g", 1)];
    let wishes: Vec<Claim> = [0, 1, 0, 0, 1]
        .iter()
        .map(|at| claim(&keys[*at], &mut random))
        .collect();
    let answers = one.acquire(&wishes, LONG).await?;
    let granted: Vec<bool> = answers
        .iter()
        .map(|answer| *answer != Acquired::Held)
        .collect();
    same(
        &run,
        "acquire",
        &granted,
        &[true, true, false, false, false],
    )?;
    let holders = one
        .holders(&[keys[1].clone(), keys[0].clone(), keys[1].clone()])
        .await?;
    run.check(
        holders[0].is_some() && holders.iter().all(Option::is_some),
        || format!("both leases are held, but the holders are {holders:?}"),
    )?;
    let twice = [wishes[0].clone(), wishes[0].clone(), wishes[2].clone()];
    let released = one.release(&twice).await?;
    run.check(
        released == [Tenure::Current, Tenure::Over, Tenure::Over],
        || format!("releasing a lease twice in one batch gave {released:?}"),
    )
}

/// A batch that is too large is refused whole, and nothing of it is done.
pub async fn a_batch_too_large_is_refused(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_batch_too_large_is_refused", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let held = claim(&lease(&run, "g", 0), &mut random);
    let token = one.take(&held, LONG / 10).await?;
    let mut claims = vec![held.clone()];
    let more = BATCH_MAX as u32;
    claims.extend((1..=more).map(|number| claim(&lease(&run, "g", number), &mut random)));
    let keys: Vec<LeaseKey> = claims.iter().map(|claim| claim.key.clone()).collect();
    let (store, worker) = (&one.store, &one.worker);
    let too_many = |what: &str| format!("{what} {} leases", claims.len());
    run.refused(
        "one",
        &too_many("acquire"),
        store.acquire(worker, &claims, LONG),
    )
    .await?;
    run.refused(
        "one",
        &too_many("renew"),
        store.renew(worker, &claims, LONG),
    )
    .await?;
    run.refused("one", &too_many("release"), store.release(worker, &claims))
        .await?;
    run.refused("one", &too_many("look at"), store.holders(&keys))
        .await?;
    run.refused("one", &too_many("mark"), store.mark_moved(&keys, LONG))
        .await?;
    run.refused("one", &too_many("ask for marks of"), store.cooling(&keys))
        .await?;
    let holder = one.finds(&held, &one.id(), token).await?;
    run.check(holder.left <= LONG / 10, || {
        "a batch that was refused renewed a lease".to_owned()
    })?;
    let sample: Vec<LeaseKey> = [1, 2, more / 2, more]
        .map(|at| keys[at as usize].clone())
        .to_vec();
    let holders = one.holders(&sample).await?;
    let cooling = one.cooling(&sample).await?;
    let nothing = holders.iter().all(Option::is_none) && !cooling.contains(&true);
    run.check(nothing, || {
        "a batch that was refused was done in part".to_owned()
    })
}

fn same(run: &Run, what: &str, found: &[bool], expected: &[bool]) -> Result<(), Failure> {
    let wrong = (0..expected.len()).find(|at| found.get(*at) != expected.get(*at));
    run.check(wrong.is_none() && found.len() == expected.len(), || {
        let (count, at) = (expected.len(), wrong.unwrap_or_default());
        format!(
            "answer {at} of {count} to {what} must be {:?}",
            expected.get(at)
        )
    })
}
