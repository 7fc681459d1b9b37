//! I9 of leases: none is written but by the tenure that holds it.
//!
//! The store compares the nonce that an operation brings with the one that the
//! lease was taken with. What could still go wrong is a nonce that is not the
//! sender's own: read from the store, or used for two attempts. So every wish
//! for a lease must bring a nonce that nobody has used, and every renewal and
//! release one that the same process has brought for the same lease before.

use std::collections::BTreeMap;

use divvy_core::store::{LeaseKey, Nonce};

use super::{Bounds, Invariant};
use crate::fact::{Fact, LeaseWish, Seen};

/// An attempt to take a lease.
#[derive(Debug, Clone)]
struct Attempt {
    by: usize,
    life: u32,
    key: LeaseKey,
}

#[derive(Debug, Clone)]
pub(super) struct RightfulLeases {
    attempts: BTreeMap<Nonce, Attempt>,
}

impl RightfulLeases {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self {
            attempts: BTreeMap::new(),
        }
    }

    fn attempt(&mut self, nonce: Nonce, attempt: Attempt) -> Result<(), String> {
        let by = attempt.by;
        match self.attempts.insert(nonce, attempt) {
            None => Ok(()),
            Some(before) => Err(format!(
                "m{by} wants a lease with the nonce with which m{} wanted {}",
                before.by, before.key
            )),
        }
    }
}

impl Invariant for RightfulLeases {
    const NUMBER: &'static str = "I9";
    const PROPERTY: &'static str = "no write to a lease but by the tenure that holds it";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let Fact::LeaseSent {
            by,
            life,
            key,
            nonce,
            wish,
        } = *seen.fact
        else {
            return Ok(());
        };
        if wish == LeaseWish::Acquire {
            let key = key.clone();
            return self.attempt(nonce, Attempt { by, life, key });
        }
        let attempt = self.attempts.get(&nonce);
        let is_own = attempt
            .is_some_and(|attempt| attempt.by == by && attempt.life == life && attempt.key == *key);
        match is_own {
            true => Ok(()),
            false => Err(format!(
                "m{by} wants to {wish:?} {key} by a tenure that is not its own"
            )),
        }
    }
}
