//! Worlds whose members work on without the store, as a setting allows: they
//! may overlap, and everything else holds.

use divvy_core::leader::StoreOutage;
use divvy_sim::{Profile, World};

#[test]
fn whoever_works_on_without_the_store_breaks_nothing_but_exclusiveness() {
    for seed in 0..200 {
        let mut profile = Profile::of_seed(seed);
        profile.settings.store_outage = StoreOutage::Overlap;
        let mut world = World::new(profile, false);
        if let Err(broken) = world.run() {
            panic!("seed {seed}: {broken}");
        }
    }
}
