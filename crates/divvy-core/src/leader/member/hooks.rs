//! Calling hooks, and what becomes of those that fail or do not end.

use super::Member;
use super::refusals::doubled;
use super::timers::Timer;
use super::work::{Need, Phase, Slot};
use crate::leader::action::{Action, HookId, Report};
use crate::leader::defect::Defect;
use crate::leader::event::HookEnd;
use crate::leader::settings::Overdue;
use crate::partition::Partition;

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
        let hooks_max = self.setup.batches.hooks;
        let begun = self.work.begin(self.may_work(), now, since, hooks_max);
        let settings = &self.setup.settings;
        let (start, stop) = (settings.start_deadline, settings.stop_deadline);
        for (id, partition, need) in begun {
            let deadline = now + if need == Need::Stop { stop } else { start };
            if since.is_some() {
                self.timers.set_earlier(Timer::Hooks, deadline);
            }
            self.actions.push_back(match need {
                Need::Withdraw(id) => Action::WithdrawStart(id),
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
        match self.work.next_retry(now).filter(|_| self.may_work()) {
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
        let now = self.clock.now;
        let settings = &self.setup.settings;
        let (interval, longest) = (settings.heartbeat_interval, settings.start_backoff_max);
        let attempts = settings.start_attempts;
        let retry = |failures: u32| now + doubled(interval, failures - 1, longest);
        if self.defect == Some(Defect::ReuseOldStart) {
            self.work.reuse_start(id);
        }
        let Some((slot, before)) = self.work.hook_ended(id, end, retry) else {
            return;
        };
        let was_start = matches!(before, Phase::Starting { .. });
        let revoked = slot.granted.is_none();
        let (partition, hash, failures) = (slot.partition.clone(), slot.hash, slot.failures);
        let kind = if was_start { "start" } else { "stop" };
        match end {
            HookEnd::Done => {}
            // It was not called: nothing has failed.
            HookEnd::Failed if before.since().is_none() => {}
            HookEnd::Failed => self.report(Report::Problem(
                format!("the {kind} hook of {partition} failed").into(),
            )),
            HookEnd::Cancelled => self.report(Report::Problem(
                format!("the {kind} hook of {partition} was ended, because it took too long")
                    .into(),
            )),
        }
        if was_start && end == HookEnd::Done && self.refusals.remove(hash, now) {
            self.renew_soon();
        }
        if was_start && (end == HookEnd::Cancelled || failures >= attempts) {
            self.give_up(&partition, hash);
        }
        if revoked && (!was_start || end == HookEnd::Failed) {
            self.acknowledge();
        }
    }

    /// Others shall have a partition that does not start here, if there are
    /// any.
    fn give_up(&mut self, partition: &Partition, hash: u64) {
        let backoff = self.setup.settings.start_backoff();
        let Some(lasts) = self.refusals.add(hash, self.clock.now, backoff) else {
            return;
        };
        let text = format!("{partition} does not start here: others may have it for {lasts:?}");
        self.report(Report::Problem(text.into()));
        self.renew_soon();
    }

    /// Says something of itself before the next heartbeat, with what follows in
    /// a moment.
    fn renew_soon(&mut self) {
        if self.session.is_some() {
            let soon = self.clock.now + self.setup.settings.heartbeat_interval / 4;
            self.timers.set_earlier(Timer::Renew, soon);
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

    /// Reports hooks that outlast their deadline, gives up what does not start
    /// in time and ends it later, and ends the process for a hook that goes on
    /// even then, if that is the policy.
    pub(super) fn watch_hooks(&mut self) {
        let now = self.clock.now;
        let settings = &self.setup.settings;
        let (start, stop) = (settings.start_deadline, settings.stop_deadline);
        let due_at = |phase: Phase, times: u32| {
            let limit = match phase {
                Phase::Stopping { .. } => stop,
                _ => start,
            };
            phase.since().map(|since| since + limit * times)
        };
        let is_due = |phase, times| due_at(phase, times).is_some_and(|due| due <= now);
        let late = self.work.overdue(is_due);
        let abort = settings.overdue == Overdue::Abort;
        let is_hung = |slot: &&Slot| {
            let reminders = slot.phase.reminders();
            slot.reminded == reminders && is_due(slot.phase, reminders + 1)
        };
        let hung = self.work.iter().find(is_hung).filter(|_| abort);
        if let Some(slot) = hung {
            let text = format!("a hook of {} does not end", slot.partition);
            return self.abort(text);
        }
        let next = self.work.iter().filter_map(|slot| {
            let has_more = abort || slot.reminded < slot.phase.reminders();
            due_at(slot.phase, slot.reminded + 1).filter(|_| has_more)
        });
        if let Some(next) = next.min() {
            self.timers.set(Timer::Hooks, next);
        }
        self.hooks_late(&late);
    }

    fn hooks_late(&mut self, late: &[Slot]) {
        let told: Vec<&Slot> = late.iter().filter(|slot| slot.reminded == 1).collect();
        for slot in told.iter().take(OVERDUE_TOLD) {
            let kind = match slot.phase {
                Phase::Stopping { .. } => "stop",
                _ => "start",
            };
            let text = format!("the {kind} hook of {} is overdue", slot.partition);
            self.report(Report::Problem(text.into()));
        }
        let more = told.len().saturating_sub(OVERDUE_TOLD);
        if more > 0 {
            let text = format!("{more} more hooks are overdue");
            self.report(Report::Problem(text.into()));
        }
        for slot in late {
            if let Phase::Starting { hook, .. } = slot.phase {
                match slot.reminded {
                    1 => self.give_up(&slot.partition, slot.hash),
                    _ => self.actions.push_back(Action::CancelStart(hook)),
                }
            }
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
