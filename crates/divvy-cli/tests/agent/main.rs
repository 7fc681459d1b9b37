//! `divvy agent` as processes: what they run, and what becomes of it.

mod agents;
mod python;
mod refusals;
mod stalls;

use std::time::Duration;

use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, at_once, until};

use crate::agents::{Agents, SOON};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    File,
    Redis,
}

/// Runs a test on both kinds of stores that agents share, on both at once.
fn on_both(scenario: impl AsyncFn(Agents) + Copy + Send + 'static) {
    at_once(&[Store::File, Store::Redis], async move |store| {
        let agents = match store {
            Store::File => Agents::on_file(),
            Store::Redis => {
                let options = RedisOptions::new();
                Agents::on_redis(RedisServer::start(RedisFlavour::Redis7, options).await)
            }
        };
        scenario(agents).await;
    });
}

#[test]
fn two_agents_split_the_units_and_a_killed_one_takes_its_commands_with_it() {
    on_both(async |mut agents| {
        agents.start(&[]);
        agents.start(&[]);
        agents.shared(8).await;
        let victim = agents.processes_of(0);
        agents.kill(0);
        until(SOON, "its commands are gone with it", async || {
            !victim.iter().any(|process| process.is_alive())
        })
        .await;
        // Commands never run twice, however it came to that.
        until(SOON, "the other runs all", async || {
            agents.check();
            agents.running().len() == 8
        })
        .await;
    });
}

#[test]
fn an_agent_that_is_asked_to_end_stops_its_commands_and_gives_its_units_back() {
    on_both(async |mut agents| {
        agents.start(&[]);
        agents.start(&[]);
        agents.shared(8).await;
        let ended = agents.terminate(0).await;
        assert!(ended.success(), "{ended}");
        until(SOON, "the other runs all", async || {
            agents.check();
            agents.running().len() == 8
        })
        .await;
        let told = agents.told(0);
        assert!(told.contains("stops: shutdown"), "{told}");
    });
}

#[test]
fn a_command_that_ends_is_started_again_under_the_same_token() {
    on_both(async |mut agents| {
        agents.start(&[]);
        agents.shared(8).await;
        let (partition, pid, token) = agents.running().pop().unwrap();
        agents::kill(pid);
        until(SOON, "it runs again", async || {
            let running = agents.running();
            let again = running.iter().find(|(name, ..)| *name == partition);
            again.is_some_and(|(_, new, same)| *new != pid && *same == token)
        })
        .await;
        agents.check();
        assert!(agents.told(0).contains("starting it again in 1s"));
    });
}

#[test]
fn an_agent_whose_health_command_fails_hands_on_what_it_has() {
    on_both(async |mut agents| {
        agents.start(&[]);
        agents.shared(8).await;
        let sick = agents.directory().join("sick");
        let ask = format!("test ! -e {}", sick.display());
        agents.start(&["--health-cmd", &ask, "--health-interval", "200ms"]);
        agents.shared(8).await;
        std::fs::write(&sick, "").unwrap();
        until(SOON, "the healthy one runs all", async || {
            agents.check();
            agents.running().len() == 8 && agents.processes_of(1).is_empty()
        })
        .await;
    });
}

#[test]
fn an_agent_takes_nothing_before_its_health_command_has_answered() {
    on_both(async |mut agents| {
        let well = agents.directory().join("well");
        let ask = format!("test -e {}", well.display());
        agents.start(&["--health-cmd", &ask, "--health-interval", "200ms"]);
        until(SOON, "it was asked", async || {
            agents.told(0).contains("unhealthy, by --health-cmd")
        })
        .await;
        assert!(agents.running().is_empty());
        assert!(!agents.told(0).contains("runs, with token"));
        std::fs::write(&well, "").unwrap();
        agents.shared(8).await;
    });
}

#[test]
fn a_command_that_ignores_sigterm_is_ended_after_its_grace() {
    on_both(async |mut agents| {
        agents.exec = agents.script("trap '' TERM; while :; do sleep 0.1; done");
        agents.start(&["--grace", "300ms"]);
        agents.shared(8).await;
        let running = agents.processes_of(0);
        let ended = agents.terminate(0).await;
        assert!(ended.success(), "{ended}");
        assert!(!running.iter().any(|process| process.is_alive()));
        assert!(agents.told(0).contains("did not end in time"));
    });
}

#[test]
fn workloads_are_read_again_on_sighup_and_bad_ones_change_nothing() {
    on_both(async |mut agents| {
        let config = agents.directory().join("agent.yaml");
        let write = |workloads: &str| {
            let text = format!("preset: fast\nworkloads: {workloads}\n");
            std::fs::write(&config, text).unwrap();
        };
        write("{demo: 4}");
        agents.start_with(&["--config", config.to_str().unwrap()]);
        agents.shared(4).await;
        write("{demo: 6, mail: 1}");
        agents.hang_up(0);
        agents.shared(7).await;
        write("{demo: none}");
        agents.hang_up(0);
        until(SOON, "it says why", async || {
            agents.told(0).contains("everything stays as it is")
        })
        .await;
        assert_eq!(agents.running().len(), 7);
        agents.check();
    });
}

