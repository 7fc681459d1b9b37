//! Who should have what: weighted rendezvous over those who may, with as many
//! for each as it has room for.
//!
//! Without limits everyone is given what it is first for. With limits, units
//! ask their workers in order of rank, and a worker that is asked for too many
//! keeps those that it scores highest for: what comes out does not depend on
//! the order of asking, so all workers agree.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::roster::{Peer, Roster};
use super::units::{Place, Units};
use super::wishes::Wishes;
use crate::lease::group::Group;
use crate::lease::hashes::{Column, Hashes};
use crate::moves::Considered;
use crate::strategy::rendezvous::rendezgo;

/// A worker that may have units of a group, and how it scores for one.
#[derive(Debug, Clone, Copy)]
struct Scored {
    peer: u32,
    score: f64,
}

/// Scores of one group's units.
struct Scores<'a> {
    group: &'a Group,
    /// Who may have them, and their numbers.
    peers: Vec<(u32, &'a Peer)>,
    /// Below which number each of them serves the group's units.
    sizes: Vec<u32>,
    /// All weigh the same, so that hashes alone decide.
    is_even: bool,
    /// Units that are pinned, and to whom.
    pins: BTreeMap<u32, u32>,
    /// What they hash to, where that is known of all.
    columns: Option<Vec<&'a Column>>,
    scratch: Vec<u8>,
}

impl<'a> Scores<'a> {
    fn new(
        group: &'a Group,
        roster: &'a Roster,
        (wishes, hashes): (&Wishes, &'a Hashes),
        serves: impl Fn(&Peer) -> bool,
    ) -> Self {
        let peers: Vec<(u32, &Peer)> = (0_u32..)
            .zip(roster.peers())
            .filter(|(_, peer)| serves(peer))
            .collect();
        let size = |(number, peer): &(u32, &Peer)| match *number == roster.me() {
            // What it knows of itself is newer than what it has told.
            true => u32::MAX,
            false if roster.numbers_are_new => u32::MAX,
            false => peer.units_of(group),
        };
        let sizes: Vec<u32> = peers.iter().map(size).collect();
        let pins = wishes.pins(group).into_iter();
        let pins = pins.filter_map(|(unit, worker)| {
            let mut sized = peers.iter().zip(&sizes);
            let named = sized.find(|((_, peer), size)| *peer.name == *worker && unit < **size);
            named.map(|((number, _), _)| (unit, *number))
        });
        let columns = peers.iter().map(|(_, peer)| hashes.of(group, &peer.id));
        let columns = columns.collect();
        let weight = peers.first().map_or(0.0, |(_, peer)| peer.info.weight);
        Self {
            group,
            pins: pins.collect(),
            is_even: peers.iter().all(|(_, peer)| peer.info.weight == weight),
            peers,
            sizes,
            columns,
            scratch: Vec::new(),
        }
    }

    /// The places of all units of the group, where hashes are known: worker by
    /// worker, which takes a fraction of the time.
    fn place_known(&self, me: u32) -> Option<Vec<Place>> {
        let columns = self.columns.as_ref()?;
        let count = self.group.partitions() as usize;
        let scores = |column: &'a Column| match self.is_even {
            true => &column.hashes()[..count],
            false => &column.logarithms()[..count],
        };
        let all = || self.peers.iter().zip(columns).zip(&self.sizes);
        // Who weighs the same is compared by hashes alone.
        let score = |weight: f64, value: f64| match self.is_even {
            true => value,
            false => weight / -value,
        };
        let mut best = vec![(f64::NEG_INFINITY, None); count];
        for ((&(number, peer), column), size) in all() {
            let weight = peer.info.weight;
            let served = best.iter_mut().take(*size as usize);
            for (best, value) in served.zip(scores(column)) {
                let score = score(weight, *value);
                // Of two that score the same, the first comes first.
                if score > best.0 {
                    *best = (score, Some(number));
                }
            }
        }
        let mut ranks = vec![0_u32; count];
        let mine = all().find(|(((number, _), _), _)| *number == me);
        if let Some((((_, own), own_column), _)) = mine {
            let others = all().filter(|(((number, _), _), _)| *number != me);
            for ((&(number, peer), column), size) in others {
                let values = scores(column).iter().zip(scores(own_column));
                let served = ranks.iter_mut().take(*size as usize);
                for (rank, (value, own_value)) in served.zip(values) {
                    let score_then = score(peer.info.weight, *value);
                    let own_score = score(own.info.weight, *own_value);
                    let is_before =
                        score_then > own_score || score_then == own_score && number < me;
                    *rank += u32::from(is_before);
                }
            }
        }
        let places = best
            .into_iter()
            .zip(ranks)
            .map(|((_, desired), rank)| Place {
                desired,
                rank: mine.map(|_| rank),
                is_capped: false,
            });
        Some(places.collect())
    }

