//! The workers of a live cluster that were ever seen, each with a number.

use std::collections::{BTreeMap, BTreeSet};

use divvy::observer::{Snapshot, WorkerLife, WorkerStatus};

use crate::shown::GONE_SHOWN_MAX;

/// A worker that was seen, if only in the log of moves.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) name: String,
    /// What the store said of it last.
    pub(crate) status: Option<WorkerStatus>,
    /// Whether the store still says that.
    pub(crate) is_listed: bool,
}

impl Known {
    /// Whether it takes part, as far as is known.
    pub(crate) fn is_here(&self) -> bool {
        let is_here = |status: &WorkerStatus| status.life.is_here();
        self.is_listed && self.status.as_ref().is_some_and(is_here)
    }

    /// What it is doing, in a word.
    pub(crate) fn state(&self) -> &'static str {
        match &self.status {
            Some(status) if self.is_listed => status.life.as_str(),
            _ => "gone",
        }
    }

    /// What people call it: the instance says more than a number does.
    pub(crate) fn title(&self) -> String {
        let status = self.status.as_ref();
        let instance = status.and_then(|status| status.instance.clone());
        instance.unwrap_or_else(|| self.name.clone())
    }
}

/// What became of a worker between two looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) worker: usize,
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// All that were seen, by number.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    all: Vec<Known>,
    numbers: BTreeMap<String, usize>,
    /// The numbers that instances have, whatever ids they get.
    seats: BTreeMap<String, usize>,
}

impl Roster {
    /// A roster whose first numbers are kept for instances that are known
    /// before they are seen.
    pub(crate) fn with_seats(count: usize) -> Self {
        let empty = Known {
            name: String::new(),
            status: None,
            is_listed: false,
        };
        Self {
            all: vec![empty; count],
            ..Self::default()
        }
    }

    /// This number is that of an instance.
    pub(crate) fn seat(&mut self, number: usize, instance: &str) {
        if self.seats.get(instance) != Some(&number) {
            self.seats.insert(instance.to_owned(), number);
            self.numbers.insert(instance.to_owned(), number);
            instance.clone_into(&mut self.all[number].name);
        }
    }

    /// The number of this name, which is its own from then on.
    pub(crate) fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.all.len();
        self.numbers.insert(name.to_owned(), number);
        self.all.push(Known {
            name: name.to_owned(),
            status: None,
            is_listed: false,
        });
        number
    }

    /// The number of a name that was seen.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// The worker of this number.
    pub(crate) fn get(&self, number: usize) -> Option<&Known> {
        self.all.get(number)
    }

    /// All, by number.
    pub(crate) fn all(&self) -> &[Known] {
        &self.all
    }

    /// Those that are shown: who is gone without having been seen alive, and the
    /// first of too many that are gone, are not.
    pub(crate) fn shown(&self) -> BTreeSet<usize> {
        let seen = (0..self.all.len()).filter(|number| self.all[*number].status.is_some());
        let (here, gone): (Vec<usize>, Vec<usize>) =
            seen.partition(|number| self.all[*number].is_here());
        let surplus = gone.len().saturating_sub(GONE_SHOWN_MAX);
        here.into_iter()
            .chain(gone.into_iter().skip(surplus))
            .collect()
    }

    /// Takes in who is there, and tells what became of whom.
    pub(crate) fn take_in(&mut self, seen: &Snapshot) -> Vec<Turn> {
        let mut turns = Vec::new();
        let listed = self.listed(seen);
        for (number, known) in self.all.iter_mut().enumerate() {
            if known.is_listed && !listed.contains_key(&number) {
                let was_here = known.is_here();
                known.is_listed = false;
                let text = format!("{} is not in the store any more", known.title());
                turns.extend(was_here.then_some(Turn {
                    worker: number,
                    kind: "left",
                    text,
                }));
            }
        }
        for (number, status) in listed {
            let known = &mut self.all[number];
            let before = known.clone();
            status.name.clone_into(&mut known.name);
            known.status = Some(status.clone());
            known.is_listed = true;
            turns.extend(compare(&before, known, number));
        }
        turns
    }

    /// What the store says of each worker, by number. An instance that has come
    /// back under another id is told by the one that it has now.
    fn listed<'a>(&mut self, seen: &'a Snapshot) -> BTreeMap<usize, &'a WorkerStatus> {
        let mut listed: BTreeMap<usize, &WorkerStatus> = BTreeMap::new();
        for status in &seen.workers {
            let instance = status.instance.as_ref().unwrap_or(&status.name);
            let number = match self.seats.get(instance) {
                Some(number) => *number,
                None => self.number(&status.name),
            };
            self.numbers.insert(status.name.clone(), number);
            let other = listed.get(&number);
            if !other.is_some_and(|other| other.life.is_here()) {
                listed.insert(number, status);
            }
        }
        listed
    }
}

/// What is different about a worker.
fn compare(before: &Known, now: &Known, worker: usize) -> Vec<Turn> {
    let mut turns = Vec::new();
    let title = now.title();
    let mut tell = |kind: &'static str, text: String| turns.push(Turn { worker, kind, text });
    let Some(new) = &now.status else {
        return turns;
    };
    let old = before.status.as_ref().filter(|_| before.is_listed);
    match (old.map(|old| old.life), new.life) {
        (Some(old), new) if old == new => {}
        (Some(WorkerLife::Unknown), WorkerLife::Live) => {}
        (None, WorkerLife::Live | WorkerLife::Unknown) => {
            tell("joined", format!("{title} is here"));
        }
        (_, WorkerLife::Live | WorkerLife::Unknown) => tell("joined", format!("{title} is back")),
        (_, WorkerLife::Silent) => tell(
            "killed",
            format!("{title} has not renewed its lease in time"),
        ),
        (None, _) => {}
        (_, WorkerLife::Fenced) => tell("killed", format!("{title} was silent, and is over")),
        (_, WorkerLife::Away) => tell("left", format!("{title} left, and is expected back")),
        (_, _) => tell("left", format!("{title} left")),
    }
    if new.leads && !old.is_some_and(|old| old.leads) {
        tell("leader", format!("{title} leads"));
    }
    let Some(old) = old else {
        return turns;
    };
    let wishes = [
        (
            old.cordoned,
            new.cordoned,
            "is cordoned",
            "is not cordoned any more",
        ),
        (
            old.drained,
            new.drained,
            "is drained",
            "is not drained any more",
        ),
    ];
    for (was, is, on, off) in wishes {
        if was != is {
            let text = if is { on } else { off };
            tell("wish", format!("{title} {text}"));
        }
    }
    if old.healthy != new.healthy {
        let text = if new.healthy { "healthy" } else { "unhealthy" };
        tell("note", format!("{title} says that it is {text}"));
    }
    if old.weight != new.weight {
        tell("setting", format!("{title} weighs {}", new.weight));
    }
    turns
}
