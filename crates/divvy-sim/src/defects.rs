//! The tests, tested: every planted defect must be caught.

use divvy_core::{leader, lease};

use crate::invariants::Broken;
use crate::mode::Mode;
use crate::trial::Trial;
use crate::world::DriverDefect;

/// Seeds within which every defect must be caught, unless it is named below.
const BOUND: u64 = 200;
/// Defects that need a rare coincidence, and more seeds.
const RARE: &[(Defect, u64)] = &[
    (Defect::Leader(leader::Defect::ClaimWhileStopping), 1000),
    (Defect::Leader(leader::Defect::IgnoreAmnesia), 2000),
    (Defect::Leader(leader::Defect::IgnoreSeen), 5000),
    (Defect::Leader(leader::Defect::KeepUnnamed), 2500),
    (Defect::Leader(leader::Defect::RegainOnRenewal), 5000),
    (Defect::Leader(leader::Defect::ReuseOldStart), 4000),
    (Defect::Leader(leader::Defect::TrustEveryLife), 1000),
    (Defect::Leader(leader::Defect::TrustScribbles), 2000),
    (Defect::Leader(leader::Defect::WithdrawAlarm), 500),
    (Defect::Lease(lease::Defect::RenewNotWhileStopping), 500),
    (Defect::Lease(lease::Defect::ShedOwn), 500),
    (
        Defect::Driver(Mode::Leader, DriverDefect::StartWithoutGrant),
        1000,
    ),
    (
        Defect::Driver(Mode::Lease, DriverDefect::StartWithoutGrant),
        1000,
    ),
];

/// A mistake that can be planted into every member of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Of leader mode.
    Leader(leader::Defect),
    /// Of lease mode.
    Lease(lease::Defect),
    /// Of the drivers around machines of this mode.
    Driver(Mode, DriverDefect),
}

impl Defect {
    /// All of one mode.
    pub fn all(mode: Mode) -> Vec<Self> {
        let of_drivers = DriverDefect::ALL.iter().map(|it| Self::Driver(mode, *it));
        match mode {
            Mode::Leader => {
                let all = leader::Defect::ALL.iter();
                all.copied().map(Self::Leader).chain(of_drivers).collect()
            }
            Mode::Lease => {
                let all = lease::Defect::ALL.iter();
                all.copied().map(Self::Lease).chain(of_drivers).collect()
            }
        }
    }

    /// The one of this mode with this name, if there is one.
    pub fn named(mode: Mode, name: &str) -> Option<Self> {
        let mut all = Self::all(mode).into_iter();
        all.find(|defect| defect.name() == name)
    }

    /// The mode whose machine has it.
    pub const fn mode(self) -> Mode {
        match self {
            Self::Leader(_) => Mode::Leader,
            Self::Lease(_) => Mode::Lease,
            Self::Driver(mode, _) => mode,
        }
    }

    /// Its name as the command line has it: words joined by dashes.
    pub fn name(self) -> String {
        let words = match self {
            Self::Leader(defect) => format!("{defect:?}"),
            Self::Lease(defect) => format!("{defect:?}"),
            Self::Driver(_, defect) => format!("{defect:?}"),
        };
        let mut name = String::new();
        for (index, letter) in words.char_indices() {
            if letter.is_ascii_uppercase() && index > 0 {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// Within how many seeds it must be caught.
    pub fn bound(self) -> u64 {
        let rare = RARE.iter().find(|(rare, _)| *rare == self);
        rare.map_or(BOUND, |(_, bound)| *bound)
    }
}

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

/// Runs seeds with a defect until it is caught.
pub fn hunt(defect: Defect) -> Hunt {
    let bound = defect.bound();
    let mut hunt = Hunt {
        defect,
        name: defect.name(),
        seeds: 0,
        bound,
        caught: None,
    };
    for seed in 0..bound {
        let trial = Trial::of_seed(defect.mode(), seed).with_defect(Some(defect));
        hunt.seeds += 1;
        if let Some(broken) = trial.run(false).broken {
            hunt.caught = Some((seed, broken));
            break;
        }
    }
    hunt
}
