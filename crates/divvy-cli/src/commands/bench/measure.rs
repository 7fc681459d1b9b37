//! How fast something went.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// What one load came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    /// The store, or the program that it is compared with.
    pub(super) store: String,
    /// What was done.
    pub(super) load: String,
    /// How many of it in a second.
    pub(super) per_second: f64,
    /// How long one took: half of them less. Nothing where none was timed.
    pub(super) p50_ms: Option<f64>,
    /// All but one of a hundred less.
    pub(super) p99_ms: Option<f64>,
    /// The slowest.
    pub(super) max_ms: Option<f64>,
    /// How much of one core this program took for it.
    pub(super) core_share: Option<f64>,
    /// Where several processes did it: the fewest and the most operations that
    /// one of them came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per_process: Option<[usize; 2]>,
}

/// Times of single operations, and of this process meanwhile.
#[derive(Debug)]
pub(super) struct Stopwatch {
    began: Instant,
    cpu: Duration,
    times: Vec<Duration>,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self {
            began: Instant::now(),
            cpu: cpu_time(),
            times: Vec::new(),
        }
    }

    /// Another operation took so long.
    pub(super) fn lap(&mut self, took: Duration) {
        self.times.push(took);
    }

    pub(super) fn laps(&mut self, took: impl IntoIterator<Item = Duration>) {
        self.times.extend(took);
    }

    /// What it came to, where each operation did `each` things.
    pub(super) fn stop(self, store: &str, load: impl Into<String>, each: u32) -> Figure {
        self.tally().figure(store, load, each)
    }

    /// What was measured.
    pub(super) fn tally(self) -> Tally {
        Tally {
            wall: self.began.elapsed(),
            cpu: cpu_time().saturating_sub(self.cpu),
            times: self.times,
        }
    }
}

/// What was measured of one load.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    times: Vec<Duration>,
    wall: Duration,
    cpu: Duration,
}

impl Tally {
    /// What processes measured of a load that they did side by side.
    pub(super) fn together(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), |mut sum, one| {
            sum.times.extend(one.times);
            Self {
                times: sum.times,
                wall: sum.wall.max(one.wall),
                cpu: sum.cpu + one.cpu,
            }
        })
    }

    /// How many operations there were.
    pub(super) fn count(&self) -> usize {
        self.times.len()
    }

    /// What it came to, where each operation did `each` things.
    pub(super) fn figure(self, store: &str, load: impl Into<String>, each: u32) -> Figure {
        let wall = self.wall.as_secs_f64();
        let mut times = self.times;
        times.sort_unstable();
        let at = |share: f64| {
            let place = (times.len() as f64 * share) as usize;
            let time = times.get(place.min(times.len().saturating_sub(1)));
            time.map(|time| time.as_secs_f64() * 1e3)
        };
        Figure {
            store: store.to_owned(),
            load: load.into(),
            per_second: times.len() as f64 * f64::from(each) / wall,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
            core_share: Some(self.cpu.as_secs_f64() / wall),
            per_process: None,
        }
    }

    /// What it cost this program that so much was done in a second, of which
    /// nothing was timed.
    pub(super) fn cost(self, store: &str, load: impl Into<String>, per_second: f64) -> Figure {
        Figure {
            per_second,
            ..self.figure(store, load, 0)
        }
    }
}

/// How long this process has had a processor.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_count_together() {
        let one = |times: &[u64], wall, cpu| Tally {
            times: times.iter().copied().map(Duration::from_millis).collect(),
            wall: Duration::from_secs(wall),
            cpu: Duration::from_secs(cpu),
        };
        let both = Tally::together([one(&[1, 2], 1, 1), one(&[3, 9], 2, 1)]);
        assert_eq!(both.count(), 4);
        let figure = both.figure("file", "nothing", 10);
        assert_eq!((figure.per_second, figure.max_ms), (20.0, Some(9.0)));
        assert_eq!(figure.core_share, Some(1.0));
    }

    #[test]
    fn quantiles_are_of_single_operations() {
        let mut watch = Stopwatch::start();
        watch.laps((1..=100).map(Duration::from_millis));
        let figure = watch.stop("memory", "nothing", 1);
        assert_eq!(
            (figure.p50_ms, figure.p99_ms, figure.max_ms),
            (Some(51.0), Some(100.0), Some(100.0))
        );
    }
}
