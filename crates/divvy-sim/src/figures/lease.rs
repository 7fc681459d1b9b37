//! The same for lease mode.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Peace, Spread, last_started};
use crate::invariants::Broken;
use crate::lease::{LeasePreset, LeaseProfile, LeaseWorld};
use crate::time::TrueTime;
use crate::world::Observed;

/// Members of the clusters that are measured, unless a figure says otherwise.
const MEMBERS: usize = 3;
/// Their partitions.
const PARTITIONS: u32 = 24;

/// How a worker goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Going {
    /// Its process ends without a word.
    Killed,
    /// It is asked to stop.
    Asked,
}

/// With the default timings: from the end of a worker, or the wish for it, to
/// the start hooks of all its partitions elsewhere.
pub fn handed_on(going: Going, worlds: u64) -> Result<Spread, Broken> {
    let mut measured = Vec::new();
    for seed in 0..worlds {
        let mut world = settled(sound(seed, MEMBERS, PARTITIONS))?;
        // Anywhere between two renewals.
        let phase = Duration::from_micros(seed * 7919 % 3_000_000);
        world.run_until(world.now() + phase)?;
        let (place, from) = ((seed % MEMBERS as u64) as usize, world.now());
        world.take_observations();
        let lost = match going {
            Going::Killed => world.kill(place)?,
            Going::Asked => world.stop(place),
        };
        world.run_until(from + Duration::from_secs(60))?;
        let lost: BTreeSet<usize> = lost.into_iter().collect();
        let last = last_started(&world.take_observations(), &lost);
        measured.push(last.map_or(Duration::MAX, |at| at.since(from)));
    }
    Ok(Spread::of(measured))
}

/// With the default timings: from the start of all workers to the start hook of
/// the last partition.
pub fn cold_start(members: usize, partitions: u32, worlds: u64) -> Result<Spread, Broken> {
    let mut measured = Vec::new();
    for seed in 0..worlds {
        let mut world = LeaseWorld::new(sound(seed, members, partitions), false);
        world.run_until(TrueTime::ZERO + Duration::from_secs(60))?;
        let all: BTreeSet<usize> = (0..partitions as usize).collect();
        let last = last_started(&world.take_observations(), &all);
        measured.push(last.map_or(Duration::MAX, TrueTime::elapsed));
    }
    Ok(Spread::of(measured))
}

/// With the default timings: five workers to whom nothing happens.
pub fn peace(lasts: Duration) -> Result<Peace, Broken> {
    let mut world = settled(sound(1, 5, 40))?;
    world.take_observations();
    let before = world.tally().events;
    let end = world.now() + lasts;
    let mut moves = 0;
    while world.now() < end {
        let next = world.now() + Duration::from_secs(600);
        world.run_until(next.min(end))?;
        let observed = world.take_observations();
        let started = observed
            .iter()
            .filter(|seen| matches!(seen.what, Observed::Started { .. }));
        moves += started.count();
    }
    Ok(Peace {
        lasted: lasts,
        events: world.tally().events - before,
        moves,
    })
}

fn sound(seed: u64, members: usize, partitions: u32) -> LeaseProfile {
    LeaseProfile::sound(seed, LeasePreset::Default, members, partitions)
}

/// A cluster that has started and come to rest.
fn settled(profile: LeaseProfile) -> Result<LeaseWorld, Broken> {
    let healing = profile.healing();
    let mut world = LeaseWorld::new(profile, false);
    world.run_until(TrueTime::ZERO + healing)?;
    Ok(world)
}
