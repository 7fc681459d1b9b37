//! Keeping the lead, and giving it up.

use std::time::Duration;

use super::Member;
use super::leading::SentBeat;
use super::operations::Purpose;
use super::timers::Timer;
use crate::leader::action::{Action, Report};
use crate::leader::event::Reply;
use crate::leader::record::{LeaderRecord, Shutdown};
use crate::store::{Expected, Outcome, Revision, StoreErrorKind};

/// Beats in a row that may be lost before the record counts as gone back.
const BEATS_LOST_MAX: u32 = 2;

impl Member {
    /// Renews the lead.
    pub(super) fn beat(&mut self) {
        let beat_interval = self.setup.settings.leader_beat();
        self.timers.set(Timer::Beat, self.clock.now + beat_interval);
        if self.setup.external_election && self.leading.is_some() {
            self.actions.push_back(Action::RequestLeadership);
        }
        let lease = self.setup.settings.leader_lease;
        self.write_lead(lease);
    }

    fn write_lead(&mut self, lease: Duration) {
        let (Some(leading), Some(session)) = (&mut self.leading, &self.session) else {
            return;
        };
        let resigns = lease.is_zero();
        if leading.beat_sent.is_some() && !resigns {
            return;
        }
        leading.beat += 1;
        self.serial += 1;
        let record = LeaderRecord {
            epoch: leading.epoch,
            session: session.id,
            beat: leading.beat,
            lease,
        };
        leading.beat_sent = Some(SentBeat {
            serial: self.serial,
            at: self.clock.now,
            record: record.clone(),
            over: leading.revision,
        });
        let expected = Expected::At(leading.revision);
        let purpose = if resigns {
            Purpose::Resign
        } else {
            Purpose::Beat(self.serial)
        };
        let key = self.keys.leader.clone();
        let timeout = self.setup.settings.renewal_timeout();
        self.write_within(key, expected, record.encode(), purpose, timeout);
    }

    pub(super) fn beat_answered(&mut self, serial: u64, reply: Reply) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let Some(sent) = leading.beat_sent.take_if(|sent| sent.serial == serial) else {
            return;
        };
        match reply {
            Reply::Written(Outcome::Done(revision)) => {
                if revision <= sent.over {
                    return self.store_forgot("a beat was acknowledged below an earlier one");
                }
                // Written over what was behind: that proves it.
                let went_back = leading.went_back.take_if(|found| *found == sent.over);
                // A watch may have shown what came after it before.
                leading.revision = leading.revision.max(revision);
                leading.beats_lost = 0;
                let known = &mut self.election.record;
                if known.as_ref().is_some_and(|(known, _)| *known <= revision) {
                    *known = Some((revision, sent.record));
                }
                self.acknowledged(sent.at);
                if went_back.is_some() {
                    self.suspect("the record of who leads went back");
                }
            }
            Reply::Written(Outcome::Conflict) | Reply::Failed(StoreErrorKind::Unknown) => {
                leading.beats_lost += 1;
                self.read_leader();
            }
            _failed => {}
        }
    }

    /// Gives up the lead, if it is ours, so that nobody has to wait for it.
    pub(super) fn resign(&mut self) {
        if self.leading.is_some() {
            self.write_lead(Duration::ZERO);
            self.stop_leading(match self.stopping {
                Some(Shutdown::Leave | Shutdown::Return { .. }) => "it stops",
                None => "it resigned",
            });
        }
    }

    pub(super) fn stop_leading(&mut self, why: &str) {
        if self.leading.take().is_none() {
            return;
        }
        for timer in [
            Timer::Beat,
            Timer::Fence,
            Timer::Round,
            Timer::Root,
            Timer::Source,
            Timer::Garbage,
        ] {
            self.timers.cancel(timer);
        }
        if self.setup.external_election {
            self.actions.push_back(Action::ReleaseLeadership);
        }
        self.report(Report::LeadingEnded(why.into()));
        self.stand_for_election();
    }

    /// Beats were lost again and again, and the record is behind them: the
    /// store may have gone back. The next beat proves it, or is lost too.
    pub(super) fn lead_went_back(&mut self, found: Option<Revision>) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading.beats_lost < BEATS_LOST_MAX {
            return;
        }
        match found {
            Some(revision) if revision < leading.revision => {
                leading.revision = revision;
                leading.went_back = Some(revision);
                self.election.record = None;
            }
            Some(_) => {}
            None => {
                self.election.record = None;
                self.stop_leading("the record of it is gone");
            }
        }
    }
}
