//! The source of partitions, sound or not.

use std::time::Duration;

use divvy_core::leader::Event;
use divvy_core::{Partition, Partitions};

use super::process::Arrival;
use super::{Happening, World};
use crate::coverage::Mishap;
use crate::dice::Dice;
use crate::fact::Fact;
use crate::fault::SourceFault;
use crate::invariants::Broken;

/// The group that all partitions belong to.
const GROUP: &str = "p";

#[derive(Debug)]
pub(super) struct Source {
    /// There are the partitions 0 to this.
    count: usize,
    weighted: bool,
    pub(super) fault: Option<SourceFault>,
}

impl Source {
    pub(super) const fn new(count: usize, weighted: bool) -> Self {
        Self {
            count,
            weighted,
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

    fn list(&self, noise: Option<&mut Dice>) -> Partitions {
        self.listed(self.count, noise)
    }

    fn listed(&self, count: usize, mut noise: Option<&mut Dice>) -> Partitions {
        let partitions = (0..count).map(|number| {
            let partition = Partition::shard(GROUP, number as u32).expect("a valid name");
            let weight = match self.weighted {
                true => 100 + (number as i64 * 37) % 100,
                false => 100,
            };
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
        .strip_prefix("p:")
        .and_then(|text| text.parse().ok());
    number.expect("all partitions come from the source")
}

impl World {
    /// A member asks the source.
    pub(super) fn list_partitions(&mut self, member: usize) -> Result<(), Broken> {
        let fault = self.source.fault;
        let coverage = &mut self.tally.coverage;
        let answer = match fault {
            None => Ok(self.source.list(None)),
            Some(SourceFault::Noise) => {
                coverage.count(Mishap::WeightNoise);
                Ok(self.source.list(Some(&mut self.dice)))
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
                Ok(self.source.listed(0, None))
            }
            Some(SourceFault::Shrinks) => {
                coverage.count(Mishap::SourceShrunk);
                Ok(self.source.listed(self.source.count / 3, None))
            }
            Some(SourceFault::Duplicates) => {
                coverage.count(Mishap::SourceDuplicated);
                let twice = self.source.list(None);
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
