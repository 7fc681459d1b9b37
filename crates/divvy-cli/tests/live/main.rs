//! Commands that look at a live cluster, and change what is wished of it, on
//! clusters of processes in both modes.

mod doctor;
mod fleet;
mod observed;
mod screen;

use serde_json::Value;

use crate::fleet::{Fleet, Kind, on};

#[test]
fn status_shows_all_split_and_none_twice_and_who_is_gone() {
    on(&Kind::ALL, async |mut fleet| {
        let names = fleet.started(&["one", "two"]).await;
        let status = fleet.json("status --json");
        assert_eq!(status["format"], 1);
        assert_eq!(status["unowned"], 0);
        let partitions = status["partitions"].as_array().unwrap();
        assert_eq!(partitions.len(), 8);
        for partition in partitions {
            let owner = partition["owner"].as_str().unwrap();
            assert!(names.iter().any(|name| name == owner), "{partition}");
            assert!(partition["token"].is_string(), "{partition}");
        }
        let mode = fleet.kind.mode();
        let text = fleet.done("status --list");
        for part in [
            &format!("cluster default in {mode} mode"),
            "8 partitions on 2 workers: 8 owned",
            "demo:7",
            &names[1],
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        fleet.kill(0);
        let names = &names;
        fleet
            .until("the other has all, and is alone", || {
                let text = fleet.run("status").stdout;
                fleet.shares(names) == [0, 8] && text.contains("8 partitions on 1 worker: 8 owned")
            })
            .await;
    });
}

#[test]
fn a_drained_worker_is_emptied_and_gets_its_share_again() {
    on(&Kind::ALL, async |mut fleet| {
        let names = fleet.started(&["one", "two"]).await;
        let text = fleet.done(&format!("drain {} --wait 30s", names[0]));
        assert!(text.contains("has nothing left"), "{text}");
        fleet
            .until("the other has all", || fleet.shares(&names) == [0, 8])
            .await;
        let text = fleet.done("status");
        assert!(text.contains("drained"), "{text}");
        let moves = (0..8).map(|unit| fleet.json(&format!("why demo:{unit} --json")));
        let moves = moves.flat_map(|why| why["moves"].as_array().unwrap().clone());
        let is_drain = |told: &Value| told["cause"].to_string().contains("drained");
        let drained = moves.filter(is_drain).collect::<Vec<_>>();
        assert!(!drained.is_empty());
        for told in drained {
            let considered = told["considered"].as_array();
            let scores = considered.is_some_and(|all| all.iter().all(|it| it["score"].is_f64()));
            assert!(scores, "{told}");
        }
        let text = fleet.done(&format!("uncordon {}", names[0]));
        assert!(text.contains("gets its share again"), "{text}");
        fleet
            .until("it has its share", || fleet.shares(&names)[0] > 0)
            .await;
        let text = fleet.done(&format!("uncordon {}", names[0]));
        assert!(text.contains("nothing is changed"), "{text}");
    });
}

#[test]
fn a_cordoned_worker_gets_nothing_more() {
    on(&Kind::ALL, async |mut fleet| {
        let names = fleet.started(&["one", "two"]).await;
        let before = fleet.shares(&names);
        fleet.done(&format!("cordon {}", names[0]));
        if !fleet.kind.is_led() {
            let status = fleet.json("status --json");
            assert_eq!(
                status["misplaced"], 0,
                "what it keeps is where it is wished"
            );
        }
        fleet.start("three");
        fleet
            .until("it has joined", || fleet.name_of("three").is_some())
            .await;
        let third = fleet.name_of("three").unwrap();
        let all = [names.clone(), vec![third]].concat();
        fleet.kill(1);
        let all = &all;
        fleet
            .until("others have the rest", || {
                let shares = fleet.shares(all);
                shares[1] == 0 && shares.iter().sum::<u64>() == 8
            })
            .await;
        assert!(fleet.shares(all)[0] <= before[0]);
    });
}

#[test]
fn a_pinned_partition_moves_and_why_says_so() {
    on(&Kind::ALL, async |mut fleet| {
        let names = fleet.started(&["one", "two"]).await;
        let owner = |fleet: &Fleet| {
            let why = fleet.json("why demo:3 --json");
            why["partition"]["owner"].as_str().map(str::to_owned)
        };
        let before = owner(&fleet).unwrap();
        let other = names.iter().find(|name| **name != before).unwrap();
        let text = fleet.done(&format!("pin demo:3 {other}"));
        assert!(text.contains(&format!("demo:3 is pinned to {other}")));
        fleet
            .until("it is there", || owner(&fleet).as_ref() == Some(other))
            .await;
        let text = fleet.done("why demo:3");
        assert!(
            text.starts_with(&format!("demo:3 is with {other}, by token ")),
            "{text}"
        );
        for part in [&format!("pinned to {other}"), "Its last moves", &before] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        match fleet.kind.is_led() {
            true => assert!(text.contains("an operator pinned it elsewhere"), "{text}"),
            false => {
                assert!(text.contains("an operator pinned it here"), "{text}");
                assert!(text.contains("How workers rank for it now"), "{text}");
            }
        }
        let moves = fleet.json("why demo:3 --json");
        let newest = &moves["moves"][0];
        assert_eq!(newest["to"], **other, "{moves}");
        let told = moves["moves"].as_array().unwrap();
        let first = told.last().unwrap()["considered"].as_array().unwrap();
        assert!(
            first.iter().any(|worker| worker["score"].is_f64()),
            "{moves}"
        );
        let text = fleet.done("unpin demo:3");
        assert!(text.contains("no longer pinned"), "{text}");
        assert!(fleet.done("unpin demo:3").contains("is not pinned"));
    });
}

#[test]
fn leases_that_another_cluster_holds_are_not_taken_for_orphans() {
    let kinds = [Kind::LeasesInFile, Kind::LeasesInRedis];
    on(&kinds, async |mut fleet| {
        fleet.started(&["one"]).await;
        fleet.start_in("other", "two");
        let status = || {
            let said = fleet.run("status --json --cluster other");
            serde_json::from_str(&said.stdout).unwrap_or(Value::Null)
        };
        fleet
            .until("it takes part", || status()["foreign"] == 8)
            .await;
        let status = status();
        assert_eq!(
            (&status["unowned"], &status["misplaced"]),
            (&0.into(), &0.into())
        );
        assert_eq!(status["partitions"][3]["owner"], "default:one");
        assert_eq!(status["partitions"][3]["orphaned"], false);
        let text = fleet.done("status --cluster other --list");
        assert!(
            text.contains("8 of them by workers of other clusters"),
            "{text}"
        );
        assert!(text.contains("its owner is not of this cluster"), "{text}");
        assert!(!text.contains("its owner is gone"), "{text}");
        let text = fleet.done("why demo:3 --cluster other");
        let held = "demo:3 is held by default:one, which is not of this cluster";
        assert!(text.starts_with(held), "{text}");
    });
}

#[test]
fn what_nobody_may_take_is_said_to_be_capped() {
    let kinds = [Kind::LeasesInFile, Kind::LeasesInRedis];
    on(&kinds, async |mut fleet| {
        let limited = "workloads:\n  demo: {units: 8, max_per_worker: 3}\n";
        let path = fleet.directory().join("agent.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("workloads:\n  demo: 8\n", limited);
        std::fs::write(&path, text).unwrap();
        let said = fleet.run("workload set demo 8 --max-per-worker 3");
        assert_eq!(said.code, Some(0), "{said:?}");
        fleet.start("one");
        let capped = || {
            let said = fleet.run("status --json");
            let status: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
            let all = status["partitions"].as_array().cloned().unwrap_or_default();
            let capped = all.iter().filter(|it| it["misaligned"] == "cap");
            let names = capped.map(|it| it["name"].as_str().unwrap().to_owned());
            let owned = all.iter().filter(|it| it["owner"].is_string()).count();
            (owned, names.collect::<Vec<_>>())
        };
        fleet
            .until("it has three", || capped().0 == 3 && capped().1.len() == 5)
            .await;
        let text = fleet.done("status --list");
        let remark = "nobody owns it: all have as many as they may (cap)";
        assert_eq!(text.matches(remark).count(), 5, "{text}");
        let text = fleet.done(&format!("why {}", capped().1[0]));
        for part in [
            "has no owner: all who could take it have as many as they may (cap)",
            "has as many as it may (cap)",
            "Nobody has had it",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    });
}

#[test]
fn a_refresh_is_asked_for() {
    on(&Kind::ALL, async |mut fleet| {
        let names = fleet.started(&["one"]).await;
        let text = fleet.done("refresh");
        let expected = match fleet.kind.is_led() {
            true => "whoever leads reads the partitions anew",
            false => "all workers read workloads, members and leases anew",
        };
        assert!(text.contains(expected), "{text}");
        assert_eq!(fleet.shares(&names), [8]);
    });
}

#[test]
fn what_is_not_there_is_one_clear_line() {
    on(&Kind::ALL, async |mut fleet| {
        let said = fleet.run("status");
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        let names = fleet.started(&["one"]).await;
        let there = format!("there are {}", names[0]);
        for (line, part) in [
            ("cordon nobody", there.as_str()),
            ("drain nobody", &there),
            ("pin demo:3 nobody", &there),
            (
                &format!("pin demo:8 {}", names[0]),
                "there are 8, from demo:0 to demo:7",
            ),
            (
                "why demo:99",
                "there is no partition 'demo:99'; there are 8",
            ),
            (
                "why demo",
                "'demo' is a workload: name one of its units, demo:0 to demo:7",
            ),
            ("uncordon nobody", "there is no worker 'nobody'; there are"),
            ("unpin demo:99", "there is no partition 'demo:99'"),
        ] {
            let said = fleet.run(line);
            assert_eq!(said.code, Some(1), "{line}: {said:?}");
            assert_eq!(said.stderr.lines().count(), 1, "{line}: {said:?}");
            assert!(said.stderr.contains(part), "{line}: {said:?}");
        }
        let said = fleet.run("status --cluster other");
        assert_eq!(said.code, Some(1), "{said:?}");
        let said = fleet.run("status --store memory");
        assert_eq!(said.code, Some(2), "{said:?}");
        let said = fleet.run("top");
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains("needs a terminal"), "{said:?}");
    });
}

#[test]
fn a_mode_that_nobody_is_in_is_an_error_that_names_the_other() {
    on(
        &[Kind::LedByFile, Kind::LeasesInRedis],
        async |mut fleet| {
            fleet.started(&["one"]).await;
            let (wrong, right) = match fleet.kind.is_led() {
                true => ("lease", "leader"),
                false => ("leader", "lease"),
            };
            let said = fleet.run(&format!("status --mode {wrong}"));
            assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
            let start = format!("error: there is no cluster 'default' in {wrong} mode in ");
            assert!(said.stderr.starts_with(&start), "{said:?}");
            let end = format!("; one of that name is in {right} mode\n");
            assert!(said.stderr.ends_with(&end), "{said:?}");
            let said = fleet.run(&format!("status --mode {wrong} --json"));
            assert_eq!(said.code, Some(1), "{said:?}");
            let status: Value = serde_json::from_str(&said.stdout).unwrap();
            assert_eq!(status["workers"].as_array().map(Vec::len), Some(0));
        },
    );
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    on(&[Kind::LeasesInFile, Kind::LedByNats], async |fleet| {
        for line in ["status", "status --mode leader", "refresh", "why demo:3"] {
            let said = fleet.run(line);
            assert_eq!(said.code, Some(1), "{line}: {said:?}");
            assert!(said.stderr.contains("is not there"), "{line}: {said:?}");
        }
        let made = std::fs::read_dir(fleet.directory()).unwrap().count();
        assert_eq!(made, 2, "only what the test put there");
    });
}

#[test]
fn every_example_of_the_help_works() {
    on(&[Kind::LeasesInFile], async |mut fleet| {
        fleet.started(&["one", "two"]).await;
        for command in ["status", "why", "cordon", "pin"] {
            let help = fleet.done(&format!("{command} --help"));
            let examples = help
                .lines()
                .skip_while(|line| *line != "Examples:")
                .skip(1)
                .take_while(|line| !line.is_empty());
            let examples: Vec<&str> = examples.map(str::trim).collect();
            assert!(examples.len() >= 2, "{command}: {examples:?}");
            for line in examples {
                let line = line.strip_prefix("divvy ").expect("a command of divvy");
                assert!(!fleet.done(line).is_empty(), "{line}");
            }
        }
    });
}

#[test]
fn a_store_that_grants_nothing_yet_is_said_to() {
    let kinds = [Kind::LeasesInFile, Kind::LeasesInRedis];
    on(&kinds, async |mut fleet| {
        let path = fleet.directory().join("agent.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        // The quarantine of a new store lasts as long, and two heartbeats.
        std::fs::write(&path, text.replace("lease_ttl: 2s", "lease_ttl: 300s")).unwrap();
        fleet.start("one");
        let status = || -> Value {
            let said = fleet.run("status --json --no-wait");
            serde_json::from_str(&said.stdout).unwrap_or_default()
        };
        fleet
            .until("it is said", || status()["quarantine"] == true)
            .await;
        assert_eq!(status()["partitions"][3]["misaligned"], "quarantine");
        let text = fleet.done("status --list");
        assert!(
            text.contains("the store is new, has restarted or lost its data"),
            "{text}"
        );
        let remark = "nobody owns it: the store grants nothing yet (quarantine)";
        assert_eq!(text.matches(remark).count(), 8, "{text}");
        let text = fleet.done("why demo:3");
        let words = "demo:3 has no owner: the store is new, has restarted or lost its data, \
                     and grants nothing yet";
        assert!(text.starts_with(words), "{text}");
    });
}

#[test]
fn wishes_of_workers_that_are_gone_are_shown() {
    on(&Kind::ALL, async |mut fleet| {
        let names = fleet.started(&["one", "two"]).await;
        fleet.done(&format!("drain {}", names[1]));
        fleet.done(&format!("pin demo:3 {}", names[1]));
        assert!(!fleet.done("status").contains("not here"));
        fleet.kill(1);
        fleet
            .until("it is gone", || {
                let status = fleet.json("status --json");
                let mut workers = status["workers"].as_array().unwrap().iter();
                !workers.any(|it| it["name"] == *names[1] && it["life"] == "live")
            })
            .await;
        let text = fleet.done("status");
        let words = format!("drained, and not here: {} (divvy uncordon)", names[1]);
        assert!(text.contains(&words), "{text}");
        let words = format!("pinned in vain: demo:3 to {} (divvy unpin)", names[1]);
        assert!(text.contains(&words), "{text}");
        let status = fleet.json("status --json");
        assert_eq!(status["wishes"]["drained"][0], *names[1]);
        assert_eq!(status["wishes"]["pinned"]["demo:3"], *names[1]);
    });
}

#[test]
fn what_moved_is_told_when_nobody_is_left() {
    let kinds = [Kind::LeasesInFile, Kind::LeasesInRedis];
    on(&kinds, async |mut fleet| {
        fleet.started(&["one"]).await;
        fleet
            .until("what was taken is written down", || {
                let why = fleet.json("why demo:3 --json");
                !why["moves"].as_array().unwrap().is_empty()
            })
            .await;
        fleet.kill(0);
        fleet
            .until("it is gone", || {
                let status = fleet.json("status --json");
                status["workers"].as_array().unwrap().is_empty()
            })
            .await;
        let text = fleet.done("why demo:3");
        let words = "demo:3 has no owner: nobody who is here serves it";
        assert!(text.starts_with(words), "{text}");
        assert!(text.contains("Its last moves, the newest first:"), "{text}");
        let why = fleet.json("why demo:3 --json");
        assert_eq!(
            (&why["is_served"], &why["moves"][0]["to"]),
            (&false.into(), &"one".into())
        );
        let said = fleet.run("why demo:9");
        assert_eq!(said.code, Some(1), "{said:?}");
    });
}

#[test]
fn wishes_that_cannot_be_read_are_not_the_fault_of_who_asks() {
    let kinds = [Kind::LedByFile, Kind::LedByRedis, Kind::LedByNats];
    on(&kinds, async |mut fleet| {
        let names = fleet.started(&["one"]).await;
        fleet.spoil("ctl").await;
        let said = fleet.run(&format!("cordon {}", names[0]));
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains("cannot be read"), "{said:?}");
        assert!(said.stderr.contains("the key ctl"), "{said:?}");
    });
}

#[test]
fn unreadable_log_of_moves_hides_nothing_else() {
    on(&[Kind::LedByFile], async |mut fleet| {
        fleet.started(&["one"]).await;
        fleet.spoil("moves").await;
        for (command, shown) in [
            ("status", "partitions on 1 worker"),
            ("why demo:1", "is with"),
        ] {
            let text = fleet.done(command);
            assert!(text.contains(shown), "{text}");
            assert!(text.contains("\nproblem: "), "{text}");
        }
    });
}

#[test]
fn draining_the_only_agent_says_that_it_keeps_what_it_has() {
    on(
        &[Kind::LeasesInFile, Kind::LeasesInRedis],
        async |mut fleet| {
            let names = fleet.started(&["one"]).await;
            let text = fleet.done(&format!("drain {}", names[0]));
            assert!(
                text.contains("nobody else is there: it keeps what it has"),
                "{text}"
            );
        },
    );
}
