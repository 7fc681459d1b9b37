//! Keys and values, byte for byte, and life beside an agent that knows no more
//! than the shared layout.

use std::time::{Duration, SystemTime};

use divvy::store::{
    Acquired, GroupDocument, Heartbeat, Leases, Member, StoreSettings, Tenure, WorkerInfo,
};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer};

use crate::bed::{LONG, claim, lease, leases, name, nonce, plain, settings, take, try_leases};
use crate::raw::{Raw, Reply};

#[tokio::test]
async fn keys_and_values_are_those_of_the_layout() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let store = leases(&server.url()).await;
        let (worker, session, wish) = (name("a"), nonce(), claim(7));
        store.open_session(&worker, session, LONG).await.unwrap();
        let info = WorkerInfo {
            weight: 2.5,
            ..WorkerInfo::default()
        };
        let beat = store
            .beat(&worker, &Heartbeat::new(session, info.clone(), LONG, LONG))
            .await;
        assert_eq!(beat.unwrap().tenure, Tenure::Current);
        let token = take(&store, "a", &wish).await;
        store.mark_moved(&[lease(7)], LONG).await.unwrap();
        let document = r#"{"name":"orders","units":8}"#;
        store.set_group(&name("orders"), document).await.unwrap();
        store.log_moves(&["a move".to_owned()]).await.unwrap();

        let mut raw = Raw::of(&server);
        let expected = [
            "cfg:workload:orders",
            "cfg:workloads",
            "divvy:created",
            "divvy:info:tests:a",
            "divvy:moves:tests",
            "divvy:session:tests:a",
            "divvy:t:{lease:orders:7}",
            "lease:orders:7",
            "moved:orders:7",
            "node:tests:a",
            "nodes:all",
            "nodes:tests",
        ];
        assert_eq!(raw.keys(), expected);
        assert_eq!(raw.get("lease:orders:7").unwrap(), "tests:a");
        assert_eq!(raw.get("node:tests:a").unwrap(), "tests|tests:a");
        assert_eq!(raw.members("nodes:all"), ["tests:a"]);
        assert_eq!(raw.members("nodes:tests"), ["tests:a"]);
        assert_eq!(raw.members("cfg:workloads"), ["orders"]);
        assert_eq!(raw.get("cfg:workload:orders").unwrap(), document);
        let log = raw.say(&["LRANGE", "divvy:moves:tests", "0", "-1"]);
        assert_eq!(log, Reply::Array(vec![Reply::Bytes("a move".into())]));
        let fence = format!("{token} {}", wish.nonce);
        assert_eq!(raw.get("divvy:t:{lease:orders:7}").unwrap(), fence);
        assert_eq!(
            raw.get("divvy:session:tests:a").unwrap(),
            session.to_string()
        );
        let told = WorkerInfo::from_json(&raw.get("divvy:info:tests:a").unwrap());
        assert_eq!(told.unwrap(), info);
        let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let moved: u64 = raw.get("moved:orders:7").unwrap().parse().unwrap();
        assert!(moved.abs_diff(unix) < 30, "{moved}");
        for expiring in [
            "lease:orders:7",
            "moved:orders:7",
            "node:tests:a",
            "divvy:info:tests:a",
        ] {
            let left = raw.time_left(expiring);
            assert!((1..=60_000).contains(&left), "{expiring} {left}");
        }
        assert!((1..=60_000).contains(&raw.time_left("divvy:session:tests:a")));
        assert_eq!(raw.time_left("divvy:t:{lease:orders:7}"), -1);
    }
}

