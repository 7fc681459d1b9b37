//! Renewing the lease: compare-and-set of the own record, and what its answer
//! proves.
//!
//! A lease counts from when its renewal was *sent*: only that moment is sure
//! to lie before the one at which others saw the record change.

use super::Member;
use super::operations::Purpose;
use super::session::{Attempt, Busy};
use super::timers::Timer;
use crate::leader::defect::Defect;
use crate::leader::event::Reply;
use crate::leader::record::{Life, SessionId, Shutdown, WorkerRecord};
use crate::store::{Entry, Expected, Outcome, Revision, StoreErrorKind};
use crate::worker::Health;

impl Member {
    /// Sends a renewal, unless one is under way: then the next follows it.
    pub(super) fn renew(&mut self) {
        let now = self.clock.now;
        let next = now + self.jittered(self.setup.settings.heartbeat_interval);
        let leaves = self.may_leave();
        let Some(session) = &mut self.session else {
            return;
        };
        if session.busy != Busy::No {
            session.urgent = true;
            return;
        }
        session.beat += 1;
        session.urgent = false;
        session.busy = Busy::Writing;
        let lease = self.setup.settings.heartbeat_ttl;
        let (id, beat) = (session.id, session.beat);
        session.sent(
            Attempt {
                beat,
                sent: now,
                leaves,
            },
            lease,
        );
        let (key, revision) = (session.key.clone(), session.revision);
        let value = self.own_record(leaves).encode();
        let timeout = self.setup.settings.renewal_try();
        self.write_within(
            key,
            Expected::At(revision),
            value,
            Purpose::Renew(id, beat),
            timeout,
        );
        self.timers.set(Timer::Renew, next);
    }

    /// What this worker says of itself now. Whoever has more to stop than can
    /// be named waits with the acknowledgement.
    fn own_record(&mut self, leaves: bool) -> WorkerRecord {
        let session = self.session.as_mut().expect("only a session has a record");
        let giving_back = self.work.iter().filter(|slot| slot.is_giving_back());
        let mut stopping: Vec<u64> = giving_back.map(|slot| slot.hash).collect();
        if self.defect == Some(Defect::ReleaseBeforeStop) {
            stopping.clear();
        }
        let batches = self.setup.batches;
        if self.defect == Some(Defect::AckBeyondNames) {
            stopping.truncate(batches.stopping);
        }
        if stopping.len() <= batches.stopping {
            session.acked = session
                .adopted
                .map_or(session.acked, |(version, _)| version);
            session.stopping = stopping;
        } else {
            stopping.sort_unstable();
            session
                .stopping
                .retain(|known| stopping.binary_search(known).is_ok());
        }
        let mut unable = self.refusals.current(self.clock.now);
        // Whoever fails with so many is not well itself.
        let health = match unable.len() <= batches.unable {
            true => self.setup.description.health,
            false => Health::Unhealthy,
        };
        unable.truncate(batches.unable);
        let life = match (leaves, self.stopping) {
            (true, Some(Shutdown::Return { within })) => Life::Left { keep_for: within },
            (true, _) => Life::Left {
                keep_for: std::time::Duration::ZERO,
            },
            (false, _) => Life::Live,
        };
        WorkerRecord {
            instance: self.setup.instance.clone(),
            session: session.id,
            beat: session.beat,
            lease: self.setup.settings.heartbeat_ttl,
            life,
            acked: session.acked,
            stopping: session.stopping.clone(),
            adopted: self.adopted_max,
            token_max: self.token_max,
            health,
            weight: self.setup.description.weight,
            zone: self.setup.description.zone.clone(),
            refresh: self.refresh,
            alarm: self.alarm,
            unable,
            longest: self.lease_max,
        }
    }

    pub(super) fn renewal_answered(&mut self, id: SessionId, beat: u64, reply: Reply) {
        let Some(session) = self.session.as_mut().filter(|session| session.id == id) else {
            return;
        };
        match reply {
            Reply::Written(Outcome::Done(revision)) => {
                session.busy = Busy::No;
                if revision <= session.revision {
                    let sign = "a renewal was acknowledged below an earlier one";
                    return self.store_forgot(sign);
                }
                self.renewal_written(beat, revision);
            }
            Reply::Failed(StoreErrorKind::Unknown) => {
                // Perhaps it was written. The next compare-and-set finds out,
                // and renews at once if not: a store that stalls may be back
                // for less time than a read and a write take.
                session.busy = Busy::No;
                let sent = session.attempt(beat).map(|attempt| attempt.sent);
                let again = sent.unwrap_or(self.clock.now) + self.setup.settings.renewal_retry();
                self.timers
                    .set_earlier(Timer::Renew, again.max(self.clock.now));
            }
            Reply::Written(Outcome::Conflict) => {
                session.busy = Busy::Reading;
                let key = session.key.clone();
                let timeout = self.setup.settings.renewal_timeout();
                self.read_within(key, Purpose::ReadRenewal(id), timeout);
            }
            _failed => {
                session.busy = Busy::No;
                self.retry_renewal();
            }
        }
    }

