//! The leases of the careless store.

use std::time::Duration;

use divvy::store::{
    Acquired, Claim, Holder, LeaseKey, LeaseName, LeaseNotice, Nonce, StoreError, Tenure, Token,
    WorkerId,
};
use divvy_core::store::LeaseTable;

use super::careless_leases::{Client, FOREVER, State};
use super::lease_defects::LeaseDefect as Defect;

impl Client {
    pub(super) async fn take(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, StoreError> {
        let (server, defect) = (&self.server, self.server.defect);
        let within = self.check_batch(claims.len());
        if defect != Defect::RefusedBatchIsDone {
            within.clone()?;
        }
        self.check_ttl(ttl)?;
        let reached = self.reach(true).await;
        if defect != Defect::UnavailableWriteHappens {
            reached.clone()?;
        }
        let free = |claim: &Claim| {
            let state = server.state();
            state.table.holder(server.time(), &claim.key).is_none()
        };
        let looked: Vec<bool> = claims.iter().map(free).collect();
        if defect == Defect::TwoHolders {
            tokio::task::yield_now().await;
        }
        let mut answers = Vec::new();
        for (claim, looked) in claims.iter().zip(looked) {
            let place = |nonce| Claim {
                nonce,
                ..claim.clone()
            };
            let hasty = defect == Defect::CancelledNonceIsForgotten;
            if hasty && free(claim) {
                self.acquire_one(&mut server.state(), worker, &place(Nonce::new(0)), ttl);
                tokio::task::yield_now().await;
            }
            let mut state = server.state();
            let time = server.time();
            let holder = state.table.holder(time, &claim.key);
            if let Some(Holder {
                worker: held_by,
                fence,
                ..
            }) = holder
            {
                let nonce = fence.unwrap().1;
                let is_own = held_by == self.id(worker).to_string();
                let forced = match defect {
                    Defect::TwoHolders => looked && !is_own,
                    Defect::BatchIsJudgedAtOnce => looked,
                    _ => false,
                };
                if forced || (hasty && is_own && nonce == Nonce::new(0)) {
                    let id = held_by.parse().unwrap();
                    let _tenure = state.table.release(time, &id, &place(nonce));
                }
            }
            answers.push(self.acquire_one(&mut state, worker, claim, ttl));
        }
        reached?;
        within?;
        Ok(self.answers(answers))
    }

    pub(super) async fn keep(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, StoreError> {
        self.check_batch(claims.len())?;
        self.check_ttl(ttl)?;
        self.reach(true).await?;
        let (mut state, time) = (self.server.state(), self.server.time());
        let defect = self.server.defect;
        let mut answers = Vec::new();
        for claim in claims {
            let (id, claim) = self.believed(
                &state.table,
                worker,
                claim,
                [
                    Defect::RenewalIgnoresTheNonce,
                    Defect::RenewalIgnoresTheWorker,
                    Defect::RenewalIgnoresTheCluster,
                ],
            );
            let holder = state.table.holder(time, &claim.key);
            let left = holder.as_ref().map_or(Duration::ZERO, |holder| holder.left);
            let ttl = match defect {
                Defect::NeverExpires => FOREVER,
                Defect::ExpiresEarly => ttl.mul_f64(0.9),
                Defect::RenewalDoesNothing => left.max(Duration::from_nanos(1)),
                Defect::RenewalOnlyLengthens => ttl.max(left),
                _ => ttl,
            };
            let tenure = state.table.renew(time, &id, &claim, ttl);
            if tenure == Tenure::Over {
                match (defect, holder) {
                    (Defect::RefusedRenewalLengthens, Some(holder)) => {
                        let nonce = holder.fence.unwrap().1;
                        let held = Claim { nonce, ..claim };
                        let id = holder.worker.parse().unwrap();
                        let _tenure = state.table.renew(time, &id, &held, ttl);
                    }
                    (Defect::RenewalRevives, None) if state.tokens.contains_key(&claim.key) => {
                        state.table.acquire(time, &id, &claim, ttl);
                        answers.push(Tenure::Current);
                        continue;
                    }
                    _ => {}
                }
            }
            answers.push(tenure);
        }
        Ok(self.answers(answers))
    }

    pub(super) async fn give_back(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
    ) -> Result<Vec<Tenure>, StoreError> {
        self.check_batch(claims.len())?;
        self.reach(true).await?;
        let time = self.server.time();
        let defect = self.server.defect;
        let mut answers = Vec::new();
        for claim in claims {
            let any = [
                Defect::ReleaseIgnoresTheNonce,
                Defect::ReleaseIgnoresTheWorker,
                Defect::ReleaseIgnoresTheWorker,
            ];
            let (id, claim) = self.believed(&self.server.state().table, worker, claim, any);
            let looked = self.server.state().table.holder(time, &claim.key);
            let held = looked.is_some_and(|holder| {
                let nonce = holder.fence.map(|(_, nonce)| nonce);
                holder.worker == id.to_string() && nonce == Some(claim.nonce)
            });
            if defect == Defect::ReleaseIsNotAtomic {
                tokio::task::yield_now().await;
            }
            if defect != Defect::ReleaseDoesNothing {
                let _tenure = self.server.state().table.release(time, &id, &claim);
            }
            let tenure = match held {
                true => Tenure::Current,
                false => Tenure::Over,
            };
            let told = defect != Defect::OnlyFirstReleaseIsTold || claim.key.number == 0;
            if tenure == Tenure::Current && told {
                self.server.tell(LeaseNotice::Released(claim.key));
            }
            answers.push(tenure);
        }
        Ok(self.answers(answers))
    }

    pub(super) async fn look(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, StoreError> {
        self.check_batch(keys.len())?;
        self.reach(false).await?;
        let (state, time, defect) = (self.server.state(), self.server.time(), self.server.defect);
        let holder = |key: &LeaseKey| {
            let mut holder = state.table.holder(time, &self.key(key))?;
            holder.fence = holder.fence.map(|(token, nonce)| {
                let told = state.tokens.get(&self.key(key)).copied();
                (told.unwrap_or(token), nonce)
            });
            match defect {
                Defect::HolderHasNoFence => holder.fence = None,
                Defect::HolderHasNoCluster => {
                    let name = holder.worker.split_once(':').unwrap().1;
                    holder.worker = name.to_owned();
                }
                Defect::HolderHasTooMuchTime => holder.left *= 2,
                _ => {}
            }
            Some(holder)
        };
        Ok(self.answers(keys.iter().map(holder).collect()))
    }

    /// The claim with the nonce, and the worker, that the store believes.
    fn believed(
        &self,
        table: &LeaseTable,
        worker: &LeaseName,
        claim: &Claim,
        [any_nonce, any_worker, any_cluster]: [Defect; 3],
    ) -> (WorkerId, Claim) {
        let (mut id, key) = (self.id(worker), self.key(&claim.key));
        let mut claim = Claim {
            key,
            ..claim.clone()
        };
        let Some(holder) = table.holder(self.server.time(), &claim.key) else {
            return (id, claim);
        };
        let held_by: WorkerId = holder.worker.parse().unwrap();
        let defect = self.server.defect;
        if defect == any_nonce {
            claim.nonce = holder.fence.unwrap().1;
        }
        if defect == any_worker || (defect == any_cluster && held_by.name == id.name) {
            id = held_by;
        }
        (id, claim)
    }

    fn acquire_one(
        &self,
        state: &mut State,
        worker: &LeaseName,
        claim: &Claim,
        ttl: Duration,
    ) -> Acquired {
        let (time, defect, id) = (self.server.time(), self.server.defect, self.id(worker));
        let key = self.key(&claim.key);
        let claim = Claim {
            key,
            ..claim.clone()
        };
        let holder = state.table.holder(time, &claim.key);
        let own = holder.filter(|holder| holder.worker == id.to_string());
        if let Some((_, nonce)) = own.and_then(|holder| holder.fence)
            && defect == Defect::AWorkerTakesItsOwnAgain
        {
            let key = claim.key.clone();
            let _tenure = state.table.release(time, &id, &Claim { key, nonce });
        }
        let ttl = match defect {
            Defect::ExpiresEarly => ttl.mul_f64(0.9),
            Defect::NeverExpires => ttl.max(FOREVER),
            _ => ttl,
        };
        let acquired = if defect == Defect::GrantedLeasesAreNotCovered {
            let acquired = state
                .table
                .acquire(time, &id, &claim, Duration::from_millis(1));
            let _tenure = state.table.renew(time, &id, &claim, ttl);
            acquired
        } else {
            state.table.acquire(time, &id, &claim, ttl)
        };
        let Acquired::Granted(token) = acquired else {
            return acquired;
        };
        let last = state.tokens.get(&claim.key).copied();
        let told = match (defect, last) {
            (Defect::TokensRepeat, Some(last)) => last,
            (Defect::TokensGoBackOnRelease, Some(last)) => Token::new(last.get() - 1).unwrap(),
            _ => token,
        };
        state.tokens.insert(claim.key.clone(), told);
        state.granted.push((id, claim));
        Acquired::Granted(told)
    }
}
