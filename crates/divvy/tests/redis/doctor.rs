//! What an examination leaves behind.

use std::time::Duration;

use divvy::doctor::{Verdict, examine};
use divvy::observer::Mode;
use divvy::store::{LeaseNotice, Leases, StoreSettings};

use crate::bed::{LONG, end_quarantine, name, plain, settings, try_leases};
use crate::raw::Raw;

#[tokio::test]
async fn examination_of_leases_leaves_nothing_behind_and_no_worker_notices_it() {
    let server = plain().await;
    let mut raw = Raw::of(&server);
    let settings = StoreSettings {
        restart_quarantine: true,
        ..settings()
    };
    let url = server.url().parse().unwrap();
    let store = try_leases(&server.url(), &settings).await.unwrap();
    let found = examine(&url, &settings, &[Mode::Lease]).await.unwrap();
    let last = found.iter().find(|it| it.check.starts_with("leases"));
    let last = last.unwrap();
    assert_eq!(last.verdict, Verdict::Note, "{last:?}");
    assert!(last.advice.as_ref().unwrap().contains("nothing to do"));
    // Not even a quarantine has begun.
    assert_eq!(raw.keys(), ["divvy:created"]);

    let longest = Duration::from_millis(700);
    end_quarantine(&store, longest).await;
    let mut notices = store.notices().await.unwrap();
    let (keys, quarantine) = (raw.keys(), raw.get("divvy:quarantine"));
    let found = examine(&url, &settings, &[Mode::Lease]).await.unwrap();
    let bad = found.iter().find(|it| it.verdict == Verdict::Bad);
    assert_eq!(bad, None);
    assert!(found.iter().any(|it| it.found.contains("may take, renew")));
    assert_eq!(raw.get("divvy:quarantine"), quarantine);
    assert_eq!(raw.keys(), keys);
    store.set_group(&name("orders"), "{}").await.unwrap();
    loop {
        let notice = tokio::time::timeout(LONG, notices.next()).await.unwrap();
        match notice {
            LeaseNotice::Members => panic!("members change"),
            LeaseNotice::Group(_) => break,
            _ => {}
        }
    }
}
