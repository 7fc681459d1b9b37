//! Calling hooks, and what becomes of those that fail or do not end.

use super::Member;
use super::timers::Timer;
use super::work::{Need, Phase};
use crate::leader::action::{Action, HookId, Report};
use crate::leader::defect::Defect;
use crate::leader::event::HookEnd;
use crate::leader::settings::Overdue;
use crate::moment::Moment;

/// Of many hooks that are overdue at once, so many are named.
const OVERDUE_TOLD: usize = 8;

impl Member {
    /// Starts and stops what has to be, as far as hooks that still run allow.
    pub(super) fn work_on(&mut self) {
        if !self.work.is_changed() {
            return;
        }
        if self.defect == Some(Defect::StartBeforeStopped) {
            self.forget_stops();
        }
        let now = self.clock.now;
        let since = (!self.setup.hooks_wait).then_some(now);
        let begun = self.work.begin(self.may_work(), now, since);
        let settings = &self.setup.settings;
        let (start, stop) = (settings.start_deadline, settings.stop_deadline);
        for (id, partition, need) in begun {
            let deadline = now + if need == Need::Stop { stop } else { start };
            if since.is_some() {
                self.timers.set_earlier(Timer::Hooks, deadline);
            }
            self.actions.push_back(match need {
                Need::Start(token) => Action::StartPartition {
                    id,
                    partition,
                    token,
                },
                Need::Stop => Action::StopPartition {
                    id,
                    partition,
                    deadline,
                },
            });
        }
        // Whoever may not work looks again when it may.
        match self.work.next_retry().filter(|_| self.may_work()) {
            Some(retry) => self.timers.set(Timer::Restart, retry),
            None => self.timers.cancel(Timer::Restart),
        }
    }

    fn forget_stops(&mut self) {
        let is_stopping = |phase| matches!(phase, Phase::Stopping { .. });
        let slots = self.work.iter();
        let names: Vec<_> = slots
            .filter(|slot| slot.granted.is_some() && is_stopping(slot.phase))
            .map(|slot| slot.partition.clone())
            .collect();
        for partition in names {
            self.work.abandon(partition.as_str());
        }
    }

    /// A hook had to wait for its turn, and begins now.
    pub(super) fn hook_begun(&mut self, id: HookId) {
        let now = self.clock.now;
        let settings = &self.setup.settings;
        let limit = match self.work.hook_begun(id, now) {
            Some(true) => settings.stop_deadline,
            Some(false) => settings.start_deadline,
            None => return,
        };
        self.timers.set_earlier(Timer::Hooks, now + limit);
    }

    pub(super) fn hook_ended(&mut self, id: HookId, end: HookEnd) {
        let retry = self.clock.now + self.setup.settings.heartbeat_interval;
        let failed = end == HookEnd::Failed;
        let Some((slot, before)) = self.work.hook_ended(id, failed, retry) else {
            return;
        };
        let was_start = matches!(before, Phase::Starting { .. });
        let revoked = slot.granted.is_none();
        if failed {
            let kind = if was_start { "start" } else { "stop" };
            let text = format!("the {kind} hook of {} failed", slot.partition);
            self.report(Report::Problem(text.into()));
        }
        if revoked && (!was_start || failed) {
            self.acknowledge();
        }
    }

    /// Something was given back: says so, at once if nothing else is on its
    /// way, else with what ends in a moment.
    pub(super) fn acknowledge(&mut self) {
        if self.work.stop_hooks_running() > 0 {
            let soon = self.clock.now + self.setup.settings.heartbeat_interval / 4;
            self.timers.set_earlier(Timer::Renew, soon);
        } else {
            self.renew();
        }
    }

    /// Reports hooks that outlast their deadline, and ends the process for one
    /// that outlasts it twice, if that is the policy.
    pub(super) fn watch_hooks(&mut self) {
        let now = self.clock.now;
        let settings = &self.setup.settings;
        let (start, stop) = (settings.start_deadline, settings.stop_deadline);
        let limit = |phase| match phase {
            Phase::Stopping { .. } => stop,
            _ => start,
        };
        let is_due = |phase: Phase, times: u32| {
            let since = phase.since();
            since.is_some_and(|since| since + limit(phase) * times <= now)
        };
        let late = self.work.overdue(|phase| is_due(phase, 1));
        let abort = settings.overdue == Overdue::Abort;
        let hung = self.work.iter().find(|slot| abort && is_due(slot.phase, 2));
        if let Some(slot) = hung {
            let text = format!("a hook of {} does not end", slot.partition);
            return self.abort(text);
        }
        let next: Option<Moment> = self
            .work
            .iter()
            .filter_map(|slot| {
                let since = slot.phase.since()?;
                let times = 1 + u32::from(slot.reported);
                (times == 1 || abort).then(|| since + limit(slot.phase) * times)
            })
            .min();
        if let Some(next) = next {
            self.timers.set(Timer::Hooks, next);
        }
        let more = late.len().saturating_sub(OVERDUE_TOLD);
        for (partition, phase) in late.into_iter().take(OVERDUE_TOLD) {
            let kind = match phase {
                Phase::Stopping { .. } => "stop",
                _ => "start",
            };
            let text = format!("the {kind} hook of {partition} is overdue");
            self.report(Report::Problem(text.into()));
        }
        if more > 0 {
            let text = format!("{more} more hooks are overdue");
            self.report(Report::Problem(text.into()));
        }
    }

    /// Nothing that this process could do would be safe any more.
    pub(super) fn abort(&mut self, why: String) {
        self.session = None;
        self.is_over = true;
        self.timers.cancel_all();
        self.tell_deadline();
        self.tell_state();
        self.actions.push_back(Action::Abort(why));
    }
}
