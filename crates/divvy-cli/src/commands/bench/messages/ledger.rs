//! What was published, what workers did, and what became of it.
//!
//! The ledger is the resource that workers write to: it refuses a token below
//! the highest that it has seen of a partition.

use std::collections::BTreeSet;
use std::time::Duration;

use divvy::Moment;
use serde::Serialize;

/// Something that a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) partition: u32,
    pub(super) number: u32,
    pub(super) token: i64,
    pub(super) worker: u32,
    pub(super) published: Moment,
}

/// Something that was done to workers or their server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    /// Which worker; the server is none of them.
    pub(super) worker: Option<u32>,
    pub(super) from: Moment,
    pub(super) to: Moment,
}

/// Everything that happened to a run's messages.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    partitions: Vec<Page>,
    latencies: Vec<Duration>,
    refused: u64,
    faults: Vec<Fault>,
}

/// What happened to one partition.
#[derive(Debug, Clone, Default)]
struct Page {
    published: u32,
    highest: i64,
    accepted: Vec<(Moment, Effect)>,
    /// Every number that was accepted.
    done: BTreeSet<u32>,
}

/// What it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Account {
    pub(super) published: u64,
    pub(super) processed: u64,
    pub(super) lost: u64,
    pub(super) duplicates: u64,
    pub(super) duplicates_outside_kills: u64,
    pub(super) stale_effects: u64,
    /// Effects under an old token that were refused.
    pub(super) stale_refused: u64,
    pub(super) out_of_order: u64,
}

impl Ledger {
    pub(super) fn new(partitions: u32) -> Self {
        Self {
            partitions: vec![Page::default(); partitions as usize],
            ..Self::default()
        }
    }

    /// A server has stored the partition's next message.
    pub(super) fn published(&mut self, partition: u32) {
        self.partitions[partition as usize].published += 1;
    }

    /// A worker wants to do something; whether it may.
    pub(super) fn enter(&mut self, at: Moment, effect: Effect) -> bool {
        let Some(page) = self.partitions.get_mut(effect.partition as usize) else {
            return false;
        };
        if effect.token < page.highest {
            self.refused += 1;
            return false;
        }
        page.highest = effect.token;
        page.accepted.push((at, effect));
        page.done.insert(effect.number);
        self.latencies.push(at.since(effect.published));
        true
    }

    pub(super) fn happened(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// How many messages of each partition were published so far.
    pub(super) fn so_far(&self) -> Vec<u32> {
        self.partitions.iter().map(|page| page.published).collect()
    }

    /// Whether so many messages of each partition were handled.
    pub(super) fn has_done(&self, counts: &[u32]) -> bool {
        let mut pages = self.partitions.iter().zip(counts);
        pages.all(|(page, count)| page.done.range(..count).count() == *count as usize)
    }

    /// What took its time so far does not count: workers had to start.
    pub(super) fn is_warm(&mut self) {
        self.latencies.clear();
    }

    /// From publishing to the ledger, of every message since then.
    pub(super) fn latencies(&self) -> Vec<Duration> {
        self.latencies.clone()
    }

    pub(super) fn account(&self) -> Account {
        let mut account = Account {
            stale_refused: self.refused,
            ..Account::default()
        };
        for page in &self.partitions {
            let done = &page.done;
            let published = u64::from(page.published);
            let done_of_published = done.range(..page.published).count() as u64;
            account.published += published;
            account.processed += done.len() as u64;
            account.lost += published - done_of_published;
            page.judge(&self.faults, &mut account);
        }
        account
    }
}

impl Page {
    fn judge(&self, faults: &[Fault], account: &mut Account) {
        let mut next = 0;
        let mut highest = i64::MIN;
        // Each fault excuses one message of a partition: one is in flight.
        let mut used = BTreeSet::new();
        let mut last: Option<(Moment, Effect)> = None;
        for (at, effect) in &self.accepted {
            if effect.token < highest {
                account.stale_effects += 1;
            }
            highest = highest.max(effect.token);
            if effect.number == next {
                next += 1;
            } else if effect.number > next {
                account.out_of_order += 1;
                next = effect.number + 1;
            } else {
                account.duplicates += 1;
                let before = last.filter(|(_, before)| before.number == effect.number);
                let Some((first, before)) = before else {
                    // Not the one that was in flight.
                    account.out_of_order += 1;
                    account.duplicates_outside_kills += 1;
                    continue;
                };
                let excuse = faults.iter().enumerate().position(|(index, fault)| {
                    let is_concerned = fault.worker.is_none_or(|worker| worker == before.worker);
                    is_concerned && fault.from <= *at && fault.to >= first && !used.contains(&index)
                });
                match excuse {
                    Some(index) => {
                        used.insert(index);
                    }
                    None => account.duplicates_outside_kills += 1,
                }
            }
            last = Some((*at, *effect));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(ms))
    }

