//! Holds what members say against the invariants, as it comes.
//!
//! Each member is a life: a process that is started again is another one. What
//! several of them say arrives in some order, so it is put in order of time
//! first, and judged a moment later.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::leader::SessionId;
use divvy_core::store::Token;
use divvy_sim::{Bounds, Broken, Fact, Ledger, OwnershipInvariants, Seen, TrueTime};

use super::runs::Runs;
use crate::member::line::Said;

/// How long what is said may take to arrive.
const DELAY: Duration = Duration::from_millis(300);
/// What waits to be judged, at most: beyond, the oldest is judged at once.
const WAITING_MAX: usize = 100_000;

/// Something that can be judged.
#[derive(Debug, Clone)]
enum Told {
    Said(Said),
    Forgot,
    Gone { in_order: bool },
}

#[derive(Debug)]
pub(crate) struct Judge {
    group: String,
    invariants: OwnershipInvariants,
    ledger: Ledger,
    waiting: BTreeMap<(u64, u64), (usize, Told)>,
    /// Counts what was said.
    count: u64,
    /// Up to when everything was judged.
    judged: u64,
    checked: u64,
    /// By partition, who was last granted it with which token.
    granted: BTreeMap<u32, (usize, Token)>,
    /// What runs where, as soon as it is heard, and when it was judged: what two
    /// members say can be compared only in order.
    heard: Runs,
    seen: Runs,
    /// Up to when everything has arrived.
    settled: u64,
}

impl Judge {
    /// For leases of this length, so many lives and partitions at most.
    pub(crate) fn new(
        group: &str,
        lease: Duration,
        is_exclusive: bool,
        (lives_max, partitions_max): (usize, usize),
    ) -> Self {
        let bounds = Bounds {
            lease,
            is_exclusive,
            is_stale: true,
            is_calm: false,
            ends_late: true,
            leader_lease: lease,
            value_bytes_max: usize::MAX,
            operations_max: usize::MAX,
            members_max: lives_max,
            partitions_max,
            start_within: lease,
            beat_within: lease,
        };
        Self {
            group: group.to_owned(),
            invariants: OwnershipInvariants::new(&bounds),
            ledger: Ledger::default(),
            waiting: BTreeMap::new(),
            count: 0,
            judged: 0,
            checked: 0,
            granted: BTreeMap::new(),
            heard: Runs::default(),
            seen: Runs::default(),
            settled: 0,
        }
    }

    /// A life says something.
    pub(crate) fn hear(&mut self, life: usize, said: &Said) {
        let (Said::Starting { at, .. }
        | Said::Started { at, .. }
        | Said::Stopping { at, .. }
        | Said::Stopped { at, .. }
        | Said::Deadline { at, .. }
        | Said::Deadlines { at, .. }) = said
        else {
            return;
        };
        self.heard.follow(life, said);
        self.wait(*at, life, Told::Said(said.clone()));
    }

    /// A life is over.
    pub(crate) fn gone(&mut self, now: u64, life: usize, in_order: bool) {
        self.heard.gone(life);
        self.wait(now, life, Told::Gone { in_order });
    }

    /// The store is about to lose everything, and will not say so.
    pub(crate) fn forgot(&mut self, now: u64) {
        self.wait(now, 0, Told::Forgot);
    }

    fn wait(&mut self, at: u64, life: usize, told: Told) {
        self.count += 1;
        // What comes too late is taken for what is the case now.
        let at = at.max(self.judged);
        self.waiting.insert((at, self.count), (life, told));
    }

    /// Judges what has arrived by now; gives what is broken.
    pub(crate) fn pass(&mut self, now: u64) -> Vec<Broken> {
        let mut broken = Vec::new();
        let settled = now.saturating_sub(DELAY.as_nanos() as u64);
        self.settled = settled;
        while let Some(first) = self.waiting.first_entry() {
            let at = first.key().0;
            if at > settled && self.waiting.len() <= WAITING_MAX {
                break;
            }
            let (life, told) = self.waiting.pop_first().expect("there is a first").1;
            self.judged = self.judged.max(at);
            broken.extend(self.judge(at, life, &told).err());
        }
        broken
    }

