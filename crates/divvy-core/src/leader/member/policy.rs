//! When to act: windows hold back first placement and planned moves, and
//! never what a crashed worker held.

use std::time::Duration;

use super::Member;
use super::keys::Keys;
use super::roster::{Fate, Roster};
use super::timers::Timer;
use crate::hash;
use crate::leader::record::{Holding, Life, Lifecycle, Root};
use crate::moment::Moment;

/// Heartbeats without a change of membership after which a start has settled.
const QUIET_BEATS: u32 = 3;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The first workers, or all of them after a restart.
    ColdStart,
    /// More that join, or another change that is planned.
    PlannedScale,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    kind: Kind,
    closes: Moment,
    /// Somebody joined since it opened.
    has_joined: bool,
}

/// What a leader remembers of the changes that it has seen.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    window: Option<Window>,
    /// What the cluster looks like.
    fingerprint: Option<u64>,
    /// When it last changed otherwise than by a loss.
    changed: Moment,
    eligible: usize,
    /// What the cluster looked like when moves were last considered.
    settled: Option<u64>,
    /// When moves were last made for balance alone.
    pub(super) moved: Option<Moment>,
    /// A worker crashed, and what it held is not placed yet.
    pub(super) has_crashed: bool,
    /// When an ordinary life begins after a cold start.
    settles: Option<Moment>,
    /// How many workers held something when everybody restarted.
    expected: usize,
    /// First placement may be made.
    pub(super) may_place: bool,
    /// Moves for balance may be considered.
    pub(super) may_move: bool,
    /// The ordinary life begins.
    pub(super) is_settled: bool,
}

impl Policy {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            window: None,
            fingerprint: None,
            changed: now,
            eligible: 0,
            settled: None,
            moved: None,
            has_crashed: false,
            settles: None,
            expected: 0,
            may_place: false,
            may_move: false,
            is_settled: false,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.window.is_some()
    }

    /// Moves for balance have been considered, and made or found needless.
    pub(super) fn considered(&mut self, moved: Option<Moment>) {
        self.settled = self.fingerprint;
        self.window = None;
        self.may_move = false;
        self.moved = moved.or(self.moved);
    }

    /// Something was placed in a hurry: whether that is balanced is still to be
    /// considered.
    pub(super) fn unsettle(&mut self) {
        self.settled = None;
    }

    /// A root was written: what had to be placed is.
    pub(super) fn placed(&mut self) {
        self.has_crashed = false;
    }

    fn see(&mut self, fingerprint: u64, eligible: usize, now: Moment) {
        if self.fingerprint != Some(fingerprint) {
            self.fingerprint = Some(fingerprint);
            // Nobody waits for more to join because somebody was lost.
            if eligible >= self.eligible {
                self.changed = now;
            }
            // Whoever is back has perhaps lost what it had: that the cluster
            // looks as it did before does not mean that it is balanced.
            self.settled = self.settled.filter(|settled| *settled == fingerprint);
            if let Some(window) = &mut self.window {
                window.has_joined |= eligible > self.eligible;
            }
        }
        self.eligible = eligible;
    }

    fn open(&mut self, kind: Kind, closes: Moment) {
        let is_open = self.window.is_some_and(|window| window.kind == kind);
        if !is_open {
            self.window = Some(Window {
                kind,
                closes,
                has_joined: false,
            });
        }
    }
}

impl Member {
    pub(super) fn membership_changed(&mut self) {
        self.touch();
    }

    pub(super) fn crash_seen(&mut self) {
        if let Some(leading) = &mut self.leading {
            leading.policy.has_crashed = true;
        }
    }

    /// Opens and closes windows, and says when to look again.
    pub(super) fn watch_windows(&mut self) {
        let now = self.clock.now;
        let Some(base) = self.base_committed() else {
            return;
        };
        let roster = self.roster();
        let release = self.next_release(&base.root.sessions);
        let next = match base.root.lifecycle {
            // Also in a quarantine, so that nobody waits for one after the other.
            Lifecycle::ColdStart => self.watch_cold_start(&roster),
            Lifecycle::PostColdStart | Lifecycle::Stable => {
                let due = self.watch_planned(&roster, base.root.lifecycle);
                if self.awaits_return(&base.root, &roster) {
                    self.hold_moves();
                }
                due
            }
        };
        let next = [next, release].into_iter().flatten().min();
        if let Some(next) = next.filter(|next| *next > now) {
            self.timers.set_earlier(Timer::Round, next);
        }
    }

    /// Whether the partitions of somebody wait for them to come back: what the
    /// cluster looks like meanwhile is no reason to move others.
    fn awaits_return(&self, root: &Root, roster: &Roster) -> bool {
        let sessions = root.sessions.iter().enumerate();
        let mut kept = sessions
            .filter(|(_, entry)| self.fate(entry, roster) == Fate::Kept)
            .map(|(index, _)| index as u32);
        kept.any(|index| {
            let holds = |holding: &Holding| {
                matches!(holding, Holding::Held { session, .. } if *session == index)
            };
            root.holdings.iter().any(holds)
        })
    }

