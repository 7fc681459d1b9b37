//! Whole assignments: every partition gets an owner.

use divvy_core::{ConsistentHash, Rendezvous, Scheme, Strategy};

use super::{Arena, Section};
use crate::clock::timed;
use crate::peer::{
    self, Candidates, Carp, Cluster, Fold, Hrw, HrwHash, Ketama, KetamaVersion, Placer, Plain,
    Replicated, Sip, Weighted,
};
use crate::scene::{Node, Scene};

/// Virtual nodes per worker.
const POINTS: u32 = 150;

/// One job: divvy's strategy against peer after peer.
struct Job<'a, 'b, S> {
    arena: &'a mut Arena<'b>,
    name: String,
    scene: &'a Scene,
    strategy: S,
}

impl<S: Strategy> Job<'_, '_, S> {
    /// The peer's structure is built beforehand.
    fn against<P: Placer>(&mut self, peer: &str, make: impl FnOnce() -> P) {
        if !self.arena.wants(&self.name, peer) {
            return;
        }
        let placer = make();
        self.check(&placer.owners(&self.scene.keys));
        let keys = &self.scene.keys;
        self.versus(peer, || timed(|| placer.owners(keys)));
    }

    /// The peer's structure is built on the clock, as divvy's is.
    fn against_built<P: Placer>(&mut self, peer: &str, make: impl Fn() -> P) {
        if !self.arena.wants(&self.name, peer) {
            return;
        }
        let keys = &self.scene.keys;
        self.check(&make().owners(keys));
        self.versus(peer, || timed(|| make().owners(keys)));
    }

    fn versus(&mut self, peer: &str, run: impl FnMut() -> std::time::Duration) {
        let assign = || {
            self.strategy
                .assign(&self.scene.workers, &self.scene.partitions, None)
                .expect("there are workers")
        };
        self.check(assign().owners());
        let section = Section::Assignment;
        let name = &self.name;
        self.arena.duel(section, name, peer, run, || timed(assign));
    }

    /// Every key has an owner that exists.
    fn check(&self, owners: &[u32]) {
        assert_eq!(owners.len(), self.scene.keys.len(), "{}", self.name);
        let exists = |&owner: &u32| (owner as usize) < self.scene.names.len();
        assert!(owners.iter().all(exists), "{}", self.name);
    }
}

/// Equal workers.
pub(super) fn rendezvous(arena: &mut Arena<'_>) {
    let shards = arena.sizes.shards;
    for &workers in arena.sizes.workers {
        let scene = Scene::equal(shards, workers);
        let nodes = scene.nodes();
        let mut job = Job {
            arena: &mut *arena,
            name: format!("rendezvous {shards}x{workers}"),
            scene: &scene,
            strategy: Rendezvous::new(),
        };
        job.against("hrw", || Hrw::<Sip>::new(&nodes));
        job.against("hrw + foldhash", || Hrw::<Fold>::new(&nodes));
        job.against("hrw-hash", || HrwHash::new(&nodes));
        job.against("rendezvous_hash", || Candidates::plain(&nodes));
        job.against("rendezvous_hash + foldhash", || {
            Candidates::plain_fold(&nodes)
        });
        job.against("hash-rings rendezvous", || Replicated::<Sip>::new(&nodes));
        job.against("hash-rings rendezvous + foldhash", || {
            Replicated::<Fold>::new(&nodes)
        });
        job.against("hash-rings carp", || Carp::<Sip>::new(&nodes));
        job.against("hash-rings carp + foldhash", || Carp::<Fold>::new(&nodes));
        if job.arena.wants(&job.name, "cruster") {
            let cluster = Cluster::new(&nodes, shards);
            assert_eq!(cluster.assign().len(), shards);
            job.versus("cruster", || timed(|| cluster.assign()));
        }
    }
}

