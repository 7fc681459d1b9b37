//! What a playground is made of: the numbers and names that a world needs.

use divvy_core::leader::StoreOutage;
use divvy_core::{Invalid, StrategyName};
use divvy_sim::{Hands, LeasePreset, LeaseProfile, LeaseWorld, Mode, Preset, Profile, Room, World};

use crate::fields::Fields;

/// Most workers that are there at once.
pub const WORKERS_MAX: usize = 500;
/// Most workers that there ever were in one world.
pub const PLACES_MAX: usize = 2_000;
/// Most partitions.
pub const PARTITIONS_MAX: usize = 20_000;
/// The largest number of a stable id: more than there are workers at once.
const WORKER_ID_MAX: u32 = 999;
/// Largest seed: the largest whole number that every JSON reader keeps.
pub const SEED_MAX: u64 = (1 << 53) - 1;

/// The modes by name.
pub(crate) const MODES: [(&str, Mode); 2] = [("leader", Mode::Leader), ("lease", Mode::Lease)];
/// The presets of leader mode by name.
const LEADER_PRESETS: [(&str, Preset); 3] = [
    ("fast", Preset::Fast),
    ("default", Preset::Default),
    ("calm", Preset::Calm),
];
/// The presets of lease mode by name.
const LEASE_PRESETS: [(&str, LeasePreset); 3] = [
    ("fast", LeasePreset::Fast),
    ("default", LeasePreset::Default),
    ("rendezgo", LeasePreset::Rendezgo),
];
/// The strategies of leader mode. Lease mode places by rendezvous.
const STRATEGIES: [StrategyName; 6] = [
    StrategyName::Balanced,
    StrategyName::WeightedConsistentHash,
    StrategyName::Zoned,
    StrategyName::Rendezvous,
    StrategyName::ConsistentHash,
    StrategyName::RoundRobin,
];

/// What a world is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Which kind of coordination.
    pub mode: Mode,
    /// How many workers there are at first.
    pub workers: usize,
    /// How many partitions there are at first.
    pub partitions: usize,
    /// The timings, by name.
    pub preset: String,
    /// Who places partitions in leader mode.
    pub strategy: StrategyName,
    /// Whether a worker that cannot reach the store stops before another
    /// starts, in leader mode.
    pub exclusive: bool,
    /// Where chance comes from.
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: Mode::Leader,
            workers: 8,
            partitions: 256,
            preset: "fast".to_owned(),
            strategy: StrategyName::Balanced,
            exclusive: true,
            seed: 7,
        }
    }
}

impl Setup {
    /// Whether a world can be made of it.
    pub fn check(&self) -> Result<(), Invalid> {
        bounded("workers", self.workers, WORKERS_MAX)?;
        bounded("partitions", self.partitions, PARTITIONS_MAX)?;
        if self.seed > SEED_MAX {
            let rule = format!("must be in 0..={SEED_MAX}");
            return Err(Invalid::new("seed", self.seed, rule));
        }
        let presets = presets(self.mode);
        if !presets.contains(&self.preset.as_str()) {
            let rule = format!(
                "must be one of {} in {} mode",
                presets.join(", "),
                self.mode
            );
            return Err(Invalid::new("preset", &self.preset, rule));
        }
        let strategies = strategies(self.mode);
        if !strategies.contains(&self.strategy.as_str()) {
            let known = strategies.join(", ");
            let rule = format!("must be one of {known} in {} mode", self.mode);
            return Err(Invalid::new("strategy", self.strategy, rule));
        }
        match self.mode == Mode::Lease && !self.exclusive {
            true => Err(Invalid::new(
                "exclusive",
                false,
                "must be true in lease mode",
            )),
            false => Ok(()),
        }
    }