    fn hold_moves(&mut self) {
        if let Some(leading) = &mut self.leading {
            leading.policy.may_move = false;
        }
    }

    fn cluster_fingerprint(&self, roster: &Roster) -> u64 {
        let Some(leading) = &self.leading else {
            return 0;
        };
        let revision = leading
            .control_revision
            .map_or(0, |revision| revision.get());
        let believed = leading.source.generation;
        hash::mix64(roster.fingerprint() ^ revision.rotate_left(32) ^ believed)
    }

    fn watch_cold_start(&mut self, roster: &Roster) -> Option<Moment> {
        let now = self.clock.now;
        let fingerprint = self.cluster_fingerprint(roster);
        let settings = &self.setup.settings;
        let quiet: Duration = settings.heartbeat_interval * QUIET_BEATS;
        let length = settings.cold_start_window;
        let expected = settings.expected_workers.map(|count| count as usize);
        let eligible = roster.eligible().count();
        let leading = self.leading.as_mut()?;
        let policy = &mut leading.policy;
        policy.open(Kind::ColdStart, now + length);
        policy.see(fingerprint, eligible, now);
        let window = policy.window?;
        let restarted = policy.expected;
        let is_full = expected.is_some_and(|count| eligible >= count)
            || (restarted > 0 && eligible >= restarted);
        let quiet_at = policy.changed + quiet;
        let is_quiet = now >= quiet_at && (restarted == 0 || window.has_joined);
        let is_over = now >= window.closes || is_full || is_quiet;
        policy.may_place = is_over && eligible > 0;
        policy.may_move = false;
        if policy.may_place {
            return None;
        }
        let quiet_at = Some(quiet_at).filter(|at| *at > now);
        [quiet_at, Some(window.closes)].into_iter().flatten().min()
    }

    fn watch_planned(&mut self, roster: &Roster, lifecycle: Lifecycle) -> Option<Moment> {
        let now = self.clock.now;
        let fingerprint = self.cluster_fingerprint(roster);
        let settings = &self.setup.settings;
        let (length, cooldown) = (settings.planned_scale_window, settings.rebalance_cooldown);
        let restless = self.defect == Some(crate::leader::defect::Defect::MoveForNothing);
        let eligible = roster.eligible().count();
        let leading = self.leading.as_mut()?;
        let policy = &mut leading.policy;
        policy.expected = 0;
        policy.see(fingerprint, eligible, now);
        policy.may_place = true;
        let settles = *policy.settles.get_or_insert(now + length);
        policy.is_settled = lifecycle == Lifecycle::PostColdStart && now >= settles;
        let wait = (lifecycle == Lifecycle::PostColdStart).then_some(settles);
        if policy.settled == Some(fingerprint) && !restless {
            policy.window = None;
            policy.may_move = false;
            return wait;
        }
        policy.open(Kind::PlannedScale, now + length);
        let cooled = policy.moved.map_or(now, |moved| moved + cooldown);
        let due = policy.window?.closes.max(cooled);
        policy.may_move = now >= due;
        if policy.may_move {
            return wait;
        }
        [wait, Some(due)].into_iter().flatten().min()
    }

    /// Whether so many of those who hold something are gone at once that
    /// everybody restarts. Those whose lease is about to end count too: nobody
    /// is fenced at the same moment.
    pub(super) fn is_restart(&mut self) -> bool {
        let Some(base) = self.base_committed() else {
            return false;
        };
        if base.root.lifecycle == Lifecycle::ColdStart || base.root.quarantine {
            return false;
        }
        let mut holds = vec![false; base.root.sessions.len()];
        for holding in &base.root.holdings {
            if let Holding::Held { session, .. } = holding {
                holds[*session as usize] = true;
            }
        }
        let soon = self.clock.now + self.setup.settings.heartbeat_interval;
        let (mut holders, mut gone, mut fenced) = (0_usize, 0_usize, 0_usize);
        for (entry, _) in base
            .root
            .sessions
            .iter()
            .zip(&holds)
            .filter(|(_, holds)| **holds)
        {
            holders += 1;
            let Some(observed) = self.observation.get(&Keys::worker(&entry.worker)) else {
                continue;
            };
            let is_other = observed.is_readable
                && observed.revision > entry.seen
                && observed.record.session != entry.session;
            match observed.record.life {
                Life::Fenced => fenced += 1,
                Life::Live if is_other => fenced += 1,
                Life::Live if observed.over_at(self.lease_max) <= soon => gone += 1,
                Life::Live | Life::Left { .. } => {}
            }
        }
        gone += fenced;
        let ratio = self.setup.settings.restart_detection_ratio;
        let is_restart = fenced > 0 && gone > 1 && gone as f64 >= ratio * holders as f64;
        if let Some(leading) = self.leading.as_mut().filter(|_| is_restart) {
            leading.policy.expected = holders;
            leading.policy.window = None;
        }
        is_restart
    }
}
