//! Names of lease mode, which stand in keys as they are.

use divvy_core::store::{Claim, LEASE_NAME_BYTES_MAX, LeaseKey, Tenure, Token};

use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::claim;

/// Leases with different names are different leases, whatever the names of
/// group, worker and cluster look like.
pub async fn distinct_leases_never_meet(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("distinct_leases_never_meet", options);
    let mut random = run.random();
    let names = [
        "a",
        "A",
        "a b",
        "a.b",
        "a..b",
        "*",
        ">",
        "a*",
        "?",
        "[a]",
        "%",
        "%2A",
        "_",
        "a/b",
        "../a",
        "'; --",
        "\"",
        "\\",
        "é",
        "e\u{301}",
        "\u{1F980}",
        "=2A",
        "0",
        "00",
        "-1",
        "#",
        "@",
        ",",
    ];
    let longest = "n".repeat(LEASE_NAME_BYTES_MAX - run.name("").len());
    let mut held: Vec<(LeaseClient, Claim, Token)> = Vec::new();
    for name in names.into_iter().chain([longest.as_str()]) {
        // The name as cluster, as worker and as group.
        let client = LeaseClient::open(&run, subject, name, name).await?;
        for number in [0, 1, 10] {
            let key = LeaseKey::new(&run.name(name), number);
            let key = key.map_err(|error| run.fail(error.to_string()))?;
            let wish = claim(&key, &mut random);
            let token = client.take(&wish, LONG).await?;
            held.push((client.clone(), wish, token));
        }
    }
    let keys: Vec<LeaseKey> = held.iter().map(|(_, wish, _)| wish.key.clone()).collect();
    let reader = held[0].0.clone();
    for (client, wish, token) in &held {
        reader.finds(wish, &client.id(), *token).await?;
    }
    // Every second one is released; the others stay.
    for (client, wish, _) in held.iter().step_by(2) {
        let tenure = client.release_one(wish).await?;
        run.check(tenure == Tenure::Current, || {
            "the holder could not release".to_owned()
        })?;
    }
    let wait = run.wait("exactly the leases that were not released are held");
    loop {
        let holders = reader.holders(&keys).await?;
        let wrong = (0..keys.len()).find(|at| holders[*at].is_some() != (at % 2 == 1));
        match wrong {
            None => return Ok(()),
            Some(at) => wait.again_because(&format!("{} not so", keys[at])).await?,
        }
    }
}

/// A store says what it is, is reached, and is of one incarnation for all its
/// clients.
pub async fn a_store_describes_itself(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_store_describes_itself", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "other", "two").await?;
    run.is_described([&*one.store, &*two.store, &*one.store])
        .await
}
