//! Rings of virtual nodes by hashring, consistent_hash and pingora-ketama.

use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr};

use consistent_hash::{DefaultHash, RingHash, StaticHashRing};
use pingora_ketama::{Bucket, Continuum, Version};

use super::{Fold, Placer};
use crate::scene::Node;

/// A point of a worker on the ring of hashring, which leaves virtual nodes to its user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point<'a> {
    node: Node<'a>,
    replica: u32,
}

impl Hash for Point<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.node.hash(state);
        self.replica.hash(state);
    }
}

/// The crate hashring.
pub(crate) struct HashRing<'a, S> {
    ring: hashring::HashRing<Point<'a>, S>,
}

impl<'a, S: BuildHasher> HashRing<'a, S> {
    /// All points added at once: its fast way.
    pub(crate) fn new(nodes: &[Node<'a>], points: u32, hasher: S) -> Self {
        let mut ring = hashring::HashRing::with_hasher(hasher);
        let replicas = |&node| (0..points).map(move |replica| Point { node, replica });
        ring.batch_add(nodes.iter().flat_map(replicas).collect());
        Self { ring }
    }
}

impl<S: BuildHasher> Placer for HashRing<'_, S> {
    fn owner(&self, key: &str) -> u32 {
        self.ring.get(&key).expect("there are points").node.index
    }
}

/// A [`RingHash`] with the fast hasher.
#[derive(Debug, Default)]
pub(crate) struct FoldRingHash(Fold);

impl RingHash for FoldRingHash {
    fn hash_item<T: Hash>(&self, item: &T) -> u64 {
        self.0.hash_one(item)
    }
}

/// The crate consistent_hash.
pub(crate) struct ConsistentHash<'a, H> {
    ring: StaticHashRing<'a, &'a str, u32, H>,
}

impl<'a> ConsistentHash<'a, DefaultHash> {
    /// With the crate's own hasher.
    pub(crate) fn new(nodes: &[Node<'a>], points: u32) -> Self {
        Self::with(nodes, points, DefaultHash)
    }
}

impl<'a> ConsistentHash<'a, FoldRingHash> {
    /// With the fast hasher.
    pub(crate) fn new_fold(nodes: &[Node<'a>], points: u32) -> Self {
        Self::with(nodes, points, FoldRingHash::default())
    }
}

impl<'a, H: RingHash> ConsistentHash<'a, H> {
    fn with(nodes: &[Node<'a>], points: u32, hash: H) -> Self {
        let nodes = nodes.iter().map(|node| {
            consistent_hash::Node::new(node.name)
                .value(node.index)
                .quantity(points as usize)
        });
        Self {
            ring: StaticHashRing::new(hash, nodes),
        }
    }
}

impl<H: RingHash> Placer for ConsistentHash<'_, H> {
    fn owner(&self, key: &str) -> u32 {
        let mut candidates = self.ring.calc_candidates(&key);
        candidates.next().expect("there are points").value
    }
}

/// Which of pingora-ketama's rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KetamaVersion {
    /// The default: 160 points for each unit of weight, which cannot be changed.
    One,
    /// The one with points of 6 bytes, behind a feature.
    Two,
}

impl KetamaVersion {
    /// How many points a worker has that was to have `points`.
    pub(crate) fn points(self, points: u32) -> u32 {
        match self {
            Self::One => pingora_ketama::DEFAULT_POINT_MULTIPLE,
            Self::Two => points,
        }
    }
}

/// The crate pingora-ketama. It knows workers by socket address only; the address holds the index.
pub(crate) struct Ketama {
    ring: Continuum,
}

impl Ketama {
    /// What it asks for, made beforehand.
    pub(crate) fn buckets(nodes: &[Node<'_>]) -> Vec<Bucket> {
        let address = |index: u32| SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + index), 9000));
        let bucket = |node: &Node<'_>| Bucket::new(address(node.index), node.weight);
        nodes.iter().map(bucket).collect()
    }

    /// Of a version, with so many points where that can be chosen.
    pub(crate) fn new(buckets: &[Bucket], version: KetamaVersion, points: u32) -> Self {
        let version = match version {
            KetamaVersion::One => Version::V1,
            KetamaVersion::Two => Version::V2 {
                point_multiple: points,
            },
        };
        Self {
            ring: Continuum::new_with_version(buckets, version),
        }
    }
}

impl Placer for Ketama {
    fn owner(&self, key: &str) -> u32 {
        match self.ring.node(key.as_bytes()) {
            Some(SocketAddr::V4(address)) => u32::from(*address.ip()) & 0x00ff_ffff,
            _ => unreachable!("all buckets have addresses of version 4"),
        }
    }
}
