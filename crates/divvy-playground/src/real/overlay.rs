//! What only the playground knows, laid over what the store tells.

use super::Real;
use super::board::{Known, Place};
use crate::document::{InvariantsView, PartitionsView, WorkerView};
use crate::engine::{Refusal, WorkerDocument};
use crate::live::share_of;
use crate::shown::{GONE_SHOWN_MAX, Shown};

impl Real {
    /// All that is shown now.
    pub(super) fn see(&self) -> Shown {
        let known = self.board.known();
        let mut shown = self.live.see();
        if shown.partitions.names.is_empty() {
            list(&mut shown, &known);
        }
        let settings = &mut shown.settings;
        settings.preset = Some(known.setup.preset.clone());
        settings.strategy = Some(known.setup.strategy.as_str());
        settings.exclusive = Some(known.setup.exclusive);
        settings.lease_ms = Some(known.lease_ms);
        if shown.store.trouble.is_none() {
            shown.store.state = match known.store {
                divvy_sim::StoreState::Up => "up",
                divvy_sim::StoreState::Slow => "slow",
                divvy_sim::StoreState::Down => "down",
            };
        }
        for (number, place) in known.places.iter().enumerate() {
            let seen = shown.workers.remove(&number);
            let view = lay_over(seen.unwrap_or_else(|| unseen(number, place)), place);
            shown.workers.insert(number, view);
        }
        let gone: Vec<usize> = shown
            .workers
            .iter()
            .filter(|(_, worker)| !worker.alive)
            .map(|(number, _)| *number)
            .collect();
        for number in &gone[..gone.len().saturating_sub(GONE_SHOWN_MAX)] {
            shown.workers.remove(number);
        }
        mark(&mut shown, &known);
        shown.invariants = InvariantsView {
            checked: known.judge.checked(),
            violations: self.violations.clone(),
        };
        shown
    }

    /// A worker, with what it has.
    pub(super) fn account_of(&self, number: usize) -> Result<WorkerDocument, Refusal> {
        let shown = self.live.shown();
        let Some(worker) = shown.workers.get(&number).cloned() else {
            return Err(Refusal::Missing(format!("there is no worker {number}")));
        };
        let partitions = &shown.partitions;
        let owned = partitions.names.iter().zip(&partitions.owners);
        let owned = owned.filter(|(_, owner)| **owner == number as i32);
        let names = owned.map(|(name, _)| name.clone());
        let name = &worker.name;
        let explain = match &worker {
            worker if !worker.alive => format!("{name} is gone"),
            worker if worker.paused == Some(true) => {
                format!("{name} stands still: its lease runs out, and others get what it has")
            }
            worker if worker.isolated.is_some() => format!(
                "{name} is cut off: it stops before its lease ends, and others get what it has"
            ),
            worker if worker.state == "starting" => format!("{name} has not joined yet"),
            worker => share_of(worker),
        };
        Ok(WorkerDocument::new(worker, names, explain))
    }
}

/// The partitions that nobody has said to the store that there are: it does not
/// know them before somebody leads, or while nobody has a lease.
fn list(shown: &mut Shown, known: &Known) {
    let count = known.setup.partitions;
    let names = (0..count).map(|number| format!("{}:{number}", known.group));
    shown.partitions = PartitionsView {
        names: names.collect(),
        weights: None,
        owners: vec![-1; count],
        tokens: vec![String::new(); count],
        marks: vec![8; count],
    };
    shown.summary.partitions = count;
}

/// A worker that the store knows nothing of.
fn unseen(number: usize, place: &Place) -> WorkerView {
    WorkerView {
        number,
        name: place.name.clone(),
        id: None,
        state: "starting",
        alive: true,
        leader: false,
        health: "healthy",
        weight: place.weight,
        zone: place.zone.clone(),
        paused: None,
        isolated: None,
        slow: None,
        broken: None,
        cordoned: false,
        draining: false,
        owned: 0,
        load: 0.0,
        share: 0.0,
        lease_left_ms: None,
        lease_ms: None,
    }
}

fn lay_over(seen: WorkerView, place: &Place) -> WorkerView {
    let alive = place.is_alive();
    WorkerView {
        name: place.name.clone(),
        state: match (alive, seen.alive, seen.state) {
            (false, ..) => "gone",
            // Who has a process and is not in the store any more starts anew.
            (true, false, "gone" | "left") => "starting",
            (true, _, state) => state,
        },
        alive,
        leader: seen.leader && alive,
        paused: Some(place.paused),
        isolated: place.isolated,
        slow: Some(place.slow),
        broken: Some(place.broken),
        ..seen
    }
}

/// What hooks say of partitions, and what was done to who has them.
fn mark(shown: &mut Shown, known: &Known) {
    let (partitions, summary) = (&mut shown.partitions, &mut shown.summary);
    let by_number = |name: &str| -> Option<usize> { name.rsplit(':').next()?.parse().ok() };
    let mut index = vec![None; known.partitions_max as usize];
    for (at, name) in partitions.names.iter().enumerate() {
        if let Some(slot) = by_number(name).and_then(|number| index.get_mut(number)) {
            *slot = Some(at);
        }
    }
    let at = |number: u32| index.get(number as usize).copied().flatten();
    for (mark, owner) in partitions.marks.iter_mut().zip(&partitions.owners) {
        let owner = usize::try_from(*owner).ok();
        let place = owner.and_then(|owner| known.places.get(owner));
        if place.is_some_and(|place| place.paused || place.isolated.is_some()) {
            *mark = 5;
        }
    }
    for partition in known.judge.changing().filter_map(at) {
        partitions.marks[partition] = 1;
    }
    let doubles = known.judge.doubles();
    summary.two_owners = Some(doubles.len());
    for partition in doubles.into_iter().filter_map(at) {
        partitions.marks[partition] = 9;
    }
    summary.moving = partitions.marks.iter().filter(|mark| **mark == 1).count();
    if partitions
        .marks
        .iter()
        .any(|mark| matches!(mark, 1 | 5 | 9))
    {
        summary.converged = false;
        summary.converged_for_ms = 0;
    }
}
