//! I4: no grant without a gone, acked or absent predecessor.
//!
//! An entry leaves `Held` or `Revoking`, for whatever else, only when its
//! session is gone, or has acked what it was asked to give back. Both are
//! facts that stay true, so they are looked up in the store as it is when the
//! root is committed. After an amnesia the facts are lost, and time takes
//! their place: the quarantine.

use std::time::Duration;

use divvy_core::hash;
use divvy_core::leader::{Committed, Holding, Life, SessionEntry, Version, WorkerRecord};
use divvy_core::store::Token;

use super::excuse::Excuse;
use super::{Bounds, Invariant};
use crate::clock::RATE_ERROR_MAX_PPM;
use crate::fact::{Fact, Seen};
use crate::ledger::{Known, Ledger};
use crate::time::TrueTime;

/// A quarantine: the epoch that set it tells it from others.
#[derive(Debug, Clone, Copy)]
struct Quarantine {
    epoch: u64,
    /// When a root with it was committed first.
    since: TrueTime,
    /// The longest lease of a live record at that time.
    lease: Duration,
}

impl Quarantine {
    fn of(root: &Committed, seen: &Seen<'_>) -> Self {
        let workers = seen.ledger.workers.values();
        let live = workers.filter(|known| known.value.life == Life::Live);
        Self {
            epoch: root.root.answered,
            since: seen.at,
            lease: live
                .map(|known| known.value.lease)
                .max()
                .unwrap_or_default(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct GrantCondition {
    /// The present quarantine.
    quarantined: Option<Quarantine>,
    /// While what was seen before the store forgot may still be acted on.
    excuse: Excuse,
}

impl GrantCondition {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            quarantined: None,
            excuse: Excuse::new(slowest(bounds.lease) * 2),
        }
    }

    fn compare(&self, seen: &Seen<'_>, root: &Committed) -> Result<(), String> {
        let Some(before) = seen.ledger.root.as_ref().map(|known| &known.value) else {
            let grants = root.root.holdings.iter().any(|h| *h != Holding::None);
            return match grants {
                true => Err("the first root grants, and nobody has waited".to_owned()),
                false => Ok(()),
            };
        };
        if root.root.quarantine {
            // Nothing is granted. That everybody has stopped is what its end
            // waits for.
            let is_held = |holding: &Holding| matches!(holding, Holding::Held { .. });
            return match root.root.holdings.iter().any(is_held) {
                true => Err("a root in quarantine grants".to_owned()),
                false => Ok(()),
            };
        }
        for (index, partition) in before.partitions.iter().enumerate() {
            let name = partition.as_str();
            let after = root.partitions.index_of(name);
            let after = after.map(|index| root.root.holdings[index]);
            let holding = before.root.holdings[index];
            let allowed = match left(before, holding, root, after) {
                None => Ok(()),
                Some((entry, since)) => gone_or_acked(seen.ledger, entry, since, name),
            };
            allowed.map_err(|why| format!("{name} left {holding:?} for {after:?}: {why}"))?;
        }
        if before.root.quarantine {
            self.waited(seen, before)?;
        }
        eligible(seen.ledger, root)
    }

    /// For as long as the slowest clock takes for the longest lease that any
    /// worker had when the quarantine was set, or that its root knows of.
    fn waited(&self, seen: &Seen<'_>, before: &Committed) -> Result<(), String> {
        let of_root = Quarantine::of(before, seen);
        let quarantine = self.quarantined.unwrap_or(of_root);
        let waited = seen.at.since(quarantine.since);
        let lease = quarantine.lease.max(before.root.lease);
        if waited < slowest(lease) {
            return Err(format!(
                "the quarantine lasted only {waited:?}, and a lease of {lease:?} was there"
            ));
        }
        Ok(())
    }
}

/// How long `span` takes on the slowest clock.
pub(super) fn slowest(span: Duration) -> Duration {
    let rate = 1_000_000 - RATE_ERROR_MAX_PPM as u64;
    let nanos = span.as_nanos() as u64;
    Duration::from_nanos((nanos as u128 * 1_000_000 / u128::from(rate)) as u64)
        .saturating_sub(Duration::from_micros(1))
}

/// The session that an entry was taken from, and the root that asked it to
/// stop; nothing if the entry is still its own.
fn left<'a>(
    before: &'a Committed,
    holding: Holding,
    root: &Committed,
    after: Option<Holding>,
) -> Option<(&'a SessionEntry, Option<Version>)> {
    let (session, since, token) = match holding {
        Holding::None => return None,
        Holding::Held { session, token } => (session, None, Some(token)),
        Holding::Revoking { session, since } => (session, Some(since), None),
    };
    let entry = &before.root.sessions[session as usize];
    let same = |index: u32| {
        let found = root.root.sessions.get(index as usize);
        found.is_some_and(|found| found.session == entry.session)
    };
    let kept = match after {
        Some(Holding::Held {
            session,
            token: now,
        }) => same(session) && Some(now) == token.or(Token::new(0)),
        // Asked again by a later root: what was acked before does not count.
        Some(Holding::Revoking {
            session,
            since: now,
        }) => same(session) && since.is_none_or(|since| since <= now),
        Some(Holding::None) | None => false,
    };
    (!kept).then_some((entry, since))
}

/// Whoever is granted something by this root has renewed since its claim: a
/// claim alone may have been applied long after it was sent. That it has, a
/// record that was deleted since proves, too.
fn eligible(ledger: &Ledger, root: &Committed) -> Result<(), String> {
    let granted = root.root.version.token();
    for holding in &root.root.holdings {
        let Holding::Held { session, token } = *holding else {
            continue;
        };
        let entry = &root.root.sessions[session as usize];
        let records = ledger.records_of(&entry.worker).map(|known| &known.value);
        let mut own = records.filter(|record| record.session == entry.session);
        let current = ledger.workers.get(&entry.worker).map(|known| &known.value);
        let is_live = current
            .is_some_and(|record| record.session == entry.session && record.life == Life::Live);
        if Some(token) == granted && is_live && own.all(|record| record.beat < 2) {
            return Err(format!("{} was granted at its first beat", entry.worker));
        }
    }
    Ok(())
}

/// Any record of the worker may prove it: what was created again after it was
/// deleted says less than the one before.
fn gone_or_acked(
    ledger: &Ledger,
    entry: &SessionEntry,
    since: Option<Version>,
    name: &str,
) -> Result<(), String> {
    let proofs = ledger.records_of(&entry.worker);
    let mut proofs = proofs.map(|known| gone_or_acked_by(known, entry, since, name));
    let Some(last) = proofs.next() else {
        return Err(format!("the record of {} is missing", entry.worker));
    };
    last.or_else(|why| proofs.find(Result::is_ok).unwrap_or(Err(why)))
}

fn gone_or_acked_by(
    known: &Known<WorkerRecord>,
    entry: &SessionEntry,
    since: Option<Version>,
    name: &str,
) -> Result<(), String> {
    let record = &known.value;
    let other = record.session != entry.session || record.life != Life::Live;
    if known.revision > entry.seen && other {
        return Ok(());
    }
    let stopping = || record.stopping.contains(&hash::bytes64(name.as_bytes(), 0));
    match since {
        Some(since) if record.session == entry.session && record.acked >= since && !stopping() => {
            Ok(())
        }
        Some(since) => Err(format!(
            "{} acked {} of {since}, stopping {}",
            entry.worker,
            record.acked,
            record.stopping.len()
        )),
        None => Err(format!("{} is live and was not asked", entry.worker)),
    }
}

impl Invariant for GrantCondition {
    const NUMBER: &'static str = "I4";
    const PROPERTY: &'static str = "no grant without a gone, acked or absent predecessor";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        self.excuse.observe(seen);
        match *seen.fact {
            Fact::RootWritten { root, .. } => {
                if !self.excuse.covers(seen.at) {
                    self.compare(seen, root)?;
                }
                let same = |known: &Quarantine| known.epoch == root.root.answered;
                self.quarantined = root.root.quarantine.then(|| {
                    let known = self.quarantined.filter(same);
                    known.unwrap_or_else(|| Quarantine::of(root, seen))
                });
                Ok(())
            }
            Fact::Forgot { .. } => {
                // It may have gone back into a quarantine of before.
                let root = seen.ledger.root.as_ref().map(|known| &known.value);
                let flagged = root.filter(|root| root.root.quarantine);
                self.quarantined = flagged.map(|root| Quarantine::of(root, seen));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
