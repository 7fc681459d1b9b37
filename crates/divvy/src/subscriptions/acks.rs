//! Acknowledgements that the server may not have seen.
//!
//! They are sent without waiting for an answer. One that is answered shows that
//! all before it on the same connection were seen; a new connection makes all
//! of them doubtful.

use std::collections::VecDeque;

use async_nats::Subject;

/// Acknowledgements that are repeated on a new connection, at most.
const DOUBTFUL_MAX: usize = 256;

/// The acknowledgements of one partition since the last that was answered.
#[derive(Debug, Default)]
pub(super) struct Acks {
    sent: VecDeque<Subject>,
    connection: u64,
}

impl Acks {
    /// One was sent on this connection.
    pub(super) fn sent(&mut self, subject: Subject) {
        self.sent.push_back(subject);
        if self.sent.len() > DOUBTFUL_MAX {
            self.sent.pop_front();
        }
    }

    /// Those to repeat, if this is another connection than before.
    pub(super) fn doubtful(&mut self, connection: u64) -> Vec<Subject> {
        let is_same = self.connection == connection;
        self.connection = connection;
        match is_same {
            true => Vec::new(),
            false => self.sent.iter().cloned().collect(),
        }
    }

    /// One whose answer shows that all were seen.
    pub(super) fn last(&self) -> Option<Subject> {
        self.sent.back().cloned()
    }

    /// They were all seen.
    pub(super) fn confirmed(&mut self) {
        self.sent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_makes_what_was_not_answered_doubtful() {
        let mut acks = Acks::default();
        assert!(acks.doubtful(1).is_empty());
        acks.sent("a".into());
        acks.sent("b".into());
        assert!(acks.doubtful(1).is_empty());
        assert_eq!(acks.doubtful(2), ["a".into(), "b".into()]);
        assert!(acks.doubtful(2).is_empty());
        assert_eq!(acks.last(), Some("b".into()));
        acks.confirmed();
        assert!(acks.doubtful(3).is_empty() && acks.last().is_none());
    }

    #[test]
    fn their_number_is_bounded() {
        let mut acks = Acks::default();
        for number in 0..2 * DOUBTFUL_MAX {
            acks.sent(number.to_string().into());
        }
        assert_eq!(acks.doubtful(1).len(), DOUBTFUL_MAX);
    }
}
