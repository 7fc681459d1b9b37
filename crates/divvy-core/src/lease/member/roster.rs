//! The live workers of the cluster, as they say of themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::wishes::Wishes;
use crate::lease::group::Group;
use crate::store::{self, LeaseName, WorkerId, WorkerInfo};

/// A live worker.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Peer {
    /// `cluster:name`, as scores and leases have it.
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    pub(super) info: WorkerInfo,
    /// Operators wish that it takes nothing more.
    pub(super) is_cordoned: bool,
    served: Option<BTreeSet<Box<str>>>,
}

impl Peer {
    fn new(cluster: &str, name: &str, mut info: WorkerInfo) -> Self {
        // For people: nobody places anything anew because of it.
        info.unconfirmed.clear();
        let served = info.groups.as_ref();
        Self {
            id: format!("{cluster}:{name}").into(),
            name: name.into(),
            served: served.map(|groups| groups.iter().map(|group| group.as_str().into()).collect()),
            info,
            is_cordoned: false,
        }
    }

    /// Whether it may be given partitions of this group.
    pub(super) fn is_eligible(&self, group: &Group) -> bool {
        let is_able = self.info.healthy && self.info.weight > 0.0;
        let is_held_back = self.is_cordoned || self.info.drained;
        is_able && !is_held_back && self.serves(group)
    }

    pub(super) fn serves(&self, group: &Group) -> bool {
        let served = self.served.as_ref();
        served.is_none_or(|served| served.contains(group.name().as_str()))
    }

    /// How many units it takes this group to have, as it says; more than there
    /// are, where it does not.
    pub(super) fn units_of(&self, group: &Group) -> u32 {
        let told = self.info.partitions.get(group.name().as_str());
        told.copied().unwrap_or(u32::MAX)
    }

    /// How many partitions of this group it may have.
    pub(super) fn room_in(&self, group: &Group) -> Option<u32> {
        let limits = [self.info.max_per_group, group.max_per_worker()];
        limits.into_iter().flatten().min()
    }
}

/// All of them, in order of their ids, and this worker always among them.
#[derive(Debug, Clone, Default)]
pub(super) struct Roster {
    peers: Vec<Peer>,
    /// The number of this worker.
    me: u32,
    /// What cannot be read is told once: the texts that were.
    told: BTreeMap<Box<str>, String>,
    /// Numbers of units have just changed: others are about to say that they
    /// know of it, and what they said before does not count.
    pub(super) numbers_are_new: bool,
}

impl Roster {
    pub(super) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    pub(super) const fn me(&self) -> u32 {
        self.me
    }

    /// The number of the peer with this id.
    pub(super) fn find(&self, id: &str) -> Option<u32> {
        let peers = self.peers.binary_search_by(|peer| (*peer.id).cmp(id));
        peers.ok().map(|index| index as u32)
    }

    /// Takes in who is alive; gives what could not be read. `me` is what this
    /// worker says of itself, whatever the store has.
    pub(super) fn update(
        &mut self,
        worker: &WorkerId,
        me: &WorkerInfo,
        default_weight: f64,
        members: &[store::Member],
        wishes: &Wishes,
    ) -> Vec<String> {
        let is_other = |member: &&store::Member| member.name != worker.name.as_str();
        let others: Vec<_> = members.iter().filter(is_other).collect();
        let (mut peers, problems) = self.read(&worker.cluster, default_weight, &others);
        let cluster = worker.cluster.as_str();
        peers.push(Peer::new(cluster, worker.name.as_str(), me.clone()));
        self.set(peers, wishes);
        let id = worker.to_string();
        self.me = self.find(&id).unwrap_or_default();
        problems
    }

    /// The same for somebody who is not among them.
    pub(super) fn look(
        &mut self,
        cluster: &LeaseName,
        default_weight: f64,
        members: &[store::Member],
        wishes: &Wishes,
    ) -> Vec<String> {
        let members: Vec<_> = members.iter().collect();
        let (peers, problems) = self.read(cluster, default_weight, &members);
        self.set(peers, wishes);
        self.me = u32::MAX;
        problems
    }

    fn read(
        &mut self,
        cluster: &LeaseName,
        default_weight: f64,
        members: &[&store::Member],
    ) -> (Vec<Peer>, Vec<String>) {
        let mut problems = Vec::new();
        let peers = members.iter().map(|member| {
            let unspoken = WorkerInfo {
                weight: default_weight,
                ..WorkerInfo::default()
            };
            let info = match &member.info {
                None => unspoken,
                Some(text) => match WorkerInfo::from_json(text) {
                    Ok(info) => info,
                    Err(error) => {
                        problems.extend(self.tell(cluster, &member.name, text, &error));
                        // Nobody waits for one that may not be there.
                        self.known(&member.name).unwrap_or(WorkerInfo {
                            healthy: false,
                            ..unspoken
                        })
                    }
                },
            };
            Peer::new(cluster.as_str(), &member.name, info)
        });
        (peers.collect(), problems)
    }

    fn set(&mut self, mut peers: Vec<Peer>, wishes: &Wishes) {
        for peer in &mut peers {
            peer.is_cordoned = wishes.is_cordoned(&peer.name);
        }
        peers.sort_by(|a, b| a.id.cmp(&b.id));
        self.told
            .retain(|name, _| peers.iter().any(|peer| peer.name == *name));
        self.peers = peers;
    }

    /// What was last read of a worker.
    fn known(&self, name: &str) -> Option<WorkerInfo> {
        let peer = self.peers.iter().find(|peer| &*peer.name == name)?;
        Some(peer.info.clone())
    }

    /// The problem with what a worker says of itself, unless it was told.
    fn tell(
        &mut self,
        cluster: &LeaseName,
        name: &str,
        text: &str,
        error: &crate::Error,
    ) -> Option<String> {
        if self.told.get(name).is_some_and(|told| told == text) {
            return None;
        }
        self.told.insert(name.into(), text.to_owned());
        Some(format!(
            "worker {name:?} says of itself, divvy:info:{cluster}:{name} in Redis, what cannot be \
             read, so the last good is kept, and without one it is given nothing: {error}"
        ))
    }
}
