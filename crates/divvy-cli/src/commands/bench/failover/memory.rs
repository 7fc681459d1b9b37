//! What a worker takes, and each partition that it knows of.

use divvy::store::StoreSettings;

use super::ground::Ground;
use super::report::Bound;
use super::start::Start;
use super::{crew, gather};
use crate::args::FailoverArgs;

/// A cluster that is small beside the one at its start.
const FEW_WORKERS: u32 = 4;

/// Among fewer at the start, a small cluster would know of nearly as much.
const MANY_WORKERS_MIN: u32 = 16;

/// What fewer partitions take is less than what an allocator rounds up.
const KNOWN_MIN: u32 = 1000;

/// Memory of workers that own as much and know of less or more.
pub(super) struct Memory {
    /// Partitions of the small cluster, and bytes of a worker there.
    few: (u32, u64),
    /// The same of the cluster that starts all at once.
    many: (u32, u64),
}

impl Memory {
    /// Measures a small cluster beside the one that started; nothing where the
    /// system does not tell, or that one knows of hardly more.
    ///
    /// Its workers own as many partitions as theirs: what a worker runs takes far
    /// more than what it knows of others.
    pub(super) fn measure(
        args: &FailoverArgs,
        ground: &Ground<'_>,
        reach: &StoreSettings,
        start: &Start,
    ) -> anyhow::Result<Option<Self>> {
        let share = args.start_partitions.div_ceil(args.start_workers());
        let partitions = share * FEW_WORKERS;
        let known = args.start_partitions.saturating_sub(partitions);
        if args.start_workers() < MANY_WORKERS_MIN || known < KNOWN_MIN {
            return Ok(None);
        }
        let reach = StoreSettings {
            cluster: format!("{}-few", reach.cluster),
            ..reach.clone()
        };
        let mut crew = crew(args, ground, &reach, partitions);
        let measured = gather(&mut crew, FEW_WORKERS, partitions).and_then(|_took| {
            let memory = crew.memory();
            crew.end()?;
            Ok(memory)
        });
        crew.kill_all();
        let few = ground.cleared(&reach, measured)?;
        Ok(few.zip(start.memory).map(|(few, many)| Self {
            few: (partitions, few),
            many: (args.start_partitions, many),
        }))
    }

    pub(super) fn bounds(&self) -> [Bound; 2] {
        let known = f64::from(self.many.0) - f64::from(self.few.0);
        let each = (self.many.1 as f64 - self.few.1 as f64) / known;
        let alone = self.few.1 as f64 - each * f64::from(self.few.0);
        [
            Bound::new("memory of a worker, bytes", alone, 5e6),
            Bound::new("memory of a partition, bytes", each, 200.0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_more_partitions_take_is_shared_by_them_and_the_rest_is_the_workers() {
        let memory = Memory {
            few: (400, 2_040_000),
            many: (5_400, 2_540_000),
        };
        let told = memory.bounds().map(|bound| format!("{bound:?}"));
        assert!(told[0].contains("measured: 2000000.0"), "{told:?}");
        assert!(told[1].contains("measured: 100.0"), "{told:?}");
    }
}