    fn scored(&mut self, unit: u32) -> Vec<Scored> {
        let slot = rendezgo::slot_of(self.group.name().as_str(), unit);
        let scratch = &mut self.scratch;
        let pinned = self.pins.get(&unit).copied();
        let score = |&(number, peer): &(u32, &Peer)| {
            let hash = rendezgo::hash(&slot, &peer.id, scratch);
            // The score only rises with the hash, and its logarithm costs more.
            let score = match self.is_even {
                _ if pinned == Some(number) => f64::INFINITY,
                true => hash as f64,
                false => rendezgo::score(hash, peer.info.weight),
            };
            Scored {
                peer: number,
                score,
            }
        };
        let sized = self.peers.iter().zip(&self.sizes);
        let serving = sized.filter(|(_, size)| unit < **size);
        serving.map(|(peer, _)| peer).map(score).collect()
    }

    /// The first for a unit, and how many come before this worker.
    fn place(&mut self, unit: u32, me: u32) -> Place {
        let all = self.scored(unit);
        let better =
            |a: Scored, b: Scored| a.score > b.score || a.score == b.score && a.peer < b.peer;
        let best = all
            .iter()
            .copied()
            .reduce(|a, b| if better(b, a) { b } else { a });
        let mine = all.iter().copied().find(|scored| scored.peer == me);
        let before = |mine| all.iter().filter(|other| better(**other, mine)).count();
        Place {
            desired: best.map(|best| best.peer),
            rank: mine.map(|mine| before(mine) as u32),
            is_capped: false,
        }
    }

    /// All who may have a unit, the first first.
    fn ranking(&mut self, unit: u32) -> Vec<Scored> {
        let mut ranking = self.scored(unit);
        // Peers come in order of their ids, and a stable sort keeps that.
        ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranking
    }
}

/// Gives every served unit its place.
pub(super) fn place_all(
    units: &mut Units,
    groups: &[Group],
    roster: &Roster,
    known: (&Wishes, &Hashes),
    (looks_at_served, looks_at_room): (bool, bool),
) {
    let serves = |group: &Group| {
        let group = group.clone();
        move |peer: &Peer| match looks_at_served {
            true => peer.is_eligible(&group),
            false => peer.info.healthy && peer.info.weight > 0.0 && !peer.info.drained,
        }
    };
    let mut is_limited = false;
    for group in groups {
        let mut scores = Scores::new(group, roster, known, serves(group));
        is_limited |= scores
            .peers
            .iter()
            .any(|(_, peer)| peer.info.max_partitions.is_some() || peer.room_in(group).is_some());
        let places = scores.place_known(roster.me());
        for (index, number) in (0_u32..).zip(units.of(group).to_vec()) {
            let place = places.as_ref().map(|places| places[index as usize]);
            // Pins are few, and not a matter of hashes.
            let place = place.filter(|_| !scores.pins.contains_key(&index));
            let place = place.unwrap_or_else(|| scores.place(index, roster.me()));
            units.get_mut(number).place = place;
        }
    }
    if is_limited && looks_at_room {
        let scores = groups
            .iter()
            .map(|group| Scores::new(group, roster, known, serves(group)));
        Matching::new(units, groups, roster, scores.collect()).settle(units);
    }
}

