//! Calling hooks, and what becomes of those that fail or do not end.

use super::Member;
use super::operations::Purpose;
use super::tenure::{Phase, Tenure};
use super::timers::Timer;
use crate::leader::{HookEnd, HookId, Overdue};
use crate::lease::action::{Action, Operation, StopReason, TenureId};
use crate::lease::defect::Defect;
use crate::moment::Moment;
use crate::store::Claim;

/// Of many hooks that are overdue at once, so many are named.
const OVERDUE_TOLD: usize = 8;

impl Member {
    /// A tenure has to end: its partition stops first.
    pub(super) fn stop_tenure(&mut self, id: TenureId, reason: StopReason) {
        let Some(tenure) = self.tenures.get_mut(id) else {
            return;
        };
        tenure.stop.get_or_insert(reason);
        match tenure.phase() {
            Phase::Running => {}
            // It waits for its turn, maybe behind starts that hang: without a
            // grant it is not called, and ends at once.
            Phase::Starting(_, None) => return self.void(vec![id]),
            // Hooks of a partition never overlap: the start has to end first.
            _ => return,
        }
        if reason == StopReason::Lost && self.is_planted(Defect::StopNotCalled) {
            return;
        }
        self.call_stop(id);
    }

    fn call_stop(&mut self, id: TenureId) {
        let hook = self.tenures.call(id);
        let since = (!self.setup.hooks_wait).then_some(self.now);
        let deadline = self.now + self.setup.settings.stop_deadline;
        let is_early = self.is_planted(Defect::ReleaseBeforeStop);
        let Some(tenure) = self.tenures.get_mut(id) else {
            return;
        };
        tenure.is_reported = false;
        let claim = Claim {
            key: tenure.key.clone(),
            nonce: tenure.nonce,
        };
        self.actions.push_back(Action::StopPartition {
            id: hook,
            tenure: id,
            key: tenure.key.clone(),
            reason: tenure.stop.unwrap_or(StopReason::Lost),
            deadline,
        });
        self.tenures.turn(id, Phase::Stopping(hook, since));
        if is_early {
            let operation = Operation::Release {
                claims: vec![claim],
            };
            let timeout = self.setup.settings.renewal_try();
            self.send(Purpose::Release(vec![id]), operation, timeout);
        }
        if self.is_planted(Defect::StartBeforeStopped) {
            self.tenures.turn(id, Phase::Stopped);
        }
        self.watch_hook(id);
    }

    pub(super) fn hook_ended(&mut self, hook: HookId, end: HookEnd) {
        let Some(id) = self.tenures.hook_ended(hook) else {
            return;
        };
        let keeps_failed = self.is_planted(Defect::KeepFailedStart);
        let Some(tenure) = self.tenures.get_mut(id) else {
            return;
        };
        match tenure.phase() {
            Phase::Starting(known, since) if known == hook => match end {
                HookEnd::Failed if !keeps_failed => {
                    // One that was not called says nothing of the application.
                    tenure.has_failed = since.is_some();
                    self.tenures.turn(id, Phase::Stopped);
                }
                _ => {
                    let (unit, has_to_stop) = (tenure.unit, tenure.stop.is_some());
                    // It started after all: what it was waited for is known.
                    tenure.is_unconfirmed = false;
                    let is_forgotten = tenure.is_lost && self.is_planted(Defect::StopNotCalled);
                    self.tenures.turn(id, Phase::Running);
                    let unit = self.units.get_mut(unit);
                    unit.failures = 0;
                    unit.not_before = None;
                    if has_to_stop && !is_forgotten {
                        self.call_stop(id);
                    }
                }
            },
            Phase::Stopping(known, _) if known == hook => self.tenures.turn(id, Phase::Stopped),
            _ => {}
        }
    }

    /// When a hook is overdue, if it does not end; and when it is so long
    /// overdue that the process must end.
    fn bounds_of(&self, tenure: &Tenure) -> Option<(Moment, Moment)> {
        let settings = &self.setup.settings;
        let bound = match tenure.phase() {
            Phase::Starting(..) => settings.start_deadline,
            _ => settings.stop_deadline,
        };
        let since = tenure.hook_since()?;
        Some((since + bound, since + bound * 2))
    }

