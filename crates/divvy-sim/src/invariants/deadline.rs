//! I5: no effect at or after the deadline; every started partition gets its
//! stop hook.
//!
//! Effects look at the deadline that the machine gave, so what must hold is
//! that this deadline was earned: it lies a margin before the end of a lease
//! that counts from when an applied renewal was sent. Where partitions have
//! deadlines of their own, each is earned by its own lease, as it would end if
//! the store's clock ran as fast as one may and the holder's as slowly. Nothing
//! is started without a deadline that is still to come: neither does a machine
//! ask for it, nor does a driver call a hook that has waited for its turn. And no
//! machine that was asked to stop asks for a start.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{Life, SessionId};
use divvy_core::store::Nonce;

use super::{Bounds, Invariant};
use crate::clock::RATE_ERROR_MAX_PPM;
use crate::fact::{Fact, Seen};

/// What a partition has of its own, where it does.
#[derive(Debug, Clone, Default)]
struct Tenure {
    /// Until when its lease lets it work, by the tenure that earned that: the
    /// store may keep one that was given up long ago after the one that works.
    earned: BTreeMap<Nonce, Moment>,
    /// The tenure whose grant has ended, for good.
    ended: Option<Nonce>,
    /// How long before its deadline nothing is started any more.
    start_ahead: Duration,
    /// Until when it says that it works; nothing inside if no longer.
    deadline: Option<Option<Moment>>,
}

#[derive(Debug, Clone, Default)]
struct Holder {
    /// Until when the last applied renewal of each session of its own lets that
    /// work.
    earned: BTreeMap<SessionId, Moment>,
    deadline: Option<Moment>,
    is_stopping: bool,
    /// Partitions whose start was asked for and not called yet, and whether
    /// their grant has ended for good.
    asked: BTreeMap<usize, bool>,
    /// Partitions whose start hook runs, and whether their grant has ended for
    /// good.
    starting: BTreeMap<usize, bool>,
    /// Partitions whose start hook outlived its grant: they are to be stopped,
    /// whatever has been granted since.
    outlived: Vec<usize>,
    /// Partitions that were started and not yet asked to stop.
    unstopped: Vec<usize>,
    /// By partition: few members have many, and there may be very many.
    tenures: BTreeMap<usize, Tenure>,
}

impl Holder {
    fn deadline_of(&self, partition: usize) -> Option<Moment> {
        let own = self.tenures.get(&partition);
        own.and_then(|tenure| tenure.deadline)
            .unwrap_or(self.deadline)
    }

    fn tenure(&mut self, partition: usize) -> &mut Tenure {
        self.tenures.entry(partition).or_default()
    }

    fn keep(&mut self, partition: usize, nonce: Nonce, sent: Moment, ttl: Duration) {
        let (tenure, end) = (self.tenure(partition), sent + usable(ttl));
        tenure.start_ahead = ttl / 10;
        // Worlds that somebody watches may last for days.
        tenure.earned.retain(|_, end| sent.since(*end) < ttl * 10);
        let earned = tenure.earned.entry(nonce).or_default();
        *earned = end.max(*earned);
    }

    /// Whether a partition may be started.
    fn is_current(&self, partition: usize, now: Moment) -> bool {
        let until = self.deadline_of(partition);
        until.is_some_and(|until| now < until)
    }

    /// Gives what was earned, if the deadline is beyond that. A grant that has
    /// ended earns nothing any more.
    fn set(
        &mut self,
        partition: usize,
        nonce: Option<Nonce>,
        until: Option<Moment>,
    ) -> Option<Moment> {
        let tenure = self.tenure(partition);
        tenure.deadline = Some(until);
        match until {
            None => tenure.ended = nonce.or(tenure.ended),
            Some(_) if nonce.is_some() && nonce == tenure.ended => return Some(Moment::default()),
            Some(_) => {}
        }
        let earned = match nonce {
            Some(nonce) => tenure.earned.get(&nonce),
            None => tenure.earned.values().max(),
        };
        let earned = earned.copied().unwrap_or_default();
        until.filter(|until| *until > earned).map(|_| earned)
    }
}

/// How long after it was asked for a lease may be worked under: by the slowest
/// clock against the fastest, less a margin.
fn usable(ttl: Duration) -> Duration {
    let nanos = ttl.as_nanos() * (1_000_000 - RATE_ERROR_MAX_PPM as u128)
        / (1_000_000 + RATE_ERROR_MAX_PPM as u128);
    Duration::from_nanos(nanos as u64) - ttl / 20
}

#[derive(Debug, Clone)]
pub(super) struct Deadlines {
    members: Vec<Holder>,
    /// Where work may outlast its lease, no renewal gives it its deadline.
    is_earned: bool,
}

impl Deadlines {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            members: vec![Holder::default(); bounds.members_max],
            is_earned: bounds.is_exclusive,
        }
    }
}

impl Deadlines {
    /// A member says until when all that it has is current.
    fn told(
        &mut self,
        member: usize,
        session: Option<SessionId>,
        until: Option<Moment>,
    ) -> Result<(), String> {
        let holder = &mut self.members[member];
        holder.deadline = until;
        let Some(until) = until else {
            holder
                .asked
                .values_mut()
                .chain(holder.starting.values_mut())
                .for_each(|is_over| *is_over = true);
            return Ok(());
        };
        let earned = session.and_then(|session| holder.earned.get(&session).copied());
        let earned = earned.unwrap_or_default();
        if !self.is_earned || until <= earned {
            return Ok(());
        }
        Err(format!(
            "m{member} works until {until:?} and the renewals of its session give it {earned:?}"
        ))
    }

