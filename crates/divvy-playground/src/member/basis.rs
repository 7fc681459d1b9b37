//! What a member of either kind stands on: its habits, its voice, the sky over
//! its store, and how it is seen once it has begun.

use std::fmt::Display;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use divvy::store::{StoreError, StoreErrorKind};

use super::Habits;
use super::hooks::Work;
use super::line::Said;
use super::mouth::Mouth;
use super::weather::Sky;

/// Events that wait to be said.
pub(super) const EVENTS_MAX: usize = 4096;
/// How long a start that failed waits for the next.
const AGAIN: Duration = Duration::from_millis(500);

pub(super) struct Basis<V> {
    pub(super) habits: Habits,
    pub(super) mouth: Mouth,
    pub(super) sky: Sky,
    view: Mutex<Option<V>>,
}

impl<V: Clone> Basis<V> {
    pub(super) fn new(habits: Habits, mouth: Mouth, sky: &Sky) -> Self {
        Self {
            habits,
            mouth,
            sky: sky.clone(),
            view: Mutex::default(),
        }
    }

    /// What it does with its partitions.
    pub(super) fn work(&self) -> Work {
        Work {
            habits: self.habits.clone(),
            mouth: self.mouth.clone(),
        }
    }

    /// From now on it is seen like this.
    pub(super) fn show(&self, view: V) {
        let mut slot = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(view);
    }

    /// How it is seen, if it has begun.
    pub(super) fn view(&self) -> Option<V> {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        view.clone()
    }

    /// Opens a store, again and again while it cannot be reached.
    pub(super) async fn reach<S, F>(&self, open: impl FnMut() -> F) -> Result<S, String>
    where
        F: Future<Output = Result<S, StoreError>>,
    {
        self.persist(open, |error| error.kind() == StoreErrorKind::Unavailable)
            .await
    }

    /// Starts something again and again until it works, or cannot.
    pub(super) async fn persist<T, E, F>(
        &self,
        mut attempt: impl FnMut() -> F,
        may_help: impl Fn(&E) -> bool,
    ) -> Result<T, String>
    where
        E: Display,
        F: Future<Output = Result<T, E>>,
    {
        loop {
            match attempt().await {
                Ok(started) => return Ok(started),
                Err(error) if may_help(&error) => {
                    self.mouth.say(&Said::Trouble {
                        text: error.to_string(),
                    });
                }
                Err(error) => return Err(error.to_string()),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}