    fn judge(&mut self, at: u64, life: usize, told: &Told) -> Result<(), Broken> {
        match told {
            Told::Forgot => self.observe(at, &Fact::Forgot { announced: false }),
            Told::Gone { in_order } => {
                self.seen.gone(life);
                let fact = Fact::Gone {
                    member: life,
                    in_order: *in_order,
                };
                self.observe(at, &fact)
            }
            Told::Said(said) => {
                self.seen.follow(life, said);
                self.judge_said(at, life, said)
            }
        }
    }

    fn judge_said(&mut self, at: u64, member: usize, said: &Said) -> Result<(), Broken> {
        match *said {
            Said::Starting {
                partition,
                token,
                until,
                ..
            } => self.judge_start(at, member, (partition, token, until)),
            Said::Started {
                partition, failed, ..
            } => {
                let partition = partition as usize;
                let fact = Fact::StartEnded {
                    member,
                    partition,
                    failed,
                };
                self.observe(at, &fact)
            }
            Said::Stopping { partition, .. } => {
                let partition = partition as usize;
                self.observe(at, &Fact::StopCalled { member, partition })
            }
            Said::Stopped { partition, .. } => {
                let partition = partition as usize;
                self.observe(at, &Fact::StopEnded { member, partition })
            }
            Said::Deadline {
                ref identity,
                until,
                ..
            } => {
                let identity = identity.as_ref().and_then(|(id, session)| {
                    let session = u128::from_str_radix(session, 16).ok()?;
                    Some((id.as_str(), SessionId(session)))
                });
                let fact = Fact::Deadline {
                    member,
                    identity,
                    until: until.map(TrueTime::from_nanos),
                    until_local: None,
                };
                self.observe(at, &fact)
            }
            Said::Deadlines {
                ref partitions,
                until,
                ..
            } => partitions
                .iter()
                .try_for_each(|&partition| self.extend(at, member, partition, until)),
            Said::Done { .. } | Said::State { .. } | Said::Trouble { .. } => Ok(()),
        }
    }

    fn judge_start(
        &mut self,
        at: u64,
        member: usize,
        (number, token, until): (u32, i64, u64),
    ) -> Result<(), Broken> {
        let Some(token) = Token::new(token) else {
            return Ok(());
        };
        let name = format!("{}:{number}", self.group);
        // Whoever goes on after a pause has the token that it had.
        let last = self.granted.insert(number, (member, token));
        let granted = match last == Some((member, token)) {
            true => Ok(()),
            false => {
                let name = name.as_str();
                self.observe(at, &Fact::LeaseGranted { name, token })
            }
        };
        let fact = Fact::StartCalled {
            member,
            partition: number as usize,
            name: &name,
            token,
        };
        // It runs, with whatever token.
        let started = self.observe(at, &fact);
        // In leader mode all of a member have the same.
        let extended = match self.seen.is_led(member) {
            true => Ok(()),
            false => self.extend(at, member, number, Some(until)),
        };
        granted.and(started).and(extended)
    }

    fn extend(
        &mut self,
        at: u64,
        member: usize,
        partition: u32,
        until: Option<u64>,
    ) -> Result<(), Broken> {
        let fact = Fact::TenureDeadline {
            nonce: None,
            member,
            partition: partition as usize,
            until: until.map(TrueTime::from_nanos),
            until_local: None,
        };
        self.observe(at, &fact)
    }

    fn observe(&mut self, at: u64, fact: &Fact<'_>) -> Result<(), Broken> {
        self.checked += 1;
        let seen = Seen {
            at: TrueTime::from_nanos(at),
            fact,
            ledger: &self.ledger,
        };
        self.invariants.observe(&seen)
    }

