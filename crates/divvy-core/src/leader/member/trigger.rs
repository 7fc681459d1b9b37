//! Why a partition was asked back: told when somebody else gets it.

use super::Member;
use super::draft::Changes;
use super::placement::Answer;
use super::sketch::Sketch;
use crate::leader::action::Handover;
use crate::leader::record::SessionEntry;
use crate::moves::{Considered, MOVES_MAX};

/// What made a leader ask for a partition, and whom it passed over for it.
#[derive(Debug, Clone)]
pub(super) struct Trigger {
    cause: String,
    considered: Vec<Considered>,
}

impl Trigger {
    fn of(cause: &str) -> Self {
        Self {
            cause: cause.to_owned(),
            considered: Vec::new(),
        }
    }

    /// What a strategy said of a partition.
    fn of_answer(answer: &Answer, partition: &str) -> Option<Self> {
        let (cause, rejected) = answer.causes.get(partition)?;
        let considered = rejected.iter().map(|rejected| Considered {
            worker: rejected.worker.clone(),
            score: None,
            rejected: Some(rejected.reason.to_string()),
        });
        let ranking = answer.considered.get(partition).cloned();
        Some(Self {
            cause: cause.to_string(),
            considered: ranking.unwrap_or_else(|| considered.collect()),
        })
    }
}

impl Member {
    /// Why a partition is asked back from whoever may not keep it.
    pub(super) fn note_unfit(
        &self,
        sketch: &Sketch,
        changes: &mut Changes,
        partition: &str,
        holder: usize,
    ) {
        let holder = &sketch.roster.candidates[holder];
        let leading = self.leading.as_ref();
        let is_drained = leading.is_some_and(|l| l.control.drained.contains(&*holder.id));
        let cause = match (holder.may_keep, is_drained) {
            (true, _) => "its worker could not start it",
            (false, true) => "an operator drained its worker",
            (false, false) => "its worker is not healthy, or weighs nothing",
        };
        changes.trigger(partition, || Trigger::of(cause));
    }

    /// Why a partition gets another owner now, and who was passed over.
    pub(super) fn trigger(
        &self,
        partition: &str,
        holder: Option<&SessionEntry>,
        answer: &Answer,
    ) -> (String, Vec<Considered>) {
        let leading = self.leading.as_ref();
        let said = Trigger::of_answer(answer, partition);
        let known = leading.and_then(|leading| leading.triggers.get(partition));
        let considered = said.as_ref().map(|said| said.considered.clone());
        let considered = considered.unwrap_or_default();
        if let Some(known) = known {
            // Whom an operator's wish freed it from is known since then, who
            // gets it only now.
            let considered = match known.considered.is_empty() {
                true => considered,
                false => known.considered.clone(),
            };
            return (known.cause.clone(), considered);
        }
        let handover = holder.and_then(|holder| self.handover(partition, holder));
        let cause = match (holder, handover.map(|(handover, _)| handover)) {
            (None, _) => said.map_or_else(|| "it had no owner".to_owned(), |said| said.cause),
            (Some(_), Some(Handover::Left)) => "its worker left".to_owned(),
            (Some(_), Some(Handover::Crashed)) => "its worker crashed".to_owned(),
            // By an earlier leader, which knew why.
            (Some(_), Some(Handover::AskedBack)) => "it was asked back".to_owned(),
            (Some(_), None) => "its worker began anew".to_owned(),
        };
        (cause, considered)
    }
}

impl Changes {
    /// A partition is asked back because an operator wants it elsewhere.
    pub(super) fn note_pinned(&mut self, partition: &str) {
        self.trigger(partition, || Trigger::of("an operator pinned it elsewhere"));
    }

    /// A partition is asked back because a strategy wants it elsewhere.
    pub(super) fn note_moved(&mut self, partition: &str, answer: &Answer) {
        let said = || Trigger::of_answer(answer, partition);
        self.trigger(partition, || {
            said().unwrap_or_else(|| Trigger::of("balance"))
        });
    }

    /// Of very many at once, as many as the log has room for.
    fn trigger(&mut self, partition: &str, trigger: impl FnOnce() -> Trigger) {
        if self.triggers.len() < MOVES_MAX {
            self.triggers.push((partition.into(), trigger()));
        }
    }
}
