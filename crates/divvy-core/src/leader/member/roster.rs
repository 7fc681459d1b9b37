//! Who can be given partitions, and what became of those who have some.

use std::time::Duration;

use super::Member;
use super::keys::Keys;
use super::observation::Observed;
use crate::control::Control;
use crate::hash;
use crate::leader::defect::Defect;
use crate::leader::record::{Life, SessionEntry, SessionId};
use crate::moment::Moment;
use crate::store::Revision;
use crate::worker::{Health, WORKERS_MAX, Worker};

/// A session that partitions can be granted to.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) id: Box<str>,
    pub(super) instance: Box<str>,
    pub(super) session: SessionId,
    /// Of the record that shows it.
    pub(super) revision: Revision,
    pub(super) weight: f64,
    zone: Option<Box<str>>,
    /// May be given more.
    pub(super) is_eligible: bool,
    /// May keep what it has.
    pub(super) may_keep: bool,
    /// What it could not start, by the hash of the name, in order.
    unable: Vec<u64>,
}

impl Candidate {
    /// Whether it has said that this partition does not start with it.
    pub(super) fn is_unable(&self, partition: &str) -> bool {
        let name = || hash::bytes64(partition.as_bytes(), 0);
        !self.unable.is_empty() && self.unable.binary_search(&name()).is_ok()
    }

    pub(super) fn to_worker(&self) -> Option<Worker> {
        let worker = Worker::new(self.id.clone())
            .ok()?
            .with_weight(self.weight)
            .ok()?;
        match &self.zone {
            Some(zone) => worker.with_zone(zone.clone()).ok(),
            None => Some(worker),
        }
    }
}

/// What became of a session that the root names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on; its place in the roster.
    Here(usize),
    /// It goes on, but cannot be told anything new.
    Alive,
    /// It is over, and its partitions wait for the same id.
    Kept,
    /// It is over.
    Gone,
    /// Nothing newer than the grant is known.
    Unknown,
}

/// All candidates, in the order of their ids.
#[derive(Debug, Clone)]
pub(super) struct Roster {
    pub(super) candidates: Vec<Candidate>,
}

impl Roster {
    pub(super) fn eligible(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates
            .iter()
            .filter(|candidate| candidate.is_eligible)
    }

    /// Whether this candidate may be given this partition, and can start it as
    /// far as anybody knows.
    pub(super) fn takes(&self, place: usize, partition: &str) -> bool {
        let candidate = &self.candidates[place];
        candidate.is_eligible && !candidate.is_unable(partition)
    }

    /// Those who may be given this partition and can start it.
    pub(super) fn takers(&self, partition: &str) -> impl Iterator<Item = usize> {
        (0..self.candidates.len()).filter(move |place| self.takes(*place, partition))
    }

    /// Whether anybody could not start something.
    pub(super) fn is_anyone_unable(&self) -> bool {
        let mut candidates = self.candidates.iter();
        candidates.any(|candidate| !candidate.unable.is_empty())
    }

    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        self.candidates
            .binary_search_by(|candidate| (*candidate.id).cmp(id))
            .ok()
    }

    /// A number that changes with whoever is eligible and with what they are.
    pub(super) fn fingerprint(&self) -> u64 {
        self.candidates.iter().fold(0, |sum, candidate| {
            let zone = candidate.zone.as_deref().unwrap_or_default();
            let mut seed = hash::bytes64(candidate.id.as_bytes(), sum);
            seed = hash::bytes64(zone.as_bytes(), seed);
            seed = candidate
                .unable
                .iter()
                .fold(seed, |seed, partition| hash::mix64(seed ^ *partition));
            let flags = u64::from(candidate.is_eligible) << 1 | u64::from(candidate.may_keep);
            hash::mix64(seed ^ candidate.weight.to_bits() ^ flags)
        })
    }
}

impl Member {
    /// Everybody who can be given partitions now.
    pub(super) fn roster(&self) -> Roster {
        let nothing = Control::default();
        let control = self
            .leading
            .as_ref()
            .map_or(&nothing, |leading| &leading.control);
        let workers = self.observation.workers();
        let mut candidates: Vec<Candidate> = workers
            .filter(|observed| self.is_candidate(observed))
            .map(|observed| {
                let record = &observed.record;
                let is_able = record.health == Health::Healthy && record.weight > 0.0;
                let may_keep = is_able && !control.drained.contains(&*observed.id);
                Candidate {
                    id: observed.id.clone(),
                    instance: record.instance.clone(),
                    session: record.session,
                    revision: observed.revision,
                    weight: record.weight,
                    zone: record.zone.clone(),
                    is_eligible: may_keep && !control.cordoned.contains(&*observed.id),
                    may_keep,
                    unable: record.unable.clone(),
                }
            })
            .collect();
        candidates.sort_by(|a, b| a.id.cmp(&b.id));
        // A root that named more could not be read.
        candidates.truncate(WORKERS_MAX);
        // If nobody is healthy, nobody is drained.
        if candidates.iter().all(|candidate| !candidate.is_eligible) {
            for candidate in &mut candidates {
                candidate.may_keep = true;
            }
        }
        Roster { candidates }
    }

    fn is_candidate(&self, observed: &Observed) -> bool {
        let record = &observed.record;
        let first = self.defect == Some(Defect::GrantOnFirstBeat);
        record.life == Life::Live && (record.beat > 1 || first)
    }

    /// What became of a session, by facts that will not change any more.
    pub(super) fn fate(&self, entry: &SessionEntry, roster: &Roster) -> Fate {
        let Some(observed) = self.observation.get(&Keys::worker(&entry.worker)) else {
            return Fate::Unknown;
        };
        let record = &observed.record;
        if record.session == entry.session && record.life == Life::Live {
            return match roster.place_of(&entry.worker) {
                Some(place) => Fate::Here(place),
                None => Fate::Alive,
            };
        }
        if !observed.is_readable && self.defect != Some(Defect::TrustScribbles) {
            // Its lease may not be over; when it is, it is fenced.
            return Fate::Unknown;
        }
        let is_newer = observed.revision > entry.seen || self.defect == Some(Defect::IgnoreSeen);
        if !is_newer {
            return Fate::Unknown;
        }
        match observed.kept_until(self.setup.settings.grace) {
            Some(until) if until > self.clock.now => Fate::Kept,
            Some(_) => Fate::Gone,
            // Another session of that id, which will be eligible in a moment.
            None if roster.place_of(&entry.worker).is_none() => Fate::Kept,
            None => Fate::Gone,
        }
    }

    /// When the next of the kept partitions is no longer kept.
    pub(super) fn next_release(&self, sessions: &[SessionEntry]) -> Option<Moment> {
        let grace = self.setup.settings.grace;
        let ends = sessions.iter().filter_map(|entry| {
            let observed = self.observation.get(&Keys::worker(&entry.worker))?;
            observed.kept_until(grace)
        });
        ends.filter(|until| *until > self.clock.now).min()
    }

    /// The longest lease of these sessions; `before` stands for those whose
    /// record is not known. Members of one cluster need not agree on it.
    pub(super) fn longest_lease(&self, sessions: &[SessionEntry], before: Duration) -> Duration {
        let leases = sessions.iter().map(|entry| {
            let observed = self.observation.get(&Keys::worker(&entry.worker));
            let record = observed.map(|observed| &observed.record);
            let record = record.filter(|record| record.session == entry.session);
            record.map_or(before, |record| record.lease)
        });
        leases.fold(self.setup.settings.heartbeat_ttl, Duration::max)
    }
}
