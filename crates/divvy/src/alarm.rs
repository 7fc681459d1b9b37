//! A timer on the clock that counts suspends. Timers of the runtime stand still
//! while the machine is suspended, so that a driver would sleep on after it,
//! past the end of its leases.

use std::io;
use std::os::fd::OwnedFd;

use divvy_core::Moment;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

use crate::store::clock::boottime;

/// Wakes a driver.
#[derive(Debug)]
pub(crate) struct Alarm(io::Result<AsyncFd<OwnedFd>>);

impl Alarm {
    /// To be made where it is waited for: inside a runtime.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor changes; this one's does not"
    )]
    pub(crate) fn new() -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags);
        let timer = timer.map_err(io::Error::from).and_then(AsyncFd::new);
        if let Err(error) = &timer {
            tracing::warn!("no timer counts suspends ({error}): they are noticed a second later");
        }
        Self(timer)
    }

    /// Waits until this moment, also if the machine is suspended before it.
    pub(crate) async fn until(&self, at: Moment) {
        // Where each moment has passed already, other tasks have their turn, too.
        tokio::task::coop::consume_budget().await;
        while boottime() < at {
            let waited = match &self.0 {
                Ok(timer) => wait(timer, at).await.is_ok(),
                Err(_) => false,
            };
            if !waited {
                // Later after a suspend, but not never.
                sleep_until(Instant::now() + at.since(boottime())).await;
            }
        }
    }
}

async fn wait(timer: &AsyncFd<OwnedFd>, at: Moment) -> io::Result<()> {
    let at = at.to_origin();
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec {
            tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at.subsec_nanos().into(),
        },
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    let mut ready = timer.readable().await?;
    // Nothing is there to be read if an earlier wait was cancelled.
    let _expirations = rustix::io::read(timer, &mut [0; 8]);
    ready.clear_ready();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The clock of the runtime stands still, as in a suspend.
    #[tokio::test(start_paused = true)]
    async fn an_alarm_does_not_depend_on_the_clock_of_the_runtime() {
        let alarm = Alarm::new();
        let (begun, paused) = (boottime(), Instant::now());
        for ms in [20, 0, 20] {
            alarm.until(boottime() + Duration::from_millis(ms)).await;
        }
        assert!(boottime().since(begun) >= Duration::from_millis(40));
        assert_eq!(paused.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_cancelled_wait_does_not_end_the_next_one() {
        let alarm = Alarm::new();
        let soon = loop {
            let soon = boottime() + Duration::from_millis(20);
            tokio::select! {
                biased;
                // This thread may stand still for longer than that.
                () = alarm.until(soon) => assert!(boottime() >= soon),
                () = tokio::task::yield_now() => break soon,
            }
        };
        while boottime() < soon + Duration::from_millis(5) {
            tokio::task::yield_now().await;
        }
        let later = boottime() + Duration::from_millis(20);
        alarm.until(later).await;
        assert!(boottime() >= later);
    }
}