/// What is known of a unit whose ranking is told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing<'a> {
    /// Who has it, or has just got it, or should.
    pub(super) taker: Option<&'a str>,
    pub(super) place: Place,
    /// Nobody had it, until its taker took it.
    pub(super) was_free: bool,
    /// Whose lease ran out, by its id.
    pub(super) lapsed: Option<&'a str>,
}

/// How all live workers rank for a unit, and why those that come before its
/// taker did not get it.
pub(super) fn explain(
    group: &Group,
    unit: u32,
    (roster, wishes): (&Roster, &Wishes),
    standing: &Standing<'_>,
) -> Vec<Considered> {
    let hashes = Hashes::default();
    let mut scores = Scores::new(group, roster, (wishes, &hashes), |_| true);
    // As people know them, whatever is quicker to compare.
    scores.is_even = false;
    // Those who may not have it are told, too.
    scores.sizes.fill(u32::MAX);
    let ranking = scores.ranking(unit);
    let is_taker = |peer: &Peer| standing.taker == Some(&*peer.name);
    let taken = ranking
        .iter()
        .position(|scored| is_taker(&roster.peers()[scored.peer as usize]));
    let desired = ranking
        .iter()
        .position(|scored| Some(scored.peer) == standing.place.desired);
    let considered = ranking.iter().enumerate().map(|(rank, scored)| {
        let peer = &roster.peers()[scored.peer as usize];
        // Limits alone let a later one have it.
        let is_full = standing.place.is_capped || desired.is_some_and(|desired| rank < desired);
        let is_late = standing.was_free && taken.is_some_and(|taken| rank < taken);
        let rejected = refusal(peer, group, unit, wishes).or_else(|| {
            let is_gone = standing.lapsed == Some(&*peer.id);
            let why = match (is_gone, is_full, is_late) {
                (true, ..) => "is gone: its lease ran out",
                (_, true, _) => "has as many as it may (cap)",
                (.., true) => "did not take it in time",
                _ => return None,
            };
            Some(why.to_owned())
        });
        Considered {
            worker: peer.name.to_string(),
            score: Some(scored.score).filter(|score| score.is_finite()),
            rejected: rejected.filter(|_| !is_taker(peer)),
        }
    });
    considered.collect()
}

/// Why a worker is not given a unit of a group.
fn refusal(peer: &Peer, group: &Group, unit: u32, wishes: &Wishes) -> Option<String> {
    let size = peer.units_of(group);
    let why = if !peer.info.healthy {
        "is not healthy"
    } else if peer.info.weight <= 0.0 {
        "weighs nothing"
    } else if peer.info.drained || wishes.is_drained(&peer.name) {
        "is drained"
    } else if peer.is_cordoned {
        "is cordoned"
    } else if !peer.serves(group) {
        "does not serve it"
    } else if unit >= size {
        return Some(format!("serves only the first {size} units of it"));
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// A unit that asks: its group and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asking {
    group: u32,
    index: u32,
    number: u32,
}

/// What a worker keeps for now: lowest score first. Scores are never below 0,
/// so their bits are in their order.
type Kept = BTreeSet<(u64, Asking)>;

struct Matching<'a> {
    groups: &'a [Group],
    roster: &'a Roster,
    scores: Vec<Scores<'a>>,
    /// The rankings of units that were turned away, and whom each asks next.
    rankings: Vec<Option<(Vec<Scored>, usize)>>,
    kept: Vec<Kept>,
    kept_of_group: BTreeMap<(u32, u32), Kept>,
    queue: VecDeque<Asking>,
}

impl<'a> Matching<'a> {
    fn new(
        units: &Units,
        groups: &'a [Group],
        roster: &'a Roster,
        scores: Vec<Scores<'a>>,
    ) -> Self {
        let mut queue = VecDeque::new();
        for (group, served) in (0_u32..).zip(groups) {
            for (index, &number) in (0_u32..).zip(units.of(served)) {
                queue.push_back(Asking {
                    group,
                    index,
                    number,
                });
            }
        }
        let peers = roster.peers().len();
        Self {
            groups,
            roster,
            scores,
            rankings: vec![None; units.len()],
            kept: vec![Kept::new(); peers],
            kept_of_group: BTreeMap::new(),
            queue,
        }
    }

