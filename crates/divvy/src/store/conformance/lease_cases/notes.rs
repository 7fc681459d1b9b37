//! What is there for people: wishes of operators, and the log of moves.

use divvy_core::store::MOVES_PER_CALL_MAX;
use divvy_core::{CONTROL_BYTES_MAX, MOVE_BYTES_MAX, MOVES_BYTES_MAX};

use super::super::super::LeaseNotice;
use super::super::history::brief;
use super::super::lease_client::LeaseClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;

/// Wishes are written only over what their writer has read, come back whole,
/// and are one cluster's own.
pub async fn wishes_are_written_over_what_was_read(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("wishes_are_written_over_what_was_read", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let far = LeaseClient::open(&run, subject, "far", "far").await?;
    wishes_become(&one, None).await?;
    let largest = "w".repeat(CONTROL_BYTES_MAX);
    let all = ["{\"é\": \"\u{1F980}\"}\n", " ", "'; -- $1 %d", &largest];
    let mut before = None;
    for wishes in all {
        let is_stale = one.set_wishes(Some("other"), wishes).await?;
        run.check(!is_stale, || {
            "wishes were written over others than were read".to_owned()
        })?;
        let is_written = one.set_wishes(before, wishes).await?;
        run.check(is_written, || {
            brief(format_args!("{wishes:?} could not be written"))
        })?;
        let again = two.set_wishes(before, wishes).await?;
        run.check(!again, || "wishes were written twice".to_owned())?;
        wishes_become(&two, Some(wishes)).await?;
        before = Some(wishes);
    }
    wishes_become(&far, None).await?;
    let larger = format!("{largest}.");
    for refused in ["", &larger] {
        let setting = one.store.set_wishes(before, refused);
        run.refused("one", "set wishes beyond their bounds", setting)
            .await?;
    }
    wishes_become(&two, before).await
}

/// Members are told that operators wish something else.
pub async fn wishes_are_told(subject: &dyn LeaseSubject, options: &Options) -> Result<(), Failure> {
    let run = Run::new("wishes_are_told", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let mut before = None;
    for wishes in ["{}", "{\"format\": 1}"] {
        let mut listener = two.notices().await?;
        one.set_wishes(before, wishes).await.map(drop)?;
        listener.tells(&LeaseNotice::Members).await?;
        before = Some(wishes);
    }
    Ok(())
}

/// The log of moves keeps its last lines, whole and in order, and each cluster
/// has its own.
pub async fn the_last_moves_are_kept(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("the_last_moves_are_kept", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let far = LeaseClient::open(&run, subject, "far", "far").await?;
    moves_become(&one, &[]).await?;
    let odd = ["{\"é\": \"\u{1F980}\"}", " ", "'; -- $1 %d \\n"].map(str::to_owned);
    one.log_moves(&odd).await?;
    one.log_moves(&[]).await?;
    moves_become(&one, &odd).await?;
    far.log_moves(&["far".to_owned()]).await?;
    let lines = |beginning: usize| -> Vec<String> {
        let numbers = beginning..beginning + MOVES_PER_CALL_MAX;
        numbers.map(|number| format!("{number:0>255}")).collect()
    };
    let mut all = Vec::new();
    for call in 0..3 {
        let some = lines(call * MOVES_PER_CALL_MAX);
        one.log_moves(&some).await?;
        all.extend(some);
    }
    let kept = MOVES_BYTES_MAX / 256;
    moves_become(&one, &all[all.len() - kept..]).await?;
    moves_become(&far, &["far".to_owned()]).await?;
    let refused = [
        vec![String::new()],
        vec!["two\nlines".to_owned()],
        vec!["m".repeat(MOVE_BYTES_MAX + 1)],
        vec!["m".to_owned(); MOVES_PER_CALL_MAX + 1],
    ];
    for moves in refused {
        let logging = far.store.log_moves(&moves);
        run.refused("far", "log moves beyond their bounds", logging)
            .await?;
    }
    let longest = "m".repeat(MOVE_BYTES_MAX);
    far.log_moves(std::slice::from_ref(&longest)).await?;
    moves_become(&far, &["far".to_owned(), longest]).await
}

/// Reads wishes until they are exactly these; reads may be stale.
async fn wishes_become(client: &LeaseClient, expected: Option<&str>) -> Result<(), Failure> {
    let wait = client.run.wait("wishes are read as they were written");
    loop {
        let found = client.wishes().await?;
        if found.as_deref() == expected {
            return Ok(());
        }
        wait.again_because(&brief(format_args!("{found:?}")))
            .await?;
    }
}

async fn moves_become(client: &LeaseClient, expected: &[String]) -> Result<(), Failure> {
    let wait = client.run.wait("moves are read as they were logged");
    loop {
        let found = client.moves().await?;
        if found == expected {
            return Ok(());
        }
        let found = brief(format_args!("{} lines, {:?}", found.len(), found.first()));
        wait.again_because(&found).await?;
    }
}
