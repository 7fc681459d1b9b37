//! `divvy playground --store`: real workers on real stores, which are broken
//! from the page.

mod ground;
mod page;

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::ground::{Kind, on};
use crate::page::{Page, SOON, is_owned, owned, until_gone};

/// Nothing that members said breaks an invariant.
async fn assert_sound(page: &Page) {
    let seen = page
        .until("enough was judged", |seen| {
            seen["invariants"]["checked"].as_u64() > Some(50)
        })
        .await;
    assert_eq!(seen["invariants"]["violations"], json!([]), "{seen}");
    assert_eq!(seen["summary"]["two_owners"], 0);
}

/// Verifies that what a worker has goes to others whenever it is gone, stands
/// still, is cut off or is drained, and that it gets its share when it is back.
#[test]
fn whoever_is_killed_paused_cut_off_or_drained_is_replaced_by_one_owner_each() {
    on(&Kind::ALL, async |ground| {
        let page = Page::open(&ground);
        let everybody = |seen: &Value| (0..3).all(|worker| owned(seen, worker) > 0);
        let seen = page
            .until("everybody has some", |seen| {
                is_owned(seen) && everybody(seen)
            })
            .await;
        let mode = ground.kind.mode();
        assert_eq!(
            (&seen["source"], &seen["mode"]),
            (&"store".into(), &mode.into())
        );
        assert_eq!(seen["summary"]["partitions"], 24);
        assert_eq!(seen["settings"]["preset"], "fast");
        let answer = page.act(json!({ "action": "add" }));
        assert_eq!(answer["worker"], 3);
        page.until_owned("a fourth has its share", 3, true).await;
        let plan = page.get("/api/v1/workers/3/what-if");
        assert!(!plan["moves"].as_array().unwrap().is_empty(), "{plan}");

        page.act_on("kill", 0);
        let seen = page.until_owned("what a dead one had", 0, false).await;
        assert_eq!(seen["workers"][0]["alive"], false);
        page.act_on("pause", 1);
        let seen = page.until_owned("what a still one had", 1, false).await;
        assert_eq!(seen["workers"][1]["paused"], true);
        page.act_on("resume", 1);
        page.until_owned("one that goes on is back", 1, true).await;
        for how in ["inward", "full"] {
            page.act(json!({ "action": "isolate", "worker": 2, "how": how }));
            page.until_owned("what one that is cut off had", 2, false)
                .await;
            page.act_on("reconnect", 2);
        }
        page.until_owned("one that is connected is back", 2, true)
            .await;
        page.act_on("drain", 3);
        page.until_owned("what a drained one had", 3, false).await;
        page.act_on("uncordon", 3);
        page.until_owned("it has its share again", 3, true).await;
        page.act_on("restart", 0);
        page.until_owned("one that starts again is back", 0, true)
            .await;
        assert_sound(&page).await;
    });
}

#[test]
fn a_store_that_is_down_is_survived_with_one_owner_each() {
    on(&Kind::ALL, async |ground| {
        let page = Page::open(&ground);
        page.until("all is owned", is_owned).await;
        page.act(json!({ "action": "store", "state": "down" }));
        page.until("nobody can keep anything", |seen| {
            seen["store"]["state"] == "down" && seen["summary"]["owned"] == 0
        })
        .await;
        page.act(json!({ "action": "store", "state": "up" }));
        page.until("all is owned again", is_owned).await;
        assert_sound(&page).await;
    });
}

