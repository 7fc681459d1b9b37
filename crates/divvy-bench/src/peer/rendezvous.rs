//! Rendezvous hashing by hrw, hrw-hash, rendezvous_hash and hash-rings.

use std::hash::{BuildHasher, Hash};

use hash_rings::{carp, rendezvous, weighted_rendezvous};
use hrw_hash::{HrwNode, HrwNodes};
use rendezvous_hash::{
    Capacity, DefaultNodeHasher, KeyValueNode, NodeHasher, RendezvousNodes, WeightedNode,
};

use super::{Fold, Placer, hash_pair};
use crate::scene::Node;

/// The crate hrw.
pub(crate) struct Hrw<'a, S> {
    nodes: hrw::Rendezvous<Node<'a>, S>,
}

impl<'a, S: BuildHasher + Clone + Default> Hrw<'a, S> {
    /// Weights are not known to it.
    pub(crate) fn new(nodes: &[Node<'a>]) -> Self {
        Self {
            nodes: hrw::Rendezvous::from_nodes_and_hasher(nodes.iter().copied(), S::default()),
        }
    }
}

impl<S: BuildHasher + Clone> Placer for Hrw<'_, S> {
    fn owner(&self, key: &str) -> u32 {
        self.nodes.pick_top(&key).expect("there are nodes").index
    }
}

impl HrwNode for Node<'_> {
    fn capacity(&self) -> usize {
        self.weight as usize
    }
}

/// The crate hrw-hash. Its default hasher is rapidhash with a fixed seed: fast already.
pub(crate) struct HrwHash<'a> {
    nodes: HrwNodes<Node<'a>>,
}

impl<'a> HrwHash<'a> {
    /// Weights are capacities.
    pub(crate) fn new(nodes: &[Node<'a>]) -> Self {
        Self {
            nodes: HrwNodes::new(nodes.iter().copied()),
        }
    }
}

impl Placer for HrwHash<'_> {
    fn owner(&self, key: &str) -> u32 {
        self.nodes
            .sorted(&key)
            .next()
            .expect("there are nodes")
            .index
    }
}

/// A [`NodeHasher`] like the default one, with another hasher.
#[derive(Debug, Default)]
pub(crate) struct FoldNodeHasher(Fold);

impl<N: Hash> NodeHasher<N> for FoldNodeHasher {
    fn hash<T: Hash>(&self, node: &N, item: &T) -> u64 {
        hash_pair(&self.0, item, node)
    }
}

type Named<'a> = KeyValueNode<&'a str, u32>;

/// The crate rendezvous_hash.
pub(crate) struct Candidates<N: rendezvous_hash::Node, H> {
    nodes: RendezvousNodes<N, H>,
    index_of: fn(&N) -> u32,
}

impl<'a, H: NodeHasher<&'a str>> Candidates<Named<'a>, H> {
    fn equal(nodes: &[Node<'a>], hasher: H) -> Self {
        let mut set = RendezvousNodes::new(hasher);
        for node in nodes {
            set.insert(KeyValueNode::new(node.name, node.index));
        }
        Self {
            nodes: set,
            index_of: |node| node.value,
        }
    }
}

impl<'a, H: NodeHasher<&'a str>> Candidates<WeightedNode<Named<'a>>, H> {
    fn weighted(nodes: &[Node<'a>], hasher: H) -> Self {
        let mut set = RendezvousNodes::new(hasher);
        for node in nodes {
            let capacity = Capacity::new(f64::from(node.weight)).expect("weights are above 0");
            let named = KeyValueNode::new(node.name, node.index);
            set.insert(WeightedNode::new(named, capacity));
        }
        Self {
            nodes: set,
            index_of: |node| node.node.value,
        }
    }
}

impl<N: rendezvous_hash::Node, H: NodeHasher<N::NodeId>> Placer for Candidates<N, H> {
    fn owner(&self, key: &str) -> u32 {
        let mut candidates = self.nodes.calc_candidates(&key);
        (self.index_of)(candidates.next().expect("there are nodes"))
    }
}

/// The constructors, by weights and hasher.
impl Candidates<Named<'_>, DefaultNodeHasher> {
    /// Equal nodes, the crate's own hasher.
    pub(crate) fn plain<'a>(nodes: &[Node<'a>]) -> Candidates<Named<'a>, DefaultNodeHasher> {
        Candidates::equal(nodes, DefaultNodeHasher::new())
    }

    /// Equal nodes, the fast hasher.
    pub(crate) fn plain_fold<'a>(nodes: &[Node<'a>]) -> Candidates<Named<'a>, FoldNodeHasher> {
        Candidates::equal(nodes, FoldNodeHasher::default())
    }

    /// Nodes with weights, the crate's own hasher.
    pub(crate) fn by_weight<'a>(
        nodes: &[Node<'a>],
    ) -> Candidates<WeightedNode<Named<'a>>, DefaultNodeHasher> {
        Candidates::weighted(nodes, DefaultNodeHasher::new())
    }

    /// Nodes with weights, the fast hasher.
    pub(crate) fn by_weight_fold<'a>(
        nodes: &[Node<'a>],
    ) -> Candidates<WeightedNode<Named<'a>>, FoldNodeHasher> {
        Candidates::weighted(nodes, FoldNodeHasher::default())
    }
}

/// The crate hash-rings, rendezvous: weights are numbers of replicas.
pub(crate) struct Replicated<'a, S> {
    ring: rendezvous::Ring<'a, Node<'a>, S>,
}

impl<'a, S: BuildHasher + Default> Replicated<'a, S> {
    /// A replica for each unit of weight.
    pub(crate) fn new(nodes: &'a [Node<'a>]) -> Self {
        let mut ring = rendezvous::Ring::with_hasher(S::default());
        for node in nodes {
            ring.insert_node(node, node.weight as usize);
        }
        Self { ring }
    }
}

impl<S: BuildHasher> Placer for Replicated<'_, S> {
    fn owner(&self, key: &str) -> u32 {
        self.ring.get_node(&key).index
    }
}

/// The crate hash-rings, weighted rendezvous.
pub(crate) struct Weighted<'a, S> {
    ring: weighted_rendezvous::Ring<'a, Node<'a>, S>,
}

impl<'a, S: BuildHasher + Default> Weighted<'a, S> {
    /// Weights as they are.
    pub(crate) fn new(nodes: &'a [Node<'a>]) -> Self {
        let mut ring = weighted_rendezvous::Ring::with_hasher(S::default());
        for node in nodes {
            ring.insert_node(node, f64::from(node.weight));
        }
        Self { ring }
    }
}

impl<S: BuildHasher> Placer for Weighted<'_, S> {
    fn owner(&self, key: &str) -> u32 {
        self.ring.get_node(&key).index
    }
}

/// The crate hash-rings, the Cache Array Routing Protocol.
pub(crate) struct Carp<'a, S> {
    ring: carp::Ring<'a, Node<'a>, S>,
}

impl<'a, S: BuildHasher + Default> Carp<'a, S> {
    /// Weights as shares of their sum, as it asks for.
    pub(crate) fn new(nodes: &'a [Node<'a>]) -> Self {
        let total: f64 = nodes.iter().map(|node| f64::from(node.weight)).sum();
        let shares = nodes
            .iter()
            .map(|node| carp::Node::new(node, f64::from(node.weight) / total));
        Self {
            ring: carp::Ring::with_hasher(S::default(), shares.collect()),
        }
    }
}

impl<S: BuildHasher> Placer for Carp<'_, S> {
    fn owner(&self, key: &str) -> u32 {
        self.ring.get_node(&key).index
    }
}
