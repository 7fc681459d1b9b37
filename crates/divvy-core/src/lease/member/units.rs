//! Units: every partition that this worker knows of, by a number that stays
//! its own.

use std::collections::BTreeMap;

use crate::lease::action::TenureId;
use crate::lease::group::Group;
use crate::moment::Moment;
use crate::store::{LeaseKey, LeaseName, Nonce};

/// Who should have a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// The peer that should, by its number in the roster.
    pub(super) desired: Option<u32>,
    /// How many that could have it come before this worker; nothing if it may
    /// not.
    pub(super) rank: Option<u32>,
    /// Nobody should, because everyone who may has as many as it may.
    pub(super) is_capped: bool,
}

/// What was last seen of a lease that this worker does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing.
    Unknown,
    /// Nobody holds it.
    Free {
        since: Moment,
        /// Whose lease ran out, if it was not given back: there is no waiting
        /// for that one.
        lapsed: Option<Box<str>>,
    },
    /// This one holds it, at least until then.
    Held {
        by: Box<str>,
        until: Moment,
        /// It should have been renewed by now.
        is_late: bool,
    },
}

/// One unit.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) key: LeaseKey,
    /// The number of its group among those that this worker serves; nothing if
    /// it is no part of one.
    pub(super) group: Option<u32>,
    pub(super) place: Place,
    pub(super) seen: Seen,
    pub(super) tenure: Option<TenureId>,
    /// A wish for it is under way.
    pub(super) is_wished: bool,
    /// The nonce of a wish that was not answered.
    pub(super) doubt: Option<Nonce>,
    /// Its start failed so often in a row, and is not tried again before then.
    pub(super) failures: u32,
    pub(super) not_before: Option<Moment>,
    /// It was given up, and nobody has been seen with it since.
    pub(super) is_given_up: bool,
    /// It was given up in vain so often, and is not again before then.
    pub(super) vain: u32,
    pub(super) keep_until: Option<Moment>,
    /// It was moved so lately that it had to stay.
    pub(super) is_cooling: bool,
}

impl Unit {
    fn new(key: LeaseKey) -> Self {
        Self {
            key,
            group: None,
            place: Place::default(),
            seen: Seen::Unknown,
            tenure: None,
            is_wished: false,
            doubt: None,
            failures: 0,
            not_before: None,
            is_given_up: false,
            vain: 0,
            keep_until: None,
            is_cooling: false,
        }
    }

    /// Whether this worker could try to take it.
    pub(super) const fn is_takeable(&self) -> bool {
        self.group.is_some() && self.tenure.is_none() && !self.is_wished
    }
}

/// All units.
#[derive(Debug, Clone, Default)]
pub(super) struct Units {
    all: Vec<Unit>,
    /// The numbers of each group's units, in order.
    numbers: BTreeMap<LeaseName, Vec<u32>>,
}

impl Units {
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Unit)> {
        (0_u32..).zip(&self.all)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Unit> {
        self.all.iter_mut()
    }

    /// What was free before this moment counts as free from it on.
    pub(super) fn free_since(&mut self, moment: Moment) {
        for unit in &mut self.all {
            if let Seen::Free { since, .. } = &mut unit.seen {
                *since = moment.max(*since);
            }
        }
    }

    pub(super) fn get(&self, number: u32) -> &Unit {
        &self.all[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Unit {
        &mut self.all[number as usize]
    }

    /// The number of the unit with this key, if it is known.
    pub(super) fn find(&self, key: &LeaseKey) -> Option<u32> {
        let numbers = self.numbers.get(&key.group)?;
        numbers.get(key.number as usize).copied()
    }

    /// From now on these groups are served, and no others. Units keep their
    /// numbers: of a group that comes back, they are known again.
    pub(super) fn serve(&mut self, groups: &[Group]) {
        self.serve_from(groups, None);
    }

    /// The same; those that were not served are not taken before then.
    pub(super) fn serve_from(&mut self, groups: &[Group], since: Option<Moment>) {
        let served = self.all.iter().map(|unit| unit.group.is_some());
        let served: Vec<bool> = served.collect();
        for unit in &mut self.all {
            unit.group = None;
        }
        for (index, group) in (0_u32..).zip(groups) {
            let numbers = self.numbers.entry(group.name().clone()).or_default();
            for number in 0..group.partitions() {
                if numbers.len() <= number as usize {
                    numbers.push(self.all.len() as u32);
                    self.all.push(Unit::new(LeaseKey {
                        group: group.name().clone(),
                        number,
                    }));
                }
                let at = numbers[number as usize] as usize;
                self.all[at].group = Some(index);
                if !served.get(at).copied().unwrap_or(false) {
                    let known = self.all[at].not_before;
                    self.all[at].not_before = known.max(since);
                }
            }
        }
        for unit in &mut self.all {
            if unit.group.is_none() {
                // Nobody looks at it, nor decides again who should have it: what
                // is known of it would grow old.
                unit.seen = Seen::Unknown;
                unit.place = Place::default();
            }
        }
    }

    /// The numbers of the units of this group.
    pub(super) fn of(&self, group: &Group) -> &[u32] {
        let numbers = self.numbers.get(group.name());
        numbers.map_or(&[], |numbers| &numbers[..group.partitions() as usize])
    }
}

impl Units {
    /// How many units are part of no served group.
    pub(super) fn unserved(&self) -> usize {
        self.all.iter().filter(|unit| unit.group.is_none()).count()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets groups that are not served and have no tenures. Gives the new
    /// number of every unit that is left.
    pub(super) fn compact(&mut self) -> Vec<Option<u32>> {
        let units = &self.all;
        let is_used = |numbers: &Vec<u32>| {
            let mut units = numbers.iter().map(|number| &units[*number as usize]);
            units.any(|unit| unit.group.is_some() || unit.tenure.is_some())
        };
        self.numbers.retain(|_, numbers| is_used(numbers));
        let mut renumbered = vec![None; self.all.len()];
        for (kept, number) in (0_u32..).zip(self.numbers.values_mut().flatten()) {
            renumbered[*number as usize] = Some(kept);
            *number = kept;
        }
        let mut all: Vec<(u32, Unit)> = std::mem::take(&mut self.all)
            .into_iter()
            .zip(&renumbered)
            .filter_map(|(unit, number)| Some(((*number)?, unit)))
            .collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        self.all = all.into_iter().map(|(_, unit)| unit).collect();
        renumbered
    }
}
