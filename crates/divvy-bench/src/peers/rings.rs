//! Structures for lookups: how long they take to build, to ask, and how much heap they keep.

use divvy_core::{ConsistentHash, Ring};

use super::{Arena, Section};
use crate::clock::timed;
use crate::peer::{self, Anchor, Fold, HashRing, Jump, Ketama, KetamaVersion, Maglev, Placer, Sip};
use crate::scene::{Node, Scene};

/// Virtual nodes per worker.
const POINTS: u32 = 150;

/// Pingora-ketama has a number of points of its own; divvy's ring then has as many.
const KETAMAS: [(&str, KetamaVersion); 2] = [
    ("pingora-ketama", KetamaVersion::One),
    ("pingora-ketama v2", KetamaVersion::Two),
];

fn ring(scene: &Scene, points: u32) -> Ring {
    let strategy = ConsistentHash::new().with_virtual_nodes(points);
    strategy.ring(&scene.workers).expect("there are workers")
}

fn hashring<'a>(nodes: &[Node<'a>]) -> HashRing<'a, hashring::DefaultHashBuilder> {
    HashRing::new(nodes, POINTS, hashring::DefaultHashBuilder)
}

fn hashring_fold<'a>(nodes: &[Node<'a>]) -> HashRing<'a, Fold> {
    HashRing::new(nodes, POINTS, Fold::default())
}

/// Rings of 150 points per worker, and anchorhash for as many workers. Without maglev, which takes
/// seconds and 0.8 GB.
pub(super) fn build(arena: &mut Arena<'_>) {
    let workers = arena.sizes.many_workers;
    let job = format!("ring build {workers}x{POINTS}");
    let scene = Scene::equal(1, workers);
    let nodes = scene.nodes();
    fn against<P>(
        arena: &mut Arena<'_>,
        job: &str,
        peer: &str,
        make: impl Fn() -> P,
        divvy: impl Fn() -> Ring,
    ) {
        if arena.wants(job, peer) {
            arena.duel(Section::Build, job, peer, || timed(&make), || timed(&divvy));
        }
    }
    let ours = || ring(&scene, POINTS);
    against(arena, &job, "hashring", || hashring(&nodes), ours);
    against(
        arena,
        &job,
        "hashring + foldhash",
        || hashring_fold(&nodes),
        ours,
    );
    let consistent = || peer::ConsistentHash::new(&nodes, POINTS);
    against(arena, &job, "consistent_hash", consistent, ours);
    let consistent = || peer::ConsistentHash::new_fold(&nodes, POINTS);
    against(arena, &job, "consistent_hash + foldhash", consistent, ours);
    let buckets = Ketama::buckets(&nodes);
    for (peer, version) in KETAMAS {
        let theirs = || Ketama::new(&buckets, version, POINTS);
        against(arena, &job, peer, theirs, || {
            ring(&scene, version.points(POINTS))
        });
    }
    against(
        arena,
        &job,
        "anchorhash",
        || Anchor::<Sip>::new(&nodes, &nodes),
        ours,
    );
}

/// Every key once.
pub(super) fn lookup(arena: &mut Arena<'_>) {
    let (keys, workers) = (arena.sizes.keys, arena.sizes.many_workers);
    let job = format!("ring lookup {keys}x{workers}");
    let scene = Scene::equal(keys, workers);
    let nodes = scene.nodes();
    fn against<P: Placer>(
        arena: &mut Arena<'_>,
        (job, peer): (&str, &str),
        scene: &Scene,
        points: u32,
        make: impl FnOnce() -> P,
    ) {
        if !arena.wants(job, peer) {
            return;
        }
        let (theirs, ours) = (make(), ring(scene, points));
        let exists = |owner: u32| (owner as usize) < scene.names.len();
        assert!(theirs.owners(&scene.keys).into_iter().all(exists), "{job}");
        assert!(ours.owners(&scene.keys).into_iter().all(exists), "{job}");
        arena.duel(
            Section::Lookup,
            job,
            peer,
            || timed(|| theirs.owners(&scene.keys)),
            || timed(|| ours.owners(&scene.keys)),
        );
    }
    let duel = |peer| (job.as_str(), peer);
    against(arena, duel("hashring"), &scene, POINTS, || hashring(&nodes));
    against(arena, duel("hashring + foldhash"), &scene, POINTS, || {
        hashring_fold(&nodes)
    });
    against(arena, duel("consistent_hash"), &scene, POINTS, || {
        peer::ConsistentHash::new(&nodes, POINTS)
    });
    against(
        arena,
        duel("consistent_hash + foldhash"),
        &scene,
        POINTS,
        || peer::ConsistentHash::new_fold(&nodes, POINTS),
    );
    let buckets = Ketama::buckets(&nodes);
    for (peer, version) in KETAMAS {
        let points = version.points(POINTS);
        against(arena, duel(peer), &scene, points, || {
            Ketama::new(&buckets, version, POINTS)
        });
    }
    against(arena, duel("anchorhash"), &scene, POINTS, || {
        Anchor::<Sip>::new(&nodes, &nodes)
    });
    against(arena, duel("anchorhash + foldhash"), &scene, POINTS, || {
        Anchor::<Fold>::new(&nodes, &nodes)
    });
    against(arena, duel("jumphash"), &scene, POINTS, || {
        Jump::new(&nodes)
    });
    against(arena, duel("maglev"), &scene, POINTS, || {
        Maglev::new(&nodes, &nodes)
    });
}

/// What stays on the heap. Workers' names are borrowed on both sides.
pub(super) fn memory(arena: &mut Arena<'_>) {
    let workers = arena.sizes.many_workers;
    let job = format!("ring memory {workers}x{POINTS}");
    let scene = Scene::equal(1, workers);
    let nodes = scene.nodes();
    let ours = || ring(&scene, POINTS);
    if arena.wants(&job, "hashring") {
        arena.weigh(&job, "hashring", || hashring(&nodes), ours);
    }
    if arena.wants(&job, "consistent_hash") {
        let theirs = || peer::ConsistentHash::new(&nodes, POINTS);
        arena.weigh(&job, "consistent_hash", theirs, ours);
    }
    let buckets = Ketama::buckets(&nodes);
    for (peer, version) in KETAMAS {
        if arena.wants(&job, peer) {
            let theirs = || Ketama::new(&buckets, version, POINTS);
            arena.weigh(&job, peer, theirs, || ring(&scene, version.points(POINTS)));
        }
    }
    if arena.wants(&job, "anchorhash") {
        arena.weigh(
            &job,
            "anchorhash",
            || Anchor::<Sip>::new(&nodes, &nodes),
            ours,
        );
    }
    if arena.wants(&job, "maglev") {
        arena.weigh(&job, "maglev", || Maglev::new(&nodes, &nodes), ours);
    }
}
