//! Where a message stands in its stream and its consumer.

/// Where a message stood, as its reply subject says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The message's sequence in the stream.
    pub(super) sequence: u64,
    /// The message's number in the consumer, from 1.
    pub(super) number: u64,
    /// How many messages follow at once.
    pub(super) pending: u64,
}

impl Position {
    /// `$JS.ACK.STREAM.CONSUMER.DELIVERIES.SEQUENCE.NUMBER.TIME.PENDING`, or
    /// with domain and account before the stream and perhaps more at the end.
    pub(super) fn parse(reply: &str) -> Option<Self> {
        let rest = reply.strip_prefix("$JS.ACK.")?;
        let parts: Vec<&str> = rest.split('.').collect();
        let numbers = match parts.len() {
            7 => &parts[3..],
            9.. => &parts[5..],
            _ => return None,
        };
        let number = |index: usize| numbers.get(index)?.parse().ok();
        Some(Self {
            sequence: number(0)?,
            number: number(1)?,
            pending: number(3)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_message_is_read_from_both_forms_of_its_reply() {
        let position = Position {
            sequence: 17,
            number: 3,
            pending: 5,
        };
        for reply in [
            "$JS.ACK.KV_b.divvy.1.17.3.1794788063573434177.5",
            "$JS.ACK.hub.ACC.KV_b.divvy.1.17.3.1794788063573434177.5",
            "$JS.ACK.hub.ACC.KV_b.divvy.1.17.3.1794788063573434177.5.token",
        ] {
            assert_eq!(Position::parse(reply).as_ref(), Some(&position), "{reply}");
        }
        for reply in ["", "$JS.ACK.", "_INBOX.a.b", "$JS.ACK.KV_b.divvy.1.x.3.4.5"] {
            assert_eq!(Position::parse(reply), None, "{reply}");
        }
    }
}
