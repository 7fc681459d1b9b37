//! Draws a profile from a seed.

use std::time::Duration;

use divvy_core::leader::Overdue;
use divvy_core::lease::{Batches, LeaseSettings};

use super::fault::{LeaseFault, LeaseFaultKind, SpoiltKey};
use super::groups::Groups;
use super::profile::{GroupPlan, LeasePreset, LeaseProfile, PlacePlan, Tuning, WorkerLimits};
use crate::dice::Dice;
use crate::fault::{HookWeather, Isolation, Weather};
use crate::mode::Mode;
use crate::time::TrueTime;
use crate::world::{DRIVERS, DriverPlan};

/// Names of groups: the shared layout allows for odd ones.
const NAMES: [&str; 4] = ["orders", "mail out", "größe=1", "x"];

/// Wishes are drawn on their own, beside what a seed has had before them.
const WISHES: u64 = 0x7769_7368;

/// So are the presets of single members.
const PRESETS: u64 = 0x7072_6573;

/// So are steps of wall clocks.
const WALLS: u64 = 0x7761_6c6c;

/// So are stops of members that ask for leases.
const LEAVES: u64 = 0x6c65_6176;

/// So are more changes of weights.
const WEIGHTS: u64 = 0x7765_6967;

/// So are keys that another program writes over.
const SPOILS: u64 = 0x7370_6f69;

/// So is what reloads change beside limits.
const TUNINGS: u64 = 0x7475_6e65;

/// So is what earlier drawing left at its default of how many leases go into one
/// operation.
const BATCHES: u64 = 0x6261_7463;

/// A day, in milliseconds.
const DAY_MS: i64 = 86_400_000;

/// So are reloads.
const RELOADS: u64 = 0x7265_6c6f;

/// So are the lengths of leases.
const LEASES: u64 = 0x6c65_6173;

/// Gives members leases of different lengths, in some worlds. In some of those
/// the store forgets everything while the one with the longest lease is cut off.
fn lengthen(dice: &mut Dice, profile: &mut LeaseProfile) {
    if !dice.chance(0.25) {
        return;
    }
    for place in &mut profile.places {
        place.lease_factor = dice.pick(&[1, 1, 3, 10]);
    }
    if profile.faults.is_empty() || !dice.chance(0.5) {
        return;
    }
    let longest = dice.below(profile.members);
    profile.places[longest].lease_factor = 10;
    let lease = profile.settings.lease_ttl;
    let span = profile.faults_until.since(TrueTime::ZERO);
    let at = TrueTime::ZERO + dice.span(span / 3, span);
    let cut = LeaseFault {
        at,
        lasts: dice.span(lease * 2, lease * 12),
        kind: LeaseFaultKind::Isolate(longest, Isolation::drawn(dice)),
    };
    let forgets = LeaseFault {
        at: at + dice.span(Duration::ZERO, lease / 2),
        lasts: dice.span(lease / 20, lease),
        kind: dice.pick(&[LeaseFaultKind::RestartBehind(None), LeaseFaultKind::Empty]),
    };
    profile.faults.extend([cut, forgets]);
}

/// Gives members the timings of different presets, in some worlds.
fn mix(dice: &mut Dice, profile: &mut LeaseProfile) {
    if !dice.chance(0.12) {
        return;
    }
    // A lease of 90 s beside one of 1 s makes a long world.
    let others: &[LeasePreset] = match dice.chance(0.15) {
        true => &[
            LeasePreset::Fast,
            LeasePreset::Default,
            LeasePreset::Rendezgo,
        ],
        false if profile.preset == LeasePreset::Rendezgo => &[LeasePreset::Default],
        false => &[LeasePreset::Fast, LeasePreset::Default],
    };
    for place in &mut profile.places {
        if dice.chance(0.5) {
            place.preset = Some(dice.pick(others));
        }
    }
    let way = profile.slowest_way();
    profile.latency = (profile.latency.0.min(way), profile.latency.1.min(way));
}

