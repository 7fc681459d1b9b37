//! Requests for messages, and how many each may still bring.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How much longer than the server a request is waited for.
const SLACK: Duration = Duration::from_secs(5);

/// The requests of one partition that are under way, oldest first: servers
/// serve them in that order.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    waiting: VecDeque<Pull>,
    /// How many there have been.
    count: u64,
}

#[derive(Debug)]
struct Pull {
    number: u64,
    left: u32,
    until: Instant,
}

impl Pulls {
    /// The number of a request to be sent now, so that `batch` messages are on
    /// order; nothing while there are enough.
    pub(super) fn wanted(&mut self, batch: u32, now: Instant) -> Option<u64> {
        self.waiting.retain(|pull| pull.until > now);
        let left: u32 = self.waiting.iter().map(|pull| pull.left).sum();
        (left <= batch / 2).then_some(self.count + 1)
    }

    /// That request was sent, and the server keeps it for `lasts`.
    pub(super) fn sent(&mut self, batch: u32, now: Instant, lasts: Duration) {
        self.count += 1;
        self.waiting.push_back(Pull {
            number: self.count,
            left: batch,
            until: now + lasts + SLACK,
        });
    }

    /// A message came.
    pub(super) fn delivered(&mut self) {
        if let Some(first) = self.waiting.front_mut() {
            first.left = first.left.saturating_sub(1);
            if first.left == 0 {
                self.waiting.pop_front();
            }
        }
    }

    /// The server has ended a request.
    pub(super) fn ended(&mut self, number: u64) {
        self.waiting.retain(|pull| pull.number != number);
    }

    /// The server knows of none of them any more.
    pub(super) fn forgotten(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(30);

    #[test]
    fn more_is_asked_for_when_half_has_come() {
        let (mut pulls, now) = (Pulls::default(), Instant::now());
        assert_eq!(pulls.wanted(4, now), Some(1));
        pulls.sent(4, now, LASTS);
        assert_eq!(pulls.wanted(4, now), None);
        pulls.delivered();
        assert_eq!(pulls.wanted(4, now), None);
        pulls.delivered();
        assert_eq!(pulls.wanted(4, now), Some(2));
        pulls.sent(4, now, LASTS);
        assert_eq!(pulls.wanted(4, now), None);
    }

    #[test]
    fn one_at_a_time_is_asked_for_when_none_is_on_order() {
        let (mut pulls, now) = (Pulls::default(), Instant::now());
        pulls.sent(1, now, LASTS);
        assert_eq!(pulls.wanted(1, now), None);
        pulls.delivered();
        assert_eq!(pulls.wanted(1, now), Some(2));
    }

    #[test]
    fn what_the_server_ended_or_forgot_or_never_answered_is_asked_again() {
        let (mut pulls, now) = (Pulls::default(), Instant::now());
        pulls.sent(4, now, LASTS);
        pulls.ended(7);
        assert_eq!(
            pulls.wanted(4, now),
            None,
            "another's end says nothing of it"
        );
        pulls.ended(1);
        assert_eq!(pulls.wanted(4, now), Some(2));
        pulls.sent(4, now, LASTS);
        pulls.forgotten();
        assert_eq!(pulls.wanted(4, now), Some(3));
        pulls.sent(4, now, LASTS);
        assert_eq!(pulls.wanted(4, now + LASTS), None);
        assert_eq!(pulls.wanted(4, now + LASTS + SLACK), Some(4));
    }
}
