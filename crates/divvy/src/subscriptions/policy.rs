//! What becomes of a message: decided here, done elsewhere.

use std::time::Duration;

use super::settings::SubscriptionSettings;

/// A message that never comes to an end is given out so many times as often as
/// one that fails.
const ENDLESS_FACTOR: u64 = 2;

/// What a message goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    max_deliver: u64,
    delay: Duration,
    delay_max: Duration,
}

/// Whether this worker may still do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The partition is its own.
    Owner,
    /// It is asked back: what runs may end, and nothing begins.
    Leaving,
    /// The grant is over: somebody else may have the message already.
    Over,
}

/// What this process knows of a message that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing.
    New,
    /// It is being handled: the server has waited too long for a sign of it.
    InHand,
    /// It was handled: the server has not heard of that.
    Done,
}

/// What to do with a message that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Arrival {
    Handle,
    AcknowledgeAgain,
    /// What becomes of it is told once.
    Ignore,
    DeadLetter(String),
    GiveBack,
    /// The server gives it to the next owner by itself.
    Abandon,
}

/// How handling a message ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    Failed(String),
    /// There is no use in trying again.
    Poison(String),
    /// It was cut off, because its partition has to be given back.
    Cut,
    /// It was cut off, because the grant is over.
    Stale,
}

/// What to do with a message that was handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Acknowledge,
    Retry(Duration),
    DeadLetter(String),
    GiveBack,
    Abandon,
}

impl Policy {
    pub(super) fn new(settings: &SubscriptionSettings) -> Self {
        Self {
            max_deliver: u64::from(settings.max_deliver),
            delay: settings.redeliver_delay,
            delay_max: settings.redeliver_delay_max,
        }
    }

    /// A message has come, for the `deliveries`-th time.
    pub(super) fn arrived(&self, deliveries: u64, known: Known, standing: Standing) -> Arrival {
        match standing {
            Standing::Over => Arrival::Abandon,
            _ if known == Known::Done => Arrival::AcknowledgeAgain,
            _ if known == Known::InHand => Arrival::Ignore,
            Standing::Leaving => Arrival::GiveBack,
            // What is given back counts as given out, too: so it takes more
            // than `max_deliver`, but not for ever.
            Standing::Owner if deliveries > self.max_deliver * ENDLESS_FACTOR => {
                let before = deliveries - 1;
                Arrival::DeadLetter(format!(
                    "given out {before} times, and never came to an end"
                ))
            }
            Standing::Owner => Arrival::Handle,
        }
    }

    /// Its handler has ended.
    pub(super) fn handled(&self, ended: Ended, deliveries: u64, standing: Standing) -> Verdict {
        match (ended, standing) {
            // Whoever owns the partition now: it is done.
            (Ended::Done, _) => Verdict::Acknowledge,
            (Ended::Stale, _) | (_, Standing::Over) => Verdict::Abandon,
            (Ended::Cut, _) => Verdict::GiveBack,
            (Ended::Poison(why), _) => Verdict::DeadLetter(why),
            (Ended::Failed(why), _) if deliveries >= self.max_deliver => Verdict::DeadLetter(why),
            (Ended::Failed(_), _) => Verdict::Retry(self.delay(deliveries)),
        }
    }

    /// How long a message waits that was given out so often.
    pub(super) fn delay(&self, deliveries: u64) -> Duration {
        let doublings = u32::try_from(deliveries.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
        self.delay.saturating_mul(factor).min(self.delay_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Standing::{Leaving, Over, Owner};

    fn policy() -> Policy {
        let mut settings = SubscriptionSettings::new("orders", "work");
        settings.max_deliver = 3;
        Policy::new(&settings)
    }

    #[test]
    fn delays_double_up_to_their_bound() {
        let delays: Vec<_> = (1..=7).map(|n| policy().delay(n).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(policy().delay(u64::MAX).as_secs(), 30);
    }

    #[test]
    fn a_failing_message_is_retried_and_then_a_dead_letter() {
        let failed = || Ended::Failed("no".to_owned());
        let second = Duration::from_secs(1);
        assert_eq!(policy().handled(failed(), 1, Owner), Verdict::Retry(second));
        assert_eq!(
            policy().handled(failed(), 2, Leaving),
            Verdict::Retry(second * 2)
        );
        let dead = Verdict::DeadLetter("no".to_owned());
        assert_eq!(policy().handled(failed(), 3, Owner), dead);
        assert_eq!(policy().handled(failed(), 9, Leaving), dead);
        let poison = Ended::Poison("no".to_owned());
        assert_eq!(policy().handled(poison, 1, Owner), dead);
    }

    #[test]
    fn a_message_that_takes_every_worker_with_it_does_not_block_for_ever() {
        assert_eq!(policy().arrived(6, Known::New, Owner), Arrival::Handle);
        let dead = policy().arrived(7, Known::New, Owner);
        assert!(matches!(dead, Arrival::DeadLetter(why) if why.contains("6 times")));
    }

    #[test]
    fn what_was_done_is_acknowledged_whoever_owns_it_and_never_done_twice() {
        for standing in [Owner, Leaving, Over] {
            assert_eq!(
                policy().handled(Ended::Done, 1, standing),
                Verdict::Acknowledge
            );
        }
        assert_eq!(
            policy().arrived(2, Known::Done, Owner),
            Arrival::AcknowledgeAgain
        );
        assert_eq!(
            policy().arrived(99, Known::Done, Leaving),
            Arrival::AcknowledgeAgain
        );
    }

    #[test]
    fn what_is_being_handled_is_not_begun_again() {
        for standing in [Owner, Leaving] {
            let arrival = policy().arrived(99, Known::InHand, standing);
            assert_eq!(arrival, Arrival::Ignore);
        }
    }

    #[test]
    fn who_leaves_gives_back_and_who_lost_its_grant_stays_silent() {
        assert_eq!(policy().arrived(1, Known::New, Leaving), Arrival::GiveBack);
        assert_eq!(policy().handled(Ended::Cut, 9, Leaving), Verdict::GiveBack);
        assert_eq!(policy().arrived(1, Known::New, Over), Arrival::Abandon);
        for ended in [
            Ended::Failed("no".to_owned()),
            Ended::Poison("no".to_owned()),
            Ended::Cut,
        ] {
            assert_eq!(policy().handled(ended, 9, Over), Verdict::Abandon);
        }
        assert_eq!(policy().handled(Ended::Stale, 9, Owner), Verdict::Abandon);
    }
}