    /// The same in another mode: what only one of them knows is as the other
    /// has it by default.
    #[must_use]
    pub fn in_mode(&self, mode: Mode) -> Self {
        let mut setup = Self {
            mode,
            ..self.clone()
        };
        if !presets(mode).contains(&setup.preset.as_str()) {
            setup.preset = "default".to_owned();
        }
        if mode == Mode::Lease {
            setup.strategy = StrategyName::Rendezvous;
            setup.exclusive = true;
        } else if self.mode == Mode::Lease {
            setup.strategy = StrategyName::Balanced;
        }
        setup
    }

    /// Changes what these fields name. Where the mode changes, names that only
    /// the other knows change with it.
    pub(crate) fn change(&self, fields: &mut Fields) -> Result<Self, Invalid> {
        let mut setup = match fields.word("mode", &MODES)? {
            Some(mode) => self.in_mode(mode),
            None => self.clone(),
        };
        if let Some(workers) = fields.count("workers", 1..=WORKERS_MAX as u64)? {
            setup.workers = workers as usize;
        }
        if let Some(partitions) = fields.count("partitions", 1..=PARTITIONS_MAX as u64)? {
            setup.partitions = partitions as usize;
        }
        if let Some(seed) = fields.count("seed", 0..=SEED_MAX)? {
            setup.seed = seed;
        }
        if let Some(preset) = fields.text("preset")? {
            setup.preset = preset;
        }
        if let Some(strategy) = fields.text("strategy")? {
            let known = STRATEGIES.map(|known| (known.as_str(), known));
            let found = known.iter().find(|(name, _)| *name == strategy);
            let Some((_, found)) = found else {
                let rule = format!("must be one of {}", strategies(setup.mode).join(", "));
                return Err(Invalid::new("strategy", strategy, rule));
            };
            setup.strategy = *found;
        }
        if let Some(exclusive) = fields.flag("exclusive")? {
            setup.exclusive = exclusive;
        }
        setup.check()?;
        Ok(setup)
    }

    /// The world of it, at its beginning.
    pub(crate) fn build(&self) -> Box<dyn Hands> {
        let room = Some(Room {
            members: PLACES_MAX,
            partitions: PARTITIONS_MAX,
        });
        match self.mode {
            Mode::Leader => {
                let preset = meaning(&LEADER_PRESETS, &self.preset);
                let (workers, partitions) = (self.workers, self.partitions);
                let mut profile = Profile::sound(self.seed, preset, workers, partitions);
                profile.strategy = self.strategy;
                profile.room = room;
                profile.settings.worker_id_max = WORKER_ID_MAX;
                profile.settings.store_outage = match self.exclusive {
                    true => StoreOutage::Exclusive,
                    false => StoreOutage::Overlap,
                };
                Box::new(World::new(profile, true))
            }
            Mode::Lease => {
                let preset = meaning(&LEASE_PRESETS, &self.preset);
                let partitions = self.partitions as u32;
                let mut profile = LeaseProfile::sound(self.seed, preset, self.workers, partitions);
                profile.room = room;
                Box::new(LeaseWorld::new(profile, true))
            }
        }
    }
}

/// The names of the presets of a mode.
pub fn presets(mode: Mode) -> Vec<&'static str> {
    match mode {
        Mode::Leader => LEADER_PRESETS.map(|(name, _)| name).to_vec(),
        Mode::Lease => LEASE_PRESETS.map(|(name, _)| name).to_vec(),
    }
}

/// The names of the strategies of a mode.
pub fn strategies(mode: Mode) -> Vec<&'static str> {
    match mode {
        Mode::Leader => STRATEGIES.map(StrategyName::as_str).to_vec(),
        Mode::Lease => vec![StrategyName::Rendezvous.as_str()],
    }
}

fn meaning<T: Copy>(names: &[(&str, T)], name: &str) -> T {
    let found = names.iter().find(|(known, _)| *known == name);
    found.expect("setups are checked").1
}

fn bounded(field: &'static str, value: usize, most: usize) -> Result<(), Invalid> {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(Invalid::new(field, value, format!("must be in 1..={most}"))),
    }
}
