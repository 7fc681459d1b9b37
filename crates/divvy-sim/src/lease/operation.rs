//! What members ask the store for, and what that comes to.

use std::time::Duration;

use divvy_core::leader::SessionId;
use divvy_core::lease::{Member, Operation, Reply};
use divvy_core::store::{Acquired, Claim, Nonce, Quarantine, SessionStart, Tenure};

use super::machine::{describe_operation, describe_reply};
use super::{LeaseMode, LeaseWorld};
use crate::coverage::Mishap;
use crate::fact::{Disturbed, Fact, LeaseWish};
use crate::invariants::Broken;
use crate::world::Machine;

type Request = crate::world::Request<LeaseMode>;

impl LeaseWorld {
    /// Tells of every lease that an operation names, and which of them a
    /// member gives back.
    pub(super) fn tell_sent(&mut self, member: usize, operation: &Operation) -> Result<(), Broken> {
        let (claims, wish): (&[Claim], _) = match operation {
            Operation::Acquire { claims, .. } => (claims, LeaseWish::Acquire),
            Operation::Renew { claims, .. } => (claims, LeaseWish::Renew),
            Operation::Release { claims } => (claims, LeaseWish::Release),
            _ => return Ok(()),
        };
        let life = self.processes[member].generation;
        for claim in claims {
            self.tell(&Fact::LeaseSent {
                by: member,
                life,
                key: &claim.key,
                nonce: claim.nonce,
                wish,
            })?;
            if wish != LeaseWish::Release {
                continue;
            }
            let partition = self.partition_of(&claim.key);
            let running = self.processes[member].running.get(&partition);
            if running.is_some_and(|running| running.nonce == Some(claim.nonce)) {
                self.tell(&Fact::GivenBack { member, partition })?;
            }
        }
        Ok(())
    }

    /// Carries out an operation, of several leases the first `most`.
    pub(super) fn apply(&mut self, request: &Request, most: usize) -> Result<Reply, Broken> {
        let worker = &self.processes[request.member].host.worker;
        let (reply, notices) = self.store.apply(self.now, worker, &request.operation, most);
        if Member::is_write(&request.operation) {
            self.note(|| {
                let (what, outcome) = (describe_operation(&request.operation), &reply);
                let outcome = describe_reply(outcome);
                format!("store m{}: {what}: {outcome}", request.member)
            });
        }
        self.judge(request, &reply)?;
        for notice in &notices {
            self.spread(notice);
        }
        Ok(reply)
    }

    /// Tells what an operation came to at the store.
    fn judge(&mut self, request: &Request, reply: &Reply) -> Result<(), Broken> {
        match (&request.operation, reply) {
            (Operation::Acquire { claims, ttl }, Reply::Acquired(outcomes)) => {
                for (claim, outcome) in claims.iter().zip(outcomes) {
                    match outcome {
                        Acquired::Granted(token) => {
                            self.tally.grants += 1;
                            let partition = self.partition_of(&claim.key);
                            self.own.nonces.insert((partition, *token), claim.nonce);
                            self.forget_nonces(partition);
                            self.tell(&Fact::LeaseGranted {
                                name: &claim.key.to_string(),
                                token: *token,
                            })?;
                            self.kept(request, claim, *ttl)?;
                        }
                        Acquired::Quarantined | Acquired::Held => {}
                    }
                }
                Ok(())
            }
            (Operation::Renew { claims, ttl }, Reply::Tenures(outcomes)) => {
                for (claim, outcome) in claims.iter().zip(outcomes) {
                    if *outcome == Tenure::Current {
                        self.kept(request, claim, *ttl)?;
                    }
                }
                Ok(())
            }
            (Operation::OpenSession { session, ttl }, Reply::Session(SessionStart::Opened)) => {
                self.named(request, *session, *ttl)
            }
            (Operation::Beat(heartbeat), Reply::Beaten(beaten)) => {
                self.judge_quarantine(request, &beaten.quarantine)?;
                if beaten.tenure == Tenure::Current {
                    self.named(request, heartbeat.session, heartbeat.session_ttl)?;
                }
                Ok(())
            }
            (Operation::Leave { session }, Reply::Left(Tenure::Current)) => {
                self.named(request, *session, Duration::ZERO)
            }
            _ => Ok(()),
        }
    }