/// Weights of few classes, and all distinct.
pub(super) fn weighted(arena: &mut Arena<'_>) {
    let (shards, workers) = (arena.sizes.shards, arena.sizes.many_workers);
    let scene = Scene::weighted(shards, workers, |number| (number % 10 + 1) as u32);
    by_weight(
        arena,
        format!("weighted {shards}x{workers}, 10 classes"),
        &scene,
    );
    let scene = Scene::weighted(shards, workers, |number| (number + 1000) as u32);
    by_weight(
        arena,
        format!("weighted {shards}x{workers}, distinct"),
        &scene,
    );
}

fn by_weight(arena: &mut Arena<'_>, name: String, scene: &Scene) {
    let nodes = scene.nodes();
    let strategy = Rendezvous::new();
    let assignment = strategy.assign(&scene.workers, &scene.partitions, None);
    let winners = assignment.expect("there are workers").owners().to_vec();
    assert_eq!(Plain::new(&nodes).owners(&scene.keys), winners, "{name}");
    let mut job = Job {
        arena,
        name,
        scene,
        strategy,
    };
    job.against("hrw-hash", || HrwHash::new(&nodes));
    job.against("rendezvous_hash", || Candidates::by_weight(&nodes));
    job.against("rendezvous_hash + foldhash", || {
        Candidates::by_weight_fold(&nodes)
    });
    job.against("hash-rings weighted", || Weighted::<Sip>::new(&nodes));
    job.against("hash-rings weighted + foldhash", || {
        Weighted::<Fold>::new(&nodes)
    });
    job.against("hash-rings carp", || Carp::<Sip>::new(&nodes));
    job.against("hash-rings carp + foldhash", || Carp::<Fold>::new(&nodes));
    job.against_built("plain f64 loop", || Plain::new(&nodes));
}

/// Rings, built for one assignment.
pub(super) fn rings(arena: &mut Arena<'_>) {
    let (shards, workers) = (arena.sizes.shards, arena.sizes.many_workers);
    let scene = Scene::equal(shards, workers);
    let nodes = scene.nodes();
    let mut job = Job {
        arena,
        name: format!("ring built and used {shards}x{workers}"),
        scene: &scene,
        strategy: ConsistentHash::new(),
    };
    let sip = || hashring::DefaultHashBuilder;
    job.against_built("hashring", || peer::HashRing::new(&nodes, POINTS, sip()));
    job.against_built("hashring + foldhash", || {
        peer::HashRing::new(&nodes, POINTS, Fold::default())
    });
    job.against_built("consistent_hash", || {
        peer::ConsistentHash::new(&nodes, POINTS)
    });
    job.against_built("consistent_hash + foldhash", || {
        peer::ConsistentHash::new_fold(&nodes, POINTS)
    });
    let buckets = Ketama::buckets(&nodes);
    for (peer, version) in [
        ("pingora-ketama", KetamaVersion::One),
        ("pingora-ketama v2", KetamaVersion::Two),
    ] {
        job.strategy = ConsistentHash::new().with_virtual_nodes(version.points(POINTS));
        job.against_built(peer, || Ketama::new(&buckets, version, POINTS));
    }
}

/// The scheme of cruster against cruster, with the same owners.
pub(super) fn cruster_scheme(arena: &mut Arena<'_>) {
    let shards = arena.sizes.shards;
    for &workers in arena.sizes.workers {
        let name = format!("cruster scheme {shards}x{workers}");
        if !arena.wants(&name, "cruster") {
            continue;
        }
        let scene = Scene::equal(shards, workers);
        let nodes: Vec<Node<'_>> = scene.nodes();
        let cluster = Cluster::new(&nodes, shards);
        let strategy = Rendezvous::new().with_scheme(Scheme::Cruster);
        let assignment = strategy
            .assign(&scene.workers, &scene.partitions, None)
            .expect("there are workers");
        let ours = assignment
            .owners()
            .iter()
            .map(|&owner| &scene.names[owner as usize]);
        assert!(cluster.names(&scene.keys).iter().eq(ours), "{name}");
        let mut job = Job {
            arena: &mut *arena,
            name,
            scene: &scene,
            strategy,
        };
        job.versus("cruster", || timed(|| cluster.assign()));
    }
}