    /// When the lease of a hook that does not end is no longer renewed, if that
    /// is so and has not happened yet. A start hook that is overdue tries to
    /// have stopped what it may have started.
    fn unconfirmed_at(&self, tenure: &Tenure) -> Option<Moment> {
        let settings = &self.setup.settings;
        let timeout = settings.stop_confirm_timeout?;
        let since = tenure.hook_since()?;
        let stops_from = match tenure.phase() {
            Phase::Starting(..) => since + settings.start_deadline,
            _ => since,
        };
        (!tenure.is_unconfirmed).then_some(stops_from + timeout)
    }

    /// The hook of this tenure is looked at when it is overdue. Hooks that end
    /// before are passed over then: with thousands of them, looking at all
    /// whenever one ends would take longer than they do.
    pub(super) fn watch_hook(&mut self, id: TenureId) {
        let bounds = self
            .tenures
            .get(id)
            .and_then(|tenure| self.bounds_of(tenure));
        if let Some((overdue, _)) = bounds {
            self.timers.set_earlier(Timer::Hooks, overdue);
        }
    }

    fn set_hook_timer(&mut self) {
        let aborts = self.setup.settings.overdue == Overdue::Abort;
        let next = self.tenures.iter().filter_map(|tenure| {
            let (overdue, too_long) = self.bounds_of(tenure)?;
            let next = match (tenure.is_reported, aborts) {
                (false, _) => Some(overdue),
                // Once that is said, nothing is left to say.
                (true, true) => Some(too_long).filter(|end| *end > self.now),
                (true, false) => None,
            };
            next.into_iter().chain(self.unconfirmed_at(tenure)).min()
        });
        let next = next.min();
        self.timers.put(Timer::Hooks, next);
    }

    pub(super) fn look_at_hooks(&mut self) {
        let now = self.now;
        let aborts = self.setup.settings.overdue == Overdue::Abort;
        let mut overdue = Vec::new();
        let mut too_long = None;
        for tenure in self.tenures.iter() {
            let Some((reported, ended)) = self.bounds_of(tenure) else {
                continue;
            };
            if aborts && ended <= now {
                too_long = Some(tenure.key.to_string());
            }
            if reported <= now && !tenure.is_reported {
                overdue.push((tenure.id, tenure.key.to_string(), tenure.phase()));
            }
        }
        for (id, ..) in &overdue {
            if let Some(tenure) = self.tenures.get_mut(*id) {
                tenure.is_reported = true;
            }
        }
        let more = overdue.len().saturating_sub(OVERDUE_TOLD);
        for (_, key, phase) in overdue.into_iter().take(OVERDUE_TOLD) {
            let hook = match phase {
                Phase::Starting(..) => "start",
                _ => "stop",
            };
            self.problem(format!("the {hook} hook of {key} is overdue"));
        }
        if more > 0 {
            self.problem(format!("hooks of {more} more partitions are overdue"));
        }
        self.leave_unconfirmed();
        if let Some(key) = too_long {
            let why = format!("a hook of {key} has taken twice its deadline");
            self.actions.push_back(Action::Abort(why));
        }
        self.set_hook_timer();
    }

    /// Leases of stops that nobody confirms are left to expire.
    fn leave_unconfirmed(&mut self) {
        let due = self.tenures.iter().filter(|tenure| {
            self.unconfirmed_at(tenure)
                .is_some_and(|due| due <= self.now)
        });
        let due: Vec<(TenureId, String)> = due
            .map(|tenure| (tenure.id, tenure.key.to_string()))
            .collect();
        if due.is_empty() {
            return;
        }
        for (id, _) in &due {
            if let Some(tenure) = self.tenures.get_mut(*id) {
                tenure.is_unconfirmed = true;
            }
        }
        let named: Vec<&str> = due.iter().map(|(_, key)| &**key).collect();
        let (named, rest) = named.split_at(named.len().min(OVERDUE_TOLD));
        let more = match rest.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let timeout = self.setup.settings.stop_confirm_timeout;
        self.problem(format!(
            "stop not confirmed within {:?}: {}{more}; the leases are no longer renewed, and \
             others take over when they have expired",
            timeout.unwrap_or_default(),
            named.join(", ")
        ));
        // Those who look on are told which.
        self.beat();
    }
}
