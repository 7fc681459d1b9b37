//! Draws a profile from a seed.

use std::time::Duration;

use divvy_core::StrategyName;
use divvy_core::leader::{Batches, Overdue};

use super::{Election, Preset, Profile};
use crate::dice::Dice;
use crate::fault::{Fault, FaultKind, HookWeather, Isolation, SourceFault, Weather};
use crate::mode::Mode;
use crate::time::TrueTime;
use crate::world::{DRIVERS, DriverPlan};

/// What is done to the store itself is drawn on its own, beside what a seed has
/// had before it.
const STORES: u64 = 0x7374_6f72;

/// Stores that go back in silence while a member does not hear of it are drawn
/// on their own, too.
const ROLLBACKS: u64 = 0x6261_636b;

/// So is how much members do at once.
const BATCHES: u64 = 0x6261_7463;

/// So are sessions that end while hooks run.
const SESSIONS: u64 = 0x7365_7373;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

pub(super) fn profile(seed: u64) -> Profile {
    let mut dice = Dice::new(seed);
    let preset = match dice.below(10) {
        0..3 => Preset::Fast,
        3..7 => Preset::Default,
        _ => Preset::Calm,
    };
    let (members, partitions) = size(&mut dice);
    let mut profile = Profile::sound(seed, preset, members, partitions);
    profile.weighted = dice.chance(0.5);
    profile.strategy = dice.pick(&[
        StrategyName::Balanced,
        StrategyName::Balanced,
        StrategyName::WeightedConsistentHash,
        StrategyName::Rendezvous,
        StrategyName::ConsistentHash,
        StrategyName::Zoned,
        StrategyName::RoundRobin,
    ]);
    profile.election = match dice.below(20) {
        0..14 => Election::Store,
        14 => Election::Agent,
        15..17 => Election::TwoLead,
        _ => Election::AllLead,
    };
    settings(&mut dice, &mut profile);
    let lease = profile.settings.heartbeat_ttl;
    profile.latency = match dice.below(10) {
        // Everything takes its time, and a renewal is answered before it is
        // given up: where it is not, leases end in peace, too.
        0 => {
            let most = (lease / 12).min(profile.settings.renewal_try() / 2);
            (lease / 100, most)
        }
        1..3 => (lease / 2000, lease / 60),
        _ => (Duration::from_micros(200), Duration::from_millis(2)),
    };
    profile.hook = match dice.below(4) {
        0 => (Duration::ZERO, lease / 10),
        _ => (Duration::from_micros(100), Duration::from_millis(3)),
    };
    profile.value_bytes_max = dice.pick(&[4096, 32 * 1024, 512 * 1024]);
    let span = faults_last(&mut dice, preset);
    profile.faults_until = TrueTime::ZERO + span;
    for _ in 0..dice.below(14) {
        let fault = fault(&mut dice, &profile);
        profile.faults.push(fault);
    }
    // Drawn last: what was drawn before stays as it is for every seed.
    if dice.chance(0.2) {
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        for _ in 0..dice.between(1, 3) {
            let kind = FaultKind::Scribble(dice.below(usize::MAX));
            let lasts = Duration::ZERO;
            profile.faults.push(Fault { at, lasts, kind });
        }
    }
    // Half of the shortest lease is not much where messages take long.
    profile.mixed = dice.chance(0.1) && profile.latency.1 <= lease / 60;
    if dice.chance(0.15) {
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        let lasts = dice.span(lease, span);
        let kind = FaultKind::Lame(dice.below(64));
        profile.faults.push(Fault { at, lasts, kind });
    }
    draw_beside(seed, &mut profile);
    profile.healing = profile.healing_time();
    profile.quiet = profile.settings.rebalance_cooldown
        + profile.settings.planned_scale_window
        + profile.settings.root_poll_interval * 3;
    profile
}

/// Draws what has dice of its own, so that all else stays as it is for every
/// seed.
fn draw_beside(seed: u64, profile: &mut Profile) {
    let more = more_faults(&mut Dice::new(seed ^ STORES), profile);
    profile.faults.extend(more);
    roll_back(&mut Dice::new(seed ^ ROLLBACKS), profile);
    drive(&mut Dice::new(seed ^ DRIVERS), profile);
    batch(&mut Dice::new(seed ^ BATCHES), profile);
    end_sessions(&mut Dice::new(seed ^ SESSIONS), profile);
}

