//! What a playground and its members say to each other, a line of JSON each.

use std::collections::BTreeMap;
use std::io;

use divvy_core::{Error, Partition, Partitions};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use super::weather::Weather;

/// Longest line, in bytes: a brief with the weights of all partitions.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;
/// What a partition of weight 1 weighs inside, so that parts of it can be told.
pub(crate) const UNIT: f64 = 100.0;

/// What a member is at first: the first line that it hears.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Brief {
    /// The instance in leader mode, the worker's name in lease mode.
    pub(crate) name: String,
    pub(crate) mode: String,
    pub(crate) preset: String,
    pub(crate) strategy: String,
    pub(crate) exclusive: bool,
    pub(crate) weight: f64,
    pub(crate) zone: Option<String>,
    /// The group of all partitions.
    pub(crate) group: String,
    pub(crate) partitions: u32,
    /// The weights of partitions that do not weigh 1.
    pub(crate) weights: BTreeMap<u32, f64>,
    pub(crate) weather: Weather,
    pub(crate) slow: bool,
    pub(crate) broken: bool,
    pub(crate) healthy: bool,
}

impl Brief {
    pub(crate) fn is_led(&self) -> bool {
        self.mode == "leader"
    }

    /// What it is like after an order: whoever starts again begins with that.
    pub(crate) fn apply(&mut self, order: &Order) {
        match order {
            Order::Broken(on) => self.broken = *on,
            Order::Healthy(on) => self.healthy = *on,
            Order::Partitions(count) => {
                self.partitions = *count;
                self.weights.retain(|number, _| number < count);
            }
            Order::PartitionWeight(number, weight) => {
                self.weights.insert(*number, *weight);
            }
            Order::Slow(on) => self.slow = *on,
            Order::Weather(weather) => self.weather = *weather,
            Order::Weight(weight) => self.weight = *weight,
            Order::Zone(zone) => self.zone.clone_from(zone),
            Order::Stop { .. } => {}
        }
    }

    /// All partitions, with what they weigh.
    pub(crate) fn listed(&self) -> Result<Partitions, Error> {
        let each = (0..self.partitions).map(|number| {
            let weight = self.weights.get(&number).copied().unwrap_or(1.0);
            let inside = (weight * UNIT).round().max(1.0) as i64;
            Partition::shard(&self.group, number)?.with_weight(inside)
        });
        Partitions::new(each.collect::<Result<Vec<_>, _>>()?)
    }
}

/// What a member is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    Broken(bool),
    Healthy(bool),
    Partitions(u32),
    PartitionWeight(u32, f64),
    Slow(bool),
    Stop { keep_ms: Option<u64> },
    Weather(Weather),
    Weight(f64),
    Zone(Option<String>),
}

/// An order with a number, by which it is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) order: Order,
}

/// What a member says. Times are nanoseconds of the clock that all processes of
/// a machine share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// An order was followed, or refused.
    Done {
        number: u64,
        refused: Option<String>,
    },
    /// A start hook was called; the grant is current until then.
    Starting {
        at: u64,
        partition: u32,
        token: i64,
        until: u64,
    },
    /// A start hook returned.
    Started {
        at: u64,
        partition: u32,
        failed: bool,
    },
    /// A stop hook was called.
    Stopping { at: u64, partition: u32 },
    /// A stop hook returned.
    Stopped { at: u64, partition: u32 },
    /// In leader mode, all grants are current until then; nothing ends them.
    Deadline {
        at: u64,
        identity: Option<(String, String)>,
        until: Option<u64>,
    },
    /// In lease mode, these grants are.
    Deadlines {
        at: u64,
        partitions: Vec<u32>,
        until: Option<u64>,
    },
    /// What it is doing, in a word.
    State { state: String },
    /// Something went wrong that it survives.
    Trouble { text: String },
}

/// The next line, without its end; nothing if there is no more. A longer one is
/// an error.
pub(crate) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    bytes_max: usize,
) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut limited = reader.take(bytes_max as u64);
    limited.read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => String::from_utf8(line)
            .map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        // Who is killed may end in the middle of a line.
        Some(_) if line.len() + 1 < bytes_max => Ok(None),
        Some(_) => {
            let text = format!("a line of over {bytes_max} bytes");
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_with_the_stream_and_are_bounded() {
        let mut all = &b"one\ntwo\nhal"[..];
        assert_eq!(next_line(&mut all, 8).await.unwrap().unwrap(), "one");
        assert_eq!(next_line(&mut all, 8).await.unwrap().unwrap(), "two");
        assert_eq!(next_line(&mut all, 8).await.unwrap(), None, "cut off");
        let mut long = &b"far too long\n"[..];
        let error = next_line(&mut long, 8).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn what_is_said_is_read_as_it_was_meant() {
        let all = [
            Said::Starting {
                at: 1,
                partition: 7,
                token: 1 << 53,
                until: 9,
            },
            Said::Deadline {
                at: 2,
                identity: Some(("worker-0".into(), "ff".into())),
                until: None,
            },
        ];
        for said in all {
            let line = serde_json::to_string(&said).unwrap();
            assert_eq!(serde_json::from_str::<Said>(&line).unwrap(), said, "{line}");
        }
    }
}
