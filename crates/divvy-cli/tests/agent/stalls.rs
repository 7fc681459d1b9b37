//! Agents that stand still for longer than their leases, and commands that leave
//! something behind: nothing of them works beside the next owner.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use divvy_testbed::{ProcessId, until};
use rustix::process::Signal;

use crate::agents::{Agents, SOON};
use crate::on_both;

/// The lease of `--preset fast`.
const LEASE: Duration = Duration::from_secs(1);
/// By when a command of a stopped agent is dead: its lease ends within one, and
/// a machine that does much else may be late by some.
const FENCED: Duration = LEASE.saturating_mul(5);

/// Waits while time passes, and looks all the time whether the log is right.
async fn passed(agents: &Agents, span: Duration) {
    let begun = Instant::now();
    until(SOON, "time has passed", async || {
        agents.check();
        begun.elapsed() >= span
    })
    .await;
}

#[test]
fn crash_looping_commands_of_stalled_agents_never_start_with_a_token_of_the_past() {
    on_both(async |mut agents| {
        agents.exec = agents.script("sleep 0.2; exit 1");
        agents.start(&[]);
        agents.start(&[]);
        let starts = |agents: &Agents| agents.starts_of(0).min(agents.starts_of(1));
        until(SOON, "both start commands", async || starts(&agents) > 0).await;
        for stall in 0..4 {
            let (stalled, other) = (stall % 2, 1 - stall % 2);
            agents.signal(stalled, Signal::STOP);
            let before = agents.starts_of(other);
            passed(&agents, LEASE * 7 / 2).await;
            until(SOON, "the other takes over", async || {
                agents.check();
                agents.starts_of(other) >= before + 8
            })
            .await;
            let stale = agents.starts_of(stalled);
            agents.signal(stalled, Signal::CONT);
            until(SOON, "it has found out and starts again", async || {
                agents.check();
                agents.starts_of(stalled) > stale
            })
            .await;
        }
    });
}

#[test]
fn commands_of_a_stopped_agent_are_killed_when_their_leases_end() {
    on_both(async |mut agents| {
        agents.start(&[]);
        agents.shared(8).await;
        let commands = agents.processes_of(0);
        agents.signal(0, Signal::STOP);
        until(FENCED, "they are dead", async || {
            !commands.iter().any(|process| process.is_alive())
        })
        .await;
        assert!(agents.is_stopped(0), "nobody woke the agent");
        agents.start(&[]);
        until(SOON, "another agent runs all", async || {
            agents.check();
            agents.processes_of(1).len() == 8
        })
        .await;
        agents.signal(0, Signal::CONT);
        agents.shared(8).await;
        agents.check();
        until(SOON, "it says why", async || {
            agents.told(0).contains("was killed")
        })
        .await;
    });
}

#[test]
fn commands_run_on_for_many_leases_while_they_are_renewed() {
    on_both(async |mut agents| {
        agents.start(&[]);
        agents.shared(8).await;
        // A machine that does much else may lose a lease: then it starts again.
        let mut since = (Instant::now(), agents.processes_of(0));
        until(SOON, "all run on for five leases", async || {
            agents.check();
            let commands = agents.processes_of(0);
            if commands.len() != 8 || commands != since.1 {
                since = (Instant::now(), commands);
            }
            since.0.elapsed() >= LEASE * 5
        })
        .await;
    });
}

/// Starts a process in the group of the command and one that leaves it, both of
/// which ignore SIGTERM, and notes when those of another owner are still alive.
const LEAVES_BEHIND: &str = r#"
cd "$(dirname "$0")"
is_alive() {
    read -r stat 2>/dev/null < /proc/$1/stat || return 1
    since=$2
    set -- $stat
    [ "${22}" = "$since" ] && case $3 in Z | X) return 1 ;; esac
}
touch left
while read -r partition pid since; do
    if [ "$partition" = "$DIVVY_PARTITION" ] && is_alive $pid $since; then
        echo "$DIVVY_PARTITION $pid" >> overlaps
    fi
done < left
stays='trap "" TERM HUP; read -r stat < /proc/$$/stat; set -- $stat
echo $DIVVY_PARTITION $$ ${22} >> left; while :; do sleep 0.1; done'
sh -c "$stays" &
setsid sh -c "$stays" &
exec sleep 1000
"#;

fn left_behind(agents: &Agents) -> Vec<ProcessId> {
    let text = std::fs::read_to_string(agents.directory().join("left")).unwrap_or_default();
    let pids = text.lines().filter_map(|line| line.split_once(' '));
    pids.filter_map(|(_, process)| process.parse().ok())
        .collect()
}

fn check_overlaps(agents: &Agents) {
    let overlaps = std::fs::read_to_string(agents.directory().join("overlaps"));
    assert!(overlaps.is_err(), "{overlaps:?} run beside the next owner");
}

async fn all_left_behind(agents: &Agents, count: usize) -> Vec<ProcessId> {
    until(SOON, "commands have started others", async || {
        left_behind(agents)
            .iter()
            .filter(|process| process.is_alive())
            .count()
            == count
    })
    .await;
    left_behind(agents)
}

#[test]
fn what_a_command_left_running_ends_before_its_partition_is_handed_on() {
    on_both(async |mut agents| {
        agents.exec = agents.script(LEAVES_BEHIND);
        agents.start(&[]);
        agents.shared(8).await;
        let left = all_left_behind(&agents, 16).await;
        agents.start(&[]);
        agents.shared(8).await;
        let ended = agents.terminate(0).await;
        assert!(ended.success(), "{ended}");
        let alive: Vec<_> = left.iter().filter(|process| process.is_alive()).collect();
        assert!(alive.is_empty(), "{alive:?}");
        agents.shared(8).await;
        check_overlaps(&agents);
    });
}

#[test]
fn what_commands_left_running_ends_with_a_stalled_and_with_a_killed_agent() {
    on_both(async |mut agents| {
        agents.exec = agents.script(LEAVES_BEHIND);
        agents.start(&[]);
        agents.shared(8).await;
        let left = all_left_behind(&agents, 16).await;
        agents.signal(0, Signal::STOP);
        until(FENCED, "all of it is dead", async || {
            !left.iter().any(|process| process.is_alive())
        })
        .await;
        assert!(agents.is_stopped(0));
        agents.signal(0, Signal::CONT);
        agents.shared(8).await;
        let left = all_left_behind(&agents, 16).await;
        agents.kill(0);
        until(FENCED, "all of it is dead", async || {
            !left.iter().any(|process| process.is_alive())
        })
        .await;
        check_overlaps(&agents);
    });
}

#[test]
fn a_command_that_ends_by_itself_is_started_again_when_nothing_of_it_is_left() {
    on_both(async |mut agents| {
        let ends = LEAVES_BEHIND.replace("exec sleep 1000", "sleep 0.5; exit 0");
        agents.exec = agents.script(&ends);
        agents.start(&[]);
        until(SOON, "each has started three times", async || {
            let mut starts: BTreeMap<String, usize> = BTreeMap::new();
            for partition in agents.started() {
                *starts.entry(partition).or_default() += 1;
            }
            starts.len() == 8 && starts.values().all(|count| *count >= 3)
        })
        .await;
        check_overlaps(&agents);
        agents.terminate(0).await;
        assert!(
            !left_behind(&agents)
                .iter()
                .any(|process| process.is_alive())
        );
    });
}