    /// How many facts were held against the invariants.
    pub(crate) const fn checked(&self) -> u64 {
        self.checked
    }

    /// Partitions that more than one worked on, when it was last judged.
    pub(crate) fn doubles(&self) -> Vec<u32> {
        self.seen.doubles(self.settled)
    }

    /// Partitions of which a hook runs.
    pub(crate) fn changing(&self) -> impl Iterator<Item = u32> {
        self.heard.changing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(1);
    const MS: u64 = 1_000_000;
    const LATE: u64 = 1_000_000 * MS;

    fn judge() -> Judge {
        Judge::new("orders", LEASE, true, (4, 10))
    }

    fn start(judge: &mut Judge, life: usize, at: u64, token: i64, until: u64) {
        let partition = 3;
        let (at, until) = (at * MS, until * MS);
        let said = Said::Starting {
            at,
            partition,
            token,
            until,
        };
        judge.hear(life, &said);
        let failed = false;
        judge.hear(
            life,
            &Said::Started {
                at,
                partition,
                failed,
            },
        );
    }

    fn stop(judge: &mut Judge, life: usize, at: u64) {
        let (at, partition) = (at * MS, 3);
        judge.hear(life, &Said::Stopping { at, partition });
        judge.hear(life, &Said::Stopped { at, partition });
    }

    fn broken(judge: &mut Judge) -> Vec<&'static str> {
        let broken = judge.pass(LATE).into_iter();
        broken.map(|broken| broken.invariant).collect()
    }

    #[test]
    fn a_second_owner_inside_the_deadline_of_the_first_is_seen() {
        let mut judge = judge();
        start(&mut judge, 0, 10, 1, 1000);
        start(&mut judge, 1, 20, 2, 1000);
        let broken = judge.pass(30 * MS + DELAY.as_nanos() as u64);
        assert_eq!(broken[0].invariant, "I1");
        assert_eq!(judge.doubles(), [3]);
    }

    #[test]
    fn who_stopped_or_is_over_its_deadline_or_dead_is_no_owner() {
        for end in ["stops", "is late", "dies"] {
            let mut judge = judge();
            start(&mut judge, 0, 10, 1, 100);
            match end {
                "stops" => stop(&mut judge, 0, 15),
                "dies" => judge.gone(15 * MS, 0, false),
                _ => {}
            }
            let at = if end == "is late" { 101 } else { 20 };
            start(&mut judge, 1, at, 2, 1000);
            let broken = judge.pass(at * MS + DELAY.as_nanos() as u64);
            assert!(broken.is_empty(), "{end}");
            assert!(judge.doubles().is_empty(), "{end}");
        }
    }

    #[test]
    fn what_arrives_out_of_order_is_put_in_order() {
        let mut judge = judge();
        start(&mut judge, 1, 20, 2, 1000);
        start(&mut judge, 0, 10, 1, 1000);
        stop(&mut judge, 0, 15);
        assert!(broken(&mut judge).is_empty());
        assert!(judge.checked() > 5);
    }

    #[test]
    fn a_token_that_does_not_rise_is_seen() {
        let mut judge = judge();
        start(&mut judge, 0, 10, 7, 1000);
        stop(&mut judge, 0, 15);
        start(&mut judge, 1, 20, 7, 1000);
        assert_eq!(broken(&mut judge), ["I2"]);
    }

    #[test]
    fn a_start_without_a_stop_before_it_is_seen() {
        let mut judge = judge();
        start(&mut judge, 0, 10, 7, 1000);
        start(&mut judge, 0, 20, 7, 1000);
        assert_eq!(broken(&mut judge), ["I12"]);
    }

    #[test]
    fn a_silent_amnesia_excuses_what_is_not_promised_then() {
        let mut judge = judge();
        start(&mut judge, 0, 10, 1, 1000);
        judge.forgot(15 * MS);
        start(&mut judge, 1, 20, 2, 1000);
        assert!(broken(&mut judge).is_empty());
    }
}
