//! A disk that takes no more, as a process meets it whose files may not grow
//! beyond a size.

use divvy::store::{KeyValue, Prefix};

use crate::part::Part;
use crate::scratch::Scratch;

/// Runs what follows with files of at most 2 MiB, without the signal that
/// would end it.
const LIMITED: [&str; 3] = ["-c", "trap '' XFSZ; ulimit -f 4096; exec \"$@\"", "limited"];

#[tokio::test]
async fn a_full_disk_is_said_and_what_was_written_stays() {
    let scratch = Scratch::new();
    let part = Part::start_under("dash", &LIMITED, "outgrow the limit", &scratch.database());
    let written: usize = part.says().parse().unwrap();
    assert!(written > 1);
    let failure = part.says();
    assert!(failure.starts_with("Unfit"), "{failure}");
    assert!(failure.contains("divvy.db"), "{failure}");
    assert!(failure.contains("check its disk"), "{failure}");
    assert_eq!(part.says(), written.to_string());
    assert_eq!(part.says(), "renewed");
    let listed = scratch.open().await.list(&Prefix::ALL).await.unwrap();
    assert_eq!(listed.len(), written);
}

#[tokio::test]
async fn a_full_log_starts_over() {
    let scratch = Scratch::new();
    let part = Part::start_under("dash", &LIMITED, "overwrite", &scratch.database());
    let failures: u32 = part.says().parse().unwrap();
    assert!(failures > 0, "12 MB do not fit a log of 2 MB");
}
