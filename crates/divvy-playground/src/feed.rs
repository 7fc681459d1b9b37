//! News for followers: each gets them in order, or is told to load everything
//! again. Nobody's slowness costs memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use crate::engine::News;

/// News that are kept for those who come back.
const KEPT_MAX: usize = 128;
/// News that a follower may be behind.
const BEHIND_MAX: usize = 64;

/// Something to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number; nothing where it is for one follower.
    pub sequence: Option<u64>,
    /// What kind it is: delta or reload.
    pub event: &'static str,
    /// What it says, as JSON.
    pub data: String,
}

impl Message {
    fn of(news: &News) -> Self {
        match news {
            News::Delta(delta) => Self {
                sequence: Some(delta.sequence),
                event: "delta",
                data: serde_json::to_string(delta).expect("deltas have a JSON form"),
            },
            News::Reload { sequence, why } => Self {
                sequence: Some(*sequence),
                event: "reload",
                data: json!({ "why": why }).to_string(),
            },
        }
    }

    fn reload(why: &str) -> Self {
        Self {
            sequence: None,
            event: "reload",
            data: json!({ "why": why }).to_string(),
        }
    }
}

/// Where news go.
#[derive(Debug)]
pub(crate) struct Feed {
    kept: Mutex<VecDeque<Arc<Message>>>,
    sender: Sender<Arc<Message>>,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            kept: Mutex::new(VecDeque::new()),
            sender: channel(BEHIND_MAX).0,
        }
    }

    /// Tells all followers.
    pub(crate) fn tell(&self, news: &News) {
        let message = Arc::new(Message::of(news));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&message));
        // Where nobody follows, nobody has to be told.
        let _ = self.sender.send(message);
    }

    /// Follows from after a number on; from now on if none is given.
    pub(crate) fn follow(&self, after: Option<u64>) -> Follower {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.sender.subscribe();
        let Some(after) = after else {
            let backlog = VecDeque::new();
            return Follower { backlog, receiver };
        };
        let number = |message: &Arc<Message>| message.sequence.unwrap_or(0);
        let newest = kept.back().map_or(after, number);
        let oldest = kept.front().map_or(after + 1, number);
        let is_known = after <= newest && after + 1 >= oldest;
        let backlog = match is_known {
            true => {
                let missed = kept.iter().filter(|message| number(message) > after);
                missed.cloned().collect()
            }
            false => {
                let why = "what was asked for is not known any more";
                VecDeque::from([Arc::new(Message::reload(why))])
            }
        };
        Follower { backlog, receiver }
    }
}

/// Somebody who is told.
#[derive(Debug)]
pub struct Follower {
    backlog: VecDeque<Arc<Message>>,
    receiver: Receiver<Arc<Message>>,
}

impl Follower {
    /// What is next; nothing when there will be nothing more.
    pub async fn next(&mut self) -> Option<Arc<Message>> {
        if let Some(message) = self.backlog.pop_front() {
            return Some(message);
        }
        match self.receiver.recv().await {
            Ok(message) => Some(message),
            Err(RecvError::Closed) => None,
            Err(RecvError::Lagged(_)) => {
                self.receiver = self.receiver.resubscribe();
                let why = "this follower was too slow";
                Some(Arc::new(Message::reload(why)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(sequence: u64) -> News {
        News::Reload {
            sequence,
            why: format!("news {sequence}"),
        }
    }

    #[tokio::test]
    async fn followers_are_told_what_they_missed_and_then_what_comes() {
        let feed = Feed::new();
        for number in 1..=3 {
            feed.tell(&news(number));
        }
        let mut follower = feed.follow(Some(1));
        feed.tell(&news(4));
        for number in 2..=4 {
            let message = follower.next().await.unwrap();
            assert_eq!(message.sequence, Some(number));
        }
    }

    #[tokio::test]
    async fn whoever_asks_for_what_is_not_known_loads_everything_again() {
        let feed = Feed::new();
        for number in 1000..1000 + KEPT_MAX as u64 + 10 {
            feed.tell(&news(number));
        }
        for after in [0, 5, 1008, 100_000] {
            let message = feed.follow(Some(after)).next().await.unwrap();
            assert_eq!(
                (message.sequence, message.event),
                (None, "reload"),
                "{after}"
            );
        }
        let message = feed.follow(Some(1009)).next().await.unwrap();
        assert_eq!(message.sequence, Some(1010));
    }

    #[tokio::test]
    async fn whoever_is_too_slow_loads_everything_again_and_goes_on() {
        let feed = Feed::new();
        let mut follower = feed.follow(None);
        for number in 0..BEHIND_MAX as u64 + 1 {
            feed.tell(&news(number));
        }
        let message = follower.next().await.unwrap();
        assert_eq!((message.sequence, message.event), (None, "reload"));
        feed.tell(&news(500));
        assert_eq!(follower.next().await.unwrap().sequence, Some(500));
    }
}
