//! How a member reaches its store: made inside of it, so that it is the same for
//! every kind of store.

use std::future::Future;
use std::time::Duration;

use divvy::store::{StoreError, StoreErrorKind};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// How much later a slow store answers: less than the shortest lease of any
/// preset gives a renewal, or nobody could lead.
const SLOW: Duration = Duration::from_millis(50);

/// How a store is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Weather {
    /// As it is.
    Open,
    /// It answers late.
    Slow,
    /// Nothing arrives there, and nothing comes back.
    Cut,
    /// What is sent arrives, and nothing comes back.
    Deaf,
}

/// Whether something was asked or changed: what is not known of it afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    Read,
    Write,
}

impl Nature {
    const fn unanswered(self) -> StoreErrorKind {
        match self {
            Self::Read => StoreErrorKind::Unavailable,
            Self::Write => StoreErrorKind::Unknown,
        }
    }
}

/// The weather of one member, which changes.
#[derive(Debug, Clone)]
pub(super) struct Sky {
    weather: watch::Sender<Weather>,
    /// How long an answer is waited for.
    patience: Duration,
}

impl Sky {
    pub(super) fn new(weather: Weather, patience: Duration) -> Self {
        Self {
            weather: watch::Sender::new(weather),
            patience,
        }
    }

    pub(super) fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    pub(super) fn now(&self) -> Weather {
        *self.weather.borrow()
    }

    /// What is heard of others without having asked.
    pub(super) fn is_heard(&self) -> bool {
        matches!(self.now(), Weather::Open | Weather::Slow)
    }

    /// Waits until something is heard again.
    pub(super) async fn until_heard(&self) {
        let mut weather = self.weather.subscribe();
        let is_heard = |weather: &Weather| matches!(weather, Weather::Open | Weather::Slow);
        let gone = weather.wait_for(is_heard).await.is_err();
        assert!(!gone, "this has the sender");
    }

    /// Carries something to the store and back, as the weather is.
    pub(super) async fn carry<T>(
        &self,
        nature: Nature,
        asked: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let by = Instant::now() + self.patience;
        match self.now() {
            Weather::Cut => return self.lost(nature, by).await,
            Weather::Slow => sleep_until(Instant::now() + SLOW).await,
            Weather::Open | Weather::Deaf => {}
        }
        let answer = asked.await;
        // An answer that is on its way when the line is cut is lost, too.
        match self.is_heard() {
            true => answer,
            false => self.lost(nature, by).await,
        }
    }

    async fn lost<T>(&self, nature: Nature, by: Instant) -> Result<T, StoreError> {
        sleep_until(by).await;
        let text = format_args!("no answer within {:?}", self.patience);
        Err(StoreError::new(nature.unanswered(), text))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn what_is_cut_off_does_not_arrive_and_what_is_deaf_does() {
        let sky = Sky::new(Weather::Open, PATIENCE);
        let arrived = Cell::new(0);
        let write = async || {
            arrived.set(arrived.get() + 1);
            Ok(())
        };
        assert!(sky.carry(Nature::Write, write()).await.is_ok());
        for (weather, arrivals) in [(Weather::Cut, 1), (Weather::Deaf, 2)] {
            sky.set(weather);
            let begun = Instant::now();
            let error = sky.carry(Nature::Write, write()).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unknown);
            assert_eq!((begun.elapsed(), arrived.get()), (PATIENCE, arrivals));
        }
        let error = sky.carry(Nature::Read, write()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "nothing changed");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_lost_if_the_line_is_cut_before_it_comes() {
        let sky = Sky::new(Weather::Open, PATIENCE);
        let cutting = async {
            sky.set(Weather::Cut);
            Ok(())
        };
        assert!(sky.carry(Nature::Write, cutting).await.is_err());
        sky.set(Weather::Slow);
        let begun = Instant::now();
        assert!(sky.carry(Nature::Read, async { Ok(()) }).await.is_ok());
        assert_eq!(begun.elapsed(), SLOW);
    }
}