#[tokio::test]
async fn writes_of_the_shared_keys_are_worded_as_the_layout_says() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut monitor = Raw::of(&server);
    monitor.say(&["MONITOR"]);
    let (worker, session) = (name("a"), nonce());
    store.open_session(&worker, session, LONG).await.unwrap();
    let heartbeat = Duration::from_secs(10);
    let info = WorkerInfo::default();
    let beat = store
        .beat(&worker, &Heartbeat::new(session, info, heartbeat, LONG))
        .await;
    assert_eq!(beat.unwrap().tenure, Tenure::Current);
    let half = Duration::from_millis(1500);
    store.acquire(&worker, &[claim(1)], LONG).await.unwrap();
    store.acquire(&worker, &[claim(2)], half).await.unwrap();
    store.mark_moved(&[lease(1)], LONG).await.unwrap();
    let mut wanted = vec![
        format!(r#""SET" "divvy:session:tests:a" "{session}" "NX" "PX" "60000""#),
        r#""SET" "node:tests:a" "tests|tests:a" "EX" "10""#.to_owned(),
        r#""SADD" "nodes:all" "tests:a""#.to_owned(),
        r#""SADD" "nodes:tests" "tests:a""#.to_owned(),
        r#""SET" "lease:orders:1" "tests:a" "NX" "EX" "60""#.to_owned(),
        r#""SET" "lease:orders:2" "tests:a" "NX" "PX" "1500""#.to_owned(),
    ];
    // Reads until all are seen, which the connection's own timeout bounds.
    while !wanted.is_empty() {
        let line = monitor.next().text();
        wanted.retain(|wanted| !line.ends_with(wanted));
    }
    loop {
        let line = monitor.next().text();
        if line.contains(r#""SET" "moved:orders:1""#) {
            assert!(line.ends_with(r#""EX" "60""#), "{line}");
            break;
        }
    }
}

#[tokio::test]
async fn fractions_of_a_second_are_kept() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let half = Duration::from_millis(59_500);
    let wish = claim(1);
    let taken = store.acquire(&name("a"), &[wish], half).await.unwrap();
    assert!(matches!(taken[..], [Acquired::Granted(_)]));
    let left = Raw::of(&server).time_left("lease:orders:1");
    assert!((50_000..=59_500).contains(&left), "{left}");
}

/// What an agent does that knows the table and nothing else.
struct Agent {
    raw: Raw,
    id: &'static str,
}

impl Agent {
    fn join(&mut self) {
        let value = format!("tests|{}", self.id);
        self.raw
            .say(&["SET", &format!("node:{}", self.id), &value, "EX", "60"]);
        self.raw.say(&["SADD", "nodes:all", self.id]);
        self.raw.say(&["SADD", "nodes:tests", self.id]);
    }

    fn acquire(&mut self, lease: &str) -> bool {
        let said = self.raw.say(&["SET", lease, self.id, "NX", "EX", "60"]);
        said == Reply::Bytes("OK".into())
    }

    fn release(&mut self, lease: &str) {
        if self.raw.get(lease).as_deref() == Some(self.id) {
            self.raw.say(&["DEL", lease]);
        }
    }
}

#[tokio::test]
async fn an_agent_that_knows_only_the_layout_shares_leases_and_membership() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut agent = Agent {
        raw: Raw::of(&server),
        id: "tests:theirs",
    };
    agent.join();
    let members = store.members().await.unwrap();
    let expected = Member {
        name: "theirs".to_owned(),
        info: None,
    };
    assert_eq!(members, [expected]);

    assert!(agent.acquire("lease:orders:1"));
    let mine = claim(1);
    let refused = store
        .acquire(&name("ours"), std::slice::from_ref(&mine), LONG)
        .await;
    assert_eq!(refused.unwrap(), [Acquired::Held]);
    let held = store.holders(&[lease(1)]).await.unwrap().remove(0).unwrap();
    assert_eq!((held.worker.as_str(), held.fence), ("tests:theirs", None));

    agent.release("lease:orders:1");
    let token = take(&store, "ours", &mine).await;
    assert!(!agent.acquire("lease:orders:1"));
    let renewed = store
        .renew(&name("ours"), std::slice::from_ref(&mine), LONG)
        .await;
    assert_eq!(renewed.unwrap(), [Tenure::Current]);
    let released = store
        .release(&name("ours"), std::slice::from_ref(&mine))
        .await;
    assert_eq!(released.unwrap(), [Tenure::Current]);
    // It mints no token: what is shown is the last tenure's that had one.
    assert!(agent.acquire("lease:orders:1"));
    let held = store.holders(&[lease(1)]).await.unwrap().remove(0).unwrap();
    assert_eq!(held.worker, "tests:theirs");
    assert_eq!(held.fence, Some((token, mine.nonce)));
    let renewed = store.renew(&name("ours"), &[mine], LONG).await;
    assert_eq!(renewed.unwrap(), [Tenure::Over]);

    agent.raw.say(&["SADD", "cfg:workloads", "bills"]);
    let listed = store.groups().await.unwrap();
    let bare = |name: &str, json: Option<&str>| GroupDocument {
        name: name.to_owned(),
        json: json.map(str::to_owned),
    };
    assert_eq!(listed, [bare("bills", None)]);
    agent
        .raw
        .set("cfg:workload:bills", r#"{"name":"bills","units":3}"#);
    let listed = store.groups().await.unwrap();
    assert_eq!(
        listed,
        [bare("bills", Some(r#"{"name":"bills","units":3}"#))]
    );
}

#[tokio::test]
async fn lease_of_the_same_name_with_another_nonce_is_foreign() {
    let server = plain().await;
    let (one, two) = (leases(&server.url()).await, leases(&server.url()).await);
    let (first, second) = (claim(1), claim(1));
    take(&one, "a", &first).await;
    let again = two
        .acquire(&name("a"), std::slice::from_ref(&second), LONG)
        .await;
    assert_eq!(again.unwrap(), [Acquired::Held]);
    let renewed = two
        .renew(&name("a"), std::slice::from_ref(&second), LONG)
        .await;
    assert_eq!(renewed.unwrap(), [Tenure::Over]);
    let released = two.release(&name("a"), &[second]).await;
    assert_eq!(released.unwrap(), [Tenure::Over]);
    let renewed = one.renew(&name("a"), &[first], LONG).await;
    assert_eq!(renewed.unwrap(), [Tenure::Current]);
}

#[tokio::test]
async fn members_are_those_of_this_cluster_and_the_dead_leave_the_sets() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    for id in [
        "tests:alive",
        "tests:dead",
        "other:alive",
        "tests2:x",
        "tests:long:er",
    ] {
        raw.say(&["SADD", "nodes:all", id]);
        if !id.ends_with("dead") {
            raw.set(&format!("node:{id}"), "any");
        }
    }
    raw.say(&["SADD", "nodes:tests", "tests:dead"]);
    raw.say_bytes(&[b"SADD", b"nodes:all", b"tests:\xff"]);
    let names: Vec<_> = store
        .members()
        .await
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["alive"]);
    raw.say_bytes(&[b"SREM", b"nodes:all", b"tests:\xff"]);
    let left = ["other:alive", "tests2:x", "tests:alive", "tests:long:er"];
    assert_eq!(raw.members("nodes:all"), left);
    assert_eq!(raw.members("nodes:tests"), [""; 0]);
}

#[tokio::test]
async fn many_members_are_read_whole() {
    let server = plain().await;
    // A cluster whose name is a pattern to the server, next to one that it would match.
    let pattern = StoreSettings {
        cluster: "t[e]*?".to_owned(),
        ..settings()
    };
    let store = try_leases(&server.url(), &pattern).await.unwrap();
    let mut raw = Raw::of(&server);
    let mut join = |cluster: &str, number: usize| {
        let id = format!("{cluster}:w{number:05}");
        raw.say(&["SADD", "nodes:all", &id]);
        raw.say(&["SET", &format!("node:{id}"), "any", "EX", "60"]);
    };
    (0..2500).for_each(|number| join("t[e]*?", number));
    (0..100).for_each(|number| join("tests", number));
    let members = store.members().await.unwrap();
    assert_eq!(members.len(), 2500);
    assert_eq!(members[2499].name, "w02499");
}