/// In some worlds hooks are slow and machines sleep often, so that sessions end
/// while hooks run, and the same worker is back before they return.
fn end_sessions(dice: &mut Dice, profile: &mut Profile) {
    if !dice.chance(0.06) {
        return;
    }
    let (lease, span) = (
        profile.settings.heartbeat_ttl,
        profile.faults_until.elapsed(),
    );
    let hooks = HookWeather {
        slow: dice.pick(&[0.3, 0.8]),
        overdue: dice.pick(&[0.0, 0.2, 0.4]),
        ..HookWeather::default()
    };
    profile.faults.push(Fault {
        at: TrueTime::ZERO,
        lasts: span,
        kind: FaultKind::Hooks(hooks),
    });
    for _ in 0..dice.between(3, 8) {
        profile.faults.push(Fault {
            at: TrueTime::ZERO + dice.span(Duration::ZERO, span),
            lasts: dice.span(lease / 20, lease * 2),
            kind: FaultKind::Suspend(dice.below(64)),
        });
    }
}

/// For how long faults happen.
fn faults_last(dice: &mut Dice, preset: Preset) -> Duration {
    let (least, most) = match preset {
        Preset::Fast => (10, 30),
        Preset::Default => (45, 110),
        Preset::Calm => (60, 150),
    };
    dice.span(Duration::from_secs(least), Duration::from_secs(most))
}

/// Draws how drivers behave.
fn drive(dice: &mut Dice, profile: &mut Profile) {
    let (lease, hooks) = (profile.settings.heartbeat_ttl, profile.partitions_max());
    profile.driver = DriverPlan::drawn(dice, lease);
    profile.hook = profile.driver.hooks_in_time(profile.hook, lease, hooks);
}

/// Draws how much members do at once: in most worlds so little that something
/// is left for later.
fn batch(dice: &mut Dice, profile: &mut Profile) {
    if dice.chance(0.2) {
        return;
    }
    profile.batches = Batches {
        stopping: dice.pick(&[1, 2, 4]),
        unable: dice.pick(&[1, 2, 8]),
        fences: dice.pick(&[1, 2]),
        missing: dice.pick(&[1, 2]),
        deletes: dice.pick(&[1, 2]),
        hooks: (profile.partitions_max() / dice.pick(&[2, 3, 4])).max(2),
    };
}

/// What strangers, operators and lagging copies do to the store.
fn more_faults(dice: &mut Dice, profile: &Profile) -> Vec<Fault> {
    let (lease, span) = (
        profile.settings.heartbeat_ttl,
        profile.faults_until.elapsed(),
    );
    let count = dice.pick(&[0, 0, 1, 2, 4]);
    // Where a store forgets, or the root is deleted and everybody starts anew,
    // tokens rise from clocks alone.
    let forgets = |fault: &Fault| matches!(fault.kind, FaultKind::Amnesia { .. });
    let deletes = |fault: &Fault| matches!(fault.kind, FaultKind::Delete(..));
    let steps = |fault: &Fault| matches!(fault.kind, FaultKind::WallStep(..));
    let forgets = profile.faults.iter().any(forgets);
    let mut faults: Vec<Fault> = Vec::new();
    for _ in 0..count {
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        let what = dice.below(usize::MAX);
        let (kind, lasts) = match dice.below(10) {
            0..3 if !faults.iter().any(steps) => {
                (FaultKind::Delete(what, dice.chance(0.5)), Duration::ZERO)
            }
            3..6 => (FaultKind::Override(what), Duration::ZERO),
            6 if !forgets && !faults.iter().any(deletes) => {
                let by = dice.pick(&[-DAY_MS, -60_000, -1000, 1000, 60_000, DAY_MS]);
                (FaultKind::WallStep(what, by), Duration::ZERO)
            }
            _ => {
                let lag = dice.span(Duration::ZERO, lease / 2);
                (FaultKind::Lag(lag), dice.span(lease, lease * 8))
            }
        };
        faults.push(Fault { at, lasts, kind });
    }
    faults
}

/// In some worlds a member does not hear of others for longer than its lease, the
/// store goes back in silence to a time at which it had not lost its place yet,
/// and does nothing for a while: some know of the past that was lost, and cannot
/// tell. Nothing else goes wrong there, so that those who can tell are in time.
fn roll_back(dice: &mut Dice, profile: &mut Profile) {
    if !dice.chance(0.04) {
        return;
    }
    let lease = profile.settings.heartbeat_ttl;
    let away_for = dice.span(lease, lease * 3);
    let latest = profile.faults_until.elapsed().saturating_sub(away_for);
    let forgets = TrueTime::ZERO + away_for + dice.span(Duration::ZERO, latest);
    let mut faults = Vec::new();
    for _ in 0..dice.pick(&[1, 1, 2]) {
        let member = dice.below(64);
        let kind = match dice.below(4) {
            0..2 => FaultKind::Pause(member),
            2 => FaultKind::Suspend(member),
            _ => FaultKind::Isolate(member, Isolation::drawn(dice)),
        };
        let before = dice.span(lease, away_for);
        faults.push(Fault {
            at: TrueTime::from_nanos(forgets.nanos() - before.as_nanos() as u64),
            lasts: before + dice.span(Duration::ZERO, lease),
            kind,
        });
    }
    faults.push(Fault {
        at: forgets,
        lasts: Duration::ZERO,
        kind: FaultKind::Amnesia {
            back: Some(dice.span(lease / 4, away_for)),
            announced: false,
        },
    });
    if dice.chance(0.75) {
        faults.push(Fault {
            at: forgets + dice.span(Duration::ZERO, lease),
            lasts: dice.span(lease / 2, lease * 3),
            kind: FaultKind::Stall,
        });
    }
    profile.faults = faults;
}

