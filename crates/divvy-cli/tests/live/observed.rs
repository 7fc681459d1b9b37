//! `divvy playground --observe`: a live cluster on the page, which cannot be
//! changed from there.

use std::ops::Deref;

use divvy_testbed::{PlaygroundProcess, until_some};
use serde_json::Value;

use crate::fleet::{Fleet, Kind, SOON, on};

/// A page that looks at a fleet, until it is dropped.
struct Page {
    process: PlaygroundProcess,
}

impl Page {
    fn open(fleet: &Fleet) -> Self {
        let mut command = fleet.divvy();
        command.args(["playground", "--observe", "--interval", "100ms"]);
        Self {
            process: PlaygroundProcess::start(&mut command),
        }
    }

    /// The first snapshot for which it holds.
    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let snapshot = async || Some(self.snapshot()).filter(&holds);
        until_some(SOON, what, snapshot).await
    }
}

impl Deref for Page {
    type Target = PlaygroundProcess;

    fn deref(&self) -> &PlaygroundProcess {
        &self.process
    }
}

fn worker<'a>(snapshot: &'a Value, id: &str) -> &'a Value {
    let mut workers = snapshot["workers"].as_array().unwrap().iter();
    let found = workers.find(|worker| worker["id"] == *id);
    found.unwrap_or(&Value::Null)
}

#[test]
fn a_killed_workers_partitions_are_seen_to_move_and_nothing_is_made_up() {
    on(&Kind::ALL, async |mut fleet| {
        let names = fleet.started(&["one", "two"]).await;
        let page = Page::open(&fleet);
        let seen = page
            .until("both are seen alive with all", |seen| {
                let is_live = |id: &String| worker(seen, id)["state"] == "live";
                names.iter().all(is_live) && seen["summary"]["converged"] == true
            })
            .await;
        let mode = fleet.kind.mode();
        assert_eq!(
            (&seen["source"], &seen["mode"]),
            (&"observed".into(), &mode.into())
        );
        assert_eq!(seen["actions"], serde_json::json!([]));
        assert_eq!(seen["summary"]["owned"], 8);
        for unknown in ["seed", "preset", "strategy", "exclusive"] {
            assert!(seen["settings"][unknown].is_null(), "{unknown}");
        }
        assert!(seen["summary"]["two_owners"].is_null());
        assert!(worker(&seen, &names[0])["paused"].is_null());
        assert_eq!(worker(&seen, &names[0])["share"], 4.0);
        let (dead, heir) = (
            &worker(&seen, &names[0])["number"],
            &worker(&seen, &names[1])["number"],
        );
        let index = seen["partitions"]["owners"].as_array().unwrap().iter();
        let index = index.clone().position(|owner| owner == dead).unwrap();
        let lost = seen["partitions"]["names"][index].as_str().unwrap();

        fleet.kill(0);
        let seen = page
            .until("the other has all, and is alone", |seen| {
                let owners = seen["partitions"]["owners"].as_array().unwrap();
                let is_heir = owners.iter().all(|owner| owner == heir) && owners.len() == 8;
                // A heartbeat may outlast the leases.
                is_heir && worker(seen, &names[0])["alive"] == false
            })
            .await;
        assert!(seen["summary"]["moves"].as_u64().unwrap() >= 1);
        let moved = async || {
            let timeline = page.get("/api/v1/timeline");
            let events = timeline["events"].as_array().unwrap().clone();
            events.into_iter().find(|event| {
                let is_got = matches!(event["kind"].as_str(), Some("moved" | "started"));
                event["partition"] == *lost && event["to"] == *heir && is_got
            })
        };
        until_some(SOON, "its move is on the timeline", moved).await;
        let account = page.get(&format!("/api/v1/partitions/{lost}"));
        assert_eq!(account["owner"], *heir);
        let owners = account["owners"].as_array().unwrap();
        assert_eq!(owners.last().unwrap()["worker"], *heir, "{account}");
        if !fleet.kind.is_led() {
            assert_eq!(account["ranking"][0]["worker"], *heir, "{account}");
        }
    });
}

#[test]
fn a_page_that_observes_refuses_every_change() {
    on(&[Kind::LeasesInFile, Kind::LedByFile], async |mut fleet| {
        fleet.started(&["one"]).await;
        let page = Page::open(&fleet);
        let before = fleet.json("status --json --no-wait");
        for (path, body) in [
            ("/api/v1/actions", r#"{"action": "add"}"#),
            ("/api/v1/actions", r#"{"action": "kill", "worker": 0}"#),
            ("/api/v1/actions", r#"{"action": "drain", "worker": 0}"#),
            ("/api/v1/scenarios/scale-out/start", "{}"),
        ] {
            let (status, answer) = page.ask("POST", path, body);
            assert_eq!(status, 409, "{path} {body}: {answer}");
            let error = answer["error"].as_str().unwrap();
            assert!(error.contains("only looks at a live cluster"), "{error}");
        }
        for path in ["/api/v1/trace", "/api/v1/workers/0/what-if"] {
            assert_eq!(page.ask("GET", path, "").0, 409, "{path}");
        }
        assert_eq!(page.ask("GET", "/api/v1/partitions/nope:1", "").0, 404);
        assert_eq!(page.ask("GET", "/api/v1/workers/77", "").0, 404);
        let after = fleet.json("status --json --no-wait");
        assert_eq!(
            before["partitions"].as_array().map(Vec::len),
            after["partitions"].as_array().map(Vec::len)
        );
        assert_eq!(after["workers"][0]["drained"], false);
    });
}

#[test]
fn a_store_that_goes_away_is_said_and_waited_for() {
    on(
        &[Kind::LeasesInRedis, Kind::LedByNats],
        async |mut fleet| {
            fleet.started(&["one"]).await;
            let page = Page::open(&fleet);
            let is_up = |seen: &Value| seen["store"]["state"] == "up";
            page.until("the store is up", is_up).await;
            fleet.server_ends();
            let seen = page
                .until("the store is down", |seen| seen["store"]["state"] == "down")
                .await;
            assert!(seen["store"]["trouble"].is_string(), "{}", seen["store"]);
            assert_eq!(seen["summary"]["converged"], false);
            fleet.server_starts_again().await;
            page.until("the store is up again", is_up).await;
        },
    );
}