    /// A member reported what it knows of a quarantine, which perhaps is over
    /// by that. What is not promised: that a holder's lease was waited for which
    /// is longer than all that were reported, where whoever ended the quarantine
    /// had never been told of it either.
    fn judge_quarantine(&mut self, request: &Request, found: &Quarantine) -> Result<(), Broken> {
        let who = (request.member, request.generation);
        if !found.is_over {
            self.count(Mishap::Quarantine);
        } else if self.own.granting.as_ref() != Some(&found.id) {
            self.own.granting = Some(found.id.clone());
            let told = self.own.told_leases.get(&who).copied().unwrap_or_default();
            let uncovered = (0..self.processes.len())
                .filter(|&member| !self.processes[member].running.is_empty())
                .map(|member| self.profile.lease_of(member))
                .filter(|lease| *lease > found.longest_lease && *lease > told)
                .max();
            if let Some(lease) = uncovered {
                self.tell(&Fact::Disturbed {
                    whose: Disturbed::Leases,
                    until: self.now + lease,
                })?;
            }
        }
        Ok(())
    }

    /// A member is told which lease is the longest, by a store that grants.
    pub(super) fn note_longest_lease(&mut self, request: &Request, reply: &Reply) {
        if let Reply::Beaten(beaten) = reply
            && beaten.quarantine.is_over
            && !request.unanswered
        {
            let who = (request.member, request.generation);
            let told = self.own.told_leases.entry(who).or_default();
            *told = beaten.quarantine.longest_lease.max(*told);
        }
    }

    fn kept(&mut self, request: &Request, claim: &Claim, ttl: Duration) -> Result<(), Broken> {
        if !self.is_current(request) {
            return Ok(());
        }
        let partition = self.partition_of(&claim.key);
        self.tell(&Fact::LeaseKept {
            member: request.member,
            partition,
            nonce: claim.nonce,
            sent: request.sent,
            ttl,
        })
    }

    fn named(&mut self, request: &Request, session: Nonce, ttl: Duration) -> Result<(), Broken> {
        let worker = self.processes[request.member].host.worker.clone();
        // What was given up and keeps a name all the same is nobody's.
        let generation = match request.unanswered {
            true => u32::MAX,
            false => request.generation,
        };
        let who = (request.member, generation);
        let named = self.own.named.entry(worker.clone()).or_default();
        named.insert(who, self.now);
        if !self.is_current(request) {
            return Ok(());
        }
        let bits = u128::from_str_radix(&session.to_string(), 16);
        self.tell(&Fact::SessionKept {
            member: request.member,
            id: worker.name.as_str(),
            session: SessionId(bits.expect("nonces are written in hexadecimal digits")),
            until: self.store.after(self.now, ttl),
        })
    }

    /// A process says that another has its name: has it?
    pub(super) fn name_taken(&mut self, member: usize) -> Result<(), Broken> {
        self.count(Mishap::NameTaken);
        let process = &self.processes[member];
        let own = (member, process.generation);
        let booted = process.host.booted;
        let others = self
            .own
            .named
            .get(&process.host.worker)
            .into_iter()
            .flatten();
        let mut others = others.filter(|(who, at)| **who != own && **at >= booted);
        let rightly = others.next().is_some() || self.now < self.own.names_linger;
        self.tell(&Fact::NameTaken { member, rightly })
    }
}

/// Whether it takes more than one plain command.
pub(super) fn needs_script(operation: &Operation) -> bool {
    Member::is_write(operation) && !matches!(operation, Operation::MarkMoved { .. })
}
