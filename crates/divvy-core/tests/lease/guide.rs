//! The guide for operators has the words that lease mode uses.

use divvy_core::lease::{Misalignment, StopReason};

/// The rows of the guide's table below a heading whose first cell is a name,
/// without what is around it.
fn documented(heading: &str) -> Vec<&'static str> {
    let page = include_str!("../../../../docs/operating.md");
    let (_, table) = page.split_once(heading).expect("it has a table");
    let rows = table.lines().skip_while(|line| !line.starts_with("| `"));
    rows.take_while(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('`').nth(1))
        .collect()
}

#[test]
fn the_guide_has_every_reason_of_a_misplaced_partition() {
    let all = [
        Misalignment::HeldBy("default:a".into()),
        Misalignment::Cooldown,
        Misalignment::MinRuntime,
        Misalignment::Minimum,
        Misalignment::Cap,
        Misalignment::Backoff,
        Misalignment::InVain,
        Misalignment::Pace,
        Misalignment::Moving,
        Misalignment::Quarantine,
        Misalignment::Cordoned,
        Misalignment::Off,
        Misalignment::StopNotConfirmed,
    ];
    let mut told = documented("### Why a unit is not where it should be\n");
    let mut known: Vec<&str> = all.iter().map(Misalignment::as_str).collect();
    told.sort_unstable();
    known.sort_unstable();
    assert_eq!(told, known);
}

#[test]
fn the_guide_has_every_reason_of_a_stop() {
    let told = documented("| stopped because | means |\n");
    assert_eq!(told, StopReason::ALL.map(StopReason::as_str));
}
