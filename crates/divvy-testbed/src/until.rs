//! Waiting for a condition, with a bound: what tests do instead of sleeping.

use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

const INTERVAL: Duration = Duration::from_millis(3);

/// Polls `condition` every few milliseconds until it holds.
///
/// The bound includes a `condition` that itself does not come back, and may be generous: nothing
/// waits longer than it must.
///
/// # Panics
///
/// When `condition` does not hold within `bound`, naming `what` and the caller.
#[track_caller]
pub fn until<C>(bound: Duration, what: &str, mut condition: C) -> impl Future<Output = ()>
where
    C: AsyncFnMut() -> bool,
{
    until_some(bound, what, async move || condition().await.then_some(()))
}

/// Polls `attempt` every few milliseconds until it has an answer, and returns that.
///
/// # Panics
///
/// When `attempt` has no answer within `bound`, naming `what` and the caller.
#[track_caller]
pub fn until_some<T, C>(bound: Duration, what: &str, mut attempt: C) -> impl Future<Output = T>
where
    C: AsyncFnMut() -> Option<T>,
{
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + bound;
        let mut attempts = 0_u64;
        loop {
            let answer = timeout_at(deadline, attempt()).await;
            attempts += 1;
            match answer {
                Ok(Some(answer)) => return answer,
                Ok(None) if Instant::now() < deadline => sleep(INTERVAL).await,
                Ok(None) => panic!("not within {bound:?} ({attempts} attempts): {what}, {caller}"),
                Err(_) => panic!("still not known after {bound:?}: {what}, {caller}"),
            }
        }
    }
}
