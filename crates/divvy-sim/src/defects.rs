//! The tests, tested: every planted defect must be caught.

use divvy_core::leader::Defect;

use crate::invariants::Broken;
use crate::trial::{Trial, defect_name};

/// Seeds within which every defect must be caught, unless it is named below.
const BOUND: u64 = 200;
/// Defects that need a rare coincidence, and more seeds.
const RARE: &[(Defect, u64)] = &[(Defect::IgnoreAmnesia, 2000), (Defect::IgnoreSeen, 5000)];

/// All defects that can be planted.
pub const DEFECTS: &[Defect] = Defect::ALL;

/// How a defect was caught, or that it was not.
#[derive(Debug, Clone)]
pub struct Hunt {
    /// The defect.
    pub defect: Defect,
    /// Its name.
    pub name: String,
    /// Seeds that were run, the one that caught it included.
    pub seeds: u64,
    /// Seeds within which it must be caught.
    pub bound: u64,
    /// The seed that caught it, and the invariant that it broke.
    pub caught: Option<(u64, Broken)>,
}

/// Within how many seeds a defect must be caught.
pub fn bound_of(defect: Defect) -> u64 {
    let rare = RARE.iter().find(|(rare, _)| *rare == defect);
    rare.map_or(BOUND, |(_, bound)| *bound)
}

/// Runs seeds with a defect until it is caught.
pub fn hunt(defect: Defect) -> Hunt {
    let bound = bound_of(defect);
    let mut hunt = Hunt {
        defect,
        name: defect_name(defect),
        seeds: 0,
        bound,
        caught: None,
    };
    for seed in 0..bound {
        let trial = Trial::of_seed(seed).with_defect(Some(defect));
        hunt.seeds += 1;
        if let Some(broken) = trial.run(false).broken {
            hunt.caught = Some((seed, broken));
            break;
        }
    }
    hunt
}
