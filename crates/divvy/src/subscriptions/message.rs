//! Messages, as handlers get them.

use std::time::{Duration, SystemTime};

use async_nats::HeaderMap;

/// A message of a partition.
#[derive(Debug)]
pub struct Message {
    inner: async_nats::Message,
    position: Position,
}

/// Where a message stood, as the subject of its acknowledgement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// How often it was given out, this time included.
    pub(super) deliveries: u64,
    /// Its sequence in the stream.
    pub(super) sequence: u64,
    /// How many its consumer had given out with it, repetitions included.
    pub(super) number: u64,
    /// When it was stored, in nanoseconds since 1970.
    pub(super) stored: u64,
    /// How many follow.
    pub(super) pending: u64,
}

impl Position {
    /// `$JS.ACK.STREAM.CONSUMER.DELIVERIES.SEQUENCE.NUMBER.TIME.PENDING`, or
    /// with domain and account before the stream and perhaps more at the end.
    fn parse(reply: &str) -> Option<Self> {
        let rest = reply.strip_prefix("$JS.ACK.")?;
        let count = rest.split('.').count();
        let mut numbers = rest.split('.').skip(match count {
            7 => 2,
            9.. => 4,
            _ => return None,
        });
        let mut number = || numbers.next()?.parse().ok();
        Some(Self {
            deliveries: number()?,
            sequence: number()?,
            number: number()?,
            stored: number()?,
            pending: number()?,
        })
    }
}

impl Message {
    /// Nothing if it is no message of a stream.
    pub(super) fn new(inner: async_nats::Message) -> Option<Self> {
        let position = Position::parse(inner.reply.as_deref()?)?;
        Some(Self { inner, position })
    }

    /// Where it was published.
    pub fn subject(&self) -> &str {
        &self.inner.subject
    }

    /// What was published.
    pub fn payload(&self) -> &[u8] {
        &self.inner.payload
    }

    /// A header, if there is one of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.inner.headers.as_ref()?.get(name)?;
        Some(value.as_str())
    }

    /// Its number in the stream: no two messages share one, and it is the same
    /// each time that a message is given out.
    pub fn sequence(&self) -> u64 {
        self.position.sequence
    }

    /// How often it was given out, this time included.
    pub fn deliveries(&self) -> u64 {
        self.position.deliveries
    }

    /// When the server stored it, on the server's clock.
    pub fn stored_at(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.position.stored)
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Where to acknowledge it.
    pub(super) fn reply(&self) -> async_nats::Subject {
        self.inner
            .reply
            .clone()
            .expect("it was read when this was made")
    }

    pub(super) fn headers(&self) -> Option<&HeaderMap> {
        self.inner.headers.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_message_is_read_from_all_forms_of_its_reply() {
        let position = Position {
            deliveries: 2,
            sequence: 17,
            number: 3,
            stored: 1_794_788_063_573_434_177,
            pending: 5,
        };
        for reply in [
            "$JS.ACK.orders.divvy.2.17.3.1794788063573434177.5",
            "$JS.ACK.hub.ACC.orders.divvy.2.17.3.1794788063573434177.5",
            "$JS.ACK.hub.ACC.orders.divvy.2.17.3.1794788063573434177.5.token",
        ] {
            assert_eq!(Position::parse(reply), Some(position), "{reply}");
        }
        for reply in [
            "",
            "$JS.ACK.",
            "_INBOX.a.b",
            "$JS.ACK.o.d.1.x.3.4.5",
            "$JS.ACK.1.2.3.4.5.6.7.8",
        ] {
            assert_eq!(Position::parse(reply), None, "{reply}");
        }
    }
}
