//! Why things of a live cluster are where they are: what `divvy why` shows.

use divvy::observer::{Mode, PartitionStatus};
use divvy_core::{Considered, Invalid};

use super::Live;
use super::sight::mark;
use crate::document::WorkerView;
use crate::engine::explain::{RANKS_MAX, RankDocument, TenureDocument};
use crate::engine::{PartitionDocument, Refusal, WorkerDocument};
use crate::stage::Ranking;

/// Past owners of a partition that are told.
const TENURES_MAX: usize = 32;

impl Live {
    /// A partition, its ranking as far as it is known, and who had it.
    pub(super) fn account_of(
        &self,
        name: &str,
        ranking: Ranking,
    ) -> Result<PartitionDocument, Refusal> {
        let all = &self.seen.partitions;
        let Some(number) = all.iter().position(|partition| partition.name == name) else {
            let invalid = Invalid::new("partition", name, "is not there");
            return Err(Refusal::Missing(invalid.to_string()));
        };
        let partition = &all[number];
        let token = partition.token.map(|token| token.to_string());
        let owner = partition.owner.as_deref().unwrap_or("");
        let token = token.filter(|token| !self.log.is_of_another(name, token, owner));
        let (ranking, method) = self.ranked(partition, ranking);
        let worker = self.owner(partition).filter(|_| !partition.orphaned);
        Ok(PartitionDocument {
            name: name.to_owned(),
            number,
            weight: partition.weight,
            owner: worker.map_or(-1, |worker| worker as i32),
            also: Vec::new(),
            token,
            mark: mark(partition),
            pinned: partition.pinned.is_some(),
            why: why(partition),
            method,
            ranking,
            owners: self.tenures(partition),
        })
    }

    /// How workers rank now where the store tells, otherwise how they did when
    /// it was last moved.
    fn ranked(&self, partition: &PartitionStatus, now: Ranking) -> (Vec<RankDocument>, String) {
        if self.mode == Mode::Lease {
            let method = match now {
                Some(_) => "by rendezvous, as things are now",
                None => "the store does not answer: how workers rank is not known",
            };
            return (self.ranks(&now.unwrap_or_default()), method.to_owned());
        }
        let last = self.log.of(&partition.name).last();
        let considered = last.map_or(&[][..], |entry| &entry.considered);
        let method = match considered {
            [] => "by the leader's strategy, which only the leader knows",
            _ => "by the leader's strategy, when it last moved",
        };
        (self.ranks(considered), method.to_owned())
    }

    fn ranks(&self, considered: &[Considered]) -> Vec<RankDocument> {
        let ranked = considered.iter().filter_map(|rank| {
            let number = self.roster.find(&rank.worker)?;
            let known = self.roster.get(number)?;
            Some(RankDocument {
                worker: number,
                name: known.title(),
                hash: None,
                score: rank.score,
                weight: known.status.as_ref().map_or(1.0, |status| status.weight),
                eligible: rank.rejected.is_none(),
                why_not: rank.rejected.clone(),
            })
        });
        ranked.take(RANKS_MAX).collect()
    }

    /// Who had a partition, by the log of moves.
    fn tenures(&self, partition: &PartitionStatus) -> Vec<TenureDocument> {
        let mut tenures: Vec<TenureDocument> = Vec::new();
        for entry in self.log.of(&partition.name) {
            let at_ms = self.at_ms(entry.unix_ms);
            if let Some(last) = tenures.last_mut() {
                last.until_ms.get_or_insert(at_ms);
            }
            let number = entry.to.as_deref().and_then(|to| self.roster.find(to));
            let Some((number, known)) = number.and_then(|at| Some((at, self.roster.get(at)?)))
            else {
                continue;
            };
            tenures.push(TenureDocument {
                worker: number,
                name: known.title(),
                token: entry.token.clone(),
                from_ms: at_ms,
                until_ms: None,
                cause: None,
                text: entry.cause.clone(),
            });
        }
        let surplus = tenures.len().saturating_sub(TENURES_MAX);
        tenures.split_off(surplus)
    }

    /// A worker, with what it has.
    pub(super) fn account_of_worker(&self, number: usize) -> Result<WorkerDocument, Refusal> {
        let Some(worker) = self.worker_view(number) else {
            let invalid = Invalid::new("worker", number, "is not there");
            return Err(Refusal::Missing(invalid.to_string()));
        };
        let owned = self.seen.partitions.iter();
        let owned = owned.filter(|partition| self.owner(partition) == Some(number));
        let names = owned.map(|partition| partition.name.clone());
        let name = &worker.name;
        let explain = match worker.state {
            "silent" => format!("{name} has not renewed its lease in time: others get what it has"),
            "unknown" => {
                format!("{name} was not looked at for long enough to see whether it lives")
            }
            "away" => format!("{name} left, and is expected back"),
            _ if !worker.alive => format!("{name} is gone"),
            _ => share_of(&worker),
        };
        Ok(WorkerDocument::new(worker, names, explain))
    }
}

/// What a worker that takes part has, and what it should.
pub(crate) fn share_of(worker: &WorkerView) -> String {
    let name = &worker.name;
    match worker {
        _ if worker.draining => format!("{name} is drained and gets nothing"),
        _ if worker.share == 0.0 => format!("{name} may have nothing as it is"),
        _ => format!(
            "{name} has {} partitions that weigh {}; by weight its share is {}",
            worker.owned, worker.load, worker.share
        ),
    }
}

/// Why a partition is where it is, as far as the store tells.
fn why(partition: &PartitionStatus) -> String {
    let mut text = match partition.owner.as_deref() {
        None if partition.misaligned == Some("cap") => {
            "nobody has it: all who could take it have as many as they may".to_owned()
        }
        None if partition.misaligned == Some("quarantine") => {
            "nobody has it: the store may have forgotten leases, and grants nothing yet".to_owned()
        }
        None => "nobody has it".to_owned(),
        Some(owner) if partition.asked_back => format!("it is asked back from {owner}"),
        Some(owner) if partition.orphaned => format!("it was with {owner}, which is gone"),
        Some(owner) if partition.foreign => {
            format!("{owner} has it, which is not of this cluster")
        }
        Some(owner) => format!("{owner} has it"),
    };
    let desired = partition.desired.as_ref();
    let desired = desired.filter(|desired| partition.owner.as_ref() != Some(*desired));
    if let Some(desired) = desired {
        text.push_str(&format!(", and {desired} should"));
    }
    if let Some(pinned) = &partition.pinned {
        text.push_str(&format!("; it is pinned to {pinned}"));
    }
    text
}
