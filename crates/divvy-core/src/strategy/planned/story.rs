//! Why a partition is where a plan puts it, in sentences.

use crate::plan::{By, Cause, Decision, Reason, Stay, What};
use crate::proposal::Change;
use crate::worker::Workers;

/// What a plan decided about one partition.
pub(super) struct Story<'a> {
    pub(super) workers: &'a Workers,
    pub(super) owner: &'a str,
    /// Who ranks first of those that may own something.
    pub(super) first: &'a str,
    /// `None` where it stays.
    pub(super) change: Option<&'a Change>,
    pub(super) decision: &'a Decision,
}

impl Story<'_> {
    pub(super) fn told(&self) -> String {
        let came = match self.change.map(|change| (&change.from, change.cause)) {
            Some((Some(from), cause)) => {
                let cause = match cause {
                    Cause::Over if self.decision.by_count => "over its share".to_owned(),
                    Cause::Under if self.decision.by_count => "another under its share".to_owned(),
                    cause => cause.to_string(),
                };
                format!("It moves from {from} to {}: {cause}. ", self.owner)
            }
            _ => String::new(),
        };
        let decided = match self.decision.what {
            What::Placed { number, of, by } => self.placed(number, of, by),
            What::Moved {
                from,
                cause,
                beyond,
            } => self.moved(from, cause, beyond),
            What::Stayed(stay) => self.stayed(stay),
        };
        came + &decided
    }

    fn id(&self, worker: u32) -> &str {
        self.workers.as_slice()[worker as usize].id()
    }

    fn placed(&self, number: usize, of: usize, by: By) -> String {
        let owner = self.owner;
        let order = match self.decision.by_count {
            true => "",
            false => ", the heaviest first",
        };
        let placed = match of {
            1 => "It was placed".to_owned(),
            of => format!("It was placed as number {number} of {of}{order}"),
        };
        let lightest = match self.decision.by_zone {
            true => "lightest of the lightest zone",
            false => "lightest",
        };
        match by {
            By::Giant => {
                format!("It is too heavy for the band of any worker, so it has {owner} to itself.")
            }
            By::Extreme => format!(
                "{placed}. It is one of the heaviest, which go to the {lightest} whatever their \
                 rank: {owner}."
            ),
            By::Preference => format!("{placed}, on {owner}, which ranks first."),
            By::Lightest {
                preferred,
                reason,
                limit,
            } => {
                let passed = self.id(preferred);
                let why_not = match (reason, limit) {
                    (Reason::OverBand, Some((load, most))) => {
                        format!("would have had {load}, and is filled up to {most}")
                    }
                    (Reason::OverZone, Some((load, most))) => {
                        format!(
                            "would have brought its zone to {load}, which is filled up to {most}"
                        )
                    }
                    (Reason::Reserved, _) => {
                        "others lacked so much that they needed all that was left".to_owned()
                    }
                    (Reason::Full, _) => "had all that it may have".to_owned(),
                    (reason, _) => reason.to_string(),
                };
                format!(
                    "{placed}. {passed} ranks first, but {why_not}: the {lightest} was {owner}."
                )
            }
        }
    }

    fn moved(&self, from: u32, cause: Cause, beyond: Option<(u64, u64)>) -> String {
        let (owner, from) = (self.owner, self.id(from));
        let is_new = self
            .change
            .is_none_or(|change| change.from.as_deref() != Some(from));
        let first = match is_new {
            true => format!("It was placed on {from} first, and then moved to {owner}. "),
            false => String::new(),
        };
        let why = match (cause, beyond) {
            (Cause::Over, Some((load, most))) => {
                format!("{from} had {load}, and should have {most} at most.")
            }
            (Cause::Under, Some((load, least))) => {
                format!("{owner} had {load}, and should have {least} at least.")
            }
            (Cause::Over | Cause::Under, None) => format!(
                "It changed places with another, which brought {from} or {owner} closer to the \
                 band."
            ),
            (Cause::Extremes, _) => {
                format!("{from} had more of the heaviest partitions than one worker may.")
            }
            (Cause::Zone, _) => {
                "Its zone had more than its share, or that of the other less.".to_owned()
            }
            (cause, _) => format!("The reason was: {cause}."),
        };
        first + &why
    }

    fn stayed(&self, stay: Stay) -> String {
        let owner = self.owner;
        let Stay {
            before,
            after,
            least,
            most,
            given,
            is_giant,
        } = stay;
        let others = match given {
            1 => "1 other".to_owned(),
            given => format!("{given} others"),
        };
        let why = if is_giant {
            "being too heavy for the band of any worker, and has it to itself.".to_owned()
        } else if self.decision.by_count {
            let gives = match given {
                0 => "it gives nothing up".to_owned(),
                _ => format!("it gives up {others}, the last by name"),
            };
            format!("which had {before} partitions and has a share of {after}: {gives}.")
        } else if after > most {
            format!(
                "which has {after} and should have {most} at most: no move was found that helps."
            )
        } else if before > most {
            format!(
                "which had {before} and should have {most} at most: it gives up {others}, and \
                 that is enough."
            )
        } else if before < least {
            format!("which had {before} and should have {least} at least: it gives nothing up.")
        } else if given > 0 {
            format!(
                "which had {before}, inside its band of {least} to {most}: it gives up only \
                 {others}, and this one was not needed."
            )
        } else {
            format!(
                "which had {before}, inside its band of {least} to {most}: nothing has to leave it."
            )
        };
        let rank = match self.first == owner {
            true => String::new(),
            false => format!(
                " That {} ranks first is no reason to move it: this would cost a move, and \
                 balance does not need it.",
                self.first
            ),
        };
        format!("It stays on {owner}, {why}{rank}")
    }
}
