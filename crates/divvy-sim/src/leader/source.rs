//! The source of partitions, sound or not.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::leader::Event;
use divvy_core::{Partition, Partitions};

use super::World;
use crate::coverage::Mishap;
use crate::dice::Dice;
use crate::fact::Fact;
use crate::fault::SourceFault;
use crate::invariants::Broken;
use crate::profile::Profile;
use crate::world::{Arrival, Happening};

/// The group that all partitions belong to.
const GROUP: &str = "p";
/// The same where hands reach into the world: people read it.
const GROUP_IN_HAND: &str = "orders";
/// The weight of a partition that nobody gave one.
const WEIGHT: i64 = 100;

#[derive(Debug, Clone)]
pub(super) struct Source {
    /// There are the partitions 0 to this.
    count: usize,
    weighted: bool,
    /// What partitions are named after.
    group: &'static str,
    /// Weights that hands gave to some.
    weights: BTreeMap<usize, i64>,
    pub(super) fault: Option<SourceFault>,
}

impl Source {
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            count: profile.partitions,
            weighted: profile.weighted,
            group: match profile.room {
                Some(_) => GROUP_IN_HAND,
                None => GROUP,
            },
            weights: BTreeMap::new(),
            fault: None,
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Adds partitions, or removes some, but never all.
    pub(super) fn change(&mut self, by: i32, most: usize) {
        let count = self.count as i64 + i64::from(by);
        self.count = count.clamp(1, most as i64) as usize;
    }

    /// There are so many from now on.
    pub(super) const fn set_count(&mut self, count: usize) {
        self.count = count;
    }

    pub(super) fn set_weight(&mut self, partition: usize, weight: i64) {
        self.weights.insert(partition, weight);
    }

    /// What there is now, if nothing is wrong with the source.
    pub(super) fn partitions(&self) -> Partitions {
        self.list(None)
    }

    pub(super) fn name_of(&self, partition: usize) -> String {
        format!("{}:{partition}", self.group)
    }

    pub(super) fn weight_of(&self, partition: usize) -> i64 {
        let drawn = match self.weighted {
            true => WEIGHT + (partition as i64 * 37) % 100,
            false => WEIGHT,
        };
        self.weights.get(&partition).copied().unwrap_or(drawn)
    }

    fn list(&self, noise: Option<&mut Dice>) -> Partitions {
        self.listed(self.count, noise)
    }

    fn listed(&self, count: usize, mut noise: Option<&mut Dice>) -> Partitions {
        let partitions = (0..count).map(|number| {
            let partition = Partition::shard(self.group, number as u32).expect("a valid name");
            let weight = self.weight_of(number);
            let off = noise.as_mut().map_or(0, |dice| dice.between(-20, 20));
            let weight = weight + weight * off / 100;
            partition.with_weight(weight).expect("a small weight")
        });
        Partitions::new(partitions).expect("numbers differ")
    }
}

/// The number of a partition by its name.
pub(super) fn number_of(partition: &str) -> usize {
    let number = partition
        .rsplit_once(':')
        .and_then(|(_, text)| text.parse().ok());
    number.expect("all partitions come from the source")
}

impl World {
    /// A member asks the source.
    pub(super) fn list_partitions(&mut self, member: usize) -> Result<(), Broken> {
        let fault = self.own.source.fault;
        let coverage = &mut self.tally.coverage;
        let answer = match fault {
            None => Ok(self.own.source.list(None)),
            Some(SourceFault::Noise) => {
                coverage.count(Mishap::WeightNoise);
                Ok(self.own.source.list(Some(&mut self.dice)))
            }
            Some(SourceFault::Fails) => {
                coverage.count(Mishap::SourceFailed);
                Err("the source is down".to_owned())
            }
            Some(SourceFault::Hangs) => {
                coverage.count(Mishap::SourceHung);
                return Ok(());
            }
            Some(SourceFault::Empty) => {
                coverage.count(Mishap::SourceEmpty);
                Ok(self.own.source.listed(0, None))
            }
            Some(SourceFault::Shrinks) => {
                coverage.count(Mishap::SourceShrunk);
                Ok(self.own.source.listed(self.own.source.count / 3, None))
            }
            Some(SourceFault::Duplicates) => {
                coverage.count(Mishap::SourceDuplicated);
                let twice = self.own.source.list(None);
                let twice = twice.iter().chain(twice.iter()).cloned();
                Partitions::new(twice).map_err(|error| error.to_string())
            }
        };
        if let Ok(partitions) = &answer {
            self.tell(&Fact::Sourced { partitions })?;
        }
        let generation = self.processes[member].generation;
        let after = self
            .dice
            .span(Duration::from_micros(500), Duration::from_millis(5));
        let arrival = Arrival::Event(Event::Partitions(answer));
        self.after(after, Happening::Arrive(member, generation, arrival));
        Ok(())
    }
}
