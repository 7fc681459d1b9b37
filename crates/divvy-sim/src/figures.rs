//! How long things take, in the time of the world: what the machine promises,
//! whatever it runs on.

pub mod lease;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::invariants::Broken;
use crate::leader::World;
use crate::profile::{Preset, Profile};
use crate::time::TrueTime;
use crate::world::{Coordination, Observation, Observed, WorldOf};

/// Members of the clusters that are measured, unless a figure says otherwise.
const MEMBERS: usize = 5;
/// Their partitions.
const PARTITIONS: usize = 40;

/// What was measured, over many worlds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    sorted: Vec<Duration>,
}

impl Spread {
    fn of(mut measured: Vec<Duration>) -> Self {
        measured.sort_unstable();
        Self { sorted: measured }
    }

    /// How many worlds were measured.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The time that this part of all, 0 to 1, did not exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let rank = (part * self.sorted.len() as f64).ceil() as usize;
        let index = rank.clamp(1, self.sorted.len().max(1)) - 1;
        self.sorted.get(index).copied().unwrap_or_default()
    }
}

/// Who is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// A worker that does not lead.
    Worker,
    /// The one that leads.
    Leader,
}

/// With the `fast` preset: from the end of a process to the start hooks of all
/// its partitions elsewhere.
pub fn failover(victim: Victim, worlds: u64) -> Result<Spread, Broken> {
    let mut measured = Vec::new();
    for seed in 0..worlds {
        let mut world = settled(Profile::sound(seed, Preset::Fast, MEMBERS, PARTITIONS))?;
        // Anywhere between two heartbeats.
        let phase = Duration::from_micros(seed * 7919 % 400_000);
        world.run_until(world.now() + phase)?;
        let leads = |place: &usize| {
            let member = world.member(*place);
            member.is_some_and(divvy_core::leader::Member::is_leader)
        };
        let place = match victim {
            Victim::Leader => (0..MEMBERS).find(leads),
            Victim::Worker => (0..MEMBERS).find(|place| !leads(place)),
        };
        let place = place.expect("a settled cluster has one leader and others");
        let lost = world.kill(place)?;
        measured.push(until_started(world, &lost, Duration::from_secs(5))?);
    }
    Ok(Spread::of(measured))
}

/// What a planned move costs beside the hook.
#[derive(Debug, Clone)]
pub struct PlannedMove {
    /// From the sending of the root that asks partitions back to the last
    /// start at their new owner.
    pub took: Spread,
    /// A way to the store and back.
    pub round_trip: Duration,
    /// How long a stop hook takes.
    pub hook: Duration,
}

/// With the `fast` preset: how long a planned move takes when a worker joins.
pub fn planned_move(worlds: u64) -> Result<PlannedMove, Broken> {
    let one_way = Duration::from_millis(5);
    let hook = Duration::from_millis(20);
    let mut measured = Vec::new();
    for seed in 0..worlds {
        let mut profile = Profile::sound(seed, Preset::Fast, MEMBERS, PARTITIONS);
        profile.latency = (one_way, one_way);
        profile.hook = (hook, hook);
        let mut world = settled(profile)?;
        let joined = world.add_member();
        world.run_until(world.now() + Duration::from_secs(5))?;
        if let Some(took) = move_took(&world.take_observations(), joined) {
            measured.push(took);
        }
    }
    Ok(PlannedMove {
        took: Spread::of(measured),
        round_trip: one_way * 2,
        hook,
    })
}

/// From the sending of the root that revoked to the last start at `joined`.
fn move_took(observations: &[Observation], joined: usize) -> Option<Duration> {
    let revoking = observations
        .iter()
        .position(|seen| matches!(seen.what, Observed::Committed { revoked, .. } if revoked > 0))?;
    let sent = observations[..revoking].iter().rev();
    let sent = sent.map(|seen| (&seen.what, seen.at));
    let mut sent = sent.filter(|(what, _)| matches!(what, Observed::RootSent(_)));
    let (_, sent) = sent.next()?;
    let started = observations
        .iter()
        .filter(|seen| matches!(seen.what, Observed::Started { member, .. } if member == joined));
    let last = started.map(|seen| seen.at).max()?;
    Some(last.since(sent))
}