    fn retry_renewal(&mut self) {
        let retry = self.clock.now + self.setup.settings.renewal_retry();
        self.timers.set_earlier(Timer::Renew, retry);
    }

    pub(super) fn renewal_read(&mut self, id: SessionId, reply: Reply) {
        let Some(session) = self.session.as_mut().filter(|session| session.id == id) else {
            return;
        };
        session.busy = Busy::No;
        match reply {
            Reply::Got(Some(entry)) => self.own_record_found(&entry),
            Reply::Got(None) if session.found_behind() => {
                self.store_forgot("the own record is gone");
            }
            _ => self.retry_renewal(),
        }
    }

    /// What the own record turned out to be after a renewal was not answered,
    /// or lost.
    fn own_record_found(&mut self, entry: &Entry) {
        let session = self.session.as_mut().expect("its record was read");
        let Ok(record) = WorkerRecord::decode(&entry.value) else {
            let text = format!("the own record {} is not readable", session.key);
            self.view.is_known = false;
            return self.end_session(&text);
        };
        let is_mine = record.session == session.id && record.life != Life::Fenced;
        if !is_mine && entry.revision == session.revision {
            return self.store_forgot("a revision of the own record came twice");
        }
        if !is_mine && entry.revision > session.revision {
            if self.defect == Some(Defect::RenewOverForeign) {
                session.written(entry.revision);
                return self.retry_renewal();
            }
            return self.end_session(match record.life {
                Life::Fenced => "it was fenced",
                _ => "the id was claimed by another",
            });
        }
        if entry.revision > session.revision {
            let end = self.authority_end();
            let is_over = end.is_some_and(|end| end <= self.clock.now);
            return match record.life {
                // Whoever leads created it, because it was missing: what was lost
                // may have said that this session was fenced.
                Life::Live if record.beat == 0 && is_over => {
                    self.end_session("its record was lost, and its lease is over");
                }
                Life::Left { .. } if self.is_leaving => self.left(),
                Life::Left { .. } => self.end_session("somebody wrote that it left"),
                _ => self.renewal_written(record.beat, entry.revision),
            };
        }
        if entry.revision < session.revision {
            if session.found_behind() {
                return self.store_forgot("the own record went back");
            }
        } else {
            session.unchanged();
        }
        self.retry_renewal();
    }

    /// The renewal with this beat is known to be written.
    fn renewal_written(&mut self, beat: u64, revision: Revision) {
        let lease = self.setup.settings.heartbeat_ttl;
        let now = self.clock.now;
        let had_ended = self.authority_end().is_some_and(|end| end <= now);
        let session = self.session.as_mut().expect("it was renewed");
        let attempt = session.attempt(beat);
        session.written(revision);
        if let Some(attempt) = attempt {
            let counted = match self.defect {
                Some(Defect::DeadlineFromReply) => now,
                _ => attempt.sent,
            };
            session.until = session.until.max(counted + lease);
            if had_ended && self.defect != Some(Defect::RegainOnRenewal) {
                session.regained = Some(now);
            }
            self.acknowledged(attempt.sent);
            if attempt.leaves {
                return self.left();
            }
        }
        if self.session.as_ref().is_some_and(|session| session.urgent) {
            self.timers.set(Timer::Renew, now);
        }
        self.lease_changed();
    }

    /// A watch showed the own record: a foreign hand on it ends the session
    /// before the next renewal finds out.
    pub(super) fn own_record_seen(&mut self, entry: &Entry) {
        let Some(session) = &self.session else { return };
        if entry.revision <= session.revision {
            return;
        }
        let Ok(record) = WorkerRecord::decode(&entry.value) else {
            return;
        };
        let has_left = matches!(record.life, Life::Left { .. });
        let foreign = record.session != session.id
            || record.life == Life::Fenced
            || (has_left && !self.is_leaving);
        if foreign && self.defect != Some(Defect::RenewOverForeign) {
            self.end_session("the own record was taken");
        }
    }
}