/// Verifies that everything is granted anew. A store that forgets and does not
/// say so is outside of what is promised for two leases, so two owners are
/// waited out.
#[test]
fn a_cluster_that_was_forgotten_is_owned_again() {
    on(&Kind::ALL, async |ground| {
        let page = Page::open(&ground);
        let before = page.until("all is owned", is_owned).await;
        let (status, answer) = page.asked(json!({ "action": "amnesia", "announced": true }));
        assert_eq!(status, 409, "{answer}");
        page.act(json!({ "action": "amnesia", "announced": false }));
        let timeline = page.get("/api/v1/timeline");
        let mut events = timeline["events"].as_array().unwrap().iter();
        assert!(events.any(|event| event["text"].as_str().unwrap().contains("was deleted")));
        let tokens = |seen: &Value| seen["partitions"]["tokens"].clone();
        page.until("all is granted anew, to one each", |seen| {
            is_owned(seen) && tokens(seen) != tokens(&before) && seen["summary"]["two_owners"] == 0
        })
        .await;
        let seen = page.snapshot();
        assert_eq!(seen["invariants"]["violations"], json!([]), "{seen}");
    });
}

#[test]
fn partitions_weights_and_zones_change_while_workers_live() {
    on(&[Kind::LedByFile, Kind::LeasesInFile], async |ground| {
        let page = Page::open(&ground);
        page.until("all is owned", is_owned).await;
        page.act(json!({ "action": "partitions", "count": 60 }));
        page.until("there are more", |seen| {
            is_owned(seen) && seen["summary"]["partitions"] == 60
        })
        .await;
        page.act(json!({ "action": "weight", "worker": 1, "weight": 3.0 }));
        page.until("it weighs more", |seen| seen["workers"][1]["weight"] == 3.0)
            .await;
        let zone = json!({ "action": "zone", "worker": 2, "zone": "b" });
        let weight =
            json!({ "action": "partition_weight", "partition": "orders:7", "weight": 2.5 });
        match ground.kind.mode() {
            "leader" => {
                page.act(zone);
                page.act(weight);
                let is_known = |seen: &Value| {
                    let weights = seen["partitions"]["weights"].as_array();
                    let heavy = weights.is_some_and(|all| all.iter().any(|it| *it == 2.5));
                    heavy && seen["workers"][2]["zone"] == "b"
                };
                page.until("both are known", is_known).await;
            }
            _ => {
                assert_eq!(page.asked(zone).0, 409);
                assert_eq!(page.asked(weight).0, 409);
            }
        }
        assert_sound(&page).await;
    });
}

#[test]
fn another_mode_is_another_cluster_where_the_store_has_it() {
    let kinds = [Kind::LedByFile, Kind::LeasesInRedis, Kind::LedByNats];
    on(&kinds, async |ground| {
        let page = Page::open(&ground);
        let before = page.until("all is owned", is_owned).await;
        let other = match ground.kind.mode() {
            "leader" => "lease",
            _ => "leader",
        };
        let members = page.members();
        let (status, answer) = page.asked(json!({ "action": "mode", "mode": other }));
        if ground.kind == Kind::LedByNats {
            assert_eq!(status, 409, "{answer}");
            assert!(answer["error"].as_str().unwrap().contains("no leases"));
            assert_eq!(before["choices"]["modes"], json!(["leader"]));
            return;
        }
        assert_eq!(status, 200, "{answer}");
        until_gone(&members).await;
        let after = page
            .until("all is owned in the other", |seen| {
                seen["mode"] == other && is_owned(seen)
            })
            .await;
        assert_ne!(before["run"], after["run"]);
        assert_sound(&page).await;
    });
}

#[test]
fn time_is_real_and_scenarios_are_not_for_it() {
    on(&[Kind::LedByFile], async |ground| {
        let page = Page::open(&ground);
        let seen = page.snapshot();
        for (action, fields) in [
            ("run", json!({})),
            ("hold", json!({})),
            ("step", json!({ "ms": 5 })),
            ("speed", json!({ "speed": 2.0 })),
        ] {
            let names = seen["actions"].as_array().unwrap();
            assert!(!names.contains(&action.into()), "{action}");
            let mut asked = fields;
            asked["action"] = action.into();
            let (status, answer) = page.asked(asked);
            assert_eq!(status, 409, "{action}: {answer}");
        }
        let path = "/api/v1/scenarios/half-the-fleet-dies/start";
        assert_eq!(page.post(path, json!({})).0, 409);
        let many = json!({ "action": "add", "count": 30 });
        let (status, answer) = page.asked(many);
        assert_eq!(status, 409, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("at most 32"));
        let outward = json!({ "action": "isolate", "worker": 0, "how": "outward" });
        assert_eq!(page.asked(outward).0, 409);
        assert_eq!(page.asked(json!({ "action": "kill", "worker": 99 })).0, 404);
    });
}

