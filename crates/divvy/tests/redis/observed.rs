//! What is seen of a cluster whose keys another program has overwritten.

use divvy::observer::{Mode, Observer};
use divvy::store::{
    Heartbeat, Leases, SessionStart, StoreErrorKind, StoreSettings, Tenure, WorkerInfo,
};

use crate::bed::{LONG, assert_refused, claim, leases, name, nonce, plain, settings, take};
use crate::raw::Raw;

#[tokio::test]
async fn overwritten_keys_are_named_as_problems_and_the_rest_is_shown() {
    let server = plain().await;
    let mut raw = Raw::of(&server);
    let store = leases(&server.url()).await;
    let (worker, session) = (name("a"), nonce());
    let opened = store.open_session(&worker, session, LONG).await.unwrap();
    assert_eq!(opened, SessionStart::Opened);
    let info = WorkerInfo {
        partitions: [("orders".to_owned(), 4)].into(),
        ..WorkerInfo::default()
    };
    let heartbeat = Heartbeat::new(session, info, LONG, LONG);
    let beaten = store.beat(&worker, &heartbeat).await.unwrap();
    assert_eq!(beaten.tenure, Tenure::Current);
    take(&store, "a", &claim(1)).await;
    raw.set("divvy:moves:tests", "garbage");
    raw.set("divvy:wishes:tests", "garbage");
    raw.say(&["LPUSH", "lease:orders:2", "x"]);

    let settings = StoreSettings {
        create: false,
        ..settings()
    };
    let url = server.url().parse().unwrap();
    let mut observer = Observer::open(&url, &settings, None).await.unwrap();
    assert_eq!(observer.mode(), Mode::Lease);
    let seen = observer.look().await.unwrap();
    let owner = |partition| seen.partition(partition).unwrap().owner.as_deref();
    assert_eq!(owner("orders:1"), Some("a"));
    assert_eq!(owner("orders:2"), None);
    let expected = [
        "what operators wish cannot be read: another program wrote key 'divvy:wishes:tests' in \
         Redis; delete it, and all wishes with it",
        "key 'lease:orders:2' does not hold a lease: another program wrote it; delete the key",
    ];
    assert_eq!(seen.problems, expected);
    let error = observer.moves().await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["'divvy:moves:tests'"]);
    let error = observer.control().await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["'divvy:wishes:tests'"]);
}
