//! Joins and leaves against a run from scratch.

use std::cell::RefCell;

use divvy_core::{Rendezvous, Strategy, Worker, Workers};

use super::{Arena, Section};
use crate::clock::timed;
use crate::scene::{Scene, name};

/// One worker joins, or one of the others leaves.
pub(super) fn join_and_leave(arena: &mut Arena<'_>) {
    let (keys, workers) = (arena.sizes.keys, arena.sizes.many_workers);
    let join = format!("join {keys}x{workers}");
    let leave = format!("leave {keys}x{workers}");
    let peer = "full run";
    if !arena.wants(&join, peer) && !arena.wants(&leave, peer) {
        return;
    }
    let scene = Scene::equal(keys, workers);
    let strategy = Rendezvous::new();
    let live = strategy.live(&scene.workers, &scene.partitions);
    let live = RefCell::new(live.expect("there are workers"));
    let newcomer = Worker::new(name(workers)).expect("a valid name");
    let leaver = scene.workers.as_slice()[workers / 2].clone();
    let full = |workers: &Workers| {
        let assignment = strategy.assign(workers, &scene.partitions, None);
        assignment.expect("there are workers")
    };

    if arena.wants(&join, peer) {
        let more = Workers::new(scene.workers.iter().cloned().chain([newcomer.clone()]));
        let more = more.expect("names are distinct");
        let run = || {
            let newcomer = newcomer.clone();
            let time = timed(|| live.borrow_mut().join(newcomer).expect("it is new"));
            live.borrow_mut()
                .leave(&name(workers))
                .expect("it has joined");
            time
        };
        live.borrow_mut().join(newcomer.clone()).expect("it is new");
        assert_eq!(
            live.borrow().assignment().expect("workers"),
            full(&more),
            "{join}"
        );
        live.borrow_mut()
            .leave(newcomer.id())
            .expect("it has joined");
        arena.duel(
            Section::Assignment,
            &join,
            peer,
            || timed(|| full(&more)),
            run,
        );
    }
    if arena.wants(&leave, peer) {
        let stay = |worker: &&Worker| worker.id() != leaver.id();
        let fewer = Workers::new(scene.workers.iter().filter(stay).cloned());
        let fewer = fewer.expect("names are distinct");
        let run = || {
            let time = timed(|| live.borrow_mut().leave(leaver.id()).expect("it is there"));
            live.borrow_mut().join(leaver.clone()).expect("it has left");
            time
        };
        live.borrow_mut().leave(leaver.id()).expect("it is there");
        assert_eq!(
            live.borrow().assignment().expect("workers"),
            full(&fewer),
            "{leave}"
        );
        live.borrow_mut().join(leaver.clone()).expect("it has left");
        arena.duel(
            Section::Assignment,
            &leave,
            peer,
            || timed(|| full(&fewer)),
            run,
        );
    }
}