    fn effect(number: u32, token: i64, worker: u32) -> Effect {
        Effect {
            partition: 0,
            number,
            token,
            worker,
            published: at(0),
        }
    }

    fn ledger(published: u32) -> Ledger {
        let mut ledger = Ledger::new(1);
        (0..published).for_each(|_| ledger.published(0));
        ledger
    }

    #[test]
    fn what_is_done_once_and_in_order_is_well() {
        let mut ledger = ledger(3);
        for number in 0..3 {
            assert!(!ledger.has_done(&ledger.so_far()));
            assert!(ledger.enter(at(u64::from(number)), effect(number, 7, 0)));
        }
        assert!(ledger.has_done(&ledger.so_far()));
        let expected = Account {
            published: 3,
            processed: 3,
            ..Account::default()
        };
        assert_eq!(ledger.account(), expected);
    }

    #[test]
    fn an_old_token_is_refused_and_counted() {
        let mut ledger = ledger(1);
        assert!(ledger.enter(at(1), effect(0, 7, 0)));
        assert!(!ledger.enter(at(2), effect(1, 6, 1)));
        let account = ledger.account();
        assert_eq!((account.stale_refused, account.stale_effects), (1, 0));
    }

    #[test]
    fn what_is_missing_is_lost_and_what_comes_too_early_is_out_of_order() {
        let mut ledger = ledger(4);
        ledger.enter(at(1), effect(0, 7, 0));
        ledger.enter(at(2), effect(2, 7, 0));
        let account = ledger.account();
        assert_eq!(
            (account.lost, account.out_of_order, account.processed),
            (2, 1, 2)
        );
    }

    #[test]
    fn a_duplicate_is_excused_once_by_a_fault_of_who_had_it_in_flight() {
        let kill = |worker, from, to| Fault {
            worker,
            from: at(from),
            to: at(to),
        };
        let cases = [
            (vec![kill(Some(0), 15, 15)], 0),
            (vec![kill(Some(1), 15, 15)], 1),
            (vec![kill(Some(0), 5, 5)], 1),
            (vec![kill(Some(0), 25, 25)], 1),
            (vec![kill(None, 5, 12)], 0),
            (vec![], 1),
        ];
        for (faults, outside) in cases {
            let mut ledger = ledger(1);
            ledger.enter(at(10), effect(0, 7, 0));
            ledger.enter(at(20), effect(0, 8, 1));
            faults.iter().for_each(|fault| ledger.happened(*fault));
            let account = ledger.account();
            assert_eq!(account.duplicates, 1);
            assert_eq!(account.duplicates_outside_kills, outside, "{faults:?}");
            assert_eq!(account.out_of_order, 0);
        }
    }

    #[test]
    fn a_duplicate_of_what_was_not_in_flight_has_no_excuse() {
        let mut ledger = ledger(2);
        for (ms, number) in [(10, 0), (11, 1), (20, 0)] {
            ledger.enter(at(ms), effect(number, 7, 0));
        }
        ledger.happened(Fault {
            worker: Some(0),
            from: at(15),
            to: at(15),
        });
        let account = ledger.account();
        assert_eq!(
            (account.duplicates_outside_kills, account.out_of_order),
            (1, 1)
        );
    }
}
