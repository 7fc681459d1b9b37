//! I9: no unconditional write to a control key.
//!
//! The machine has no word for an unconditional write; what could still go
//! wrong is one that is conditional on whatever happens to be there. So every
//! write to a worker record must be by its session, or by somebody who may
//! take the place of what was there: over nothing, over what has left or was
//! fenced, over what has not changed for as long as the slowest clock takes
//! for a lease, or over a session of the same process that it has ended.
//!
//! A store that has forgotten gives revisions out again, and whoever has not
//! found out may mean the write that had them before: no compare-and-set is
//! proof against that. What is written over such a revision does not count
//! here for a while; what comes of it does, elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::leader::{Life, SessionId, WorkerRecord};
use divvy_core::store::Revision;

use super::grant_condition::slowest;
use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};
use crate::ledger::{Known, Ledger};
use crate::time::TrueTime;

/// For how many excuses revisions that come again are one.
const REPEATED_EXCUSES: u32 = 4;

/// Who began a session.
#[derive(Debug, Clone, Copy)]
struct Begun {
    by: usize,
    /// In which life of its process.
    life: u32,
}

#[derive(Debug, Clone)]
pub(super) struct RightfulWrites {
    /// Who began each session.
    begun: BTreeMap<SessionId, Begun>,
    /// Until when what was seen before the store forgot, and did not say so,
    /// may still be acted on.
    excused: TrueTime,
    excuse: Duration,
    /// The highest revision seen, and the highest that may come again, until
    /// then.
    highest: Option<Revision>,
    repeated: (Option<Revision>, TrueTime),
}

impl RightfulWrites {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            begun: BTreeMap::new(),
            excused: TrueTime::ZERO,
            excuse: bounds.lease * 2,
            highest: None,
            repeated: (None, TrueTime::ZERO),
        }
    }

    fn worker(
        &mut self,
        at: TrueTime,
        (by, life): (usize, u32),
        (ledger, id): (&Ledger, &str),
        after: &WorkerRecord,
    ) -> Result<(), String> {
        let Some(known) = ledger.workers.get(id) else {
            let is_known = self.begun.contains_key(&after.session);
            let deleted = ledger.deleted.get(id).and_then(|deleted| deleted.last());
            let deleted = deleted.map(|known| known.value.session);
            return match after.life {
                // A claim that arrived twice, and a stranger deleted what came
                // of it between.
                Life::Live if deleted == Some(after.session) => Ok(()),
                Life::Fenced if is_known && after.session != SessionId(0) => {
                    Err(format!("m{by} fenced a session that nobody has waited for"))
                }
                // What a stranger had written, in nobody's name.
                Life::Fenced => Ok(()),
                // A record that a root names and the store has lost: it is
                // there again, live and as if never renewed.
                Life::Live if after.beat == 0 && is_known => Ok(()),
                _ => self.begin(at, Begun { by, life }, after),
            };
        };
        if self.is_repeated(at, known) {
            self.begun
                .entry(after.session)
                .or_insert(Begun { by, life });
            return Ok(());
        }
        let before = &known.value;
        let waited = at.since(known.written);
        let expired = waited >= slowest(before.lease) || at < self.excused;
        let same = before.session == after.session;
        match (same, before.life, after.life) {
            (true, Life::Live, Life::Fenced) => match expired {
                true => Ok(()),
                false => Err(format!("m{by} fenced a session after only {waited:?}")),
            },
            (true, Life::Live, _) if !self.is_of(&after.session, by, None) => {
                Err(format!("m{by} renewed a session that is not its own"))
            }
            (true, Life::Live, _) if after.beat <= before.beat => Err(format!(
                "m{by} renewed with beat {} after {}",
                after.beat, before.beat
            )),
            (true, Life::Live, _) => Ok(()),
            // A stranger wrote over it meanwhile.
            (true, Life::Fenced, Life::Fenced) => Ok(()),
            (true, life, _) => Err(format!("m{by} wrote to its session that is {life:?}")),
            // What a stranger had written was fenced in nobody's name.
            (false, life, Life::Fenced) if expired || life != Life::Live => Ok(()),
            // Its end is known where it was: nobody has to wait for that.
            (false, Life::Live, _) if self.is_of(&before.session, by, Some(life)) => {
                self.begin(at, Begun { by, life }, after)
            }
            (false, Life::Live, _) if !expired => Err(format!(
                "m{by} took the place of a live session after only {waited:?}"
            )),
            (false, _, _) => self.begin(at, Begun { by, life }, after),
        }
    }

    /// Whether what was there may have been taken for another write.
    fn is_repeated<T>(&self, at: TrueTime, before: &Known<T>) -> bool {
        let (highest, until) = self.repeated;
        Some(before.revision) <= highest && at < until
    }

    fn is_of(&self, session: &SessionId, by: usize, life: Option<u32>) -> bool {
        let begun = self.begun.get(session);
        begun.is_some_and(|begun| begun.by == by && life.is_none_or(|life| begun.life == life))
    }

    fn begin(&mut self, at: TrueTime, begun: Begun, record: &WorkerRecord) -> Result<(), String> {
        let by = begun.by;
        if self.begun.insert(record.session, begun).is_some() && at >= self.excused {
            return Err(format!("m{by} began a session that there was before"));
        }
        Ok(())
    }
}

impl Invariant for RightfulWrites {
    const NUMBER: &'static str = "I9";
    const PROPERTY: &'static str = "no unconditional write to a control key";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::WorkerWritten {
                by,
                life,
                id,
                record,
                revision,
                ..
            } => {
                self.highest = self.highest.max(Some(revision));
                self.worker(seen.at, (by, life), (seen.ledger, id), record)
                    .map_err(|why| format!("record of {id}: {why}"))
            }
            Fact::LeaderWritten {
                by,
                record,
                revision,
            } => {
                self.highest = self.highest.max(Some(revision));
                let Some(known) = &seen.ledger.leader else {
                    return Ok(());
                };
                let before = &known.value;
                let same = before.session == record.session && before.epoch == record.epoch;
                let repeated = self.is_repeated(seen.at, known);
                match same || record.epoch > before.epoch || repeated {
                    true => Ok(()),
                    false => Err(format!(
                        "m{by} leads with epoch {} after {}",
                        record.epoch, before.epoch
                    )),
                }
            }
            Fact::Forgot { announced: false } => {
                self.excused = seen.at + self.excuse;
                self.repeated = (self.highest, seen.at + self.excuse * REPEATED_EXCUSES);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
