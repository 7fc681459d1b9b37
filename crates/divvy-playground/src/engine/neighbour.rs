//! Another cluster on the same store: the same happens to the store of both,
//! and neither knows a key of the other.

use divvy_sim::{Broken, Hands, StoreState, TrueTime};

use crate::gauge::Gauge;
use crate::setup::Setup;

/// A cluster that nobody touches, but through its store.
#[derive(Debug)]
pub(crate) struct Neighbour {
    world: Box<dyn Hands>,
    pub(crate) gauge: Gauge,
}

impl Neighbour {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            world: setup.build(),
            gauge: Gauge::default(),
        }
    }

    /// Lives on until then, and is looked at.
    pub(super) fn go_on(&mut self, until: TrueTime) -> Result<(), Broken> {
        let gone_on = self.world.go_on(until);
        for done in self.world.take_deeds() {
            if let Some(start) = self.gauge.hear(&done) {
                self.gauge.begin(&start, "", true);
            }
        }
        let now_ms = self.world.time().nanos() / 1_000_000;
        self.gauge.look(&*self.world, now_ms);
        gone_on
    }

    pub(super) fn set_store(&mut self, state: StoreState) {
        self.world.set_store(state);
    }

    pub(super) fn forget_all(&mut self, announced: bool) -> Result<(), Broken> {
        self.world.forget_all(announced)
    }
}