/// Lets members stop while they ask for leases, in some worlds.
fn leave_asking(dice: &mut Dice, profile: &mut LeaseProfile) {
    if profile.faults.is_empty() || !dice.chance(0.1) {
        return;
    }
    let (span, lease) = (profile.faults_until.elapsed(), profile.settings.lease_ttl);
    for _ in 0..dice.between(1, 3) {
        let kind = LeaseFaultKind::LeaveAsking(dice.below(64));
        // Most ask at the beginning, and some only when others fail.
        let at = dice.span(Duration::ZERO, span);
        let at = TrueTime::ZERO + dice.pick(&[Duration::ZERO, at]);
        let lasts = dice.span(lease / 20, lease * 3);
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
}

/// Steps wall clocks, in some worlds: nothing but the floor of tokens goes by
/// one, the server's.
fn step_walls(dice: &mut Dice, profile: &mut LeaseProfile) {
    if profile.faults.is_empty() || !dice.chance(0.15) {
        return;
    }
    let span = profile.faults_until.elapsed();
    for _ in 0..dice.between(1, 4) {
        let by = dice.pick(&[-DAY_MS, -60_000, -1000, 1000, 60_000, DAY_MS]);
        let kind = match dice.chance(0.5) {
            true => LeaseFaultKind::StoreWallStep(by),
            false => LeaseFaultKind::WallStep(dice.below(64), by),
        };
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        let lasts = Duration::ZERO;
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
}

/// Lets reloads change what else they can, too.
fn tune(dice: &mut Dice, profile: &mut LeaseProfile) {
    let settings = &profile.settings;
    for fault in &mut profile.faults {
        let LeaseFaultKind::Reload(_, limits) = &mut fault.kind else {
            continue;
        };
        if dice.chance(0.3) {
            continue;
        }
        // From none at all to all as at first.
        let zero = Duration::ZERO;
        limits.tuning = Some(Tuning {
            shedding: dice.chance(0.7),
            gentle_handoff: dice.chance(0.6),
            releases_per_reconcile: dice.pick(&[0, 1, 2, 5]),
            acquires_per_reconcile: dice.pick(&[0, 1, 4, 16]),
            min_runtime: dice.pick(&[
                zero,
                settings.min_runtime,
                settings.reconcile_interval,
                settings.lease_ttl,
            ]),
            move_cooldown: dice.pick(&[
                zero,
                settings.move_cooldown,
                settings.reconcile_interval * 2,
            ]),
            min_partitions: dice.pick(&[0, 0, 1, 2]),
        });
    }
}

/// Lets another program write over keys, in some worlds. Some stay as they are
/// until the end.
fn spoil(dice: &mut Dice, profile: &mut LeaseProfile) {
    if profile.faults.is_empty() || !dice.chance(0.3) {
        return;
    }
    let (span, lease) = (profile.faults_until.elapsed(), profile.settings.lease_ttl);
    for _ in 0..dice.between(1, 5) {
        let number = dice.below(1 << 16);
        let kind = match dice.chance(0.4) {
            true => LeaseFaultKind::SpoilForGood(
                number,
                dice.pick(&[
                    SpoiltKey::Lease,
                    SpoiltKey::Expiry,
                    SpoiltKey::Token,
                    SpoiltKey::Ghost,
                ]),
            ),
            false => LeaseFaultKind::Spoil(
                number,
                dice.pick(&[
                    SpoiltKey::Lease,
                    SpoiltKey::Expiry,
                    SpoiltKey::Token,
                    SpoiltKey::Mark,
                    SpoiltKey::Session,
                    SpoiltKey::Info,
                    SpoiltKey::Ghost,
                ]),
            ),
        };
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        let lasts = dice.span(lease / 20, lease * 3);
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
}

/// Lets settings be read again and again, in some worlds: limits rise and fall
/// while leases are asked for by those from before.
fn reload(dice: &mut Dice, profile: &mut LeaseProfile) {
    if profile.faults.is_empty() || !dice.chance(0.15) {
        return;
    }
    let span = profile.faults_until.elapsed();
    let slow = profile.slowest_way();
    if dice.chance(0.5) {
        profile.latency = (slow / 2, slow);
    }
    // Few places, so that one has to change its mind.
    let places = dice.between(1, 2) as usize;
    for _ in 0..dice.between(4, 12) {
        let limits = WorkerLimits {
            max_partitions: dice.pick(&[0, 1, 2, 4]),
            max_per_group: dice.pick(&[0, 0, 1, 2]),
            tuning: None,
        };
        let kind = LeaseFaultKind::Reload(dice.below(places), limits);
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        let lasts = dice.span(slow / 4, profile.settings.lease_ttl * 2);
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
}

/// Lets operators wish something, in some worlds.
fn wish(dice: &mut Dice, profile: &mut LeaseProfile) {
    if !dice.chance(0.3) {
        return;
    }
    let span = profile.faults_until.since(TrueTime::ZERO);
    for _ in 0..dice.between(1, 4) {
        let number = dice.below(64);
        let kind = match dice.below(7) {
            0 | 1 => LeaseFaultKind::Cordon(number),
            2 | 3 => LeaseFaultKind::Drain(number),
            4 | 5 => LeaseFaultKind::Pin(dice.below(1024), number),
            _ => LeaseFaultKind::GarbleWishes,
        };
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        let lasts = dice.span(span / 20, span / 2);
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
}

/// Draws how drivers behave.
fn drive(dice: &mut Dice, profile: &mut LeaseProfile) {
    let lease = profile.settings.lease_ttl;
    profile.driver = DriverPlan::drawn(dice, lease);
    if profile.faults.is_empty() {
        profile.driver.late = Duration::ZERO;
        profile.driver.stalls = Duration::ZERO;
    }
    if dice.chance(0.3) {
        profile.settings.operation_timeout = lease;
    }
    // Small, so that one is not enough for all that a member has.
    let mut own = Dice::new(profile.seed ^ BATCHES);
    let candidates = own.pick(&[1, 1, 2, 5]);
    let batches = if dice.chance(0.8) {
        &mut *dice
    } else {
        &mut own
    };
    profile.batches = Batches {
        renewals: batches.pick(&[1, 2, 3]),
        acquires: batches.pick(&[1, 2, 3]),
        releases: batches.pick(&[1, 2, 3]),
        looks: batches.pick(&[1, 3, 7]),
        candidates,
    };
    let hooks = Groups::new(profile).partitions_max();
    profile.hook = profile.driver.hooks_in_time(profile.hook, lease, hooks);
    if matches!(profile.driver.hook_concurrency, Some(1 | 2)) && dice.chance(0.3) {
        // Many wait while something else goes wrong.
        let (at, lasts) = (TrueTime::ZERO, profile.faults_until.elapsed());
        let kind = LeaseFaultKind::Hooks(HookWeather {
            slow: 0.6,
            overdue: 0.1,
            ..HookWeather::default()
        });
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
}

/// Lets weights change within the time that an answer takes.
fn reweigh(dice: &mut Dice, profile: &mut LeaseProfile) {
    let (span, most) = (profile.faults_until.elapsed(), profile.slowest_way());
    profile.latency = (most / 2, most);
    profile.settings.shedding = true;
    profile.settings.min_runtime = Duration::ZERO;
    profile.settings.move_cooldown = profile.settings.lease_ttl / 20;
    for _ in 0..dice.between(8, 24) {
        let weight = dice.pick(&[0.25, 0.5, 2.0, 4.0]);
        let kind = LeaseFaultKind::Weight(dice.below(64), weight);
        let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
        let lasts = dice.span(most / 2, most * 4);
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
}

/// Lets weights change fast, and settings be read again, in some worlds.
fn unsettle(dice: &mut Dice, profile: &mut LeaseProfile) {
    let lease = profile.settings.lease_ttl;
    let span = profile.faults_until.elapsed();
    if dice.chance(0.05) {
        reweigh(dice, profile);
    }
    if dice.chance(0.2) {
        for _ in 0..dice.between(1, 3) {
            let limits = WorkerLimits {
                max_partitions: dice.pick(&[1, 2, 4]),
                max_per_group: 0,
                tuning: None,
            };
            let kind = LeaseFaultKind::Reload(dice.below(64), limits);
            let at = TrueTime::ZERO + dice.span(Duration::ZERO, span);
            let lasts = dice.span(lease / 20, lease * 3);
            profile.faults.push(LeaseFault { at, lasts, kind });
        }
    }
}

pub(super) fn profile(seed: u64) -> LeaseProfile {
    let mut dice = Dice::new(seed);
    let preset = match dice.below(20) {
        0..13 => LeasePreset::Fast,
        13..19 => LeasePreset::Default,
        _ => LeasePreset::Rendezgo,
    };
    let members = match dice.below(20) {
        0 => 1,
        1..4 => dice.between(6, 8),
        _ => dice.between(2, 5),
    };
    let mut profile = LeaseProfile::sound(seed, preset, members as usize, 1);
    profile.groups = groups(&mut dice, preset);
    settings(&mut dice, &mut profile.settings);
    profile.places = places(&mut dice, &profile);
    let lease = profile.settings.lease_ttl;
    let most = profile.settings.renewal_try() / 3;
    profile.latency = match dice.below(10) {
        // Everything takes its time, but not more than operations may.
        0 => (most / 4, most),
        1..3 => (most / 100, most / 5),
        _ => (Duration::from_micros(200), Duration::from_millis(2)),
    };
    profile.hook = match dice.below(4) {
        0 => (Duration::ZERO, lease / 10),
        _ => (Duration::from_micros(100), Duration::from_millis(3)),
    };
    profile.fresh = dice.chance(0.15);
    let span = dice.span(lease * 4, lease * 9);
    profile.faults_until = TrueTime::ZERO + span;
    let count = match dice.chance(0.1) {
        true => 0,
        false => dice.between(1, 11),
    };
    for _ in 0..count {
        let fault = fault(&mut dice, &profile);
        profile.faults.push(fault);
    }
    if dice.chance(0.1) {
        profile.faults.retain(|fault| fault.kind.is_calm());
        let (at, lasts) = (TrueTime::ZERO, span);
        let kind = LeaseFaultKind::Hooks(HookWeather {
            slow: 0.2,
            overdue: 0.2,
            failing: dice.pick(&[0.0, 0.1]),
            stuck: 0.0,
        });
        profile.faults.push(LeaseFault { at, lasts, kind });
    }
    wish(&mut Dice::new(seed ^ WISHES), &mut profile);
    let mut drivers = Dice::new(seed ^ DRIVERS);
    unsettle(&mut drivers, &mut profile);
    drive(&mut drivers, &mut profile);
    add_on_own_dice(seed, &mut profile);
    // Tokens that were forgotten are above those of a clock that was set back:
    // no protocol can make up for both.
    if profile.faults.iter().any(|fault| fault.kind.forgets()) {
        for fault in &mut profile.faults {
            if let LeaseFaultKind::ClockStep(ms) | LeaseFaultKind::StoreWallStep(ms) =
                &mut fault.kind
            {
                *ms = ms.abs();
            }
        }
    }
    profile
}

/// Adds what is drawn on its own.
fn add_on_own_dice(seed: u64, profile: &mut LeaseProfile) {
    lengthen(&mut Dice::new(seed ^ LEASES), profile);
    mix(&mut Dice::new(seed ^ PRESETS), profile);
    reload(&mut Dice::new(seed ^ RELOADS), profile);
    step_walls(&mut Dice::new(seed ^ WALLS), profile);
    leave_asking(&mut Dice::new(seed ^ LEAVES), profile);
    spoil(&mut Dice::new(seed ^ SPOILS), profile);
    tune(&mut Dice::new(seed ^ TUNINGS), profile);
    let mut weights = Dice::new(seed ^ WEIGHTS);
    if !profile.faults.is_empty() && weights.chance(0.1) {
        reweigh(&mut weights, profile);
    }
}

fn groups(dice: &mut Dice, preset: LeasePreset) -> Vec<GroupPlan> {
    let count = dice.pick(&[1, 1, 1, 2, 2, 3]);
    let dynamic = dice.below(3);
    let groups = (0..count).map(|index| GroupPlan {
        name: NAMES[index],
        partitions: match (dice.below(12), preset) {
            (0, LeasePreset::Fast) => dice.between(17, 40) as u32,
            (1, _) => 1,
            _ => dice.between(2, 10) as u32,
        },
        most: dice.pick(&[0, 0, 0, 1, 3, 5]),
        stored: match dynamic {
            0 => true,
            1 => index == 0 && count > 1,
            _ => false,
        },
    });
    groups.collect()
}

fn settings(dice: &mut Dice, settings: &mut LeaseSettings) {
    settings.overdue = dice.pick(&[Overdue::Abort, Overdue::Abort, Overdue::Report]);
    settings.shedding = dice.chance(0.9);
    settings.gentle_handoff = dice.chance(0.8);
    settings.releases_per_reconcile = dice.pick(&[0, 1, 2, 2, 5]);
    settings.acquires_per_reconcile = dice.pick(&[0, 1, 4, 16, 16]);
    settings.release_on_shutdown = dice.chance(0.8);
    settings.reconcile_jitter = dice.pick(&[0.0, 0.15, 0.15, 1.0]);
    let (lease, reconcile) = (settings.lease_ttl, settings.reconcile_interval);
    settings.min_runtime = match dice.below(4) {
        0 => settings.min_runtime,
        1 => Duration::ZERO,
        _ => reconcile,
    };
    settings.move_cooldown = match dice.below(4) {
        0 => settings.move_cooldown,
        1 => Duration::ZERO,
        _ => reconcile * 2,
    };
    if dice.chance(0.3) {
        settings.heartbeat_ttl = dice.pick(&[lease / 2, lease * 2]);
        let most = settings.heartbeat_ttl.min(lease) / 3;
        settings.heartbeat_interval = settings.heartbeat_interval.min(most);
    }
    if dice.chance(0.3) {
        settings.renew_interval = dice.pick(&[lease / 5, lease * 2 / 5]);
    }
    if dice.chance(0.3) {
        settings.reconcile_interval = dice.pick(&[lease / 5, lease * 2]);
    }
    settings.config_refresh_interval = settings.config_refresh_interval.min(lease * 2);
    // Hooks that are shorter and longer than a lease.
    settings.start_deadline = dice.pick(&[lease / 2, lease]);
    settings.stop_deadline = dice.pick(&[lease / 4, lease, lease * 3 / 2]);
    settings.shutdown_timeout = dice.pick(&[lease / 2, lease * 3]);
    settings.backoff_max = settings.backoff_max.min(lease);
    settings.backoff = settings.backoff.min(settings.backoff_max);
    if dice.chance(0.3) {
        settings.start_window = Duration::ZERO;
    }
}

fn places(dice: &mut Dice, profile: &LeaseProfile) -> Vec<PlacePlan> {
    let all: u32 = profile.groups.iter().map(|group| group.partitions).sum();
    let (weighted, capped) = (dice.chance(0.4), dice.chance(0.3));
    let (least, parted) = (dice.chance(0.2), dice.chance(0.4));
    let places = (0..profile.members + 2).map(|place| {
        let max_partitions = match capped {
            true => dice.pick(&[0, all.div_ceil(2), all.div_ceil(4), 1]),
            false => 0,
        };
        let min_partitions = match least {
            true => dice.pick(&[0, 1, 2, all / 2]),
            false => 0,
        };
        // Every group is served by somebody.
        let serves = (0..profile.groups.len())
            .map(|group| !parted || place == group % profile.members || dice.chance(0.5));
        let serves = serves.collect();
        PlacePlan {
            weight: match weighted {
                true => dice.pick(&[0.25, 1.0, 1.0, 4.0]),
                false => 1.0,
            },
            serves,
            limits: WorkerLimits {
                max_partitions,
                max_per_group: match capped {
                    true => dice.pick(&[0, 0, 2]),
                    false => 0,
                },
                tuning: None,
            },
            min_partitions: match max_partitions {
                0 => min_partitions,
                most => min_partitions.min(most),
            },
            preset: None,
            lease_factor: 1,
        }
    });
    places.collect()
}

fn fault(dice: &mut Dice, profile: &LeaseProfile) -> LeaseFault {
    let lease = profile.settings.lease_ttl;
    let until = profile.faults_until.elapsed();
    let at = TrueTime::ZERO + dice.span(Duration::ZERO, until);
    let number = dice.below(1 << 16);
    let short = dice.span(lease / 20, lease * 3);
    let (kind, lasts) = match dice.below(3) {
        0 => of_members(dice, number, short),
        1 => of_store(dice, number, lease),
        _ => of_the_rest(dice, number, (lease, until), short),
    };
    LeaseFault { at, lasts, kind }
}

fn of_members(dice: &mut Dice, number: usize, short: Duration) -> (LeaseFaultKind, Duration) {
    let kind = match dice.below(20) {
        0..4 => LeaseFaultKind::Crash(number),
        4..6 => LeaseFaultKind::Pause(number),
        6 => LeaseFaultKind::Suspend(number),
        7..11 => LeaseFaultKind::Isolate(number, Isolation::drawn(dice)),
        11 => LeaseFaultKind::MassRestart(dice.pick(&[0.4, 0.6, 1.0])),
        12..14 => LeaseFaultKind::Leave(number),
        14 => return (LeaseFaultKind::Return(number), short / 10),
        15..17 => LeaseFaultKind::Join,
        17 => LeaseFaultKind::RollingRestart,
        _ => LeaseFaultKind::Namesake(number),
    };
    (kind, short)
}

fn of_store(dice: &mut Dice, number: usize, lease: Duration) -> (LeaseFaultKind, Duration) {
    let down = dice.span(lease / 20, lease * 2);
    let kind = match dice.below(20) {
        0..3 => LeaseFaultKind::Stall,
        3..5 => LeaseFaultKind::Refuse,
        5 => LeaseFaultKind::Restart,
        6..8 => LeaseFaultKind::RestartBehind(match dice.chance(0.5) {
            true => Some(dice.span(Duration::ZERO, lease * 3)),
            false => None,
        }),
        8 => LeaseFaultKind::Empty,
        9..11 => {
            let lease = lease.as_millis() as i64;
            LeaseFaultKind::ClockStep(match dice.below(4) {
                0 => 3_600_000,
                1 => -dice.between(1, lease * 2),
                _ => dice.between(1, lease * 2),
            })
        }
        11..13 => LeaseFaultKind::Evict(dice.pick(&[1, 5, 50])),
        13 => LeaseFaultKind::ScriptFlush,
        14..16 => LeaseFaultKind::ForeignTake(number),
        16 => LeaseFaultKind::ForeignDelete(number),
        17..19 => LeaseFaultKind::ForeignOverwrite(number),
        _ => LeaseFaultKind::ForeignMember(number),
    };
    (kind, down)
}

fn of_the_rest(
    dice: &mut Dice,
    number: usize,
    (lease, until): (Duration, Duration),
    short: Duration,
) -> (LeaseFaultKind, Duration) {
    let long = dice.span(lease, until);
    match dice.below(20) {
        0..6 => (
            LeaseFaultKind::Weather(Weather::drawn(dice, Mode::Lease)),
            long,
        ),
        6..10 => (LeaseFaultKind::Hooks(HookWeather::drawn(dice)), long),
        10 => (LeaseFaultKind::Gap(number), long),
        11 => (LeaseFaultKind::Garble(number), short),
        12..14 => {
            let by = dice.between(-6, 6) as i32;
            (LeaseFaultKind::Resize(number, by), short)
        }
        14 => {
            let most = dice.pick(&[0, 1, 4]);
            (LeaseFaultKind::Limit(number, most), short)
        }
        15 => (LeaseFaultKind::RemoveGroup(number), short),
        16 => (LeaseFaultKind::Refresh(number), short),
        17 => (LeaseFaultKind::Unhealthy(number), short),
        _ => {
            let weight = dice.pick(&[0.0, 0.5, 2.0]);
            (LeaseFaultKind::Weight(number, weight), short)
        }
    }
}