/// What a rolling restart did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollingRestart {
    /// Workers that were restarted.
    pub workers: usize,
    /// Partitions.
    pub partitions: usize,
    /// Partitions that ran at another worker at any time since.
    pub moved: usize,
    /// Partitions that run nowhere in the end.
    pub idle: usize,
}

/// With the `fast` preset: restarts all workers, one after another, each of
/// which asks for its place to be kept.
pub fn rolling_restart(workers: usize, partitions: usize) -> Result<RollingRestart, Broken> {
    let mut profile = Profile::sound(1, Preset::Fast, workers, partitions);
    profile.settings.worker_id_max = profile.settings.worker_id_max.max(workers as u32 * 2);
    let mut world = settled(profile)?;
    let home = homes(&world);
    world.take_observations();
    for place in 0..workers {
        world.restart(place, Duration::from_secs(5), Duration::from_millis(300));
        world.run_until(world.now() + Duration::from_secs(1))?;
    }
    world.run_until(world.now() + Duration::from_secs(10))?;
    let mut moved = BTreeSet::new();
    for seen in world.take_observations() {
        if let Observed::Started { member, partition } = seen.what
            && home.get(&partition) != Some(&member)
        {
            moved.insert(partition);
        }
    }
    Ok(RollingRestart {
        workers,
        partitions,
        moved: moved.len(),
        idle: partitions - homes(&world).len(),
    })
}

/// How a cluster that nothing happens to lives.
#[derive(Debug, Clone, PartialEq)]
pub struct Peace {
    /// For how long.
    pub lasted: Duration,
    /// Things that happened.
    pub events: u64,
    /// Roots that changed who holds what; in lease mode, partitions that were
    /// started.
    pub moves: usize,
}

/// With the default timings: five workers to whom nothing happens.
pub fn peace(lasts: Duration) -> Result<Peace, Broken> {
    let world = settled(Profile::sound(1, Preset::Default, MEMBERS, PARTITIONS))?;
    left_alone(
        world,
        lasts,
        |what| matches!(what, Observed::Committed { granted, revoked } if granted + revoked > 0),
    )
}

/// How a world lives to which nothing happens.
fn left_alone<C: Coordination>(
    mut world: WorldOf<C>,
    lasts: Duration,
    is_move: impl Fn(&Observed) -> bool,
) -> Result<Peace, Broken> {
    let before = world.tally().events;
    let end = world.now() + lasts;
    let mut moves = 0;
    while world.now() < end {
        let next = world.now() + Duration::from_secs(600);
        world.run_until(next.min(end))?;
        let observed = world.take_observations();
        moves += observed.iter().filter(|seen| is_move(&seen.what)).count();
    }
    Ok(Peace {
        lasted: lasts,
        events: world.tally().events - before,
        moves,
    })
}

/// A cluster that has started and come to rest.
fn settled(profile: Profile) -> Result<World, Broken> {
    let healing = profile.healing;
    rested(World::new(profile, false), healing)
}

/// A world after the time in which it comes to rest.
fn rested<C: Coordination>(mut world: WorldOf<C>, within: Duration) -> Result<WorldOf<C>, Broken> {
    world.run_until(TrueTime::ZERO + within)?;
    world.take_observations();
    Ok(world)
}

/// Where each partition runs.
fn homes(world: &World) -> BTreeMap<usize, usize> {
    let mut homes = BTreeMap::new();
    for place in 0..world.places() {
        for partition in world.running_at(place) {
            homes.insert(partition, place);
        }
    }
    homes
}

/// How long it takes from now on until the last of `lost` is started for the
/// first time; for ever if that is not done `within`.
fn until_started<C: Coordination>(
    mut world: WorldOf<C>,
    lost: &[usize],
    within: Duration,
) -> Result<Duration, Broken> {
    let from = world.now();
    world.take_observations();
    world.run_until(from + within)?;
    let mut missing: BTreeSet<usize> = lost.iter().copied().collect();
    let mut last = TrueTime::ZERO;
    for seen in world.take_observations() {
        if let Observed::Started { partition, .. } = seen.what
            && missing.remove(&partition)
        {
            last = seen.at;
        }
    }
    Ok(match missing.is_empty() {
        true => last.since(from),
        false => Duration::MAX,
    })
}