    fn settle(mut self, units: &mut Units) {
        while let Some(asking) = self.queue.pop_front() {
            let next = self.next_choice(asking);
            let place = &mut units.get_mut(asking.number).place;
            // Where nobody may, nobody was asked.
            place.is_capped = next.is_none() && place.desired.is_some();
            place.desired = next.map(|scored| scored.peer);
            if let Some(scored) = next {
                self.ask(asking, scored);
            }
        }
    }

    fn next_choice(&mut self, asking: Asking) -> Option<Scored> {
        let scores = &mut self.scores[asking.group as usize];
        let (ranking, next) = self.rankings[asking.number as usize]
            .get_or_insert_with(|| (scores.ranking(asking.index), 0));
        let scored = ranking.get(*next).copied();
        *next += 1;
        scored
    }

    fn ask(&mut self, asking: Asking, scored: Scored) {
        let peer = &self.roster.peers()[scored.peer as usize];
        let group = &self.groups[asking.group as usize];
        let entry = (scored.score.to_bits(), asking);
        let kept = &mut self.kept[scored.peer as usize];
        let of_group = self.kept_of_group.entry((scored.peer, asking.group));
        let of_group = of_group.or_default();
        kept.insert(entry);
        of_group.insert(entry);
        let over = |most: Option<u32>, count: usize| most.is_some_and(|most| count > most as usize);
        let turned_away = if over(peer.room_in(group), of_group.len()) {
            of_group.first().copied()
        } else if over(peer.info.max_partitions, kept.len()) {
            kept.first().copied()
        } else {
            None
        };
        if let Some(entry) = turned_away {
            kept.remove(&entry);
            let of_group = self.kept_of_group.get_mut(&(scored.peer, entry.1.group));
            of_group
                .expect("what is kept is kept in its group")
                .remove(&entry);
            self.queue.push_back(entry.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::store::{self, WorkerId, WorkerInfo};

    /// The places of 300 units, as the fourth of seven workers sees them.
    fn places(weights: [f64; 7], wishes: &Control, shares: bool) -> Vec<Place> {
        let groups = [Group::new("orders", 200), Group::new("mails", 100)];
        let groups = groups.map(|group| group.expect("a valid group"));
        let worker = |number: usize| WorkerId::new("c", &format!("w{number}")).expect("a name");
        let info = |weight: f64| WorkerInfo {
            weight,
            ..WorkerInfo::default()
        };
        let members = weights.iter().enumerate().map(|(number, weight)| {
            let name = worker(number).name.to_string();
            let info = info(*weight).to_json().ok();
            store::Member { name, info }
        });
        let members: Vec<store::Member> = members.collect();
        let mut wished = Wishes::default();
        let text = String::from_utf8(wishes.encode()).expect("wishes are JSON");
        wished.read(Some(&text));
        let mut roster = Roster::default();
        roster.update(&worker(3), &info(weights[3]), 1.0, &members, &wished);
        let mut hashes = Hashes::default();
        for group in groups.iter().filter(|_| shares) {
            (0..7).for_each(|number| hashes.add(group, &worker(number)));
        }
        let mut units = Units::default();
        units.serve(&groups);
        place_all(
            &mut units,
            &groups,
            &roster,
            (&wished, &hashes),
            (true, true),
        );
        units.iter().map(|(_, unit)| unit.place).collect()
    }

    #[test]
    fn hashes_that_are_shared_change_no_place() {
        let mut wishes = Control::default();
        wishes.cordoned.insert("w5".into());
        wishes.pinned.insert("orders:17".into(), "w1".into());
        for weights in [[1.0; 7], [1.0, 2.0, 0.5, 1.5, 0.0, 3.0, 1.0]] {
            for wishes in [&Control::default(), &wishes] {
                let alone = places(weights, wishes, false);
                assert_eq!(alone, places(weights, wishes, true), "{weights:?}");
                assert!(alone.iter().any(|place| place.rank == Some(0)));
            }
        }
    }
}