fn size(dice: &mut Dice) -> (usize, usize) {
    let members = match dice.below(40) {
        0 => dice.between(8, 12),
        1..4 => 1,
        4..8 => dice.between(6, 8),
        _ => dice.between(2, 5),
    };
    let partitions = match dice.below(60) {
        0 => dice.between(200, 400),
        1..6 => 1,
        6..20 => dice.between(17, 64),
        _ => dice.between(2, 16),
    };
    (members as usize, partitions as usize)
}

fn settings(dice: &mut Dice, profile: &mut Profile) {
    let settings = &mut profile.settings;
    settings.overdue = dice.pick(&[Overdue::Abort, Overdue::Abort, Overdue::Report]);
    if dice.chance(0.3) {
        settings.grace = settings.heartbeat_ttl / 2;
    }
    if dice.chance(0.4) {
        settings.partition_poll_interval = Some(settings.root_poll_interval * 3);
    }
    if dice.chance(0.3) {
        settings.expected_workers = Some(profile.members as u32);
    }
    // Few ids, so that they are claimed from each other.
    if dice.chance(0.3) {
        settings.worker_id_max = (profile.members * 2 + 4) as u32;
    }
    if dice.chance(0.5) {
        settings.cold_start_window = settings.heartbeat_interval * 4;
        settings.planned_scale_window = settings.heartbeat_interval * 2;
        settings.rebalance_cooldown = settings.heartbeat_interval;
    }
}

fn fault(dice: &mut Dice, profile: &Profile) -> Fault {
    let lease = profile.settings.heartbeat_ttl;
    let until = profile.faults_until.elapsed();
    let at = TrueTime::ZERO + dice.span(Duration::ZERO, until);
    let member = dice.below(64);
    let short = dice.span(lease / 20, lease * 3);
    let (kind, lasts) = match dice.below(45) {
        0..4 => (FaultKind::Crash(member), short),
        4..6 => (FaultKind::CrashLeader, short),
        6..8 => (FaultKind::Pause(member), short),
        8 => (FaultKind::PauseLeader, short),
        9 => (FaultKind::Suspend(member), short),
        10..14 => (FaultKind::Isolate(member, Isolation::drawn(dice)), short),
        14 => (FaultKind::MassRestart(dice.pick(&[0.4, 0.6, 1.0])), short),
        15..17 => (FaultKind::Leave(member), short),
        17..19 => (FaultKind::Return(member), dice.span(lease / 20, lease * 2)),
        19..21 => (FaultKind::Join, Duration::ZERO),
        21 => (FaultKind::RollingRestart, Duration::ZERO),
        22..24 => (FaultKind::Stall, dice.span(lease / 20, lease * 2)),
        24 => (FaultKind::Refuse, dice.span(lease / 20, lease * 2)),
        25..27 => (amnesia(dice), Duration::ZERO),
        27..33 => (
            FaultKind::Weather(Weather::drawn(dice, Mode::Leader)),
            dice.span(lease, until),
        ),
        33..36 => (
            FaultKind::Hooks(HookWeather::drawn(dice)),
            dice.span(lease, until),
        ),
        36..38 => (FaultKind::Source(source(dice)), dice.span(lease, lease * 4)),
        38..40 => (
            FaultKind::Partitions(dice.between(-8, 8) as i32),
            Duration::ZERO,
        ),
        40 => (FaultKind::Refresh(member), Duration::ZERO),
        41 => (FaultKind::Unhealthy(member), short),
        42 => (
            FaultKind::Weight(member, dice.pick(&[0.0, 0.5, 2.0])),
            short,
        ),
        _ => (FaultKind::FalseElection, short),
    };
    Fault { at, lasts, kind }
}

fn amnesia(dice: &mut Dice) -> FaultKind {
    let back = match dice.below(3) {
        0 => None,
        1 => Some(dice.span(Duration::ZERO, Duration::from_secs(5))),
        _ => Some(dice.span(Duration::ZERO, Duration::from_secs(120))),
    };
    FaultKind::Amnesia {
        back,
        announced: dice.chance(0.75),
    }
}

fn source(dice: &mut Dice) -> SourceFault {
    dice.pick(&[
        SourceFault::Fails,
        SourceFault::Hangs,
        SourceFault::Empty,
        SourceFault::Shrinks,
        SourceFault::Duplicates,
        SourceFault::Noise,
    ])
}