#[test]
fn the_end_leaves_no_process_and_no_key_behind_and_others_alone() {
    on(&Kind::ALL, async |ground| {
        ground.write_to("others").await;
        let (before, others) = (ground.all_keys().len(), ground.count("others").await);
        assert!(others > 0);
        for signal in [Signal::INT, Signal::TERM] {
            let mut command = ground.playground();
            command.args(["--cluster", "mine", "--workers", "3", "--partitions", "24"]);
            let mut page = Page::start(command);
            page.until("all is owned", is_owned).await;
            page.act_on("pause", 0);
            page.act_on("cordon", 1);
            let members = page.members();
            assert_eq!(members.len(), 3);
            assert!(ground.count("mine").await > 0);
            page.signal(signal);
            assert!(page.ended().await.success());
            until_gone(&members).await;
            assert_eq!(ground.count("mine").await, 0);
            assert_eq!(ground.count("others").await, others);
            assert_eq!(ground.all_keys().len(), before, "{:?}", ground.all_keys());
        }
    });
}

#[test]
fn members_die_with_a_playground_that_is_killed() {
    on(&[Kind::LedByFile, Kind::LeasesInFile], async |ground| {
        let mut page = Page::open(&ground);
        page.until("all is owned", is_owned).await;
        page.act_on("pause", 0);
        let members = page.members();
        assert_eq!(members.len(), 3);
        page.signal(Signal::KILL);
        page.ended().await;
        until_gone(&members).await;
    });
}

#[test]
fn a_named_cluster_that_is_in_use_is_refused_and_not_touched() {
    let kinds = [Kind::LeasesInFile, Kind::LedByRedis, Kind::LedByNats];
    on(&kinds, async |ground| {
        ground.write_to("shop").await;
        let before = ground.count("shop").await;
        let mut command = ground.playground();
        command.args(["--cluster", "shop", "--listen", "127.0.0.1:0"]);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        let told = lines.last().unwrap();
        assert!(told.contains("cluster 'shop': is in use"), "{said}");
        let is_warning = |line: &&str| line.starts_with("warning: ");
        assert!(lines[..lines.len() - 1].iter().all(is_warning), "{said}");
        assert_eq!(ground.count("shop").await, before);
    });
}

#[test]
fn a_store_of_the_environment_alone_starts_nothing() {
    on(&[Kind::LedByFile], async |ground| {
        let mut command = ground.divvy();
        command
            .arg("playground")
            .env("DIVVY_STORE", &ground.address);
        let page = Page::start(command);
        assert_eq!(page.snapshot()["source"], "simulated");
        assert!(page.members().is_empty());
        let path = ground.address.strip_prefix("file:").unwrap();
        assert!(!std::path::Path::new(path).exists());
    });
}

#[test]
fn a_store_that_cannot_be_reached_is_one_clear_line() {
    on(&[Kind::LedByFile], async |ground| {
        for address in ["redis://127.0.0.1:1", "nats://127.0.0.1:1"] {
            let mut command = ground.divvy();
            command.args(["playground", "--listen", "127.0.0.1:0"]);
            command.args(["--store", address]).stdin(Stdio::null());
            let begun = std::time::Instant::now();
            let output = command.output().unwrap();
            assert!(begun.elapsed() < SOON);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains("127.0.0.1:1"), "{said}");
        }
    });
}