    /// What the lease of a single partition lets a member do.
    fn observe_lease(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::LeaseKept {
                member,
                partition,
                nonce,
                sent,
                ttl,
            } => {
                self.members[member].keep(partition, nonce, sent, ttl);
                Ok(())
            }
            Fact::TenureDeadline {
                member,
                partition,
                nonce,
                until_local,
                ..
            } => match self.members[member].set(partition, nonce, until_local) {
                None => Ok(()),
                Some(earned) => Err(format!(
                    "m{member} works on partition {partition} until {until_local:?} and its \
                     lease gives it {earned:?}"
                )),
            },
            Fact::LeaseLost {
                member,
                partition,
                until: Some(until),
            } => Err(format!(
                "m{member} knows that the lease of partition {partition} is lost, and works on \
                 it until {until:?}"
            )),
            _ => Ok(()),
        }
    }

    /// Whether what is started may be.
    fn observe_start(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::StopAsked { member } => {
                self.members[member].is_stopping = true;
                Ok(())
            }
            Fact::StartAsked {
                member,
                partition,
                now,
            } => self.asked(member, partition, now),
            Fact::StartBegins {
                member,
                partition,
                now,
            } => self.begins(member, partition, now),
            _ => Ok(()),
        }
    }

    /// A machine asks for a start.
    fn asked(&mut self, member: usize, partition: usize, now: Moment) -> Result<(), String> {
        let holder = &mut self.members[member];
        if holder.is_stopping {
            return Err(format!(
                "m{member} was asked to stop, and asks for the start of partition {partition}"
            ));
        }
        holder.asked.insert(partition, false);
        let ahead = holder.tenure(partition).start_ahead;
        if holder.is_current(partition, now + ahead) {
            return Ok(());
        }
        let until = holder.deadline_of(partition);
        Err(format!(
            "m{member} asks for the start of partition {partition} at {now:?}, and its deadline \
             is {until:?}"
        ))
    }

    /// A driver calls a start hook.
    fn begins(&mut self, member: usize, partition: usize, now: Moment) -> Result<(), String> {
        let holder = &mut self.members[member];
        let is_over = holder.asked.remove(&partition).unwrap_or_default();
        if !is_over && holder.is_current(partition, now) {
            return Ok(());
        }
        let until = holder.deadline_of(partition);
        Err(format!(
            "m{member} starts partition {partition} at {now:?}, and its grant ended at {until:?}"
        ))
    }

    /// A member has done what it had to: nothing runs past its deadline.
    fn stepped(&self, member: usize, now: Moment) -> Result<(), String> {
        let holder = &self.members[member];
        if let Some(partition) = holder.outlived.first() {
            return Err(format!(
                "m{member} lets partition {partition} run although its grant ended while it \
                 started"
            ));
        }
        let overdue = holder.unstopped.iter().find(|&&partition| {
            let until = holder.deadline_of(partition);
            until.is_none_or(|until| until <= now)
        });
        match overdue {
            None => Ok(()),
            Some(&partition) => Err(format!(
                "m{member} lets partition {partition} run although its deadline is {:?} \
                 and it is {now:?}",
                holder.deadline_of(partition)
            )),
        }
    }
}

impl Invariant for Deadlines {
    const NUMBER: &'static str = "I5";
    const PROPERTY: &'static str =
        "no effect at or after the deadline; every started partition gets its stop hook";
    const HEARS_STEPS: bool = true;

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::WorkerWritten {
                by,
                orphaned: false,
                record,
                sent,
                ..
            } if record.life == Life::Live && record.beat > 0 => {
                let holder = &mut self.members[by];
                // A margin before the lease's end.
                let end = sent + (record.lease - record.lease / 20);
                let earned = holder.earned.entry(record.session).or_default();
                *earned = end.max(*earned);
                Ok(())
            }
            Fact::Deadline {
                member,
                identity,
                until_local,
                ..
            } => self.told(member, identity.map(|(_, session)| session), until_local),
            Fact::LeaseKept { .. } | Fact::TenureDeadline { .. } | Fact::LeaseLost { .. } => {
                self.observe_lease(seen.fact)
            }
            Fact::StopAsked { .. } | Fact::StartAsked { .. } | Fact::StartBegins { .. } => {
                self.observe_start(seen.fact)
            }
            // Hooks are serial: what still starts cannot be asked to stop.
            Fact::StartEnded {
                member,
                partition,
                failed: false,
            } => {
                let holder = &mut self.members[member];
                if holder.starting.remove(&partition) == Some(true) {
                    holder.outlived.push(partition);
                }
                holder.unstopped.push(partition);
                Ok(())
            }
            Fact::StartCalled {
                member, partition, ..
            } => {
                self.members[member].starting.insert(partition, false);
                Ok(())
            }
            Fact::StartEnded {
                member, partition, ..
            } => {
                self.members[member].starting.remove(&partition);
                Ok(())
            }
            Fact::EndAsked { member, partition } => {
                self.members[member].outlived.retain(|&p| p != partition);
                Ok(())
            }
            Fact::StopCalled { member, partition } => {
                self.members[member].unstopped.retain(|&p| p != partition);
                Ok(())
            }
            Fact::Stepped { member, now } => self.stepped(member, now),
            Fact::Gone { member, in_order } => {
                let holder = std::mem::take(&mut self.members[member]);
                match holder.unstopped.first() {
                    Some(partition) if in_order => Err(format!(
                        "m{member} ended, and partition {partition} never got its stop hook"
                    )),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
