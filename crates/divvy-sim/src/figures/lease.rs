//! The same for lease mode.

use std::time::Duration;

use super::{Peace, Spread, left_alone, rested, until_started};
use crate::invariants::Broken;
use crate::lease::{LeasePreset, LeaseProfile, LeaseWorld};
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
        let place = (seed % MEMBERS as u64) as usize;
        let lost = match going {
            Going::Killed => world.kill(place)?,
            Going::Asked => world.stop(place),
        };
        measured.push(until_started(world, &lost, Duration::from_secs(60))?);
    }
    Ok(Spread::of(measured))
}

/// With the default timings: from the start of all workers to the start hook of
/// the last partition.
pub fn cold_start(members: usize, partitions: u32, worlds: u64) -> Result<Spread, Broken> {
    let mut measured = Vec::new();
    for seed in 0..worlds {
        let world = LeaseWorld::new(sound(seed, members, partitions), false);
        let all: Vec<usize> = (0..partitions as usize).collect();
        measured.push(until_started(world, &all, Duration::from_secs(60))?);
    }
    Ok(Spread::of(measured))
}

/// With the default timings: five workers to whom nothing happens.
pub fn peace(lasts: Duration) -> Result<Peace, Broken> {
    let world = settled(sound(1, 5, 40))?;
    left_alone(world, lasts, |what| {
        matches!(what, Observed::Started { .. })
    })
}

fn sound(seed: u64, members: usize, partitions: u32) -> LeaseProfile {
    LeaseProfile::sound(seed, LeasePreset::Default, members, partitions)
}

/// A cluster that has started and come to rest.
fn settled(profile: LeaseProfile) -> Result<LeaseWorld, Broken> {
    let healing = profile.healing();
    rested(LeaseWorld::new(profile, false), healing)
}
