//! Why a partition is where it is, for a person to follow.

use serde::Serialize;

use crate::worker::{Veto, Worker};

/// The ranking behind one placement.
///
/// ```
/// use divvy_core::{Partitions, Rendezvous, Strategy, Workers};
///
/// let workers = Workers::of(["alpha", "beta", "gamma"])?;
/// let partitions = Partitions::shards([("orders", 100)])?;
/// let explanation = Rendezvous::new().explain("orders:60", &workers, &partitions, None)?;
/// assert_eq!(explanation.owner, "alpha");
/// assert_eq!(explanation.ranking.len(), 3);
/// assert_eq!(explanation.ranking[0].worker, "alpha");
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The partition's text form.
    pub partition: String,
    /// The id of its owner: the first of the ranking that nothing vetoes.
    pub owner: String,
    /// Why the partition is there, in sentences, where that takes more than a
    /// ranking: when it was placed and what the first in rank had then, why it
    /// moves, or why it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How the ranking comes about, in a sentence or two.
    pub method: String,
    /// What [`Ranked::load`] is, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<LoadsAt>,
    /// All workers, the best first.
    pub ranking: Vec<Ranked>,
}

/// When loads were measured, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoadsAt {
    /// Whether they are numbers of partitions, and not sums of their weights.
    pub by_count: bool,
    /// Whether they are those of the finished plan, in which the partition
    /// stays where it was. Otherwise they are those just before it was placed
    /// or moved: what was placed later is not in them.
    pub after: bool,
}

/// One worker's place in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// 1 for the best.
    pub rank: usize,
    /// The worker's id.
    pub worker: String,
    /// Its weight.
    pub weight: f64,
    /// What was hashed for it, in hexadecimal; `None` where nothing was.
    pub hash: Option<String>,
    /// What the ranking goes by, higher being better; `None` where the
    /// strategy does not score.
    pub score: Option<f64>,
    /// What it had when the place of the partition was decided; `None` where
    /// that does not depend on loads. [`Explanation::loads`] says what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<u64>,
    /// Why it does not get the partition, whatever its rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub veto: Option<Veto>,
}

impl Explanation {
    /// Ranks candidates that are in order, the best first.
    pub(crate) fn ranked<'a>(
        partition: &str,
        method: impl Into<String>,
        candidates: impl IntoIterator<Item = (&'a Worker, Option<String>, Option<f64>)>,
    ) -> Self {
        let ranking: Vec<Ranked> = candidates
            .into_iter()
            .enumerate()
            .map(|(index, (worker, hash, score))| Ranked {
                rank: index + 1,
                worker: worker.id().to_owned(),
                weight: worker.weight(),
                hash,
                score,
                load: None,
                veto: worker.veto(),
            })
            .collect();
        let owner = ranking
            .iter()
            .find(|candidate| candidate.veto.is_none())
            .map(|candidate| candidate.worker.clone())
            .expect("callers make sure that a worker is eligible");
        Self {
            partition: partition.to_owned(),
            owner,
            why: None,
            method: method.into(),
            loads: None,
            ranking,
        }
    }
}
