//! Cooldown marks.

use std::time::Duration;

use divvy_core::store::LeaseKey;
use tokio::time::Instant;

use super::super::lease_client::Lifetime;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::lease;

/// A mark lasts as long as it was set for, and a later one counts anew.
pub async fn marks_expire_in_time(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("marks_expire_in_time", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let short = Duration::from_millis(250);
    let [fading, kept, shortened] = [0, 1, 2].map(|number| lease(&run, "g", number));
    one.mark_moved(std::slice::from_ref(&shortened), LONG)
        .await?;
    let asked = Instant::now();
    one.mark_moved(&[fading.clone(), shortened.clone(), kept.clone()], short)
        .await?;
    let lifetime = Lifetime::new(&run, asked, short);
    one.mark_moved(std::slice::from_ref(&kept), LONG).await?;
    let keys = [fading, shortened, kept];
    loop {
        let looked = Instant::now();
        let found = two.cooling(&keys).await?;
        lifetime.check(&run, looked, !found[0], "a mark")?;
        lifetime.check(&run, looked, !found[1], "a mark set anew for less")?;
        run.check(found[2], || "a mark set anew for longer is gone".to_owned())?;
        if !found[0] && !found[1] {
            return Ok(());
        }
        lifetime.pause().await;
    }
}

/// Marks are seen by all clusters, for the marked partitions only, and have
/// nothing to do with leases.
pub async fn marks_are_shared_by_clusters(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("marks_are_shared_by_clusters", options);
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let far = LeaseClient::open(&run, subject, "far", "far").await?;
    let keys: Vec<LeaseKey> = ["g", "g1", "h"]
        .iter()
        .flat_map(|group| (0..12).map(|number| lease(&run, group, number)))
        .collect();
    let marked: Vec<LeaseKey> = keys.iter().filter(|_| random.bool()).cloned().collect();
    one.mark_moved(&marked, LONG).await?;
    let expected: Vec<bool> = keys.iter().map(|key| marked.contains(key)).collect();
    let wait = run.wait("exactly the marked partitions cool down");
    for client in [&one, &far] {
        loop {
            let found = client.cooling(&keys).await?;
            if found == expected {
                break;
            }
            wait.again_because(&format!("{found:?}")).await?;
        }
    }
    for key in &keys {
        far.take(&super::claim(key, &mut random), LONG).await?;
    }
    let found = far.cooling(&keys).await?;
    run.check(found == expected, || {
        "taking leases changed their marks".to_owned()
    })
}