#[test]
fn limits_are_taken_on_sighup_and_what_takes_a_restart_is_named() {
    on_both(async |mut agents| {
        let config = agents.directory().join("agent.yaml");
        let write = |more: &str| {
            let text = format!("preset: fast\nworkloads: {{demo: 4}}\n{more}\n");
            std::fs::write(&config, text).unwrap();
        };
        write("max_partitions: 1");
        agents.start_with(&["--config", config.to_str().unwrap()]);
        agents.shared(1).await;
        write(
            "max_partitions: 3\nmin_runtime: 1s\nbackoff: 150ms\ndynamic: true\nlisten: 127.0.0.1:0",
        );
        agents.hang_up(0);
        agents.shared(3).await;
        let told = "read again: max_partitions, min_runtime; these take a restart: backoff, dynamic, listen";
        until(SOON, "it says what it took", async || {
            agents.told(0).contains(told)
        })
        .await;
        agents.hang_up(0);
        let told =
            "nothing has changed that can be taken while it runs; these take a restart: backoff";
        until(SOON, "it took the rest before", async || {
            agents.told(0).contains(told)
        })
        .await;
        agents.check();
    });
}

#[test]
fn agents_follow_the_workloads_of_the_store() {
    on_both(async |mut agents| {
        agents.workload("set demo 3").unwrap();
        agents.start_with(&["--preset", "fast", "--workloads", "dynamic"]);
        agents.shared(3).await;
        agents.workload("set demo 5 --max-per-worker 9").unwrap();
        agents.workload("set mail 2").unwrap();
        agents.shared(7).await;
        let listed = agents.workload("list").unwrap();
        assert!(
            listed.contains("demo          5                       9"),
            "{listed}"
        );
        agents.workload("remove demo").unwrap();
        agents.shared(2).await;
        let refused = agents.workload("remove demo").unwrap_err();
        let why = "error: there is no workload 'demo'\n";
        assert!(refused.ends_with(why), "{refused}");
        let refused = agents.workload("set a:b 1").unwrap_err();
        assert!(refused.contains("must not contain ':'"), "{refused}");
        agents.check();
    });
}

#[test]
fn what_commands_write_comes_with_their_partition_or_goes_to_files() {
    on_both(async |mut agents| {
        agents.exec = agents.script("echo hello from $DIVVY_PARTITION; exec sleep 1000");
        agents.start(&[]);
        agents.shared(8).await;
        until(SOON, "lines came", async || {
            agents.printed(0).contains("demo:3 | hello from demo:3\n")
        })
        .await;
        agents.terminate(0).await;
        let directory = agents.directory().join("out");
        agents.start(&["--output-dir", directory.to_str().unwrap()]);
        agents.shared(8).await;
        until(Duration::from_secs(10), "files came", async || {
            let text = std::fs::read_to_string(directory.join("demo=5.log"));
            text.is_ok_and(|text| text == "hello from demo:5\n")
        })
        .await;
    });
}

#[test]
fn a_workload_that_grows_more_than_tenfold_beyond_a_thousand_needs_a_second_word() {
    let agents = Agents::on_file();
    agents.workload("set demo 100").unwrap();
    agents.workload("set demo 1000").unwrap();
    agents.workload("set demo 200").unwrap();
    let refused = agents.workload("set demo 2001").unwrap_err();
    let why = "demo has 200 units, and would have 2001: more than 10 times as many";
    assert!(
        refused.contains(why) && refused.contains("--yes"),
        "{refused}"
    );
    agents.workload("set demo 2001 --yes").unwrap();
    agents.workload("set other 5000").unwrap();
}

#[test]
fn an_agent_says_when_it_said_something_and_why_nothing_will_run() {
    on_both(async |mut agents| {
        agents.exec = "echo {unit} | cat".to_owned();
        let more = ["--workloads", "dynamic", "--weight", "0", "--output-dir"];
        let directory = agents.directory().join("logs");
        let directory = directory.to_str().unwrap();
        agents.start_with(&[&["--preset", "fast"], &more[..], &[directory]].concat());
        for words in [
            "warning: --exec: no shell reads '|': it is handed to echo as a word; write sh -c '…'",
            "its weight is 0: it takes nothing",
            "the store has no workloads yet: divvy workload set NAME N adds one",
            "logs was not there, and is made",
        ] {
            until(SOON, words, async || agents.told(0).contains(words)).await;
        }
        let told = agents.told(0);
        let mut lines = told.lines().filter(|line| line.contains("takes part"));
        let line = lines.next().unwrap_or_default();
        let (time, _) = line.split_once(' ').unwrap();
        let digits = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c });
        assert_eq!(digits.collect::<String>(), "00:00:00Z", "{told}");
    });
}
