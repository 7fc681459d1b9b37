//! The source of partitions: what it says, and when to believe it.
//!
//! A source that fails says nothing. One that has lost more than half of its
//! partitions, or all, is asked a second time: a leader that believes a broken
//! source would stop the world.

use std::collections::BTreeMap;

use super::Member;
use super::leading::Leading;
use super::timers::Timer;
use crate::leader::action::{Action, Report};
use crate::leader::record::SessionId;
use crate::moment::Moment;
use crate::partition::Partitions;
use crate::store::Key;

/// What a leader knows of the partitions.
#[derive(Debug, Clone, Default)]
pub(super) struct Source {
    /// What is believed. Nothing until the source was read: then the root's.
    pub(super) believed: Option<Partitions>,
    /// What was said, and has to be said again a while later.
    doubted: Option<(Partitions, Moment)>,
    is_asked: bool,
    /// Counts what was believed, one after another.
    pub(super) generation: u64,
    /// Ask again as soon as the answer is there.
    is_stale: bool,
    /// What will be answered is older than the list in the root.
    is_void: bool,
}

impl Member {
    pub(super) fn ask_source(&mut self) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if leading.source.is_asked {
            leading.source.is_stale = true;
            return;
        }
        leading.source.is_asked = true;
        self.actions.push_back(Action::ListPartitions);
        // Should no answer come, and in any case from time to time.
        let settings = &self.setup.settings;
        let patience = settings.operation_timeout.saturating_mul(2);
        let next = settings
            .partition_poll_interval
            .map_or(patience, |poll| poll.max(patience));
        self.timers.set(Timer::Source, self.clock.now + next);
    }

    /// The timer of the source: the last question counts as lost, if it was
    /// not answered.
    pub(super) fn source_due(&mut self) {
        if let Some(leading) = &mut self.leading {
            leading.source.is_asked = false;
        }
        self.ask_source();
    }

    pub(super) fn source_answered(&mut self, answer: Result<Partitions, String>) {
        let known = self
            .base_committed()
            .map(|committed| committed.partitions.clone());
        let settings = &self.setup.settings;
        let (poll, soon) = (
            settings.partition_poll_interval,
            settings.heartbeat_interval,
        );
        let Some(leading) = &mut self.leading else {
            return;
        };
        let source = &mut leading.source;
        source.is_asked = false;
        if std::mem::take(&mut source.is_void) {
            source.is_stale = false;
            return self.ask_source();
        }
        self.timers.cancel(Timer::Source);
        if let Some(poll) = poll {
            self.timers.set(Timer::Source, self.clock.now + poll);
        }
        match answer {
            Err(why) => {
                self.timers.set(Timer::Source, self.clock.now + soon);
                let text = format!("the source of partitions failed: {why}");
                return self.report(Report::Problem(text.into()));
            }
            Ok(list) => {
                let last_good = source.believed.as_ref().or(known.as_ref());
                let before = last_good.map_or(0, Partitions::len);
                let is_doubtful = list.is_empty() || list.len() * 2 < before;
                if is_doubtful {
                    let now = self.clock.now;
                    let said = source.doubted.take().filter(|(said, _)| *said == list);
                    let since = said.map_or(now, |(_, since)| since);
                    if now < since + soon {
                        source.doubted = Some((list, since));
                        return self.timers.set(Timer::Source, since + soon);
                    }
                }
                source.doubted = None;
                if source.believed.as_ref() != Some(&list) {
                    source.believed = Some(list);
                    source.generation += 1;
                    leading.dirty = true;
                }
            }
        }
        if std::mem::take(&mut leading.source.is_stale) {
            self.ask_source();
        }
    }

    /// Another leader wrote this list: what was read here before may be older
    /// than it, so the source is read again before it is believed.
    pub(super) fn doubt_source(&mut self, list: &Partitions) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let source = &mut leading.source;
        let differs = source
            .believed
            .as_ref()
            .is_none_or(|believed| believed != list);
        if differs && (source.believed.is_some() || source.is_asked) {
            source.believed = None;
            source.doubted = None;
            source.is_void = source.is_asked;
            self.ask_source();
        }
    }

    /// The application knows that partitions have changed: tells the leader,
    /// through the own record if that is another.
    pub(super) fn refresh_requested(&mut self) {
        if self.leading.is_some() {
            self.ask_source();
        }
        // Also where this member leads: it may not any more when the answer
        // comes.
        self.refresh += 1;
        self.renew();
    }

    /// Some of all records may ask for a refresh.
    pub(super) fn answer_refreshes(&mut self) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let workers = self.observation.workers();
        let told: BTreeMap<SessionId, u64> = workers
            .map(|observed| (observed.record.session, observed.record.refresh))
            .collect();
        leading
            .refreshes
            .retain(|session, _| told.contains_key(session));
        let mut is_asked = false;
        for (session, refresh) in told {
            is_asked |= leading.is_refresh(session, refresh);
        }
        if is_asked {
            self.ask_source();
        }
    }

    /// This record may ask for a refresh.
    pub(super) fn answer_refresh(&mut self, key: &Key) {
        let (Some(leading), Some(observed)) = (&mut self.leading, self.observation.get(key)) else {
            return;
        };
        let record = &observed.record;
        if leading.is_refresh(record.session, record.refresh) {
            self.ask_source();
        }
    }
}

impl Leading {
    /// Whether a session that counts so many requests asks for another. What
    /// was asked before this leader's first listing is answered by it.
    fn is_refresh(&mut self, session: SessionId, refresh: u64) -> bool {
        match self.refreshes.insert(session, refresh) {
            Some(known) => refresh > known,
            None => refresh > 0 && self.source.believed.is_some(),
        }
    }
}
