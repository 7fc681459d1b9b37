//! How even the loads are, and how much moves when a worker joins or leaves.

use divvy_core::{ConsistentHash, Rendezvous, Strategy, Workers};

use super::{Arena, Section, Unit};
use crate::peer::{
    self, Anchor, Candidates, Carp, Fold, HashRing, Hrw, HrwHash, Jump, Ketama, KetamaVersion,
    Maglev, Placer, Replicated, Sip, Weighted,
};
use crate::scene::{self, Node, Scene};

/// Virtual nodes per worker.
const POINTS: u32 = 150;

/// The owner of each key, given the workers at the start and those now.
type Place = for<'a> fn(&'a [Node<'a>], &'a [Node<'a>], &[String]) -> Vec<u32>;

/// The peers that hash keys to workers directly, beside divvy's rendezvous.
const DIRECT: [(&str, Place); 12] = [
    ("hrw", |_, now, keys| Hrw::<Sip>::new(now).owners(keys)),
    ("hrw + foldhash", |_, now, keys| {
        Hrw::<Fold>::new(now).owners(keys)
    }),
    ("hrw-hash", |_, now, keys| HrwHash::new(now).owners(keys)),
    ("rendezvous_hash", |_, now, keys| {
        Candidates::plain(now).owners(keys)
    }),
    ("hash-rings rendezvous", |_, now, keys| {
        Replicated::<Sip>::new(now).owners(keys)
    }),
    ("hash-rings weighted", |_, now, keys| {
        Weighted::<Sip>::new(now).owners(keys)
    }),
    ("hash-rings carp", |_, now, keys| {
        Carp::<Sip>::new(now).owners(keys)
    }),
    ("hash-rings carp + foldhash", |_, now, keys| {
        Carp::<Fold>::new(now).owners(keys)
    }),
    ("anchorhash", |before, now, keys| {
        Anchor::<Sip>::new(before, now).owners(keys)
    }),
    ("jumphash", |_, now, keys| Jump::new(now).owners(keys)),
    ("maglev", |before, now, keys| {
        Maglev::new(before, now).owners(keys)
    }),
    ("cruster", |_, now, keys| {
        let names = peer::Cluster::new(now, keys.len()).names(keys);
        let index = |name: &String| {
            let found = now.binary_search_by(|node| node.name.cmp(name));
            now[found.expect("owners are among the nodes")].index
        };
        names.iter().map(index).collect()
    }),
];

/// The peers with a ring, beside divvy's.
const RINGS: [(&str, Place); 5] = [
    ("hashring", |_, now, keys| {
        HashRing::new(now, POINTS, hashring::DefaultHashBuilder).owners(keys)
    }),
    ("hashring + foldhash", |_, now, keys| {
        HashRing::new(now, POINTS, Fold::default()).owners(keys)
    }),
    ("consistent_hash", |_, now, keys| {
        peer::ConsistentHash::new(now, POINTS).owners(keys)
    }),
    ("pingora-ketama", |_, now, keys| {
        Ketama::new(&Ketama::buckets(now), KetamaVersion::One, POINTS).owners(keys)
    }),
    ("pingora-ketama v2", |_, now, keys| {
        Ketama::new(&Ketama::buckets(now), KetamaVersion::Two, POINTS).owners(keys)
    }),
];

fn workers(nodes: &[Node<'_>]) -> Workers {
    Workers::of(nodes.iter().map(|node| node.name)).expect("names are distinct")
}

fn rendezvous(_: &[Node<'_>], now: &[Node<'_>], keys: &[String]) -> Vec<u32> {
    let partitions = scene::shards(keys.len());
    let assignment = Rendezvous::new().assign(&workers(now), &partitions, None);
    let assignment = assignment.expect("there are workers");
    let index = |&owner: &u32| now[owner as usize].index;
    assignment.owners().iter().map(index).collect()
}

fn ring(_: &[Node<'_>], now: &[Node<'_>], keys: &[String]) -> Vec<u32> {
    ring_of(POINTS, now, keys)
}

/// With as many points as pingora-ketama has by default.
fn ring_like_ketama(_: &[Node<'_>], now: &[Node<'_>], keys: &[String]) -> Vec<u32> {
    ring_of(KetamaVersion::One.points(POINTS), now, keys)
}

fn ring_of(points: u32, now: &[Node<'_>], keys: &[String]) -> Vec<u32> {
    let strategy = ConsistentHash::new().with_virtual_nodes(points);
    let ring = strategy.ring(&workers(now)).expect("there are workers");
    let owners = ring.owners(keys).into_iter();
    owners.map(|owner| now[owner as usize].index).collect()
}

/// All peers with the strategy of divvy that does the same.
fn pairs() -> impl Iterator<Item = (&'static str, Place, Place)> {
    let direct = DIRECT.map(|(peer, place)| (peer, place, rendezvous as Place));
    let rings = RINGS.map(|(peer, place)| match peer {
        "pingora-ketama" => (peer, place, ring_like_ketama as Place),
        _ => (peer, place, ring as Place),
    });
    direct.into_iter().chain(rings)
}

/// The heaviest worker and the deviation, both as multiples of the mean.
pub(super) fn spread(arena: &mut Arena<'_>) {
    let (keys, workers) = arena.sizes.spread;
    let jobs = [
        format!("spread {keys}x{workers}, max/mean"),
        format!("spread {keys}x{workers}, stddev/mean"),
    ];
    let scene = Scene::equal(keys, workers);
    let nodes = scene.nodes();
    let measure = |place: Place| loads(&place(&nodes, &nodes, &scene.keys), workers);
    for (peer, theirs, ours) in pairs() {
        if !jobs.iter().any(|job| arena.wants(job, peer)) {
            continue;
        }
        let (theirs, ours) = (measure(theirs), measure(ours));
        let sides = [(theirs.0, ours.0), (theirs.1, ours.1)];
        for (job, sides) in jobs.iter().zip(sides) {
            if arena.wants(job, peer) {
                arena.record(Section::Spread, job, peer, Unit::Share, sides);
            }
        }
    }
}

fn loads(owners: &[u32], workers: usize) -> (f64, f64) {
    let mut counts = vec![0u32; workers];
    for &owner in owners {
        counts[owner as usize] += 1;
    }
    let mean = owners.len() as f64 / workers as f64;
    let over_mean = || counts.iter().map(|&count| f64::from(count) / mean);
    let variance = over_mean().map(|load| (load - 1.0).powi(2)).sum::<f64>() / workers as f64;
    (over_mean().fold(0.0, f64::max), variance.sqrt())
}

/// What moves, as a multiple of what has to: the newcomer's keys, or those of the one that left.
pub(super) fn movement(arena: &mut Arena<'_>) {
    let (keys, workers) = arena.sizes.spread;
    let jobs = [
        format!("moves {keys}x{workers}, one joins"),
        format!("moves {keys}x{workers}, one leaves"),
    ];
    let scene = Scene::equal(keys, workers + 1);
    let all = scene.nodes();
    let before = &all[..workers];
    let leaver = before[workers / 2];
    let fewer: Vec<Node<'_>> = before
        .iter()
        .copied()
        .filter(|node| *node != leaver)
        .collect();
    let measure = |place: Place| {
        let owners = place(before, before, &scene.keys);
        let joined = place(before, &all, &scene.keys);
        let left = place(before, &fewer, &scene.keys);
        let moved = |after: &[u32]| owners.iter().zip(after).filter(|(a, b)| a != b).count();
        let has = |owners: &[u32], node: Node<'_>| {
            owners.iter().filter(|&&owner| owner == node.index).count()
        };
        [
            moved(&joined) as f64 / has(&joined, all[workers]) as f64,
            moved(&left) as f64 / has(&owners, leaver) as f64,
        ]
    };
    for (peer, theirs, ours) in pairs() {
        if !jobs.iter().any(|job| arena.wants(job, peer)) {
            continue;
        }
        let sides = measure(theirs).into_iter().zip(measure(ours));
        for (job, sides) in jobs.iter().zip(sides) {
            if arena.wants(job, peer) {
                arena.record(Section::Movement, job, peer, Unit::Share, sides);
            }
        }
    }
}
